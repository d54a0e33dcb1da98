"""Symmetric tensors with each distinct entry stored once, and the matching products of features.

A symmetric tensor of order p over d coordinates has ``comb(d + p - 1, p)`` distinct entries, one for each
non-decreasing tuple of indices. *Collapsed*, it is the vector of these; its inner product with the p-th tensor power of
x is the sum over them of multiplicity times entry times product of features.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray


@cache
def index_tuples(d: int, order: int) -> NDArray[np.intp]:
    """Return the non-decreasing tuples of indices, shape (n_entries, order), in lexicographic order."""
    every = list(combinations_with_replacement(range(d), order))
    tuples = np.array(every, dtype=np.intp).reshape(len(every), order)
    tuples.flags.writeable = False
    return tuples


@cache
def multiplicities(d: int, order: int) -> NDArray[np.float64]:
    """Return the number of entries of the tensor that each collapsed entry represents."""
    counts = np.array(
        [factorial(order) / np.prod([factorial(c) for c in np.bincount(t)]) for t in index_tuples(d, order)]
    )
    counts.flags.writeable = False
    return counts


@cache
def positions(d: int, order: int) -> NDArray[np.intp]:
    """Return, for every entry of the tensor, shape (d,) * order, its position among the collapsed entries."""
    place = {tuple(t): i for i, t in enumerate(index_tuples(d, order).tolist())}
    every = np.sort(np.indices((d,) * order).reshape(order, -1).T, axis=1)
    table = np.array([place[tuple(t)] for t in every.tolist()], dtype=np.intp).reshape((d,) * order)
    table.flags.writeable = False
    return table


def expand(collapsed: NDArray[Any], d: int, order: int) -> NDArray[Any]:
    """Return the symmetric tensor, shape (d,) * order, of collapsed entries."""
    return np.asarray(collapsed[positions(d, order)])


def collapse(tensor: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct entries of a symmetric tensor."""
    return np.asarray(tensor[tuple(index_tuples(tensor.shape[0], tensor.ndim).T)])


def powers(vectors: NDArray[Any], order: int) -> NDArray[Any]:
    """Return collapsed tensor powers of the vectors in the last axis: one product of entries for each index tuple."""
    return np.asarray(np.prod(vectors[..., index_tuples(vectors.shape[-1], order)], axis=-1))
