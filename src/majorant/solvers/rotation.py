"""Coordinates for rows: centred, and within the span of the rows where these are fewer than their columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from majorant.solvers.covariance import centred_combinations, centred_gram, mean_of
from majorant.solvers.nearest import row_squares

Array = NDArray[np.float64]

MOST_ROWS = 3000
"""Largest number of rows whose Gram matrix is formed."""


@dataclass(frozen=True)
class Rotation:
    r"""Rows as :math:`z_i = (x_i - m) R`, where the columns of R are orthonormal and span the centred rows, or R = 1.

    A linear function of the rows with a penalty on its squared norm has its minimum in that span, so nothing is lost.
    """

    z: Any  # CSR or dense (n_samples, n_coordinates)
    mean: Array  # (n_features,): m; zero for rows that stay sparse
    basis: Array | None = None  # (n_features, n_coordinates): R

    def outward(self, theta: Array) -> Array:
        """Convert parameters (n_coordinates + 1, n_states) of z to (n_features + 1, n_states) of x; intercepts last."""
        w = theta[:-1] if self.basis is None else self.basis @ theta[:-1]
        return np.vstack([w, theta[-1] - self.mean @ w])

    def inward(self, theta: Array) -> Array:
        """Convert parameters of x to those of z; parts orthogonal to the rows are dropped."""
        w = theta[:-1] if self.basis is None else self.basis.T @ theta[:-1]
        return np.vstack([w, theta[-1] + self.mean @ theta[:-1]])


def rotation(
    x: Any,  # CSR or dense (n_samples, n_features)
    weights: Array | None = None,  # (n_samples,): only their mean depends on them
) -> Rotation:
    """Choose coordinates for weighted rows.

    Dense rows are centred; sparse ones stay sparse unless they are rotated.
    """
    n, p = x.shape
    rotates = n < p and n <= MOST_ROWS
    if sparse.issparse(x) and not rotates:
        return Rotation(x, np.zeros(p))
    share = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    mean = mean_of(x, share)
    if not rotates:
        return Rotation(np.ascontiguousarray(x - mean, dtype=x.dtype), mean)
    if sparse.issparse(x):
        x = x.astype(np.float64)
        squares, u = linalg.eigh(centred_gram(x, mean), check_finite=False)
        kept = squares > 1e-13 * max(float(row_squares(x).max()), float(squares[-1]))
        u, s = u[:, kept], np.sqrt(squares[kept])
        basis = centred_combinations(x, mean, u) / s
        return Rotation(np.ascontiguousarray(u * s), mean, np.ascontiguousarray(basis))
    centred = x.astype(np.float64) - mean
    left, s, right = linalg.svd(centred, full_matrices=False, check_finite=False)
    kept = s > 1e-13 * max(float(s[0]), 1e-300) if len(s) else s > 0
    return Rotation(np.ascontiguousarray(left[:, kept] * s[kept]), mean, np.ascontiguousarray(right[kept].T))
