"""Coordinates that make a fit independent of units, collinear columns and constants; shared columns stay shared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ZERO = 1e-30
"""Mean square of a standardised column below which it is zero, and its coefficient too."""

Gram = Callable[[Array | None], Array]
Triangle = tuple[Array, Array | None, tuple[int, ...]]
"""T with orthonormal ``v T``, a basis of the rows' space (None where that is all), and the columns of no use."""


@dataclass(frozen=True)
class Coordinates:
    r"""The map from predictors ``offset + a_k + x' b_k`` to ``offset' + z' c_k``.

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
    space : ndarray of shape (p_raw, p) or None
        Orthonormal basis of the smallest coefficients of those that fit equally well; None where all count.
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

    origin: Array
    scales: Array
    order: NDArray[np.intp]
    transform: Array
    space: Array | None
    n_shared: int
    pooled: Array
    sigma: float
    fit_intercept: bool
    dropped: tuple[int, ...]
    gating_origin: Array
    gating_scales: Array
    gating_transform: Array

    @property
    def n_coefficients(self) -> int:
        return int(self.transform.shape[1])

    def raw(self, X: Array) -> Array:
        """Return v of the rows, (n, p_raw)."""
        x = (X - self.origin) / self.scales
        v = np.column_stack([np.ones(len(x)), x]) if self.fit_intercept else x
        return np.asarray(v[:, self.order])

    def design(self, X: Array) -> Array:
        """Return z of the rows, (n, p)."""
        return np.ascontiguousarray(np.einsum("ij,jp->ip", self.raw(X), self.transform))

    def gating(self, gates: Array) -> Array:
        """Return the gating columns of a fit, a constant among them, (n, g)."""
        v = np.column_stack([np.ones(len(gates)), (gates - self.gating_origin) / self.gating_scales])
        return np.asarray(np.einsum("ij,jg->ig", v, self.gating_transform))

    @property
    def to_user(self) -> tuple[Array, Array]:
        """Matrix M and vector m with ``[level, slopes] = M c + m`` for a component's coefficients c.

        The level is the predictor less its offset at ``x = origin``; without intercept it is no parameter, and zero.
        """
        at = np.asarray(self.order) + (not self.fit_intercept)
        matrix = np.zeros((len(self.scales) + 1, self.n_coefficients))
        if self.space is None:
            matrix[at] = self.transform
        else:
            matrix[at] = np.einsum("jl,lp->jp", self.space, np.einsum("jl,jp->lp", self.space, self.transform))
        matrix[1:] /= self.scales[:, None]
        return self.sigma * matrix, np.asarray(np.einsum("ip,p->i", matrix, self.pooled))

    def coefficients(self, coef: Array) -> tuple[Array, Array]:
        """Return the slopes (..., n_features) and levels at `origin` (...) in the units of X and y."""
        matrix, shift = self.to_user
        values = np.einsum("ip,...p->...i", matrix, coef) + shift
        return values[..., 1:], values[..., 0]

    def of_coefficients(self, slopes: Array, levels: Array) -> Array:
        """Return the inverse of `coefficients`."""
        full = np.column_stack([levels, slopes * self.scales]) if self.fit_intercept else slopes * self.scales
        inverse = np.linalg.pinv(self.transform)  # where columns are dropped any line that agrees on the rows will do
        return np.asarray((np.einsum("kj,pj->kp", full[:, self.order], inverse) - self.pooled) / self.sigma)

    @property
    def gating_to_user(self) -> Array:
        """Matrix M with ``[intercept, coef] = M a`` for a component's gating coefficients a."""
        scaled = self.gating_transform.copy()
        scaled[1:] /= self.gating_scales[:, None]
        scaled[0] -= np.einsum("j,jg->g", self.gating_origin, scaled[1:])
        return scaled


def coordinates_of(
    origin: Array,
    scales: Array,
    triangle: Callable[[Coordinates], Triangle],
    fit_intercept: bool,
    shared: tuple[int, ...],
) -> Coordinates:
    """Return the coordinates in which the columns are orthonormal, the single model at zero; without gating.

    `triangle` gives the triangle of v of coordinates without a transform; of `shared` columns -1 is the intercept.

    Raises
    ------
    ValueError
        If there are nothing but zeros and no intercept.
    """
    raw = [-1] * fit_intercept + list(range(len(origin)))
    order = np.array(
        [i for i, j in enumerate(raw) if j not in shared] + [i for i, j in enumerate(raw) if j in shared], dtype=np.intp
    )
    base = Coordinates(
        origin=origin,
        scales=scales,
        order=order,
        transform=np.zeros((len(raw), 0)),
        space=None,
        n_shared=0,
        pooled=np.zeros(0),
        sigma=1.0,
        fit_intercept=fit_intercept,
        dropped=(),
        gating_origin=np.zeros(0),
        gating_scales=np.ones(0),
        gating_transform=np.ones((1, 1)),
    )
    transform, space, dropped = triangle(base)
    if transform.shape[1] == 0:
        raise ValueError("X holds nothing but zeros: without an intercept there is no line to fit")
    n_own = len(raw) - len(shared)
    lost = tuple(raw[order[j]] for j in dropped)
    kept = np.setdiff1d(np.arange(len(raw)), dropped)
    return replace(
        base,
        transform=transform,
        space=None if shared else space,  # its rows would mix shared and own ones
        n_shared=int(np.sum(kept >= n_own)),
        pooled=np.zeros(transform.shape[1]),
        dropped=tuple(j for j in lost if j >= 0),
    )


def movable(n_features: int, fit_intercept: bool, shared: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return the columns whose origin may move: where slopes are shared, so must be the constant that absorbs it."""
    free = np.full(n_features, fit_intercept)
    if -1 in shared:
        free[[j for j in range(n_features) if j not in shared]] = False
    return free


def location(columns: Array, weights: Array) -> Array:
    """Return the weighted mean of each column, about its first row so that no digits are lost."""
    first = columns[len(columns) // 2]
    return np.asarray(first + np.einsum("i,ij->j", weights / weights.sum(), columns - first))


def spread(columns: Array, weights: Array) -> Array:
    """Return the weighted root mean square of each column, one where it is zero."""
    size = np.abs(columns).max(axis=0, initial=0.0)
    size = np.where(size > 0, size, 1.0)
    return np.asarray(np.sqrt(np.einsum("i,ij->j", weights / weights.sum(), (columns / size) ** 2)) * size).clip(1e-300)


def gram_of(v: Array, weights: Array) -> Gram:
    """Return the weighted means of the products of two columns of ``v T``, for any T; None is the identity."""
    share = weights / weights.sum()

    def gram(transform: Array | None) -> Array:
        z = v if transform is None else np.einsum("ij,jp->ip", v, transform)
        return np.asarray(np.einsum("i,ij,il->jl", share, z, z))

    return gram


def triangle_of(v: Array, weights: Array) -> Triangle:
    """Return the triangle of rows in memory; of more columns than rows without a table of columns by columns."""
    if len(v) >= v.shape[1]:
        return triangular(gram_of(v, weights))
    root = np.sqrt(weights / weights.sum())[:, None] * v
    kept = _independent(root)
    transform = np.zeros((v.shape[1], len(kept)))
    if len(kept):
        transform[kept] = triangular(gram_of(v[:, kept], weights))[0]
    space = np.linalg.svd(root, full_matrices=False)[2][: len(kept)].T
    space = np.where(np.einsum("ij,ij->j", root, root)[:, None] < ZERO, 0.0, space)
    return transform, space, tuple(np.setdiff1d(np.arange(v.shape[1]), kept).tolist())


def triangular(gram: Gram) -> Triangle:
    """Return the triangle by a Gram matrix."""
    transform, space, dropped = orthonormal_transform(gram(None))
    lower = np.linalg.cholesky(gram(transform))  # whitening squares the condition: once more
    return np.asarray(np.linalg.solve(lower, transform.T).T), space, dropped


def orthonormal_transform(gram: Array) -> Triangle:
    """Return a matrix T with ``T' gram T = I``, a basis of the rows' space, and the columns of no use.

    T follows the order of the columns, unlike eigenvectors, which rounding may turn where eigenvalues are close.
    """
    dropped = _redundant(gram)
    kept = [j for j in range(len(gram)) if j not in dropped]
    transform = np.zeros((len(gram), len(kept)))
    if kept:
        lower = np.linalg.cholesky(gram[np.ix_(kept, kept)])
        transform[kept] = np.linalg.inv(lower).T
    if not dropped:
        return transform, None, dropped
    _, vectors = np.linalg.eigh(gram)
    space = np.where(np.diag(gram)[:, None] < ZERO, 0.0, vectors[:, len(dropped) :])
    return transform, space, dropped


def _independent(root: Array) -> NDArray[np.intp]:
    """Return the columns that are no combinations of earlier ones, as `_redundant` finds them."""
    rest, size = root.copy(), np.einsum("ij,ij->j", root, root)
    found: list[int] = []
    for j in range(root.shape[1]):
        left = float(rest[:, j] @ rest[:, j])
        if left > 1e-11 * size[j] and size[j] >= ZERO:
            found.append(j)
            along = rest[:, j] / np.sqrt(left)
            rest[:, j:] -= np.outer(along, along @ rest[:, j:])
    return np.array(found, dtype=np.intp)


def _redundant(gram: Array) -> tuple[int, ...]:
    """Return the columns that are combinations of earlier ones: Cholesky finds no pivot there."""
    rest = gram.copy()
    found: list[int] = []
    for j in range(len(gram)):
        if rest[j, j] <= 1e-11 * gram[j, j] or gram[j, j] < ZERO:
            found.append(j)
        else:
            rest -= np.outer(rest[j], rest[j]) / rest[j, j]
    return tuple(found)
