"""k-means of rows on a line: the best clusters are intervals, found by dynamic programming.

Exactly, or of very many rows in one column with neighbours joined.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.solvers.nearest import assign
from majorant.solvers.swap import SwapResult

EXACT = "dynamic programming"
JOINED = "dynamic programming, neighbours joined"
"""Names of the searches in their records."""

MOST_CELLS = 2_000_000
"""Distinct points times intervals up to which the program is run: about a second."""

MOST_JOINED = 100
"""Clusters up to which more points than that are searched with neighbours joined."""

NEGLIGIBLE = 1e-12
"""Share of the objective below which it does not matter how far points lie beside their line."""


def only_column(points: Any, k: int) -> int | None:
    """Return the one column in which points differ, if there is one and the program for k intervals is affordable."""
    if len(points) * k > MOST_CELLS or k >= len(points):
        return None
    differs = np.flatnonzero(points.min(axis=0) < points.max(axis=0))
    return int(differs[0]) if len(differs) == 1 else None


def best_intervals(x: NDArray[np.float64], weights: NDArray[np.float64], k: int) -> tuple[NDArray[np.int32], float]:
    r"""Divide numbers into the k intervals of least weighted sum of squares about their means.

    With :math:`F_k(j)` the least sum of the first j numbers, :math:`F_k(j) = \min_i F_{k-1}(i) + c(i, j)`, where
    :math:`c(i, j)` is the sum of squares of numbers i to j about their mean: O(k n log n), as the best i never falls as
    j rises. Sums are kept with twice the digits of float64.

    Parameters
    ----------
    x : ndarray of shape (n,)
    weights : ndarray of shape (n,)
        Positive.
    k : int
        At most n.

    Returns
    -------
    labels : ndarray of shape (n,)
        The interval of each number, from the left.
    objective : float

    References
    ----------
    .. [1] H. Wang, M. Song, "Ckmeans.1d.dp: optimal k-means clustering in one dimension by dynamic programming",
       The R Journal, 2011.
    """
    order = np.argsort(x, kind="stable")
    first = np.empty(k, dtype=np.int64)
    objective = _kernels.best_intervals(x[order], weights[order], first)
    labels = np.empty(len(x), dtype=np.int32)
    labels[order] = np.repeat(np.arange(k, dtype=np.int32), np.diff(first, append=len(x)))
    return labels, objective


def interval_search(points: NDArray[Any], weights: NDArray[np.float64], k: int) -> SwapResult | None:
    """Return the best of all solutions for points that lie on a line up to rounding, if they are not too many.

    Of more points in one column, which must ascend, it is the best with neighbours joined.
    """
    if k >= len(points):
        return None
    if len(points) * k > MOST_CELLS:
        return _joined(points, weights, k) if points.shape[1] == 1 and k <= MOST_JOINED else None
    rounding = 4 * np.finfo(points.dtype).eps * max(points.max(), -points.min())
    for some in (points[:64], points):  # most points are refused by the first few
        about = some.astype(np.float64) - points[0]
        row, column = np.unravel_index(abs(about).argmax(), about.shape)
        if not about[row, column]:  # all are equal
            if len(some) == len(points):
                return None
            continue
        direction = about[row] / about[row, column]
        beside = about - np.outer(about[:, column], direction)
        if abs(beside).max() > rounding:
            return None
    labels, objective = best_intervals(
        points[:, column].astype(np.float64) * np.sqrt(direction @ direction), weights, k
    )
    if weights @ (beside**2).sum(axis=1) > NEGLIGIBLE * objective:
        return None
    sums = [np.bincount(labels, weights * x, k) for x in about.T]
    centres = points[0] + np.column_stack(sums) / np.bincount(labels, weights, k)[:, None]
    return SwapResult(centres, labels, objective, 0, True, [objective], [(EXACT, objective)])


def _joined(points: NDArray[Any], weights: NDArray[np.float64], k: int) -> SwapResult:
    """Return the best of all solutions that keep groups of neighbours together, ever smaller ones about the cuts."""
    x, n_groups = points[:, 0], MOST_CELLS // (8 * k)
    edges = np.linspace(float(x[0]), float(x[-1]), n_groups, endpoint=False).astype(x.dtype)
    stride = -(-len(x) // n_groups)
    first = np.union1d(np.searchsorted(x, edges), np.arange(0, len(x), stride))
    while True:
        mass, sums = np.add.reduceat(weights, first), np.add.reduceat(weights * x, first)
        groups, _ = best_intervals(sums / mass, mass, k)
        if stride == 1:
            break
        stride = -(-stride // 8)
        about = first[1:][np.diff(groups) > 0][:, None] + stride * np.arange(-16, 17)
        first = np.union1d(first, about.clip(0, len(x) - 1))
    centres = (np.bincount(groups, sums) / np.bincount(groups, mass)).astype(x.dtype)[:, None]
    labels = np.zeros(len(x), dtype=np.int32)
    moments, _ = assign(points, weights, centres, labels)
    assert moments is not None
    objective = float(moments[:, -1].sum())
    return SwapResult(
        centres.astype(np.float64), labels, objective, 0, True, [objective], [(JOINED, objective)], is_settled=False
    )
