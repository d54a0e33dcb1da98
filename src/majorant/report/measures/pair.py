"""The pair of features that separates the clusters best."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

MOST_FEATURES = 30
FLAT = 1e-9


@dataclass(frozen=True)
class BestPair:
    """Two features, and how well they separate the clusters.

    Attributes
    ----------
    first, second : int
        Columns; the first is drawn along the horizontal axis.
    wilks : float
        Wilks' lambda of the two: the share of their joint variance that lies within clusters.
    n_tried : int
        Pairs that were compared.
    searched : int
        Features whose pairs were compared.
    n_agreeing : int
        Number of rows that linear discriminants on these two features assign to their cluster.
    """

    first: int
    second: int
    wilks: float
    n_tried: int
    searched: int
    n_agreeing: int


def find_best_pair(
    X: NDArray[np.float64], labels: NDArray[np.int64], k: int, explained: NDArray[np.float64]
) -> BestPair | None:
    """Find the pair of features with the smallest Wilks' lambda; None if no two features are linearly independent.

    Of more than 30 features only pairs among the 30 that the clusters explain best are compared.
    """
    candidates = [int(j) for j in np.argsort(-explained, kind="stable") if np.isfinite(explained[j])][:MOST_FEATURES]
    if len(candidates) < 2:
        return None
    Z = X[:, candidates]
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    total = Z.T @ Z / len(Z)
    within = _within_covariance(Z, labels, k)
    best: tuple[float, int, int] | None = None
    n_tried = 0
    for a, b in combinations(range(len(candidates)), 2):
        whole = total[a, a] * total[b, b] - total[a, b] ** 2
        if whole <= FLAT:
            continue
        n_tried += 1
        wilks = max(within[a, a] * within[b, b] - within[a, b] ** 2, 0.0) / whole
        if best is None or wilks < best[0] - 1e-12:
            best = (float(wilks), a, b)
    if best is None:
        return None
    wilks, a, b = best
    agreeing = int((linear_placement(Z[:, [a, b]], labels, k) == labels).sum())
    return BestPair(candidates[a], candidates[b], wilks, n_tried, len(candidates), agreeing)


def linear_placement(Z: NDArray[np.float64], labels: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Assign each row to a cluster by linear discriminants on these columns."""
    sizes = np.bincount(labels, minlength=k)
    used = np.flatnonzero(sizes)
    means = np.array([Z[labels == j].mean(axis=0) for j in used])
    within = _within_covariance(Z, labels, k)
    inverse = np.linalg.pinv(within + 1e-12 * np.eye(within.shape[0]), hermitian=True)
    projected = means @ inverse
    scores = Z @ projected.T - 0.5 * (projected * means).sum(axis=1) + np.log(sizes[used] / len(Z))
    return np.asarray(used[np.argmax(scores, axis=1)], dtype=np.int64)


def _within_covariance(Z: NDArray[np.float64], labels: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    sums = np.zeros((k, Z.shape[1]))
    np.add.at(sums, labels, Z)
    sizes = np.maximum(np.bincount(labels, minlength=k), 1)
    rest = Z - (sums / sizes[:, None])[labels]
    return np.asarray(rest.T @ rest / len(Z), dtype=np.float64)
