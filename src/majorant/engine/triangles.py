"""Symmetric matrices stored as their lower triangles, row by row."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@cache
def lower(size: int, below: int = 0) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows and columns of the entries on the diagonal and below; with `below` = -1 without the diagonal."""
    return np.tril_indices(size, below)


def symmetric(packed: Array, size: int) -> Array:
    """Return symmetric matrices from their lower triangles, which are along the last axis."""
    rows, columns = lower(size)
    out = np.empty((*packed.shape[:-1], size, size))
    out[..., rows, columns] = packed
    out[..., columns, rows] = packed
    return out
