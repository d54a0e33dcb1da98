"""The set-partition bound as a whole: multipliers in closed form, their exact value, better multipliers."""

from __future__ import annotations

import numpy as np

from majorant.solvers.kmeans_bounds.ascent import raise_bound
from majorant.solvers.kmeans_bounds.multipliers import (
    DualValue,
    Water,
    Work,
    dual_value,
    largest_cover,
    local_maxima,
    tolerance_for,
)
from majorant.solvers.kmeans_bounds.problem import Array, BoundProblem

SHARES = (0.5, 0.25, 0.75)
LEVELS = (0.3, 0.5, 0.8, 1.2, 1.6, 2.2, 3.0, 4.5)
"""Levels of `Water`, as multiples of a cluster's average share of the objective."""
FIRST_LEVEL = 3
PROVED = 1e-6
"""Relative distance from the objective at which no other multipliers are tried."""
MOST_STARTS = 150
LEAST_ASCENT = 2e5
"""Smallest work for which multipliers are improved: a few rounds gain little."""
LEAST_COVER = 2e5
"""Smallest work of the first enclosure, without which there is no bound."""


def partition_bound(problem: BoundProblem, work: Work, rounds: int) -> DualValue:
    """Return the best set-partition bound that the work allows.

    Parameters
    ----------
    rounds : int
        Largest number of steps that improve multipliers; 0 for those in closed form.
    """
    starts = _places(problem, work)
    multipliers, maxima, hoped = _best_water(problem, work, starts)
    tolerance = tolerance_for(problem, hoped, problem.objective)
    share = max(work.left / (4 if rounds else 1), LEAST_COVER)
    cover = largest_cover(problem, multipliers, tolerance, work, maxima[:1], at_most=share)
    best = dual_value(problem, multipliers, cover)
    if rounds == 0 or work.left < LEAST_ASCENT or best.bound < hoped - 0.2 * problem.objective:
        return best  # without an enclosure of the largest cover, an improvement could not be verified
    return raise_bound(problem, best, work, rounds, starts)


def _places(problem: BoundProblem, work: Work) -> Array:
    """Return the centres, and points spread over the data; fewer of them where there are many points."""
    n, k = len(problem.weights), problem.n_clusters
    affordable = int(work.left / (120.0 * n * problem.look))
    n_spread = min(n, MOST_STARTS, max(affordable - k, 10))
    spread = np.random.default_rng(0).choice(n, n_spread, replace=False)
    return np.concatenate((problem.centres, problem.points[np.sort(spread)]))


def _best_water(problem: BoundProblem, work: Work, starts: Array) -> tuple[Array, Array, float]:
    """Choose multipliers in closed form by the bound that local maxima suggest; return them, the maxima and the bound.

    The level is raised, or else lowered, while that improves the bound; then other shares are tried.
    """
    w, k = problem.weights, problem.n_clusters
    water, reserve = Water(problem), work.left / 3
    hoped, best, maxima = -np.inf, problem.own, starts
    in_the_way = starts[:0]

    def better(share: float, place: int) -> bool:
        nonlocal hoped, best, maxima, in_the_way
        if np.isfinite(hoped) and (work.left < reserve or hoped >= problem.objective * (1 - PROVED)):
            return False
        tried = water.filled(share, LEVELS[place] * problem.objective / k)
        total = float(w @ tried)
        centres, heights = local_maxima(
            problem, tried, np.concatenate((in_the_way, starts)), (total - hoped) / k, work=work
        )
        value, in_the_way = total - k * float(heights[0]), centres[:1]
        if value <= hoped:
            return False
        hoped, best, maxima = value, tried, centres
        return True

    place = FIRST_LEVEL
    better(SHARES[0], place)
    for step in (1, -1):
        begin = place
        while 0 <= place + step < len(LEVELS) and better(SHARES[0], place + step):
            place += step
        if place != begin:
            break
    for share in SHARES[1:]:
        better(share, place)
    return best, maxima, hoped
