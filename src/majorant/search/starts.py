"""Starts of any mixture: tables of responsibilities, (components, rows), of several kinds.

No kind finds every optimum, and each finds some that the others miss.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from majorant.engine.draws import drawn

Array = NDArray[np.float64]
LLOYD_STEPS = 3


def random_partition(points: Array, weights: Array, k: int, draws: np.random.Generator) -> Array:
    """Assign a component to every row, uniformly at random."""
    return one_hot(draws.integers(0, k, len(weights)), k)


def uneven(points: Array, weights: Array, k: int, draws: np.random.Generator) -> Array:
    """Draw responsibilities that are mostly of one component, Dirichlet(0.2)."""
    return np.ascontiguousarray(draws.dirichlet(np.full(k, 0.2), len(weights)).T)


def even(points: Array, weights: Array, k: int, draws: np.random.Generator) -> Array:
    """Draw responsibilities uniformly, Dirichlet(1)."""
    return np.ascontiguousarray(draws.dirichlet(np.ones(k), len(weights)).T)


def seeded(points: Array, weights: Array, k: int, draws: np.random.Generator) -> Array:
    """Assign rows by k-means++ seeds and a few steps of Lloyd's algorithm, on standardised columns."""
    return one_hot(seeded_labels(points, weights, k, draws), k)


def seeded_labels(points: Array, weights: Array, k: int, draws: np.random.Generator) -> NDArray[np.int64]:
    """Return labels of k-means++ seeds after some steps of Lloyd's algorithm."""
    nearest = np.full(len(points), np.inf)
    mass, centres = weights, np.empty((k, points.shape[1]))
    for j, u in enumerate(draws.random(k)):
        centres[j] = points[drawn(mass, u)]
        nearest = np.minimum(nearest, squared_distances(points, centres[j : j + 1])[0])
        mass = weights * nearest if nearest.any() else weights
    labels = squared_distances(points, centres).argmin(axis=0)
    for _ in range(LLOYD_STEPS):
        sizes = np.bincount(labels, weights, minlength=k)
        for column in range(points.shape[1]):
            sums = np.bincount(labels, weights * points[:, column], minlength=k)
            np.divide(sums, sizes, out=centres[:, column], where=sizes > 0)
        labels = squared_distances(points, centres).argmin(axis=0)
    return np.asarray(labels)


def cut(points: Array, weights: Array, k: int, draws: np.random.Generator) -> Array:
    """Assign rows by slices along the difference of two rows, at random quantiles."""
    rank = ranks(points, weights, draws)
    return one_hot(np.searchsorted(np.sort(0.1 + 0.8 * draws.random(k - 1)), rank), k)


def ranks(points: Array, weights: Array, draws: np.random.Generator) -> Array:
    """Return the weighted ranks of rows along the difference of two of them, between 0 and 1."""
    a, b = drawn(weights, draws.random(2))
    order = np.argsort(np.einsum("ij,j->i", points, points[a] - points[b]), kind="stable")
    rank = np.empty(len(points))
    rank[order] = (np.cumsum(weights[order]) - 0.5 * weights[order]) / weights.sum()
    return rank


KINDS: tuple[tuple[str, Callable[[Array, Array, int, np.random.Generator], Array]], ...] = (
    ("random partition", random_partition),
    ("k-means++", seeded),
    ("uneven responsibilities", uneven),
    ("random cut", cut),
    ("even responsibilities", even),
)


def tables(points: Array, weights: Array, k: int, size: int, draws: np.random.Generator) -> list[tuple[str, Array]]:
    """Make `size` starts, of every kind in turn.

    Parameters
    ----------
    points : ndarray of shape (rows, numbers)
        Rows in standardised columns, without missing cells.
    weights : ndarray of shape (rows,)
    k : int
        Number of components.
    """
    return [(KINDS[i % len(KINDS)][0], KINDS[i % len(KINDS)][1](points, weights, k, draws)) for i in range(size)]


def softened(q: Array, total: float) -> Array:
    """Add one average row to every component of a batch of tables, as EM cannot leave zero responsibilities."""
    k = q.shape[-2]
    return np.asarray((q + 1 / total) / (1 + k / total))


def one_hot(labels: NDArray[np.integer], k: int) -> Array:
    """Return the responsibilities of a hard partition."""
    return np.asarray(np.arange(k)[:, None] == labels, dtype=np.float64)


def squared_distances(points: Array, centres: Array) -> Array:
    """Return squared distances, (n_centres, n_points), by differences."""
    return np.stack([np.einsum("ij,ij->i", away, away) for away in (points - c for c in centres)])
