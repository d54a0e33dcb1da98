"""The data of a bound on mixtures, in coordinates in which the smallest noise is one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels

EPSILON = float(np.finfo(np.float64).eps)

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Bumps(ABC):
    r"""Weighted rows, and a kernel :math:`\exp(-r^2 / 2)` of a row's distance r to a place."""

    rows: Array  # (n, d): C-contiguous
    weights: Array  # (n,): positive
    log_peak: float  # log density, in the units of the data, of a kernel equal to one
    # bound on the change of any mixture's log-likelihood by rounding in the change of coordinates
    coordinate_error: float

    @property
    def n_columns(self) -> int:
        """Dimension of a place."""
        return int(self.rows.shape[1])

    @property
    def total(self) -> float:
        """Summed weight."""
        return float(self.weights.sum())

    def log_likelihood(self, log_density: Array) -> float:
        """Return the log-likelihood of a mixture with these log densities at the rows, given in units of the kernel."""
        return float(self.weights @ log_density) + self.total * self.log_peak

    @property
    def look(self) -> float:
        """Work of one kernel, in multiplications."""
        return float(self.rows.shape[1] + 20)

    def in_cells(self, most: int) -> tuple[Self, NDArray[np.intp]]:
        """Merge nearby rows into at most `most` cells, at their means; also return the cell of each row."""
        size = 0.25
        while True:
            _, cell = np.unique(np.round(self.rows / size), axis=0, return_inverse=True)
            cell = cell.ravel()
            if cell.max() < most:
                break
            size *= 1.5
        mass = np.bincount(cell, self.weights).astype(np.float64)
        means = np.column_stack([np.bincount(cell, self.weights * column) / mass for column in self.rows.T])
        return replace(self, rows=means, weights=mass), cell

    def table(self, places: Array) -> tuple[Array, Array]:
        """Return the kernels (n, m), each row divided by its largest, and the logarithms (n,) of the largest."""
        squares = self.squares(places)
        squares *= -0.5
        largest = squares.max(axis=1)
        squares -= largest[:, None]
        return np.exp(squares, out=squares), largest

    @abstractmethod
    def squares(self, places: Array) -> Array:
        """Return the squared distances (n, m)."""

    @abstractmethod
    def first_places(self, most: int) -> tuple[Array, Array]:
        """Return the initial mixing distribution: about `n` places, and their shares."""

    @abstractmethod
    def candidates(self, heights: Array, most: int | None = None) -> Array:
        """Return at most `most` places where the sum of bumps of these heights may be large."""

    @abstractmethod
    def means(self, joint: Array) -> Array:
        """Return the places of best fit to the rows, one for each column of weights (n, m)."""

    @abstractmethod
    def climb(self, heights: Array, places: Array, max_steps: int, progress: float = 0.0) -> tuple[Array, Array, float]:
        """Climb on the sum of bumps of these heights; return the places reached, the sums there, and the work."""

    @abstractmethod
    def search(self, heights: Array, tolerance: float) -> _kernels.BoxSearch:
        """Start branch and bound for the largest sum of bumps of these heights."""

    @abstractmethod
    def parts(self, most: int) -> Iterator[Self]:
        """Yield the data with at most `most` columns, then fewer; a bound on any of these is a bound on all columns."""


class GaussianBumps(Bumps):
    """Points in coordinates of their principal axes, longest first; places are points."""

    def parts(self, most: int) -> Iterator[Self]:
        yield from (self.leading(q) for q in range(min(self.n_columns, most), 0, -1))

    def leading(self, n_columns: int) -> Self:
        """Return the problem in its first coordinates alone.

        A bound for these coordinates is one for all: given the first ones, the density of the others is at most the
        peak of the kernel, as conditional covariances are at least the identity too.
        """
        return replace(self, rows=np.ascontiguousarray(self.rows[:, :n_columns]))

    def squares(self, places: Array) -> Array:
        out = np.empty((len(self.rows), len(places)))
        _kernels.distances(self.rows, np.ascontiguousarray(places), out)
        return out

    def first_places(self, most: int) -> tuple[Array, Array]:
        """Return the means and weights of cells."""
        coarse, _ = self.in_cells(most)
        return coarse.rows, coarse.weights / coarse.total

    def candidates(self, heights: Array, most: int | None = None) -> Array:
        """Return the points of largest height."""
        return self.rows if most is None else self.rows[np.argsort(-heights, kind="stable")[:most]]

    def means(self, joint: Array) -> Array:
        return np.asarray((joint.T @ self.rows) / joint.sum(axis=0)[:, None])

    def climb(self, heights: Array, places: Array, max_steps: int, progress: float = 0.0) -> tuple[Array, Array, float]:
        """Climb by mean shift."""
        at, values = np.array(places, order="C"), np.empty(len(places))
        looks = _kernels.bump_climb(self.rows, heights, at, values, max_steps, progress)
        return at, values, looks * self.look

    def search(self, heights: Array, tolerance: float) -> _kernels.BoxSearch:
        return _kernels.bump_search(self.rows, heights, tolerance)


def whitened(
    points: Array,  # (n, d)
    weights: Array,  # (n,): positive
    # (d, d): symmetric, positive definite; or its diagonal, the others zero, in which case no table of columns by
    # columns is made where there are fewer points
    floor: Array,
) -> GaussianBumps:
    r"""Return the points in coordinates in which the matrix `floor` is the identity."""
    n_columns = points.shape[1]
    share = weights / weights.sum()
    variances = floor if floor.ndim == 1 else np.diag(floor)
    if not (np.isfinite(floor).all() and (variances > 0).all()):
        raise np.linalg.LinAlgError("the diagonal is not positive")
    scales = np.sqrt(variances)
    x = (points - np.einsum("i,ij->j", share, points)) / scales
    log_volume, condition = float(np.log(scales).sum()), 1.0
    if floor.ndim == 2:
        root = np.linalg.cholesky(floor / np.outer(scales, scales))
        for l in range(n_columns):  # noqa: E741
            for m in range(l):
                x[:, l] -= root[l, m] * x[:, m]
            x[:, l] /= root[l, l]
        log_volume, condition = log_volume + float(np.log(np.diag(root)).sum()), float(np.linalg.cond(root))
    if n_columns > len(x):  # there are no more axes than points
        axes = np.linalg.svd(np.sqrt(share)[:, None] * x, full_matrices=False)[2].T
    else:
        axes = np.linalg.eigh(np.einsum("i,ij,ik->jk", share, x, x))[1][:, ::-1]
    x = np.einsum("ij,jk->ik", x, axes)
    log_peak = -0.5 * n_columns * np.log(2 * np.pi) - log_volume
    # Places may be restricted to the points' convex hull, so no distance exceeds twice the farthest.
    farthest = float(np.sqrt(np.einsum("ij,ij->i", x, x).max()))
    moved = 8.0 * (n_columns + 4) ** 2 * EPSILON * condition * farthest
    error = float(weights.sum()) * (
        moved * (2 * farthest + moved) + 8.0 * (n_columns + 4) * EPSILON * (1 + abs(log_peak))
    )
    return GaussianBumps(np.ascontiguousarray(x), weights, log_peak, error)
