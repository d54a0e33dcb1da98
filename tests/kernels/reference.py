"""Every kernel in plain numpy, in double precision: what the compiled ones must agree with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def squared_distances(x: Array, centres: Array) -> Array:
    """From differences, (rows, centres)."""
    x, centres = x.astype(np.float64), centres.astype(np.float64)
    return np.stack([((x - c) ** 2).sum(axis=1) for c in centres], axis=1)


def moments(x: Array, w: Array | None, centres: Array, labels: Array) -> tuple[Array, Array]:
    """``[sum w, sum w (x - c), sum w |x - c|^2]`` by centre, and the same sums of absolute values."""
    k, d = centres.shape
    out, size = np.zeros((k, d + 2)), np.zeros((k, d + 2))
    factor = np.ones(len(x)) if w is None else w
    for j in range(k):
        mine = labels == j
        difference = x[mine].astype(np.float64) - centres[j]
        terms = np.column_stack([np.ones(mine.sum()), difference, (difference**2).sum(axis=1)]) * factor[mine, None]
        out[j], size[j] = terms.sum(axis=0), np.abs(terms).sum(axis=0)
    return out, size


def collect(features: Array, w: Array | None, labels: Array, k: int) -> Array:
    factor = np.ones(len(features)) if w is None else w
    out = np.zeros((k, features.shape[1]))
    for row, label, weight in zip(features.astype(np.float64), labels, factor, strict=True):
        if 0 <= label < k:
            out[label] += weight * row
    return out


def draw(energies: Array, w: Array | None, argument: Array, price: float, uniforms: Array) -> Array:
    """By inverse CDF of the softmax: the best state first, then the others in their order."""
    z = np.empty(len(energies), dtype=np.int32)
    for i, row in enumerate(energies.astype(np.float64)):
        best = argument[i]
        order = np.array([best, *(s for s in range(len(row)) if s != best)])
        mass = np.exp(-price * (1.0 if w is None else w[i]) * (row[order] - row[best]))
        z[i] = order[np.searchsorted(np.cumsum(mass), uniforms[i] * mass.sum(), side="right")]
    return z


def walk(energies: Array, w: Array | None, room: float, sites: Array, picks: Array, z: Array) -> Array:
    z, energies = z.copy(), energies.astype(np.float64)
    regret = energies - energies.min(axis=1, keepdims=True)
    if w is not None:
        regret = regret * w[:, None]
    spent = regret[np.arange(len(z)), z].sum()
    for i, u in zip(sites, picks, strict=True):
        others = spent - regret[i, z[i]]
        fits = np.flatnonzero(regret[i] <= room - others)
        if len(fits):
            z[i] = fits[min(int(u * len(fits)), len(fits) - 1)]
            spent = others + regret[i, z[i]]
    return z


def sort_rows(x: Array) -> tuple[Array, Array]:
    order = np.lexsort((np.arange(len(x)), *x.T[::-1]))
    is_new = np.ones(len(x), dtype=np.uint8)
    is_new[1:] = (x[order[1:]] != x[order[:-1]]).any(axis=1)
    return order, is_new


def plus_plus(x: Array, w: Array | None, uniforms: Array) -> list[int]:
    """Greedy k-means++ by inverse CDF."""
    weight = np.ones(len(x)) if w is None else w
    nearest, mass, chosen = np.full(len(x), np.inf), weight, []
    for j, us in enumerate(uniforms):
        if mass.sum() <= 0:
            mass = weight
        cumulative = np.cumsum(mass)
        candidates = [int(np.searchsorted(cumulative, u * cumulative[-1], side="right")) for u in (us if j else us[:1])]
        left = np.minimum(nearest[:, None], squared_distances(x, x[candidates]))
        best = int(np.argmin(weight @ left))
        chosen.append(candidates[best])
        nearest = left[:, best]
        mass = weight * nearest
    return chosen


def gauss_energies(x: Array, shares: Array, means: Array, covariances: Array) -> Array:
    """``-log share - log N(x; mean, covariance)`` for covariance matrices (k, d, d), (n, k)."""
    x = x.astype(np.float64)
    out = np.empty((len(x), len(means)))
    for j, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
        lower = np.linalg.cholesky(covariance)
        scaled = np.linalg.solve(lower, (x - mean).T)
        with np.errstate(divide="ignore"):
            constant = np.log(np.diag(lower)).sum() + x.shape[1] / 2 * np.log(2 * np.pi) - np.log(shares[j])
        out[:, j] = constant + (scaled**2).sum(axis=0) / 2
    return out


def gauss_moments(x: Array, w: Array | None, means: Array, q: Array, covariance_type: str) -> tuple[Array, Array]:
    """Weighted moments about the means, as triangles, squares or traces, and the same sums of absolute values."""
    x = x.astype(np.float64)
    q = q if w is None else q * w[:, None]
    rows, columns = np.tril_indices(x.shape[1])
    out, size = [], []
    for mean, share in zip(means, q.T, strict=True):
        difference = x - mean
        if covariance_type in ("full", "tied"):
            second = difference[:, rows] * difference[:, columns]
        else:
            second = difference**2
            if covariance_type == "spherical":
                second = second.sum(axis=1, keepdims=True)
        terms = share[:, None] * np.column_stack([np.ones(len(x)), difference, second])
        out.append(terms.sum(axis=0))
        size.append(np.abs(terms).sum(axis=0))
    return np.array(out), np.array(size)
