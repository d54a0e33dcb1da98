"""The data of a bound on mixtures of regressions, in units of the smallest noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Self

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.engine.draws import drawn
from majorant.solvers.mixture_bounds.bumps import EPSILON, Array, Bumps

N_CANDIDATES = 1000
GROUP_WORK = 30_000_000
"""Largest number of multiplications for the cap of a group."""
RIDGE = 1e-10


@dataclass(frozen=True)
class LineBumps(Bumps):
    r"""Rows (z, y); places are coefficients c, and the distance to a row is its residual :math:`y - z^T c`."""

    # (n, q): Features of which z are combinations. Rows with equal values of some of them lie on a plane, and so on a
    # steep line. Needed for `search`.
    features: Array | None = None

    @property
    def n_columns(self) -> int:
        return int(self.rows.shape[1]) - 1

    @property
    def z(self) -> Array:
        return np.ascontiguousarray(self.rows[:, :-1])

    @property
    def y(self) -> Array:
        return np.ascontiguousarray(self.rows[:, -1])

    def parts(self, most: int) -> Iterator[Self]:
        """Yield all columns only, since no coefficient can be left out."""
        yield self

    def in_cells(self, most: int) -> tuple[Self, NDArray[np.intp]]:
        coarse, cell = super().in_cells(most)
        return replace(coarse, features=None), cell

    def squares(self, places: Array) -> Array:
        return np.asarray((self.rows[:, -1:] - self.z @ places.T) ** 2)

    def first_places(self, most: int) -> tuple[Array, Array]:
        """Return lines through as many rows as they have coefficients."""
        places = self._through_rows(self.weights, most)
        return places, np.full(len(places), 1 / len(places))

    def candidates(self, heights: Array, most: int | None = None) -> Array:
        """Return lines through rows of large height."""
        return self._through_rows(heights, most or N_CANDIDATES)

    def _through_rows(self, heights: Array, most: int) -> Array:
        """Return the line of least squares, and lines through rows drawn by height with a fixed seed."""
        p = self.n_columns
        draws = np.random.default_rng(0).random((most, p))
        at = drawn(heights, draws)
        z, y = self.z[at], self.y[at]
        apart = np.abs(np.linalg.det(z)) > 1e-3
        lines = np.linalg.solve(z[apart], y[apart][:, :, None])[:, :, 0]
        return np.concatenate((self.means(heights[:, None]), lines))

    def means(self, joint: Array) -> Array:
        """Return the lines of weighted least squares."""
        z = self.z
        gram = np.einsum("ij,ip,iq->jpq", joint, z, z)
        slope = np.einsum("ij,ip,i->jp", joint, z, self.y)
        ridge = RIDGE * np.trace(gram, axis1=1, axis2=2) + 1e-300
        return np.asarray(np.linalg.solve(gram + ridge[:, None, None] * np.eye(z.shape[1]), slope[:, :, None])[:, :, 0])

    def climb(self, heights: Array, places: Array, max_steps: int, progress: float = 0.0) -> tuple[Array, Array, float]:
        """Maximise the sum of bumps by iterated least squares of the rows under them."""
        at, values = np.array(places, order="C"), np.empty(len(places))
        looks = _kernels.line_climb(self.z, self.y, heights, at, values, max_steps, progress)
        return at, values, looks * self.look

    def search(self, heights: Array, tolerance: float) -> _kernels.BoxSearch:
        features = np.empty((len(self.rows), 0)) if self.features is None else self.features
        return _search(self.z, self.y, heights, features, tolerance)


def line_bumps(
    z: Array,  # (n, p): a design that is orthonormal under the weights; the constant is a combination of its columns
    y: Array,  # (n,)
    weights: Array,  # (n,): positive
    noise: float,  # the smallest standard deviation of the noise, in units of y
    features: Array,  # (n, q): features of which z are combinations
) -> LineBumps:
    """Return the rows in units of the least noise."""
    rows = np.column_stack((z, y / noise))
    log_peak = -0.5 * float(np.log(2 * np.pi)) - float(np.log(noise))
    # Lines whose fits stay within ten times the reach of y; steeper ones are near few rows.
    farthest = 10 * float(np.abs(rows[:, -1]).max())
    moved = 8.0 * (z.shape[1] + 4) ** 2 * EPSILON * farthest
    error = float(weights.sum()) * (moved * (2 * farthest + moved) + 8.0 * EPSILON * (1 + abs(log_peak)))
    return LineBumps(np.ascontiguousarray(rows), weights, log_peak, error, features)


def _search(z: Array, y: Array, heights: Array, features: Array, tolerance: float) -> _kernels.BoxSearch:
    """Start branch and bound over all lines, with caps for rows that have equal values of some features."""
    n = len(y)
    labels, caps = [], []
    for size in range(1, features.shape[1] + 1):
        for shared in combinations(range(features.shape[1]), size):
            _, group = np.unique(features[:, shared], axis=0, return_inverse=True)
            group = group.ravel()
            if group.max() < n - 1:
                labels.append(group.astype(np.int32))
                free = np.delete(features, shared, axis=1)
                caps.append(_caps(group, z, y, heights, free, tolerance))
    return _kernels.line_search(
        z,
        y,
        heights,
        np.array(labels, dtype=np.int32).reshape(len(labels), n),
        np.array(caps).reshape(len(caps), n),
        tolerance,
    )


def _caps(group: NDArray[np.intp], z: Array, y: Array, heights: Array, features: Array, tolerance: float) -> Array:
    """Return, for every group of rows, an upper bound on the sum of their bumps over all lines."""
    caps = np.zeros(len(y))
    caps[: group.max() + 1] = np.bincount(group, heights) * (1 + 100 * len(y) * EPSILON)
    order = np.argsort(group, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        own = _independent(z[rows])
        if own.shape[1] >= min(len(rows), z.shape[1]):
            continue  # a line passes through all rows, or they are on no plane
        search = _search(own, y[rows], heights[rows], features[rows], tolerance)
        search.advance(GROUP_WORK)
        caps[group[rows[0]]] = min(caps[group[rows[0]]], search.upper)
    return caps


def _independent(z: Array) -> Array:
    """Return columns that span those of z, of mean square one."""
    q, sizes, _ = np.linalg.svd(z, full_matrices=False)
    return np.ascontiguousarray(q[:, sizes > 1e-9 * sizes[0]] * np.sqrt(len(z)))
