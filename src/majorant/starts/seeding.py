"""Seeds of k centres as functions of the weighted empirical measure and of a random seed.

Draws use the inverse CDF along the measure's canonical order, so that a row of weight two equals a repeated row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant import _kernels
from majorant.data.measure import Measure
from majorant.engine.draws import drawn
from majorant.solvers.nearest import squared_distances


def plus_plus(measure: Measure, n_seeds: int, random: np.random.Generator, n_trials: int | None = None) -> NDArray[Any]:
    """Draw greedy k-means++ seeds.

    Each seed is a point drawn with probability proportional to weight times squared distance to the previous seeds; of
    `n_trials` such candidates the one with the smallest remaining total is taken.

    Parameters
    ----------
    n_trials : int, optional
        By default ``2 + floor(log(n_seeds))``.

    Returns
    -------
    ndarray of shape (n_seeds, n_features)
        Points of the measure; with fewer distinct points than seeds some repeat.

    References
    ----------
    .. [1] D. Arthur, S. Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007, section 2.2.
    """
    trials = 2 + int(np.log(n_seeds)) if n_trials is None else n_trials
    uniforms = random.random((n_seeds, trials))
    if sparse.issparse(measure.points):
        return rows_at(measure.points, _plus_plus_sparse(measure, uniforms))
    chosen = np.empty(n_seeds, dtype=np.int64)
    _kernels.plus_plus(measure.points, measure.weights, uniforms, chosen)
    return rows_at(measure.points, chosen)


def random_rows(measure: Measure, n_seeds: int, random: np.random.Generator) -> NDArray[Any]:
    """Draw distinct points by weight (Forgy's start); with fewer distinct points than seeds some repeat."""
    left = measure.weights.copy()
    chosen = np.empty(n_seeds, dtype=np.int64)
    for j in range(n_seeds):
        if not left.any():
            left = measure.weights.copy()
        chosen[j] = drawn(left, random.random())
        left[chosen[j]] = 0.0
    return rows_at(measure.points, chosen)


def random_partition(measure: Measure, n_parts: int, random: np.random.Generator) -> NDArray[np.int32]:
    """Draw a part for every point, uniformly at random."""
    return random.integers(0, n_parts, measure.n_points).astype(np.int32)


def _plus_plus_sparse(measure: Measure, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
    points, weights = measure.points, measure.weights
    nearest = np.full(measure.n_points, np.inf)
    mass = weights
    chosen = np.empty(len(uniforms), dtype=np.int64)
    for j, draws in enumerate(uniforms):
        if not mass.any():
            mass = weights
        candidates = drawn(mass, draws if j else draws[:1])
        to_candidates = squared_distances(points, rows_at(points, candidates)).astype(np.float64)
        left = np.minimum(nearest[:, None], to_candidates)
        best = int(np.argmin(weights @ left))
        chosen[j] = candidates[best]
        nearest = left[:, best]
        nearest[candidates[best]] = 0.0
        mass = weights * nearest
    return chosen


def rows_at(points: Any, chosen: Any) -> NDArray[Any]:
    """Return some rows as a dense array."""
    rows = points[chosen]
    return np.asarray(rows.todense() if sparse.issparse(rows) else rows)
