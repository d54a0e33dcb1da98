"""Refits on resampled or simulated rows: the variation of estimates."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

from majorant.data.units import distinct_units
from majorant.engine.draws import drawn
from majorant.models.regression_mixture.extras import Extras
from majorant.models.regression_mixture.outcome import PARAMETERS
from majorant.results.bootstrap import Bootstrap, bootstrap_of

Array = NDArray[np.float64]
MOST_COMPARED = 2000
"""Rows at which components are compared."""


@dataclass(frozen=True)
class Rows:
    """Rows of a fit in canonical order, independent of their given order and of repeats written as weights.

    `extras` are keywords of ``fit``; `unit` is what is drawn as one, the group or the row, and `weights` are of units.
    """

    X: Array
    y: Array
    extras: dict[str, Any]
    unit: NDArray[np.intp]
    weights: Array

    def repeated(self) -> Rows:
        """Repeat every unit as often as its weight says.

        Raises
        ------
        ValueError
            If a weight is no whole number.
        """
        if (self.weights != np.round(self.weights)).any():
            raise ValueError(
                "targets cannot be drawn for a part of a row: with sample_weight that are no whole numbers use the "
                "case bootstrap"
            )
        if (self.weights == 1).all():
            return self
        times = self.weights.astype(np.intp)[self.unit]
        at = np.repeat(np.arange(len(self.y)), times)
        copy = np.arange(len(at)) - np.repeat(np.cumsum(times) - times, times)
        _, unit = np.unique(np.column_stack([self.unit[at], copy]), axis=0, return_inverse=True)
        unit = unit.ravel().astype(np.intp)
        extras = {name: values[at] for name, values in self.extras.items()}
        if "groups" in extras:
            extras["groups"] = unit
        return Rows(self.X[at], self.y[at], extras, unit, np.ones(int(unit.max()) + 1))


def rows_of(X: NDArray[Any], y: NDArray[Any], weights: Array | None, extras: Extras) -> Rows:
    """Return distinct units of positive weight, in canonical order."""
    given = {"gating": extras.gating, "offset": extras.offset, "trials": extras.trials}
    beside = {name: np.asarray(v) for name, v in given.items() if v is not None}
    columns = [np.asarray(c, dtype=np.float64) for c in (X, y, *beside.values())]
    found = distinct_units(columns, weights, extras.groups)
    X, y, *others = found.columns
    if extras.groups is None:
        return Rows(X, y, dict(zip(beside, others, strict=True)), np.arange(len(y)), found.weights)
    unit = others.pop()
    first = np.flatnonzero(np.append(True, unit[1:] != unit[:-1]))
    return Rows(X, y, {"groups": unit, **dict(zip(beside, others, strict=True))}, unit, found.weights[first])


def bootstrap(
    model: Any,
    rows: Rows,
    shared: list[Any] | None,
    kind: Literal["parametric", "case"],
    n_resamples: int,
    random: np.random.RandomState,
    n_jobs: int | None,
) -> Bootstrap:
    """Return the refits of a fitted mixture of regressions."""
    if kind == "parametric":
        rows = rows.repeated()
    start = {name: getattr(model, f"{name}_") for name in PARAMETERS}
    if not start["gating_coef"].shape[1]:
        start = {name: value for name, value in start.items() if not name.startswith("gating")}
    refit = clone(model).set_params(init=start, shared=shared, verbose=0, n_jobs=1)
    seeds = random.randint(2**31, size=n_resamples)
    draw = _simulated(model, rows) if kind == "parametric" else _drawn(rows)
    ends = Parallel(n_jobs=n_jobs)(delayed(_refitted)(model, refit, rows, draw, int(seed)) for seed in seeds)
    return bootstrap_of(kind, ends)


Draw = Callable[[np.random.RandomState], tuple[Array, "Array | None"]]


def _simulated(model: Any, rows: Rows) -> Draw:
    """Draw targets from the fit."""

    def draw(random: np.random.RandomState) -> tuple[Array, Array | None]:
        return model.sample(rows.X, random, **rows.extras)[0], None

    return draw


def _drawn(rows: Rows) -> Draw:
    """Draw units with replacement, as many as they weigh; return how often each was drawn, per row."""
    size = max(round(float(rows.weights.sum())), 1)

    def draw(random: np.random.RandomState) -> tuple[Array, Array | None]:
        counts = np.bincount(drawn(rows.weights, random.random_sample(size)), minlength=len(rows.weights))
        return rows.y, counts[rows.unit].astype(np.float64)

    return draw


def _refitted(model: Any, refit: Any, rows: Rows, draw: Draw, seed: int) -> dict[str, Array] | str:
    """Return one refit's parameters in the model's component order, its error, or None where not regular."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y, weights = draw(np.random.RandomState(seed))
        try:
            fitted = clone(refit).set_params(random_state=seed).fit(rows.X, y, sample_weight=weights, **rows.extras)
        except (ValueError, FloatingPointError, np.linalg.LinAlgError) as error:
            return str(error).split(";")[0]
    if not fitted.regular_ or fitted.is_exact_ or (fitted.separated_ and not model.separated_):
        return ""
    order = _matched(model, fitted, rows.X)
    found = {name: np.asarray(getattr(fitted, f"{name}_"))[order] for name in PARAMETERS}
    for name in ("gating_coef", "gating_intercept"):
        found[name] = found[name] - found[name][0]
    return found


def _matched(model: Any, other: Any, X: Array) -> NDArray[np.intp]:
    """Return, for every component of one model, the most similar one of another."""
    x = X[:: max(len(X) // MOST_COMPARED, 1)]
    lines = [np.einsum("ij,kj->ik", x - m.center_, m.coef_) + m.center_fits_ for m in (model, other)]
    noise = model.scale_[:, None] * other.scale_ if model._response.is_location_scale else 1.0
    far = np.mean((lines[0][:, :, None] - lines[1][:, None, :]) ** 2, axis=0) / noise
    table = np.sqrt(far) + np.abs(np.log(model.scale_)[:, None] - np.log(other.scale_))
    return np.asarray(linear_sum_assignment(table + np.abs(model.weights_[:, None] - other.weights_))[1])
