"""A map of rows in the plane, near their neighbours: t-SNE of some of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

MOST_ROWS = 500
FEWEST_ROWS = 30
FEWEST_COLUMNS = 3
"""Smallest number of columns; two are drawn directly."""
PERPLEXITY = 30.0


@dataclass(frozen=True)
class Neighbourhoods:
    """Positions of some rows in the plane."""

    rows: NDArray[np.int64]  # (n_drawn,): numbers of the rows, ascending
    # (n_drawn, 2): Positions; only neighbourhoods are meaningful, not directions or distances
    places: NDArray[np.float64]
    perplexity: float  # approximate number of neighbours that t-SNE preserves for each row


def neighbourhoods_of(points: NDArray[np.float64], random_state: int = 0) -> Neighbourhoods | None:
    """Compute t-SNE of at most 500 rows, equally spaced in the order of their first column.

    None for fewer than 30 rows, fewer than three columns or rows that are all equal. The result does not depend on the
    order of the rows or the number of threads.

    Parameters
    ----------
    points : array of shape (n, d)
    random_state : int, default=0

    References
    ----------
    L. van der Maaten, G. Hinton, "Visualizing data using t-SNE", Journal of Machine Learning Research 9, 2008.
    """
    n = len(points)
    if n < FEWEST_ROWS or points.shape[1] < FEWEST_COLUMNS:
        return None
    from sklearn.manifold import TSNE

    order = np.lexsort(points.T[::-1])
    chosen = order[np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(np.int64)]
    shape = points[chosen] / (np.abs(points).max() or 1.0)
    shape -= shape.min(axis=0)
    if not shape.any():
        return None
    perplexity = min(PERPLEXITY, (len(chosen) - 1) / 3)
    with threadpool_limits(limits=1):
        made = TSNE(2, perplexity=perplexity, init="pca", random_state=random_state, n_jobs=1)
        places = np.asarray(made.fit_transform(shape / shape.max()), dtype=np.float64)
    ascending = np.argsort(chosen)
    return Neighbourhoods(np.asarray(chosen[ascending], dtype=np.int64), places[ascending], float(perplexity))
