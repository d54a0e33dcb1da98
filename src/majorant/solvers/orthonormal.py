"""Maps that make columns orthonormal: column by column, so that rounding turns nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
ZERO = 1e-30
"""Mean square of a standardised column below which it is zero, and its coefficient too."""

CONSTANT = 1e-12
"""Deviation of a column, relative to its size, up to which it does not vary: at most three of its digits would."""
TINY = float(np.finfo(np.float64).tiny)
WITHOUT_EFFECT = 1e300
"""Unit of a column that does not vary, or is zero where nothing is constant beside it: its coefficient is zero."""

Gram = Callable[[Array | None], Array]
"""The weighted means of products of columns ``v T``, for any T; None is the identity."""
Triangle = tuple[Array, Array | None, tuple[int, ...]]
"""T with orthonormal ``v T``, a basis of the rows' space (None where that is all), and the columns of no use."""


def location(columns: Array, weights: Array) -> Array:
    """Return the weighted mean of each column, about a row amid them so that no digits are lost."""
    amid = columns[len(columns) // 2]
    return np.asarray(amid + np.einsum("i,ij->j", weights / weights.sum(), columns - amid))


def told_scales(origin: Array, scales: Array) -> Array:
    """Return the scales of columns about their origin, `WITHOUT_EFFECT` where all that varies is rounding."""
    return np.where(scales <= np.maximum(CONSTANT * np.abs(origin), TINY), WITHOUT_EFFECT, scales)


def spread(columns: Array, weights: Array) -> Array:
    """Return the weighted root mean square of each column, one where it is zero."""
    size = np.abs(columns).max(axis=0, initial=0.0)
    size = np.where(size > 0, size, 1.0)
    return np.asarray(np.sqrt(np.einsum("i,ij->j", weights / weights.sum(), (columns / size) ** 2)) * size).clip(TINY)


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
