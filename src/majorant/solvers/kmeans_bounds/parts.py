"""Lower bounds that are sums over parts of the data: two groups of columns, or blocks of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from majorant.solvers.kmeans_bounds.multipliers import Work
from majorant.solvers.kmeans_bounds.partition import partition_bound
from majorant.solvers.kmeans_bounds.pengwei import look_cost, peng_wei_bound
from majorant.solvers.kmeans_bounds.problem import EPSILON, BoundProblem, make_problem

LEADING = (2, 3, 4, 6)
"""Numbers of leading principal components that are tried."""
BLOCKS = (1000, 700, 500, 350, 250, 150)
"""Numbers of points in a block; the largest that the work allows is used, as larger blocks give better bounds."""
LEAST_BLOCK, LOOKS = 350, 4


def leading_columns_bound(problem: BoundProblem, work: Work, rounds: int) -> float:
    r"""Return the set-partition bound of the first principal components and the spectral bound of the others.

    Squared distances are sums over columns, so the least sum of squares is at least the sum of those of two groups of
    columns. For the second group it is at least :math:`\mathrm{tr}\, S - \sum_{j < k} \sigma_j(S)`, with :math:`S` its
    scatter matrix.

    Parameters
    ----------
    problem : BoundProblem
        With points on their principal axes.
    rounds : int
        As in `partition_bound`.
    """
    d, k = problem.points.shape[1], problem.n_clusters
    best = -np.inf
    sizes = [q for q in LEADING if q < d]
    for place, q in enumerate(sizes):
        rooted = problem.points[:, q:] * np.sqrt(problem.weights)[:, None]
        rest = np.sort(np.linalg.eigvalsh(rooted.T @ rooted))[::-1]
        beyond = max(float(rest[k - 1 :].sum()), 0.0) - 8 * d * d * EPSILON * float(rest.sum())
        leading = make_problem(problem.points[:, :q], problem.weights, problem.centres[:, :q], rotate=False)
        share = work.left / (len(sizes) - place)
        part = Work(share)
        found = partition_bound(leading, part, rounds)
        work.spend(share - part.left)
        value = (found.bound - leading.coordinate_error) * leading.unit + max(beyond, 0.0)
        if value < best:
            break
        best = value
    return best


def blocks_bound(problem: BoundProblem, work: Work, iterations: int) -> float:
    r"""Return the sum of the bounds of blocks of points: :math:`\mathrm{OPT}_k(X) \ge \sum_B \mathrm{OPT}_k(X_B)`.

    The points of each cluster, sorted along the first principal axis, are distributed over the blocks in turn, so that
    each block is similar to the whole. A block that is left out counts as zero, which is still a bound.
    """
    n = len(problem.weights)
    looks = {size: LOOKS * look_cost(size) * n / size for size in BLOCKS}
    steps = {size: min(iterations, 10) * size**2 / 30 * n for size in BLOCKS}
    size = next((b for b in BLOCKS if looks[b] <= work.left), BLOCKS[-1])
    # A block of medium size with better matrices gives a better bound than a larger one without.
    size = next((b for b in BLOCKS if LEAST_BLOCK <= b <= size and looks[b] + steps[b] <= work.left), size)
    n_blocks = -(-n // size)
    total = 0.0
    for block, rows in enumerate(deal(problem, n_blocks)):
        if len(rows) <= problem.n_clusters:
            continue
        part = problem.part(rows)
        share = Work(work.left / (n_blocks - block))
        before = share.left
        found = peng_wei_bound(part, share, iterations)
        work.spend(before - share.left)
        total += max((found - part.coordinate_error) * part.unit, 0.0)
    return total * (1 - (n_blocks + 8) * EPSILON)


def deal(problem: BoundProblem, n_blocks: int) -> list[NDArray[np.intp]]:
    """Return the rows of each block; together they are all rows."""
    order = np.lexsort((problem.points[:, 0], problem.labels))
    return [np.sort(order[block::n_blocks]) for block in range(n_blocks)]
