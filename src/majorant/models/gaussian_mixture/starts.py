"""Starts of Gaussian mixtures: hard partitions of six kinds, as functions of the weighted empirical measure.

No single kind finds the best optimum of all data, and each finds some that the others miss. Draws go by inverse CDF
along the canonical order, and directions are differences of rows, so that neither weights in place of repeats nor
another basis of the coordinates can change them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from majorant.engine.draws import drawn
from majorant.search.starts import ranks, seeded_labels

Array = NDArray[np.float64]
Labels = NDArray[np.integer]

RIDGE = 1e-9
"""Variance that is added, so that none is zero."""

N_DIRECTIONS = 12
"""Directions of which a bisection takes the one that looks most like two groups."""


@dataclass(frozen=True)
class Views:
    """Weighted rows in the coordinates in which partitions are made."""

    # (n_points, rank): the last are the coordinates of the covariance type
    whitened: Array
    standardised: Array
    own: Array
    weights: Array  # (n_points,)


def bisected(x: Array, weights: Array, k: int, random: np.random.Generator) -> Labels:
    """Cut parts, drawn by weight, in two along the random direction of lowest kurtosis."""
    labels = np.zeros(len(x), dtype=np.int64)
    for j in range(1, k):
        sizes = np.bincount(labels, weights, minlength=j).astype(np.float64)
        inside = np.flatnonzero(labels == drawn(sizes, random.random()))
        uniforms = random.random((2, N_DIRECTIONS))
        if len(inside) < 2 * x.shape[1] + 4:
            continue
        part, w = x[inside], weights[inside]
        z = part - np.einsum("i,ij->j", w, part) / w.sum()
        t = projections(z, w, z[drawn(w, uniforms[0])] - z[drawn(w, uniforms[1])])
        best = int(np.argmin(kurtosis(t, w)))
        labels[inside[t[:, best] > 0]] = j
    return labels


def projections(z: Array, weights: Array, directions: Array) -> Array:
    """Return the centred rows along directions in which their own covariance is whitened, each with variance one."""
    covariance = np.einsum("ij,ik->jk", weights[:, None] * z, z) / weights.sum()
    ridge = 1e-9 * float(np.trace(covariance)) / len(covariance) + 1e-300
    axes = np.linalg.solve(covariance + ridge * np.eye(len(covariance)), directions.T)
    t = np.einsum("ij,jk->ik", z, axes)
    spread = np.einsum("i,ij,ij->j", weights, t, t) / weights.sum()
    return np.asarray(t / np.sqrt(np.maximum(spread, 1e-300)))


def kurtosis(t: Array, weights: Array) -> Array:
    """Return the weighted fourth moments of columns of variance one; infinite where there is no variance."""
    squares = t * t
    fourth = np.einsum("i,ij,ij->j", weights, squares, squares) / weights.sum()
    return np.where(np.einsum("i,ij->j", weights, squares) > 0, fourth, np.inf)


def cut(x: Array, weights: Array, k: int, random: np.random.Generator) -> Labels:
    """Return the slices along one random direction, at random quantiles."""
    rank, u = ranks(x, weights, random), random.random(k - 1)
    quantiles = np.sort(0.1 + 0.8 * u) if k > 2 else 0.25 + 0.5 * u
    return np.searchsorted(quantiles, rank).astype(np.int64)


def scattered(x: Array, weights: Array, k: int, random: np.random.Generator) -> Labels:
    """Draw a part for every point uniformly."""
    return random.integers(0, k, len(x))


def log_likelihood_of(labels: Labels, k: int, x: Array, weights: Array, *, least: float, has_matrices: bool) -> float:
    """Return the log-likelihood of rows and labels, but for constants, if each part has a covariance of its own.

    It costs a small part of a step of EM. It is minus infinity if a part has fewer rows than `least`.
    """
    out = 0.0
    for j in range(k):
        part, w = x[labels == j], weights[labels == j]
        mass = float(w.sum())
        if mass < least:
            return -np.inf
        z = part - w @ part / mass
        if has_matrices:
            spread = float(np.linalg.slogdet((w[:, None] * z).T @ z / mass + RIDGE * np.eye(x.shape[1]))[1])
        else:
            spread = float(np.log(w @ (z * z) / mass + RIDGE).sum())
        out += mass * (np.log(mass) - 0.5 * spread)
    return out


Kind: TypeAlias = tuple[str, Callable[[Array, Array, int, np.random.Generator], Labels], str]

WHITENED: Kind = ("k-means++, whitened", seeded_labels, "whitened")
STANDARDISED: Kind = ("k-means++, standardised", seeded_labels, "standardised")
OWN: Kind = ("k-means++", seeded_labels, "own")
KINDS: tuple[Kind, ...] = (
    WHITENED,
    STANDARDISED,
    OWN,
    ("bisection", bisected, "whitened"),
    ("random cut", cut, "whitened"),
    ("random partition", scattered, "whitened"),
)


def partitions(
    views: Views,
    k: int,
    n_starts: int,
    random: np.random.Generator,
    kinds: tuple[Kind, ...] = KINDS,
    *,
    settled: bool = False,
) -> Iterator[tuple[str, Labels]]:
    """Yield the kind and the labels of this many partitions, of every kind in turn; `settled`: see `seeded_labels`."""
    for i in range(n_starts):
        source, make, view = kinds[i % len(kinds)]
        make = partial(seeded_labels, settled=settled) if make is seeded_labels else make
        yield source, make(getattr(views, view), views.weights, k, random)
