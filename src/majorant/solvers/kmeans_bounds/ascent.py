r"""Improvement of multipliers by projection onto those that could prove the current objective.

The bound :math:`L(\lambda) = \sum w_i \lambda_i - k \max_c h_\lambda(c)` is concave, and every set of points :math:`A`
with mean :math:`m_A` cuts it from above,

.. math:: L(\lambda) \le \sum_i w_i \lambda_i - k \sum_{i \in A} w_i (\lambda_i - |x_i - m_A|^2).

The sum of squares of the given centres is an upper bound on :math:`L`, often reached where they are best. So each step
moves the multipliers by the least amount that satisfies every known cut at that level (with one cut this is Polyak's
step). Sets active at the local maxima of :math:`h` give new cuts, and where no multipliers satisfy the cuts, the level
is lowered. Linear programs over pools of columns, the usual method, reach the same values but take far longer, as their
solutions are vertices far from the current multipliers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf
from scipy.sparse import csr_array, issparse, vstack

from majorant.solvers.kmeans_bounds.multipliers import (
    DualValue,
    Work,
    dual_value,
    largest_cover,
    local_maxima,
    tolerance_for,
)
from majorant.solvers.kmeans_bounds.problem import Array, BoundProblem
from majorant.solvers.nearest import squared_distances

MOST_NEW_CUTS, MOST_NEW_ENTRIES = 60, 4e6
FRESH_STARTS = 40
MOST_AGE = 8
FEW = 1000
"""Largest number of points for which sets are dense tables."""
CLOSE_ENOUGH = 8e-6
"""Relative distance from the objective at which the search ends."""
ROUND = 4e4
"""Fixed work of a round."""
PROJECTION = 0.1
"""Work of a projection, times the cube of the number of cuts."""
WORTH = 0.02
"""The search also ends once at most this share of the distance can still be gained."""

Sets = Any
"""Sets of points, one per row, as a dense or sparse array."""


class Cuts:
    r"""Sets of points, each an upper bound ``sum w multipliers - k sum_A w multipliers + constant`` on the dual.

    Distances between multipliers are measured in :math:`\sqrt{w_i} \lambda_i`, in which a point with weight two moves
    as two equal points do; the gradients are then :math:`\sqrt{w_i} (1 - k [i \in A])`.
    """

    def __init__(self, weights: Array, n_clusters: int) -> None:
        self.weights, self.total, self.k = weights, float(weights.sum()), n_clusters
        # For few points a dense table is faster than a sparse one.
        self.sets: Sets = np.zeros((0, len(weights))) if len(weights) <= FEW else csr_array((0, len(weights)))
        self.constants = np.zeros(0)
        self.gram = np.zeros((0, 0))
        self.age = np.zeros(0)

    def __len__(self) -> int:
        return len(self.constants)

    @property
    def size(self) -> int:
        """Number of stored entries."""
        return int(self.sets.nnz if issparse(self.sets) else self.sets.size)

    def add(self, sets: Array, constants: Array) -> None:
        """Add sets, given as rows of ones and zeros."""
        m, n_new = len(self), len(sets)
        new = csr_array(sets) if issparse(self.sets) else sets
        self.sets = vstack((self.sets, new), format="csr") if issparse(self.sets) else np.concatenate((self.sets, new))
        gram = np.empty((m + n_new, m + n_new))
        gram[:m, :m] = self.gram
        gram[m:] = self._products(new)
        gram[:m, m:] = gram[m:, :m].T
        self.gram = gram
        self.constants = np.concatenate((self.constants, constants))
        self.age = np.concatenate((self.age, np.zeros(n_new)))

    def _products(self, new: Sets) -> Array:
        weighted = new * self.weights
        common = weighted @ self.sets.T
        common = common.toarray() if issparse(common) else common
        masses = np.add.outer(new @ self.weights, self.sets @ self.weights)
        return np.asarray(self.total - self.k * masses + self.k**2 * common)

    def values(self, multipliers: Array) -> Array:
        """Return the upper bounds at some multipliers."""
        weighted = self.weights * multipliers
        return np.asarray(weighted.sum() - self.k * (self.sets @ weighted) + self.constants)

    def combined(self, shares: Array) -> Array:
        """Return the change of the multipliers along a combination of the gradients."""
        return np.asarray(shares.sum() - self.k * (self.sets.T @ shares))

    def forget(self, active: NDArray[np.bool_]) -> None:
        """Drop the cuts that have not been active for `MOST_AGE` projections."""
        self.age = np.where(active, 0.0, self.age + 1.0)
        kept = self.age < MOST_AGE
        if kept.all():
            return
        self.sets, self.constants, self.age = self.sets[kept], self.constants[kept], self.age[kept]
        self.gram = self.gram[np.ix_(kept, kept)]


def raise_bound(
    problem: BoundProblem,
    best: DualValue,  # multipliers to start from
    work: Work,  # remaining work; the search ends when it is used up
    rounds: int,  # largest number of projections
    starts: Array,  # (m, d): starts of the search for local maxima
) -> DualValue:
    """Search for multipliers that prove more than `best`.

    The best found is no worse than the one given.
    """
    w, k, target = problem.weights, problem.n_clusters, problem.objective * (1 - CLOSE_ENOUGH / 8)
    random = np.random.default_rng(0)
    ceiling, level = target, target
    cuts = Cuts(w, k)
    multipliers = best.multipliers
    found = best.cover.centre[None]
    maxima = local_maxima(problem, multipliers, starts, work=work)[0]

    def finished() -> bool:
        short = problem.objective - best.bound
        return work.left <= 0 or short <= CLOSE_ENOUGH * problem.objective or ceiling - best.bound <= WORTH * short

    for _ in range(rounds):
        if finished():
            break
        n_new = _cut(problem, cuts, multipliers, np.concatenate((found, maxima)), level)
        work.spend(len(w) * 10.0 * n_new + cuts.size)
        work.spend(ROUND + PROJECTION * len(cuts) ** 3)
        while (moved := least_move(cuts.gram, level - cuts.values(multipliers))) is None:
            work.spend(PROJECTION * len(cuts) ** 3)
            ceiling, level = level, (best.bound + level) / 2
            if finished():
                return best
        multipliers = multipliers + cuts.combined(moved)
        cuts.forget(moved > 0)
        some = starts[random.choice(len(starts), min(FRESH_STARTS, len(starts)), replace=False)]
        places = np.concatenate((found, maxima[:MOST_NEW_CUTS], some))
        maxima, heights = local_maxima(problem, multipliers, places, work=work)
        hoped = float(w @ multipliers) - k * float(heights[0])
        if hoped - best.bound < 0.1 * (level - best.bound):
            continue
        cover = largest_cover(
            problem,
            multipliers,
            tolerance_for(problem, best.bound, ceiling),
            work,
            maxima[:1],
            at_most=work.left / 3,
            enough=(float(w @ multipliers) - best.bound) / k,
        )
        found = cover.centre[None]
        tried = dual_value(problem, multipliers, cover)
        if tried.bound > best.bound:
            best = tried
        if float(w @ multipliers) - k * cover.lower >= level * (1 - 1e-9):  # no cut holds it back
            level = (level + ceiling) / 2
    return best


def _cut(problem: BoundProblem, cuts: Cuts, multipliers: Array, centres: Array, level: float) -> int:
    """Add the violated cuts of the sets active at the first centres; return their number."""
    w, k = problem.weights, problem.n_clusters
    centres = centres[: max(min(MOST_NEW_CUTS, int(MOST_NEW_ENTRIES / len(w))), 8)]
    distinct = np.sort(np.unique(np.round(centres, 6), axis=0, return_index=True)[1])
    heights = multipliers[:, None] - squared_distances(problem.points, centres[distinct])
    covers = w @ np.maximum(heights, 0.0)
    order = np.argsort(-covers, kind="stable")
    order = order[float(w @ multipliers) - k * covers[order] < level]
    active = np.ascontiguousarray((heights[:, order] > 0).T)
    different = {row.tobytes(): place for place, row in enumerate(active) if row.any()}
    active = active[sorted(different.values())]
    if len(active) == 0:
        return 0
    held = active * w
    means = held @ problem.points / held.sum(axis=1, keepdims=True)
    scatters = np.einsum("ai,ia->a", held, squared_distances(problem.points, means))
    cuts.add(active.astype(np.float64), k * scatters)
    return len(active)


def least_move(
    gram: Array,  # (m, m): :math:`A A^T`
    shortfall: Array,  # (m,): :math:`r`
) -> Array | None:
    r"""Return the shortest combination of gradients that satisfies linear inequalities.

    Minimises :math:`|u|^2` subject to :math:`A u \ge r`; the solution is :math:`u = A^T \mu` with :math:`\mu \ge 0`,
    found by nonnegative least squares [1]_, chapter 23.

    Returns :math:`\mu` (m,), or None if no :math:`u` of reasonable length satisfies the inequalities.

    References
    ----------
    .. [1] C. L. Lawson, R. J. Hanson, "Solving Least Squares Problems", 1974.
    """
    largest = float(shortfall.max(initial=0.0))
    if largest <= 0:
        return np.zeros(len(shortfall))
    norms = np.sqrt(np.diag(gram))
    norms = np.where(norms > 0, norms, 1.0)
    scaled = shortfall / norms
    size = float(scaled.max())
    # A pivoted Cholesky factor is a square root too, at a tenth of the cost of one from eigenvalues.
    factor, pivots, rank, _ = dpstrf(gram / np.outer(norms, norms))
    half = np.zeros((rank, len(scaled)))
    half[:, pivots - 1] = np.triu(factor)[:rank]
    rows = np.concatenate((half, scaled[None] / size))
    from scipy.optimize import nnls  # takes time to load, and few bounds need it

    aim = np.zeros(len(rows))
    aim[-1] = 1.0
    try:
        combination, _ = nnls(rows, aim, maxiter=10 * len(scaled))
    except RuntimeError:  # too many iterations
        return None
    remainder = 1.0 - float(rows[-1] @ combination)
    if remainder <= 1e-12:
        return None
    return np.asarray(combination / remainder * size / norms)
