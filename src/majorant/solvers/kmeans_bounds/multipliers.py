r"""Lower bounds from one multiplier for each point: the dual of k-means as set partition.

For any multipliers :math:`\lambda`, and whatever the :math:`k` centres,

.. math:: \sum_i w_i \min_j |x_i - c_j|^2 \ge \sum_i w_i \lambda_i - \sum_j h(c_j) \ge \sum_i w_i \lambda_i - k H,
          \quad h(c) = \sum_i w_i (\lambda_i - |x_i - c|^2)_+, \quad H = \max_c h(c),

because :math:`\min_j D_j \ge \lambda - \sum_j (\lambda - D_j)_+`. Any number above :math:`H` keeps the bound valid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from majorant import _kernels
from majorant.solvers.kmeans_bounds.problem import EPSILON, Array, BoundProblem

TINY = float(np.finfo(np.float64).tiny)
PIECE = 200_000
"""Number of tests of points and boxes between two checks for KeyboardInterrupt."""


@dataclass
class Work:
    """Remaining work, in distances of eight columns between a point and a place or box."""

    left: float

    def spend(self, units: float) -> None:
        self.left -= units


@dataclass(frozen=True)
class Cover:
    """Lower and upper bound on the largest cover, and its centre."""

    upper: float
    lower: float
    centre: Array


@dataclass(frozen=True)
class DualValue:
    """Multipliers and the lower bound that they prove, in the units of the problem."""

    bound: float
    multipliers: Array
    cover: Cover


def largest_cover(
    problem: BoundProblem,
    multipliers: Array,  # (n,)
    tolerance: float,  # width at which the search ends
    work: Work,  # remaining work; when it is used up the search ends with a wider enclosure
    known: Array | None = None,  # (m, d): places where :math:`h` is large
    *,
    at_most: float = np.inf,  # largest work of this search
    enough: float = np.inf,  # the search ends once a larger cover than this is found
) -> Cover:
    r"""Enclose the largest value of :math:`h` by branch and bound.

    References
    ----------
    .. [1] H. H. Bock, "Automatische Klassifikation", 1974, for the dual view of squared error clustering.
    .. [2] D. Aloise, P. Hansen, L. Liberti, "An improved column generation algorithm for minimum sum-of-squares
       clustering", Math. Programming 131, 2012.
    """
    search = _kernels.cover_search(problem.points, problem.weights, multipliers, tolerance)
    for centre in () if known is None else known:
        search.propose(np.ascontiguousarray(centre))
    allowed = min(work.left, at_most) / problem.look
    while not search.advance(int(min(PIECE, max(allowed - search.tests, 1)))):
        if search.tests >= allowed or search.lower > enough:
            break
    work.spend(search.tests * problem.look)
    centre = np.empty(problem.points.shape[1])
    search.write_centre(centre)
    return Cover(search.upper, search.lower, centre)


def dual_value(problem: BoundProblem, multipliers: Array, cover: Cover) -> DualValue:
    """Return the bound that multipliers prove, given an enclosure of their largest cover, minus a bound on rounding."""
    n, d = problem.points.shape
    k = problem.n_clusters
    mass = float(problem.weights @ np.abs(multipliers))
    sums = (k + 1) * (n + 100 * d + 1000) * EPSILON * mass
    differences = 8 * k * d * EPSILON * (mass * problem.scatter) ** 0.5
    bound = float(problem.weights @ multipliers) - k * cover.upper - sums - differences
    return DualValue(bound, multipliers, cover)


def tolerance_for(problem: BoundProblem, bound: float, ceiling: float) -> float:
    """Return the width of an enclosure that is small relative to the gap between a bound and its ceiling."""
    gap = min(max(ceiling - bound, 0.0), problem.objective)
    return (2e-6 * problem.objective + 0.05 * gap) / problem.n_clusters


def local_maxima(
    problem: BoundProblem, multipliers: Array, starts: Array, enough: float = np.inf, *, work: Work
) -> tuple[Array, Array]:
    r"""Climb from each start to a local maximum of :math:`h`: centres and values, best first.

    Ends early once a value above `enough` is met.
    """
    centres, values = starts.copy(), np.full(len(starts), -np.inf)
    done, looks = _kernels.cover_climb(problem.points, problem.weights, multipliers, centres, values, 100, enough)
    work.spend(looks * problem.look)
    order = np.argsort(-values[:done], kind="stable")
    return centres[order], values[order]


class Water:
    r"""Multipliers in closed form.

    :math:`\lambda_i = d_i + \min(t_a, \theta (e_i - d_i))` with :math:`d_i, e_i` the squared distances to the nearest
    and to the second-nearest centre, and :math:`t_a` such that the weighted increments of cluster :math:`a` sum to
    `level`, or are all at their limit. Then :math:`h` at every centre is `level`, and the bound is the sum of squares
    about the centres if :math:`h` is nowhere larger.
    """

    def __init__(self, problem: BoundProblem) -> None:
        self.problem = problem
        gap = problem.second - problem.own
        self.order = np.lexsort((gap, problem.labels))
        self.gap, self.labels, weights = gap[self.order], problem.labels[self.order], problem.weights[self.order]
        self.edges = np.searchsorted(self.labels, np.arange(problem.n_clusters + 1))
        self.below = self._within(weights * self.gap)
        self.mass_below = self._within(weights)
        self.mass = np.bincount(self.labels, weights, problem.n_clusters)

    def _within(self, values: Array) -> Array:
        """Return the sum of the values before each position in its cluster."""
        before = np.concatenate(([0.0], np.cumsum(values)))
        return np.asarray(before[:-1] - before[self.edges[:-1]][self.labels])

    def filled(self, share: float, level: float) -> Array:
        r"""Return the multipliers for :math:`\theta` = `share` and the summed increment `level` of a cluster."""
        # The level t_a if a place is the first whose limit is above it.
        with np.errstate(over="ignore"):  # without mass it is unbounded
            heights = (level - share * self.below) / np.maximum(self.mass[self.labels] - self.mass_below, TINY)
        first = np.flatnonzero(heights <= share * self.gap)
        which = np.searchsorted(first, self.edges[:-1])
        water = np.full(self.problem.n_clusters, np.inf)
        found = np.flatnonzero(which < len(first))
        found = found[first[which[found]] < self.edges[found + 1]]
        water[found] = np.maximum(heights[first[which[found]]], 0.0)
        increments = np.empty(len(self.order))
        increments[self.order] = np.minimum(share * self.gap, water[self.labels])
        return np.asarray(self.problem.own + increments)
