"""The results of a fit, in the units of X and y, by attribute name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.densities import Regression
from majorant.densities.regression import NO_MAXIMUM
from majorant.engine.mixture import Mixture, Parameters
from majorant.engine.runs import mapped
from majorant.engine.trace import Trace
from majorant.engine.trimmed import Trimmed
from majorant.laws.gated import Logits
from majorant.laws.separation import (
    LEAST_PART,
    OF_AWAY,
    line_away,
    of_separated,
    unbounded_directions,
    undetermined_directions,
)
from majorant.models.regression_mixture.contest import RegressionContest, mean_weights, sigma_ratio
from majorant.models.regression_mixture.starts import Theta
from majorant.models.regression_mixture.units import AnyUnits, Units
from majorant.models.regression_mixture.words import SEPARATED, of_degenerate, what_would_admit
from majorant.results.criteria import criteria
from majorant.results.information import standard_errors
from majorant.search.contestants import Found, Run
from majorant.search.record import SearchReport, StartRecord

Array = NDArray[np.float64]
PARAMETERS = ("coef", "intercept", "scale", "weights", "gating_coef", "gating_intercept")


def in_units(units: AnyUnits, theta: Theta) -> dict[str, Array]:
    """Return the coefficients, intercepts, levels at the origin, scales, weights and gating of a batch of mixtures."""
    c = units.coordinates
    slopes, levels = c.coefficients(theta.density.coef)
    weights = mean_weights(units, theta)
    out = {
        "coef": slopes,
        "intercept": levels - np.einsum("skj,j->sk", slopes, c.origin) if c.fit_intercept else np.zeros_like(levels),
        "level": levels,
        "scale": np.sqrt(theta.density.dispersion) * c.sigma,
        "weights": weights,
    }
    if isinstance(theta.law, Logits):
        gates = np.einsum("ig,skg->ski", c.gating_to_user, theta.law.coef)
        return {**out, "gating_coef": gates[..., 1:], "gating_intercept": gates[..., 0]}
    logs = np.log(np.maximum(weights, 1e-300))
    return {**out, "gating_coef": np.zeros((*weights.shape, 0)), "gating_intercept": logs - logs[:, :1]}


def parameters_in_units(units: AnyUnits, theta: Theta) -> dict[str, Array]:
    """Return `in_units` of one mixture."""
    return {name: values[0] for name, values in in_units(units, theta).items()}


def errors_in_units(units: AnyUnits, mixture: Mixture, theta: Theta) -> dict[str, Array]:
    """Return the standard errors by parameter name; NaN where the rows do not determine it.

    Not determined are parameters whose maximum is at infinity, predictors of counts and gating that separates, and
    coefficients of columns that are combinations of others.
    """
    assert isinstance(mixture.density, Regression)
    on = units.on(replace(mixture, density=mixture.density.freed()))
    lost = undetermined_directions(on, theta)
    found = standard_errors(on, theta, unbounded=lost, told=partial(in_units, units)).errors
    lost_slopes, lost_level = units.coordinates.undetermined
    found["coef"][:, lost_slopes] = np.nan
    found["intercept"][lost_level] = np.nan
    if units.gating is not None:  # covariates that are functions of others have no number of their own
        found["gating_coef"][1:, ~units.coordinates.gating_transform[1:].any(axis=1)] = np.nan
    return {name: found[name] for name in PARAMETERS}


def _of_away(units: AnyUnits, mixture: Mixture, theta: Theta, names: Sequence[str]) -> str:
    """Name the columns along which lines without a dispersion run to infinity: those that have led there most."""
    density: Any = mixture.density
    seen, c = units.on(mixture).seen(theta), units.coordinates
    own = density.without_events(seen.statistics.density, theta.density)
    if not own.size:
        return ""
    whole = replace(theta.density, coef=theta.density.coef + c.pooled)
    led = density.theta_of((own @ (own.T @ density.vector(whole)[0]))[None], whole)
    part = np.abs(c.transform @ led.coef[0].T).max(axis=1)
    raw = c.order - c.fit_intercept  # -1 is the constant, which leads along with any column
    found = [names[j] for j, size in zip(raw, part, strict=True) if j >= 0 and size >= LEAST_PART * part.max()]
    why = "its rows are separated" if density.response.takes_trials else "all its counts there are zero"
    return f"{line_away(found or ['the intercept'], 'component', why)}. {OF_AWAY}"


def heaviest_first(units: AnyUnits, theta: Theta) -> Theta:
    """Return the order of the components: by falling weight, ties by coefficients."""
    density = theta.density
    keys = density.dispersion[0], *density.coef[0].T[::-1], -mean_weights(units, theta)[0]
    order = np.lexsort(keys)
    law = theta.law
    if isinstance(law, Logits):
        law = Logits(law.coef - law.coef[:, order[:1]])
    return Parameters(*(mapped(lambda array: array[:, order], part) for part in (density, law)))


def scores(units: AnyUnits, mixture: Mixture, theta: Theta, trim: float) -> dict[str, Any]:
    """Return the log-likelihood, the criteria, and the log density, in units of y, below which rows were trimmed."""

    def visit(block: Block) -> Array:
        found = mixture.posterior(theta, block)
        return np.array([found.log_likelihood[0], found.entropy()[0]])

    counted, threshold = units.row_weight, -np.inf
    if not isinstance(units, Units):
        value, uncertainty = units.data.map_sum(visit)
    else:
        w = units.row_weights
        if trim:
            on = units.on(mixture, trim)
            assert isinstance(on, Trimmed)
            kept = on.kept(theta)[0]
            w = np.repeat(units.weights * kept, units.sizes)
            counted = float(w.sum())
            level = on.densities(theta)[0] / units.sizes - float(np.log(units.coordinates.sigma))
            is_in = kept >= 0.5
            threshold = -np.inf if is_in.all() else float((level[~is_in].max() + level[is_in].min()) / 2)
        value, uncertainty = visit(Block(0, units.columns, w))
    log_likelihood = units.log_likelihood(float(value), counted / units.row_weight)
    entropy = max(float(uncertainty), 0.0) * units.unit
    found = criteria(-2 * log_likelihood, counted * units.unit, mixture.n_parameters, entropy)
    return {
        "n_parameters_": mixture.n_parameters,
        "n_rows_": units.row_weight,
        "log_likelihood_": log_likelihood,
        **{f"{name}_": found[name] for name in ("aic", "bic", "icl")},
        "trim_threshold": threshold,
    }


def fit_attributes(
    model: Any, contest: RegressionContest, found: Found[Theta], trace: Trace, gating_names: Sequence[str]
) -> dict[str, Any]:
    """Return the fitted attributes, and ``trim_threshold``, the log density a row below which units were trimmed.

    In place of the standard errors of rows in memory there is what makes them; streamed rows may be gone by then.
    """
    units, share = contest.units, 1 - contest.trim
    reorder = isinstance(model.init, str) and units.labels is None

    def ordered(theta: Theta) -> Theta:
        return heaviest_first(units, theta) if reorder else theta

    def height(objective: float) -> float:
        return units.log_likelihood(-objective, share)

    best = found.best
    theta = ordered(best.theta)
    values, note, excluded = parameters_in_units(units, theta), found.told, None
    if found.excluded is not None:
        excluded = _excluded(contest, found.excluded, ordered(found.excluded.theta), height(found.excluded.objective))
        note = f"{note} {what_would_admit(excluded, model.max_sigma_ratio)}".strip()
    mixture = units.mixture(contest.density.response, contest.density.rule, model.n_components, fused=False)
    errors: dict[str, Any] = {"standard_errors_": None}
    if NO_MAXIMUM not in best.degenerate and contest.trim == 0:
        made = partial(errors_in_units, units, mixture, theta)
        errors = {"_errors_of_the_fit": made} if isinstance(units, Units) else {"standard_errors_": made()}
    directions = np.zeros((0, 0)) if units.gating is None else unbounded_directions(units.on(mixture), theta)
    at = mixture.law.vector(theta.law)[0]  # type: ignore[attr-defined]
    separated = of_separated(directions, at, gating_names, units.coordinates.gating_transform)
    away = (
        "" if SEPARATED in best.degenerate else _of_away(units, mixture, theta, model._in_words(model._feature_names()))
    )
    records = tuple(StartRecord(r.source, height(r.objective), r.n_iter, r.converged) for r in found.records)
    return {
        **{f"{name}_": values[name] for name in PARAMETERS},
        "center_": units.coordinates.origin.copy(),
        "center_fits_": values["level"],
        **errors,
        "regular_": best.is_regular,
        "degeneracy_": of_degenerate(best.degenerate, model.n_components, contest.density.response),
        "separated_": f"{separated} {away}".strip(),
        "is_exact_": units.is_exact,
        "converged_": bool(best.converged),
        "n_iter_": int(best.n_iter),
        "excluded_": excluded,
        "optima_": [
            {"log_likelihood": height(run.objective), **parameters_in_units(units, ordered(run.theta))}
            for run in found.optima
        ],
        "search_": SearchReport(records, "log-likelihood", "max", note=note, raced=found.raced, effort=model.effort),
        "trace_": trace.shifted(-units.constant * share).scaled(units.unit),
        **scores(units, mixture, theta, contest.trim),
    }


def _excluded(contest: RegressionContest, run: Run[Theta], theta: Theta, log_likelihood: float) -> dict[str, Any]:
    """Describe a solution that the rule excludes, in the user's weights."""
    units, size = contest.units, float(contest.smallest(contest.shares(theta)))
    return {
        "log_likelihood": log_likelihood,
        "sigma_ratio": float(sigma_ratio(theta)[0]),
        "smallest_component": size * units.unit,
        "regular_from": contest.least_size * units.unit,
        "size": units.in_words(size),
        "reason": run.degenerate,
        **parameters_in_units(units, theta),
    }
