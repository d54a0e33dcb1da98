"""The data of a k-means bound, in coordinates suited to bounding, and the effect of rounding on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.solvers.covariance import principal_axes
from majorant.solvers.nearest import squared_distances

EPSILON = float(np.finfo(np.float64).eps)
BLOCK_ENTRIES = 1 << 18

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BoundProblem:
    """Weighted points with the centres of a good fit."""

    # (n, d): centred, on their principal axes, with a mean square near one, the first coordinate ascending;
    # C-contiguous
    points: Array
    weights: Array  # (n,): positive
    centres: Array  # (k, d): means of the points nearest to each of the given centres
    labels: NDArray[np.intp]  # (n,): the nearest of the centres
    # (n,): squared distances to the nearest and to the second-nearest centre
    own: Array
    second: Array
    width: int  # columns that the coordinates are sums over, by which rounding goes
    unit: float  # factor from sums of squares in these coordinates to those of the data

    @property
    def n_clusters(self) -> int:
        return len(self.centres)

    @property
    def objective(self) -> float:
        """Sum of squares about the centres, an upper bound on the smallest possible."""
        return float(self.weights @ self.own)

    @property
    def look(self) -> float:
        """Work of one distance."""
        return float(self.points.shape[1] + 2) / 10

    @property
    def scatter(self) -> float:
        """Sum of squares about the mean."""
        return float(self.weights @ np.einsum("il,il->i", self.points, self.points))

    @property
    def coordinate_error(self) -> float:
        r"""Bound on the change of the smallest sum of squares by centring, rounding and rotating the points.

        The root of the least sum of squares is a Wasserstein distance, so it moves by at most the root of the summed
        squared displacements.
        """
        farthest = float(np.abs(self.points).max()) * float(self.weights.sum()) ** 0.5
        moved = 8.0 * (self.width + 4) * EPSILON * (self.scatter**0.5 + farthest)
        return float(moved * (2.0 * self.objective**0.5 + moved))

    def part(self, rows: NDArray[np.intp]) -> BoundProblem:
        """Return the problem of some of the points, with the centres of their labels."""
        return make_problem(self.points[rows], self.weights[rows], self.centres, rotate=False)


def make_problem(
    points: NDArray[Any],  # (n, d)
    weights: Array,  # (n,): positive
    # (k, d): In the units of `points`. They are replaced by the means of their points, and those without points by the
    # points farthest from their centres; better centres can only improve the bound.
    centres: NDArray[Any],
    *,
    rotate: bool = True,  # whether to rotate to principal axes
) -> BoundProblem:
    """Move points and centres to the coordinates of the bounds."""
    x = np.array(points, dtype=np.float64, order="C")
    c = np.array(centres, dtype=np.float64, order="C")
    share = weights / weights.sum()
    mean = share @ x
    x -= mean
    c -= mean
    mean_square = float(share @ np.einsum("il,il->i", x, x))
    # A power of two changes no digit of the points.
    scale = 2.0 ** -round(np.log2(mean_square) / 2) if mean_square > 0 else 1.0
    x *= scale
    c *= scale
    if rotate and x.shape[1] > 1:
        axes = principal_axes(x, share)
        x = np.ascontiguousarray(x @ axes)
        c = c @ axes
    order = np.argsort(x[:, 0], kind="stable")  # the kernel then visits only points within reach
    x, weights = np.ascontiguousarray(x[order]), weights[order]
    labels, own, second = _nearest_two(x, c)
    for _ in range(2):
        before, c = c, _means(x, weights, labels, own, len(c))
        if np.abs(c - before).max() <= 1e-12:  # the means of a fit already
            break
        labels, own, second = _nearest_two(x, c)
    return BoundProblem(x, weights, c, labels, own, second, points.shape[1], 1.0 / scale**2)


def _nearest_two(x: Array, centres: Array) -> tuple[NDArray[np.intp], Array, Array]:
    labels, own, second = np.empty(len(x), dtype=np.intp), np.empty(len(x)), np.empty(len(x))
    size = max(BLOCK_ENTRIES // len(centres), 1)
    for start in range(0, len(x), size):
        block = slice(start, min(start + size, len(x)))
        distances = squared_distances(x[block], centres)
        rows = np.arange(len(distances))
        nearest = distances.argmin(axis=1)
        labels[block], own[block] = nearest, distances[rows, nearest]
        distances[rows, nearest] = np.inf
        second[block] = distances.min(axis=1)
    return labels, own, second


def _means(x: Array, weights: Array, labels: NDArray[np.intp], own: Array, k: int) -> Array:
    mass = np.bincount(labels, weights, k)
    sums = np.column_stack([np.bincount(labels, weights * column, k) for column in x.T])
    out = np.divide(sums, mass[:, None], out=np.zeros_like(sums), where=mass[:, None] > 0)
    empty = np.flatnonzero(mass == 0)
    out[empty] = x[np.argsort(-weights * own, kind="stable")[: len(empty)]]
    return out
