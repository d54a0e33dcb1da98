"""Second moments of weighted rows, dense or sparse, over columns or over rows, whichever are fewer.

They are matrix products: callers limit BLAS to one thread, as its sums depend on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant.data.chunks import Block, Chunks
from majorant.registry import value_class

Array = NDArray[np.float64]

LEAST = 1e-10
"""Smallest variance of a whitened direction, relative to the largest one."""


def mean_of(x: Any, shares: Array) -> Array:
    """Return the weighted mean of rows, shape (n_features,)."""
    if sparse.issparse(x):
        return np.asarray(x.T @ shares).ravel()
    return np.asarray(np.einsum("np,n->p", x, shares, dtype=np.float64))


def deviations_of(x: Any, shares: Array) -> Array:
    """Return the weighted standard deviation of each column, shape (n_features,); exactly zero for a constant one."""
    mean = mean_of(x, shares)
    if sparse.issparse(x):
        squares = np.asarray(x.multiply(x).T @ shares).ravel() - mean**2
    else:
        squares = np.einsum("np,n->p", (x - mean) ** 2, shares)
    largest = np.asarray(abs(x).max(axis=0).toarray()).ravel() if sparse.issparse(x) else np.abs(x).max(axis=0)
    found = np.sqrt(np.maximum(squares, 0.0))
    return np.where(found > 1e-7 * largest if sparse.issparse(x) else found > 1e-12 * largest, found, 0.0)


def covariance(
    x: Any,  # CSR or dense (n_rows, n_features): dense rows are centred block by block, sparse ones stay sparse
    shares: Array,  # (n_rows,): nonnegative, of sum one
    mean: Array,  # (n_features,)
    n_jobs: int | None = None,  # number of threads over blocks of dense rows
) -> Array:
    """Return the weighted covariance of columns, shape (n_features, n_features)."""
    if sparse.issparse(x):
        x = x.astype(np.float64, copy=False)
        return np.asarray((x.T @ x.multiply(shares[:, None])).toarray() - np.multiply.outer(mean, mean))

    def visit(block: Block) -> Array:
        rows = block.columns[0] - mean
        return np.asarray((rows * np.asarray(block.weights)[:, None]).T @ rows)

    return Chunks(x, weights=shares, n_jobs=n_jobs).map_sum(visit)


def shrinkage(x: Any, shares: Array, mean: Array, size: float, squares: float, n: int) -> float:
    """Return by how much a covariance is shrunk towards a multiple of the identity [1]_: the share of the latter.

    Parameters
    ----------
    x : ndarray of shape (n_rows, n_features)
    shares, mean
        See `covariance`.
    size, squares : float
        Mean variance of the columns, which is the multiple, and the sum of the squared entries of the covariance.
    n : int
        Number of rows that the shares represent; with fewer rows the covariance is shrunk more.

    References
    ----------
    .. [1] O. Ledoit, M. Wolf, "A well-conditioned estimator for large-dimensional covariance matrices", Journal of
       Multivariate Analysis, 2004.
    """

    def visit(block: Block) -> Array:
        rows = block.columns[0] - mean
        return np.array([block.total(np.einsum("ij,ij->i", rows, rows) ** 2)])

    fourth = float(Chunks(x, weights=shares).map_sum(visit)[0])
    away = squares - x.shape[1] * size**2
    noise = max(fourth - squares, 0.0) / n
    return 1.0 if noise >= away else noise / away


def centred_gram(x: Any, mean: Array) -> Array:
    """Return the inner products of centred rows, shape (n_rows, n_rows)."""
    if sparse.issparse(x):
        x = x.astype(np.float64, copy=False)
        to_mean = np.asarray(x @ mean).ravel()
        return np.asarray((x @ x.T).toarray() - to_mean[:, None] - to_mean + mean @ mean)
    rows = x - mean
    return np.asarray(rows @ rows.T)


def centred_combinations(x: Any, mean: Array, by: Array) -> Array:
    """Return the sums of centred rows, each times its entry in a column of `by`, shape (n_features, n_combinations)."""
    if sparse.issparse(x):
        return np.asarray(x.T @ by - np.multiply.outer(mean, by.sum(axis=0)))
    return np.asarray((x - mean).T @ by)


def weighted_gram(x: Any, shares: Array, mean: Array) -> Array:
    """Return inner products of centred rows times roots of their shares: positive eigenvalues as of the covariance."""
    root = np.sqrt(shares)
    return centred_gram(x, mean) * np.multiply.outer(root, root)


def principal_axes(x: Array, shares: Array) -> Array:
    """Orthonormal principal axes of centred dense rows, the widest first: columns, as many as rows or features."""
    if x.shape[1] <= x.shape[0]:
        return np.asarray(np.linalg.eigh((x * shares[:, None]).T @ x)[1][:, ::-1])
    return np.asarray(np.linalg.svd(x * np.sqrt(shares)[:, None], full_matrices=False)[2].T)


def principal_variances(x: Any, shares: Array, n_jobs: int | None = None) -> Array:
    """Return the variances along the principal axes, ascending, shape (min(n_rows, n_features),)."""
    n, p = x.shape
    mean = mean_of(x, shares)
    moments = covariance(x, shares, mean, n_jobs) if p <= n else weighted_gram(x, shares, mean)
    return np.asarray(np.maximum(np.linalg.eigvalsh(moments), 0.0))


@value_class
@dataclass(frozen=True)
class Whitener:
    """The symmetric inverse root of a covariance that is a multiple of the identity but for a few directions."""

    directions: Array  # (n_columns, n_directions): orthonormal
    deviations: Array  # (n_directions,): standard deviations along them
    rest: float  # standard deviation along all other directions

    def whitened(self, z: Array) -> Array:
        """Return rows whose covariance is the identity."""
        return self._stretched(z, 1 / self.deviations, 1 / self.rest)

    def restored(self, z: Array) -> Array:
        """Return the rows from whitened ones."""
        return self._stretched(z, self.deviations, self.rest)

    def _stretched(self, z: Array, factors: Array, rest: float) -> Array:
        def visit(block: Block) -> Array:
            part = block.columns[0]
            return np.asarray(rest * part + (part @ self.directions * (factors - rest)) @ self.directions.T)

        return Chunks(z).map_rows(visit, (z.shape[1],))


def fit_whitener(z: Array, shares: Array) -> Whitener:
    """Fit the whitener of standardised rows, their covariance shrunk by the rule of Ledoit and Wolf.

    Shrinkage depends on the number of distinct rows with weight, so a repeated row is the same as a weighted one. Of
    more columns than rows the directions come from the products of rows.
    """
    n, d = z.shape
    if n < d:
        root = np.sqrt(shares)[:, None] * z
        values, vectors = np.linalg.eigh(root @ root.T)
        used = values > LEAST * values.max()
        values = values[used]
        directions = (root.T @ vectors[:, used]) / np.sqrt(values)
    else:
        values, directions = np.linalg.eigh(covariance(z, shares, np.zeros(d)))
        values = np.maximum(values, 0.0)
    size = float(values.sum()) / d
    shrink = shrinkage(z, shares, np.zeros(d), size, float(values @ values), n)
    found = (1 - shrink) * values + shrink * size
    least = LEAST * found.max()
    rest = max(shrink * size, least) if len(values) < d else 1.0
    return Whitener(directions, np.sqrt(np.maximum(found, least)), float(np.sqrt(rest)))
