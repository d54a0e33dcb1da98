"""Coordinates that make a fit independent of units, collinear columns and constants; shared columns stay shared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from majorant.solvers.orthonormal import Triangle

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Coordinates:
    r"""The map from predictors ``offset + a_k + x' b_k`` to ``offset' + z' c_k``.

    :math:`z = T^T v`, where v holds the constant and the standardised columns, those with coefficients of their own
    first; T is upper triangular, so that coefficients which all components share are the last entries of c.
    ``offset' = offset + z' c_0`` holds the single model's fit. A location-scale target is ``(y - offset') / sigma``.
    """

    # (n_features,): column j of v is ``(x_j - origin_j) / scales_j``
    origin: Array
    scales: Array
    # (p_raw,): entries of ``[constant, x]`` (without the constant where there is no intercept) in the order of v
    order: NDArray[np.intp]
    transform: Array  # (p_raw, p)
    # (p_raw, p): orthonormal basis of the smallest coefficients of those that fit equally well; None where all count
    space: Array | None
    n_shared: int  # entries of c that are shared
    pooled: Array  # (p,): c_0
    sigma: float  # unit of a location-scale target; 1 for others
    fit_intercept: bool
    dropped: tuple[int, ...]  # columns that are combinations of those before them
    # (n_gating,)
    gating_origin: Array
    gating_scales: Array
    gating_transform: Array  # (n_gating + 1, g)

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

    @property
    def undetermined(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which slopes, (n_features,), and whether the level at zero, (), would be others with the same predictors.

        A column that never counts, as a constant one, leaves the level as it is.
        """
        slopes, space = np.isin(np.arange(len(self.scales)), self.dropped), self.space
        if space is None:
            return slopes, np.array(False)
        at, own = self.order - self.fit_intercept, np.sum(space**2, axis=1)
        slopes[at[at >= 0]] = own[at >= 0] < 1 - 1e-8
        level = np.where(at < 0, 1.0, -(self.origin / self.scales)[at]) * (own > 1e-8)
        return slopes, np.asarray(np.sum((space.T @ level) ** 2) < (1 - 1e-8) * np.sum(level**2))

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
