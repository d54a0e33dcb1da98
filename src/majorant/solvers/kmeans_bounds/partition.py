"""The set-partition bound from start to end: multipliers in closed form, their exact value, better multipliers."""

from __future__ import annotations

import numpy as np

from majorant.solvers.kmeans_bounds.ascent import raise_bound
from majorant.solvers.kmeans_bounds.multipliers import (
    DualValue,
    Work,
    dual_value,
    largest_cover,
    local_maxima,
    tolerance_for,
    water_filled,
)
from majorant.solvers.kmeans_bounds.problem import Array, BoundProblem

SHARES = (0.5, 0.25, 0.75)
LEVELS = (0.8, 1.2, 0.4, 1.6, 3.0)
"""Levels of water, in shares of the objective that falls on a cluster."""
MOST_STARTS = 150


def partition_bound(problem: BoundProblem, work: Work, rounds: int) -> DualValue:
    """The best bound of this kind that the work allows.

    Parameters
    ----------
    problem : BoundProblem
    work : Work
    rounds : int
        Largest number of steps by which multipliers are made better; 0 for those in closed form.
    """
    starts = _places(problem, work)
    multipliers, maxima, hoped = _best_water(problem, work, starts)
    tolerance = tolerance_for(problem, hoped, problem.objective)
    cover = largest_cover(problem, multipliers, tolerance, work, maxima[:1], at_most=work.left / (4 if rounds else 1))
    best = dual_value(problem, multipliers, cover)
    if rounds == 0 or best.bound < hoped - 0.2 * problem.objective:
        return best  # where the largest cover cannot be enclosed, better multipliers would not be known to be better
    return raise_bound(problem, best, work, rounds, starts)


def _places(problem: BoundProblem, work: Work) -> Array:
    """The centres, and points spread over the data; fewer of them where there are many points."""
    n, k = len(problem.weights), problem.n_clusters
    affordable = int(work.left / (4.0 * n * 10))
    n_spread = min(n, MOST_STARTS, max(affordable - k, 10))
    spread = np.random.default_rng(0).choice(n, n_spread, replace=False)
    return np.concatenate((problem.centres, problem.points[np.sort(spread)]))


def _best_water(problem: BoundProblem, work: Work, starts: Array) -> tuple[Array, Array, float]:
    """Multipliers in closed form with the best bound as far as local maxima tell, those maxima, and that bound."""
    w, k = problem.weights, problem.n_clusters
    hoped, best, maxima = -np.inf, problem.own, starts
    reserve = work.left / 3
    in_the_way = starts[:0]
    for level in LEVELS:
        for share in SHARES:
            if work.left < reserve and np.isfinite(hoped):
                return best, maxima, hoped
            tried = water_filled(problem, share, level * problem.objective / k)
            total = float(w @ tried)
            centres, heights = local_maxima(
                problem, tried, np.concatenate((in_the_way, starts)), (total - hoped) / k, work=work
            )
            value = total - k * float(heights[0])
            if value > hoped:
                hoped, best, maxima = value, tried, centres
            in_the_way = centres[:1]
    return best, maxima, hoped
