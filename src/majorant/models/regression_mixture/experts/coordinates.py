"""The coordinates of a general fit: units, collinear columns and constants do not matter, shared columns stay so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant.models.regression_mixture.design import orthonormal_transform


@dataclass(frozen=True)
class Coordinates:
    r"""From predictors ``offset + a_k + x' b_k`` to ``offset' + z' c_k``.

    :math:`z = T^T v`, where v holds the constant and the standardised columns, those with coefficients of their own
    first; T is upper triangular, so that coefficients which all components share are the last entries of c.
    ``offset' = offset + z' c_0`` holds the single model's fit. A location-scale target is ``(y - offset') / sigma``.

    Attributes
    ----------
    origin, scales : ndarray of shape (n_features,)
        Column j of v is ``(x_j - origin_j) / scales_j``.
    order : ndarray of shape (p_raw,) of int
        Entries of ``[constant, x]`` (without the constant where there is no intercept) in the order of v.
    transform : ndarray of shape (p_raw, p)
    smallest : ndarray of shape (p_raw, p_raw)
        Onto the smallest coefficients of those that fit equally well.
    n_shared : int
        Entries of c that are shared.
    pooled : ndarray of shape (p,)
        c_0.
    sigma : float
        Unit of a location-scale target; 1 for others.
    fit_intercept : bool
    dropped : tuple of int
        Columns that are combinations of those before them.
    gating_origin, gating_scales : ndarray of shape (n_gating,)
    gating_transform : ndarray of shape (n_gating + 1, g)
    """

    origin: NDArray[np.float64]
    scales: NDArray[np.float64]
    order: NDArray[np.intp]
    transform: NDArray[np.float64]
    smallest: NDArray[np.float64]
    n_shared: int
    pooled: NDArray[np.float64]
    sigma: float
    fit_intercept: bool
    dropped: tuple[int, ...]
    gating_origin: NDArray[np.float64]
    gating_scales: NDArray[np.float64]
    gating_transform: NDArray[np.float64]

    def raw(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """v of rows, (n, p_raw)."""
        x = (X - self.origin) / self.scales
        v = np.column_stack([np.ones(len(x)), x]) if self.fit_intercept else x
        return np.asarray(v[:, self.order])

    def design(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """z of rows, (n, p)."""
        return np.asarray(np.einsum("ij,jp->ip", self.raw(X), self.transform))

    def gating(self, gates: NDArray[np.float64]) -> NDArray[np.float64]:
        """The gating columns of a fit, a constant among them, (n, g)."""
        v = np.column_stack([np.ones(len(gates)), (gates - self.gating_origin) / self.gating_scales])
        return np.asarray(np.einsum("ij,jg->ig", v, self.gating_transform))

    @property
    def to_user(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Matrix M and vector m with ``[level, slopes] = M c + m`` for a component's coefficients c.

        The level is the predictor less its offset at ``x = origin``; without intercept it is no parameter, and zero.
        """
        back = np.zeros((len(self.scales) + 1, len(self.transform)))
        for j, at in enumerate(self.order.tolist()):
            column = at - self.fit_intercept
            back[column + 1, j] = 1.0 if column < 0 else 1 / self.scales[column]
        matrix = np.einsum("ij,jl,lp->ip", back, self.smallest, self.transform)
        return self.sigma * matrix, np.asarray(np.einsum("ip,p->i", matrix, self.pooled))

    def coefficients(self, coef: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Slopes (K, n_features) and levels at `origin` (K,) in the units of X and y."""
        matrix, shift = self.to_user
        values = np.einsum("ip,kp->ki", matrix, coef) + shift
        return values[:, 1:], values[:, 0]

    def of_coefficients(self, slopes: NDArray[np.float64], levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """The inverse of `coefficients`."""
        full = np.column_stack([levels, slopes * self.scales]) if self.fit_intercept else slopes * self.scales
        inverse = np.linalg.pinv(self.transform)  # where columns are dropped any line that agrees on the rows will do
        return np.asarray((np.einsum("kj,pj->kp", full[:, self.order], inverse) - self.pooled) / self.sigma)

    @property
    def gating_to_user(self) -> NDArray[np.float64]:
        """Matrix M with ``[intercept, coef] = M a`` for a component's gating coefficients a."""
        scaled = self.gating_transform.copy()
        scaled[1:] /= self.gating_scales[:, None]
        scaled[0] -= np.einsum("j,jg->g", self.gating_origin, scaled[1:])
        return scaled


def location(columns: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weighted mean of each column, about its first row so that no digits are lost."""
    first = columns[len(columns) // 2]
    return np.asarray(first + np.einsum("i,ij->j", weights / weights.sum(), columns - first))


def spread(columns: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weighted root mean square of each column, one where it is zero."""
    size = np.abs(columns).max(axis=0, initial=0.0)
    size = np.where(size > 0, size, 1.0)
    return np.asarray(np.sqrt(np.einsum("i,ij->j", weights / weights.sum(), (columns / size) ** 2)) * size).clip(1e-300)


def triangular(
    v: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[int, ...]]:
    """T with orthonormal ``v T`` under the weights, the projection onto the rows' space, and the columns of no use."""
    share = weights / weights.sum()
    transform, smallest, dropped = orthonormal_transform(np.einsum("i,ij,il->jl", share, v, v))
    z = np.einsum("ij,jp->ip", v, transform)
    gram = np.einsum("i,ij,il->jl", share, z, z)  # whitening squares the condition: once more
    return np.asarray(np.linalg.solve(np.linalg.cholesky(gram), transform.T).T), smallest, dropped
