"""Silhouettes of the rows, of a sample where there are many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.metrics import silhouette_samples

from majorant.data.directions import unit_rows
from majorant.data.storage import stored_rows

MOST_ROWS = 2000


@dataclass(frozen=True)
class Silhouettes:
    """The silhouette of each sampled row.

    Attributes
    ----------
    values : array
        Between -1 and 1.
    labels : array
        The cluster of each.
    sampled : bool
        Whether only some of the rows were used.
    cluster_means : array of shape (k,)
        NaN for a cluster without rows.
    mean : float
        Mean over all rows of the table; for a sample, clusters are weighted by their sizes in the table.
    """

    values: NDArray[np.float64]
    labels: NDArray[np.int64]
    sampled: bool
    cluster_means: NDArray[np.float64]
    mean: float

    @property
    def negative(self) -> NDArray[np.int64]:
        """Number of rows of each cluster that are nearer, on average, to another."""
        return np.bincount(self.labels[self.values < 0], minlength=len(self.cluster_means))


def measure_silhouettes(
    X: Any, labels: NDArray[np.int64], sizes: NDArray[np.int64], model: Any = None
) -> Silhouettes | None:
    """Compute silhouettes by a model's own distances between rows, if it has any, and else by Euclid's.

    None with fewer than two clusters with rows, or only clusters of one row.
    """
    n_used = int((sizes > 0).sum())
    if not 2 <= n_used <= min(len(labels) - 1, MOST_ROWS // 4):
        return None
    rows = thinned_rows(labels, sizes)
    if hasattr(model, "distances_between"):
        values = silhouette_samples(model.distances_between(X, rows), labels[rows], metric="precomputed")
    else:
        chosen = X[rows] if issparse(X) else X[rows] - X[rows].mean(axis=0)  # squares far from zero leave no digits
        values = silhouette_samples(chosen, labels[rows])
    values = np.asarray(values, dtype=np.float64)
    sums = np.bincount(labels[rows], weights=values, minlength=len(sizes))
    counts = np.bincount(labels[rows], minlength=len(sizes))
    means = np.divide(sums, counts, out=np.full(len(sizes), np.nan), where=counts > 0)
    overall = float(np.average(means[sizes > 0], weights=sizes[sizes > 0]))
    return Silhouettes(values, labels[rows], len(rows) < len(labels), means, overall)


def clusters_directions(model: Any) -> bool:
    """Return whether a model clusters rows divided by their lengths."""
    return getattr(model, "metric", None) == "cosine" and not hasattr(model, "distances_between")


def mean_silhouette(model: Any, X: Any) -> float:
    """Return the mean silhouette of rows in the clusters of a fitted model; NaN where it has none."""
    if stored_rows(X) is not None:
        raise TypeError("silhouettes need rows in memory: take a part of them")
    labels = np.asarray(model.labels_, dtype=np.int64)
    rows = X if issparse(X) else np.asarray(X, dtype=np.float64)
    if clusters_directions(model):
        rows = unit_rows(rows)
    found = measure_silhouettes(rows, labels, np.bincount(labels), model)
    return float("nan") if found is None else found.mean


def thinned_rows(labels: NDArray[np.int64], sizes: NDArray[np.int64], most: int = MOST_ROWS) -> NDArray[np.int64]:
    """Choose at most `most` rows, equally spaced in each cluster: in proportion to its size, but at least two."""
    n = int(sizes.sum())
    if n <= most:
        return np.arange(n)
    quotas = np.minimum(sizes, np.maximum(most * sizes // n, 2))
    while quotas.sum() > most:
        quotas[np.argmax(quotas)] -= 1
    chosen = []
    for cluster, quota in enumerate(quotas):
        members = np.flatnonzero(labels == cluster)
        if quota:
            chosen.append(members[np.linspace(0, len(members) - 1, quota).astype(np.int64)])
    return np.sort(np.concatenate(chosen))
