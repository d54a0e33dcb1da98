"""Starts of any mixture: tables of responsibilities, (components, rows), of several kinds.

No kind finds every optimum, and each finds some that the others miss.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.engine.draws import drawn
from majorant.solvers.nearest import assign, centres_of

Array = NDArray[np.float64]
LLOYD_STEPS, MOST_STEPS = 3, 100
"""Steps of Lloyd's algorithm, and how many at most until it ends."""


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


def seeded_labels(
    points: Array, weights: Array, k: int, draws: np.random.Generator, *, settled: bool = False
) -> NDArray[np.int32]:
    """Return labels of k-means++ seeds after a few steps of Lloyd's algorithm, which leave starts unlike each other.

    Where `settled`, the seeds are greedy, and steps go on until no label changes.
    """
    n_trials, n_steps = (2 + int(np.log(k)), MOST_STEPS) if settled else (1, LLOYD_STEPS)
    chosen, labels = np.empty(k, dtype=np.int64), np.full(len(points), -1, dtype=np.int32)
    _kernels.plus_plus(points, weights, draws.random((k, n_trials)), chosen)
    centres = points[chosen]
    for _ in range(n_steps + 1):
        moments, n_changed = assign(points, weights, centres, labels)
        if moments is None or n_changed == 0:
            break
        centres = centres_of(moments, centres)[0]
    return labels


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
