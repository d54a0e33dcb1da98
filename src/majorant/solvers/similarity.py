"""Rows most similar to others, by cosine similarity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PAIRS = 4_000_000
"""Largest number of similarities in memory."""
NOTHING = 1e-9
"""Rows no larger than this are zero up to rounding."""
TIES = 12
"""Number of decimals to which similarities are compared."""


def most_similar(queries: Array, gallery: Array, n: int) -> tuple[NDArray[np.intp], Array]:
    """Rank the rows of a gallery by cosine similarity to each query.

    Returns both (n_queries, n): rows of the gallery, the most similar first, ties (to 12 decimals) in the order of the
    gallery; and similarities between -1 and 1, 0 where a row is zero.
    """
    a, b = _directions(queries), _directions(gallery)
    indices, similarities = np.empty((len(a), n), dtype=np.intp), np.empty((len(a), n))
    step = max(1, PAIRS // max(len(b), 1))
    for start in range(0, len(a), step):
        at = slice(start, start + step)
        cosine = np.einsum("qk,gk->qg", a[at], b)
        indices[at] = np.argsort(-np.round(cosine, TIES), axis=1, kind="stable")[:, :n]
        similarities[at] = np.take_along_axis(cosine, indices[at], axis=1)
    return indices, np.clip(similarities, -1.0, 1.0)


def _directions(h: Array) -> Array:
    """Scale rows to length one; rows of zeros stay zero."""
    largest = np.abs(h).max(axis=1, initial=0.0, keepdims=True)  # squares of what is left do not overflow
    h = np.where(largest > NOTHING, h, 0.0) / np.where(largest > NOTHING, largest, 1.0)
    length = np.sqrt(np.einsum("nk,nk->n", h, h))[:, None]
    return np.asarray(h / np.where(length > 0, length, 1.0))
