"""Standard errors that do not take the model for true: by the sandwich, and by the bootstrap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._validation import check_count, check_sample_weight, seed_of
from majorant.data.chunks import Block, Chunks
from majorant.data.units import blocks_of
from majorant.engine.descent import descend
from majorant.engine.mixture import Anchored, Mixture, OnData, Parameters
from majorant.engine.threads import one_thread
from majorant.laws.separation import undetermined_directions
from majorant.models.mixture_rows import Rows
from majorant.results.information import Errors, packed, scores, standard_errors

Array = NDArray[np.float64]
STEP = 1e-5


def products_of_scores(on: OnData, theta: Parameters[Any, Any]) -> Array:
    """Return the weighted sum over rows of the products of their scores, in unconstrained numbers, (m, m)."""
    density = on.mixture.density
    assert isinstance(density, Anchored)
    mixture = replace(on.mixture, density=density.anchored(theta.density))
    at = packed(mixture, theta)[0]

    def visit(block: Block) -> Array:
        w = np.ones(len(block)) if block.weights is None else block.weights
        found = scores(mixture, at, theta, replace(block, weights=None), STEP * (1 + np.abs(at)))
        return np.asarray((found * w[:, None]).T @ found)

    return np.asarray(on.data.map_sum(visit))


def robust_errors(model: Any, X: Any, given: Mapping[str, Any]) -> tuple[OnData, Errors]:
    """Return a fit on rows, and errors by the sandwich; sampling weights are squared in the products of the scores."""
    _refuse_groups("robust", given)
    on, unit = model._on(X, **given)
    theta, seen = model._theta(), model._seen(X, **given)[0]
    squares = seen.weights / unit
    if model.sampling_weights and (w := check_sample_weight(given.get("sample_weight"), len(X))) is not None:
        there = seen.positions >= 0
        w = w[there] * (squares.sum() / w[there].sum())
        squares = np.bincount(seen.positions[there], w**2, minlength=len(squares))
    data = Chunks(blocks_of(seen.columns, squares), n_jobs=model.n_jobs)
    with one_thread():
        meat = products_of_scores(replace(on, data=data), theta)
        return on, standard_errors(on, theta, unbounded=undetermined_directions(on, theta), meat=meat)


def bootstrapped(model: Any, X: Any, n_resamples: int, given: Mapping[str, Any]) -> dict[str, Array]:
    """Return the errors of a fit by the bootstrap."""
    _refuse_groups("bootstrap", given)
    if model.sampling_weights:
        raise ValueError('method="bootstrap" draws rows, which sampling weights stand for many of: take "robust"')
    on, _ = model._on(X, **given)
    check_count("n_resamples", n_resamples, low=2, width=model.n_parameters_)
    seen, seed = model._seen(X, **given)[0], seed_of(model.random_state)
    with one_thread():
        return bootstrap_errors(
            on.mixture, model._theta(), seen, n_resamples=n_resamples, seed=seed, tol=float(model.tol)
        )


def _refuse_groups(method: str, given: Mapping[str, Any]) -> None:
    if given.get("groups") is not None:
        raise ValueError(f"method={method!r} takes rows for independent: with groups only the information is known")


def bootstrap_errors(
    mixture: Mixture, theta: Parameters[Any, Any], rows: Rows, *, n_resamples: int, seed: int, tol: float
) -> dict[str, Array]:
    """Return standard deviations of the estimates over tables of rows drawn with replacement.

    Each descent begins at the estimates, so that classes keep their numbers; what never moves is at an edge, and has no
    error.
    """
    random = np.random.default_rng(seed)
    counts = rows.weights / rows.row_weight
    n = round(float(counts.sum()))
    told: dict[str, list[Array]] = {}
    for _ in range(n_resamples):
        drawn = random.multinomial(n, counts / counts.sum()).astype(np.float64)
        met = drawn > 0
        data = Chunks(blocks_of([column[met] for column in rows.columns], drawn[met]))
        end = descend(OnData(mixture, data), theta, tol=tol, max_iter=2000).theta
        for name, values in {**mixture.density.describe(end.density), **mixture.law.describe(end.law)}.items():
            told.setdefault(name, []).append(values[0])
    spread = {name: np.std(values, axis=0, ddof=1) for name, values in told.items()}
    return {name: np.where(values > 0, values, np.nan) for name, values in spread.items()}
