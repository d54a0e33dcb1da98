"""The numbers of any model that assigns each row to a part: the parts, and the features that separate them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from majorant.report.fit import Fit, quotients

MOST_FEATURES = 30
FLAT = 1e-9


@dataclass(frozen=True)
class BestPair:
    """Two features, and how well they separate the clusters."""

    # columns; the first is drawn along the horizontal axis
    first: int
    second: int
    wilks: float  # Wilks' lambda of the two: the share of their joint variance that lies within clusters
    n_tried: int  # pairs that were compared
    searched: int  # features whose pairs were compared
    n_agreeing: int  # number of rows that linear discriminants on these two features assign to their cluster


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


@dataclass(frozen=True)
class Partition(Fit):
    """Rows assigned to parts. Parts and features are counted from 0 here, from 1 on the page."""

    @cached_property
    def centres(self) -> NDArray[np.float64]:
        """Centre of each part, (k, d)."""
        return np.asarray(self.run.estimator.cluster_centers_, dtype=np.float64)

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """The part of each row."""
        return np.asarray(self.run.estimator.labels_, dtype=np.int64)

    @cached_property
    def complete(self) -> NDArray[np.float64]:
        """The rows without missing values."""
        return self.run.X

    @property
    def k(self) -> int:
        return int(self.centres.shape[0])

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of rows of each part."""
        return np.bincount(self.labels, minlength=self.k)

    @property
    def used(self) -> list[int]:
        """Parts that have rows."""
        return [int(j) for j in np.flatnonzero(self.sizes)]

    @cached_property
    def standard_centres(self) -> NDArray[np.float64]:
        """Centres in standard deviations from the mean of all rows, NaN on constant features and on directions."""
        standard = quotients(self.centres - self.means, self.deviations)
        standard[:, self.directions] = np.nan
        return standard

    @cached_property
    def explained(self) -> NDArray[np.float64]:
        """Share of each feature's variance that lies between the parts, NaN on constant features."""
        return self._explained_by(self.run.X, self.centres[self.labels])

    @property
    def directions(self) -> list[int]:
        """Features on a circle, which have no variance that parts could explain."""
        return []

    @cached_property
    def pair(self) -> BestPair | None:
        """The best pair of features; None with fewer than two parts or features."""
        if len(self.used) < 2 or self.n_features < 2:
            return None
        return find_best_pair(self.complete, self.labels, self.k, self.explained)

    @property
    def own_units(self) -> NDArray[np.float64]:
        """The rows in the table's own units."""
        return self.run.X if self.run.raw is None else self.run.raw

    @cached_property
    def deviations_within(self) -> NDArray[np.float64]:
        """Standard deviation of the rows of each part on each feature, (k, d); NaN for a part without rows."""
        sums = np.zeros((self.k, self.n_features))
        np.add.at(sums, self.labels, (self.complete - self.centres[self.labels]) ** 2)
        return np.sqrt(quotients(sums, self.sizes[:, None]))

    def in_own_units(self, values: NDArray[np.float64], feature: int, *, spread: bool = False) -> NDArray[np.float64]:
        """Return values of a feature, or lengths along it, in the table's own units."""
        slope, shift = self._to_own_units
        return np.asarray(values * slope[feature] + (0.0 if spread else shift[feature]))

    @cached_property
    def _to_own_units(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if self.run.raw is None:
            return np.ones(self.n_features), np.zeros(self.n_features)
        slope = np.ones(self.n_features)
        np.divide(np.nanstd(self.run.raw, axis=0), self.deviations, out=slope, where=self.deviations > 0)
        return slope, np.asarray(np.nanmean(self.run.raw, axis=0) - slope * self.means)

    @property
    def has_outlines(self) -> bool:
        """Whether the model gives outlines of its parts."""
        return False

    def outline(self, part: int, features: tuple[int, int]) -> NDArray[np.float64] | None:
        """Return an outline of a part on two features, in the table's units, where the model has one."""
        return None
