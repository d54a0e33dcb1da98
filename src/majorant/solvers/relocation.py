"""Relocation of empty clusters to the rows farthest from their centres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant.data.chunks import Block, Chunks
from majorant.solvers.nearest import row_squares, squared_distances


def relocate_empty(moments: NDArray[np.float64], centres: NDArray[Any], data: Chunks) -> NDArray[np.float64]:
    """Return the moments after moving the rows farthest from their centres to empty clusters, in one pass.

    The sum of squared distances decreases: the row's distance becomes zero, and the cluster that it leaves has a
    smaller sum too. A row that is alone in its cluster stays, as do rows at their centres. Equal rows may leave
    clusters empty again, so this is repeated until none is empty.

    Parameters
    ----------
    moments : ndarray of shape (n_centres, n_features + 2)
        Moments of the rows nearest to each centre, about that centre; see `majorant.solvers.nearest`.
    centres : ndarray of shape (n_centres, n_features)

    Returns
    -------
    ndarray of shape (n_centres, n_features + 2)
    """
    return relocated(moments, centres, data.map_sum(lambda block: farthest_rows(block, centres)))


def farthest_rows(block: Block, centres: NDArray[Any]) -> Farthest:
    """Return the rows of a block that are farthest from their nearest centres."""
    distances = squared_distances(block.columns[0], centres)
    labels = distances.argmin(axis=1)
    nearest = distances[np.arange(len(labels)), labels].astype(np.float64)
    if sparse.issparse(block.columns[0]):  # their distances are differences of squares, so zero is only up to rounding
        size = row_squares(block.columns[0]) + np.einsum("kl,kl->k", centres, centres)[labels]
        nearest[nearest <= 16 * np.finfo(distances.dtype).eps * size] = 0.0
    if block.weights is not None:
        nearest = np.where(block.weights > 0, nearest, 0.0)  # a row without weight fills no cluster
    top = np.argsort(-nearest, kind="stable")[: len(centres)]  # each other cluster may have to keep one
    rows = block.columns[0][top]
    rows = np.asarray(rows.todense() if sparse.issparse(rows) else rows, dtype=np.float64)
    weights = np.ones(len(top)) if block.weights is None else block.weights[top]
    return Farthest(len(centres), nearest[top], labels[top], weights, rows)


def relocated(moments: NDArray[np.float64], centres: NDArray[Any], found: Farthest) -> NDArray[np.float64]:
    """Return the moments after moving the farthest rows to empty clusters; see `relocate_empty`."""
    moments = moments.copy()
    targets = iter(np.flatnonzero(moments[:, 0] <= 0))
    for distance, label, w, x in zip(found.distances, found.labels, found.weights, found.rows, strict=True):
        if distance <= 0 or moments[label, 0] - w <= 1e-12 * w:
            continue
        z = next(targets, None)
        if z is None:
            break
        moments[label] -= _moment(w, x - centres[label])
        moments[z] = _moment(w, x - centres[z])
    return moments


def _moment(w: float, difference: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([[w], w * difference, [w * (difference @ difference)]])


@dataclass(frozen=True)
class Farthest:
    """The `limit` rows farthest from their centres, farthest first; of equally far ones the first in order."""

    limit: int
    distances: NDArray[np.float64]
    labels: NDArray[np.intp]
    weights: NDArray[np.float64]
    rows: NDArray[np.float64]

    def __add__(self, other: Farthest) -> Farthest:
        distances = np.concatenate([self.distances, other.distances])
        top = np.argsort(-distances, kind="stable")[: self.limit]
        return Farthest(
            self.limit,
            distances[top],
            np.concatenate([self.labels, other.labels])[top],
            np.concatenate([self.weights, other.weights])[top],
            np.concatenate([self.rows, other.rows])[top],
        )
