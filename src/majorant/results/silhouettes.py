"""Silhouettes of the rows, of a sample where there are many."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.spatial.distance import cdist
from sklearn.base import clone

from majorant.data.directions import unit_rows
from majorant.data.storage import stored_rows

MOST_ROWS = 2000
N_RESAMPLES = 5
MOST_BOUNDED = 300
"""Rows up to which the bound of every size takes tenths of a second at most."""


@dataclass(frozen=True)
class Silhouettes:
    """The silhouette of each sampled row."""

    values: NDArray[np.float64]  # between -1 and 1
    labels: NDArray[np.int64]  # the cluster of each
    sampled: bool  # whether only some of the rows were used
    cluster_means: NDArray[np.float64]  # (k,): NaN for a cluster without rows
    mean: float  # mean over all rows of the table; for a sample, clusters are weighted by their sizes in the table

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
    own = model.distances_between(X, rows) if hasattr(model, "distances_between") else _distances(X[rows])
    values = silhouettes_by(own, labels[rows])
    sums = np.bincount(labels[rows], weights=values, minlength=len(sizes))
    counts = np.bincount(labels[rows], minlength=len(sizes))
    means = np.divide(sums, counts, out=np.full(len(sizes), np.nan), where=counts > 0)
    overall = float(np.average(means[sizes > 0], weights=sizes[sizes > 0]))
    return Silhouettes(values, labels[rows], len(rows) < len(labels), means, overall)


def silhouettes_by(distances: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    r"""Return the silhouette of each row, from the distances of rows to each other, (n, n).

    It is :math:`(b - a) / \max(a, b)`, with a the mean distance to the other rows of the own cluster and b that to the
    rows of the nearest other one; 0 for a row alone [1]_. (scikit-learn's takes longer to load than a small fit.)

    References
    ----------
    .. [1] P. J. Rousseeuw, "Silhouettes: a graphical aid to the interpretation and validation of cluster analysis",
       Journal of Computational and Applied Mathematics, 1987.
    """
    used, own = np.unique(labels, return_inverse=True)
    at, sizes = np.arange(len(own)), np.bincount(own)
    totals = distances @ (own[:, None] == np.arange(len(used)))
    inside = totals[at, own] / np.maximum(sizes[own] - 1, 1)
    means = totals / sizes
    means[at, own] = np.inf
    outside = means.min(axis=1)
    larger = np.maximum(inside, outside)
    is_told = (sizes[own] > 1) & (larger > 0)
    return np.asarray(np.divide(outside - inside, larger, out=np.zeros(len(own)), where=is_told))


def _distances(rows: Any) -> NDArray[np.float64]:
    """Return the Euclidean distances of rows to each other."""
    if not issparse(rows):
        return np.asarray(cdist(rows, rows))
    products = (rows @ rows.T).toarray().astype(np.float64)
    squares = np.diagonal(products)
    return np.asarray(np.sqrt(np.maximum(squares[:, None] + squares - 2 * products, 0.0)))


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


def trust_in(model: Any, X: Any) -> dict[str, float]:
    """Return how far clusters survive resampling, and how far better ones may be; what is not known is left out.

    ``stability`` is the median adjusted Rand index between the labels of rows (of at most 2000) and those by fits to
    resamples of them, ``gap`` what a bound that takes little time leaves open; the model's search keeps that bound.
    """
    if getattr(model, "cluster_centers_", None) is None or stored_rows(X) is not None:
        return {}
    from sklearn.metrics import adjusted_rand_score  # takes time to load

    labels = np.asarray(model.labels_, dtype=np.int64)
    rows = X if issparse(X) else np.asarray(X, dtype=np.float64)
    chosen = thinned_rows(labels, np.bincount(labels))
    few, random, found = rows[chosen], np.random.default_rng(0), list[float]()
    for _ in range(N_RESAMPLES):
        drawn = random.integers(len(chosen), size=len(chosen))
        try:
            refit = clone(model).fit(few[drawn])
        except ValueError:  # fewer distinct rows than clusters
            continue
        found.append(adjusted_rand_score(labels[chosen], np.asarray(refit.predict(few))))
    told = {"stability": float(np.median(found))} if found else {}
    is_quick = hasattr(model, "certify") and "effort" in signature(model.certify).parameters
    if is_quick and rows.shape[0] <= MOST_BOUNDED and not issparse(rows):
        made = model.certify(rows, effort="fast")
        told["gap"] = float(made.gap)
        if made.bound > 0:
            model.search_ = model.search_.with_bound(made.bound, model.search_.bound_on)
    return {name: value for name, value in told.items() if np.isfinite(value)}


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
