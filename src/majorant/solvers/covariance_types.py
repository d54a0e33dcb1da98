"""Covariances of the components of a Gaussian mixture, one class for each type.

Covariances are arrays in scikit-learn's shapes: (K, d, d) where "full", (d, d) where "tied", (K, d) where "diag" and
(K,) where "spherical".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant.engine.triangles import lower, symmetric

Array = NDArray[np.float64]
CovarianceType = Literal["full", "tied", "diag", "spherical"]
LARGEST_LOG = 600.0
"""Bound on logarithms of variances, so that their exponentials do not overflow."""


class Covariance(ABC):
    """One type of covariances, without state."""

    name: ClassVar[CovarianceType]
    code: ClassVar[int]  # code of the type in the kernels
    # dimensions of maps under which components keep their type: 2 for a matrix, 1 for a factor per column, 0 for one
    most_axes: ClassVar[int]
    frame: ClassVar[str]  # coordinates in which EM does not depend on units: "whitened", "standardised" or "scaled"

    @property
    def has_matrices(self) -> bool:
        """Whether columns are correlated within a component."""
        return self.most_axes == 2

    @abstractmethod
    def shape(self, k: int, d: int) -> tuple[int, ...]:
        """Return the shape of the covariances of `k` components in `d` columns."""

    @abstractmethod
    def n_parameters(self, k: int, d: int) -> int:
        """Return the number of free parameters of the covariances."""

    @abstractmethod
    def n_second(self, d: int) -> int:
        """Return the number of second moments of a component."""

    @abstractmethod
    def identity(self, d: int) -> Array:
        """Return the identity, as one component's covariance."""

    def matrices(self, covariances: Array, k: int, d: int) -> Array:
        """Return the covariances as matrices (K, d, d)."""
        return np.asarray(self.variances(covariances, k, d)[:, :, None] * np.eye(d))

    @abstractmethod
    def variances(self, covariances: Array, k: int, d: int) -> Array:
        """Return the variance of each column in each component, (K, d)."""

    @abstractmethod
    def of_columns(self, covariances: Array, columns: NDArray[np.intp]) -> Array:
        """Return the covariances of some of the columns."""

    @abstractmethod
    def mapped(self, covariances: Array, matrix: Any) -> Array:
        """Return the covariances of ``x @ matrix``, a map between coordinates in which components have this type."""

    def scaled(self, covariances: Array, factor: Array) -> Array:
        """Return the covariances of ``x * factor``: a number or, except for "spherical", one for each column."""
        return np.asarray(covariances * factor**2)

    def beside(self, still: Any) -> Array | float:
        """Return what standard deviations along other directions, (n_still, d), add to a covariance."""
        return 0.0

    @abstractmethod
    def second_mapped(self, second: Array, matrix: Any) -> Array:
        """Return the second moments of ``x @ matrix`` from those of x, (K, n_second)."""

    def second_price(self, second: Array, matrix: Any) -> float:
        """Return half the sum of squares of ``x @ matrix`` over all components, from second moments."""
        return 0.0

    def second_traces(self, second: Array, precisions: Array) -> Array:
        """Return ``trace(P_k S_k)`` of each component's precision and second moments."""
        return np.asarray(np.einsum("kd,kd->k", second, precisions))

    def squared(self, factors: Array) -> Array:
        """Return the precisions from their factors, one of each component."""
        return np.asarray(factors**2)

    def times(self, precisions: Array, vectors: Array) -> Array:
        """Return ``P_k v_k`` of each component."""
        return np.asarray(precisions * vectors)

    def eigenvalues(self, covariances: Array) -> Array:
        """Return variances along principal axes, one row for each component, or a single row where they share one."""
        return covariances

    def lifted(self, covariances: Array, floor: float) -> Array:
        """Return the covariances with no eigenvalue below a floor."""
        return np.maximum(covariances, floor)

    def vector(self, covariances: Array) -> Array:
        """Return the covariances as unconstrained numbers."""
        return np.log(covariances)

    def of_vector(self, vector: Array, k: int, d: int) -> Array:
        """Return the covariances from a flat `vector`."""
        return np.exp(np.clip(vector, -LARGEST_LOG, LARGEST_LOG)).reshape(self.shape(k, d))

    def ratios(self, covariances: Array, shares: Array) -> Array:
        """Return each component's smallest variance in any direction, relative to the pooled one; of batches too."""
        own = covariances if covariances.ndim > shares.ndim else covariances[..., None]
        return np.asarray((own / np.einsum("...k,...kd->...d", shares, own)[..., None, :]).min(axis=-1))

    def least_size(self, k: int, rank: int, n_rows: float) -> float:
        """Return the smallest size of a component, in rows: a few more than determine its covariance."""
        if k == 1:
            return 0.0
        return 3.0 if rank == 1 else 2.0 * (rank + 1)

    @property
    def pooled_type(self) -> Covariance:
        """The type of second moments that `pooled` takes."""
        return DIAGONAL

    def pooled(self, second: Array, mass: float, d: int) -> Array:
        """Return the pooled within-component covariance, from second moments about the means."""
        return np.asarray(second.sum(axis=0) / mass)


class Matrices(Covariance):
    """Covariance matrices, which any linear map preserves."""

    most_axes = 2
    frame = "whitened"

    def n_second(self, d: int) -> int:
        return d * (d + 1) // 2

    def identity(self, d: int) -> Array:
        return np.eye(d)

    def matrices(self, covariances: Array, k: int, d: int) -> Array:
        return np.array(np.broadcast_to(covariances, (k, d, d)))

    def variances(self, covariances: Array, k: int, d: int) -> Array:
        return np.broadcast_to(np.diagonal(covariances, axis1=-2, axis2=-1), (k, d))

    def of_columns(self, covariances: Array, columns: NDArray[np.intp]) -> Array:
        return np.asarray(covariances[..., columns[:, None], columns])

    def mapped(self, covariances: Array, matrix: Any) -> Array:
        out = matrix.T @ (covariances @ matrix)
        return np.asarray((out + np.swapaxes(out, -1, -2)) / 2)

    def scaled(self, covariances: Array, factor: Array) -> Array:
        return np.asarray(covariances * (np.outer(factor, factor) if factor.ndim else factor**2))

    def beside(self, still: Any) -> Array | float:
        return np.asarray(still.T @ still)

    def second_mapped(self, second: Array, matrix: Any) -> Array:
        half = np.einsum("kab,bm->kam", symmetric(second, len(matrix)), matrix)
        row, column = lower(matrix.shape[1])
        return np.asarray(np.einsum("kam,al->klm", half, matrix)[:, row, column])

    def second_price(self, second: Array, matrix: Any) -> float:
        return 0.5 * float(np.einsum("kab,al,bl->", symmetric(second, len(matrix)), matrix, matrix))

    def second_traces(self, second: Array, precisions: Array) -> Array:
        return np.asarray(np.einsum("kab,kab->k", symmetric(second, precisions.shape[-1]), precisions))

    def squared(self, factors: Array) -> Array:
        return np.asarray(np.einsum("kab,kcb->kac", factors, factors))

    def times(self, precisions: Array, vectors: Array) -> Array:
        return np.asarray(np.einsum("kab,kb->ka", precisions, vectors))

    def eigenvalues(self, covariances: Array) -> Array:
        return np.asarray(np.linalg.eigvalsh(covariances).reshape(-1, covariances.shape[-1]))

    def lifted(self, covariances: Array, floor: float) -> Array:
        values, vectors = np.linalg.eigh(covariances)
        if values.min() >= floor:
            return covariances
        return np.asarray(np.einsum("...al,...l,...bl->...ab", vectors, np.maximum(values, floor), vectors))

    def vector(self, covariances: Array) -> Array:
        """Return the lower triangles of the Cholesky factors, with logarithms on the diagonal."""
        factors = np.linalg.cholesky(covariances)
        row, column = lower(covariances.shape[-1])
        out = factors[..., row, column]
        return np.where(row == column, np.log(np.where(row == column, out, 1.0)), out)

    def of_vector(self, vector: Array, k: int, d: int) -> Array:
        row, column = lower(d)
        free = np.array(vector.reshape(*self.shape(k, d)[:-2], len(row)))
        factors = np.zeros(self.shape(k, d))
        free[..., row == column] = np.exp(np.clip(free[..., row == column], -LARGEST_LOG / 2, LARGEST_LOG / 2))
        factors[..., row, column] = free
        return np.asarray(np.einsum("...ab,...cb->...ac", factors, factors))

    @property
    def pooled_type(self) -> Covariance:
        return FULL

    def pooled(self, second: Array, mass: float, d: int) -> Array:
        return symmetric(super().pooled(second, mass, d), d)


class Full(Matrices):
    """A matrix for each component."""

    name = "full"
    code = 0

    def shape(self, k: int, d: int) -> tuple[int, ...]:
        return (k, d, d)

    def n_parameters(self, k: int, d: int) -> int:
        return k * self.n_second(d)

    def ratios(self, covariances: Array, shares: Array) -> Array:
        """Return the smallest eigenvalue of ``W^-1/2 S_k W^-1/2``, W the pooled within-component covariance."""
        root = np.linalg.cholesky(np.einsum("...k,...kab->...ab", shares, covariances))[..., None, :, :]
        half = np.linalg.solve(root, covariances)
        return np.asarray(np.linalg.eigvalsh(np.linalg.solve(root, np.swapaxes(half, -1, -2)))[..., 0])


class Tied(Matrices):
    """One matrix for all components."""

    name = "tied"
    code = 1

    def shape(self, k: int, d: int) -> tuple[int, ...]:
        return (d, d)

    def n_parameters(self, k: int, d: int) -> int:
        return self.n_second(d)

    def ratios(self, covariances: Array, shares: Array) -> Array:
        """Return one for each component, as all share the covariance."""
        return np.ones(shares.shape)

    def least_size(self, k: int, rank: int, n_rows: float) -> float:
        """Return zero, or infinity if all rows together do not determine the covariance."""
        if k == 1:
            return 0.0
        return 0.5 if n_rows >= k + rank else np.inf


class Diagonal(Covariance):
    """A variance for each column of each component."""

    name = "diag"
    code = 2
    most_axes = 1
    frame = "standardised"

    def shape(self, k: int, d: int) -> tuple[int, ...]:
        return (k, d)

    def n_parameters(self, k: int, d: int) -> int:
        return k * d

    def n_second(self, d: int) -> int:
        return d

    def identity(self, d: int) -> Array:
        return np.ones(d)

    def variances(self, covariances: Array, k: int, d: int) -> Array:
        return covariances

    def of_columns(self, covariances: Array, columns: NDArray[np.intp]) -> Array:
        return np.asarray(covariances[..., columns])

    def mapped(self, covariances: Array, matrix: Any) -> Array:
        return times(covariances, matrix**2)

    def beside(self, still: Any) -> Array | float:
        return np.asarray((still**2).sum(axis=0)).ravel()

    def second_mapped(self, second: Array, matrix: Any) -> Array:
        return times(second, matrix**2)

    def second_price(self, second: Array, matrix: Any) -> float:
        return 0.5 * float(times(second, matrix**2).sum())


class Spherical(Covariance):
    """A variance for each component, the same along every direction."""

    name = "spherical"
    code = 3
    most_axes = 0
    frame = "scaled"

    def shape(self, k: int, d: int) -> tuple[int, ...]:
        return (k,)

    def n_parameters(self, k: int, d: int) -> int:
        return k

    def n_second(self, d: int) -> int:
        return 1

    def identity(self, d: int) -> Array:
        return np.ones(())

    def variances(self, covariances: Array, k: int, d: int) -> Array:
        return np.broadcast_to(covariances[:, None], (k, d))

    def of_columns(self, covariances: Array, columns: NDArray[np.intp]) -> Array:
        return covariances

    def mapped(self, covariances: Array, matrix: Any) -> Array:
        return np.asarray(covariances * matrix[0, 0] ** 2)

    def second_mapped(self, second: Array, matrix: Any) -> Array:
        return np.asarray(second * matrix[0, 0] ** 2)

    def second_traces(self, second: Array, precisions: Array) -> Array:
        return np.asarray(second[:, 0] * precisions)

    def times(self, precisions: Array, vectors: Array) -> Array:
        return np.asarray(precisions[:, None] * vectors)

    def eigenvalues(self, covariances: Array) -> Array:
        return covariances[..., None]

    def pooled(self, second: Array, mass: float, d: int) -> Array:
        return np.asarray(super().pooled(second, mass, d).mean())


FULL, TIED, DIAGONAL, SPHERICAL = Full(), Tied(), Diagonal(), Spherical()
COVARIANCES: dict[str, Covariance] = {kind.name: kind for kind in (FULL, TIED, DIAGONAL, SPHERICAL)}
"""The types by name, in the order of the kernels' codes."""
COVARIANCE_TYPES: tuple[CovarianceType, ...] = ("full", "tied", "diag", "spherical")


def times(x: Array, matrix: Any) -> Array:
    """Multiply rows by a matrix, sparse or not; each row's result is independent of its position, unlike BLAS."""
    if sparse.issparse(matrix):
        flat = x.reshape(int(np.prod(x.shape[:-1])), x.shape[-1])
        return np.ascontiguousarray(flat @ matrix).reshape(*x.shape[:-1], matrix.shape[1])
    return np.asarray(np.einsum("...j,jk->...k", x, matrix))
