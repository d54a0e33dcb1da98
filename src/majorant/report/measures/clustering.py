"""The numbers of a clustering's report."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from majorant.registry import ModelCard
from majorant.report.fit import Fit
from majorant.report.measures.pair import BestPair, find_best_pair
from majorant.report.measures.silhouettes import Silhouettes, measure_silhouettes
from majorant.report.run import Run


@dataclass(frozen=True)
class Clustering(Fit):
    """A clustering and what is computed from it. Clusters and features are counted from 0 here, from 1 on the page."""

    @cached_property
    def centres(self) -> NDArray[np.float64]:
        return np.asarray(self.run.estimator.cluster_centers_, dtype=np.float64)

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        return np.asarray(self.run.estimator.labels_, dtype=np.int64)

    @property
    def why_certain(self) -> str:
        if self.k == 1:
            return "One cluster has its best centre at the mean of the rows, so no better one exists."
        if self.objective == 0:
            return "Every row lies at the centre of its cluster, so nothing better exists."
        return ""

    @property
    def k(self) -> int:
        return int(self.centres.shape[0])

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of each cluster."""
        return np.bincount(self.labels, minlength=self.k)

    @property
    def used(self) -> list[int]:
        """Clusters that have rows."""
        return [int(j) for j in np.flatnonzero(self.sizes)]

    @cached_property
    def squared_distances(self) -> NDArray[np.float64]:
        """Of each row to the centre of its cluster."""
        return np.asarray(((self.run.X - self.centres[self.labels]) ** 2).sum(axis=1), dtype=np.float64)

    @cached_property
    def spreads(self) -> NDArray[np.float64]:
        """Root mean square distance to the centre, NaN for a cluster without rows."""
        sums = np.bincount(self.labels, weights=self.squared_distances, minlength=self.k)
        means: NDArray[np.float64] = np.full(self.k, np.nan)
        np.divide(sums, self.sizes, out=means, where=self.sizes > 0)
        return np.sqrt(means)

    @property
    def spread(self) -> float:
        """Root mean square distance of all rows to their centres."""
        return float(np.sqrt(self.squared_distances.mean()))

    @cached_property
    def deviations(self) -> NDArray[np.float64]:
        """Standard deviation of each feature over all rows; exactly 0 for a constant one."""
        X = self.run.X
        deviations = X.std(axis=0)
        flat = np.ptp(X, axis=0) <= 1e-12 * np.abs(X).max(axis=0)
        return np.where(flat, 0.0, deviations)

    @cached_property
    def standard_centres(self) -> NDArray[np.float64]:
        """Centres in standard deviations from the mean of all rows, NaN on constant features."""
        shift = self.centres - self.run.X.mean(axis=0)
        standard: NDArray[np.float64] = np.full_like(shift, np.nan)
        np.divide(shift, self.deviations, out=standard, where=self.deviations > 0)
        return standard

    @cached_property
    def explained(self) -> NDArray[np.float64]:
        """Share of each feature's variance that lies between the clusters, NaN on constant features."""
        within = ((self.run.X - self.centres[self.labels]) ** 2).mean(axis=0)
        unexplained: NDArray[np.float64] = np.full(self.n_features, np.nan)
        np.divide(within, self.deviations**2, out=unexplained, where=self.deviations > 0)
        return np.clip(1.0 - unexplained, 0.0, 1.0)

    @cached_property
    def ranked_features(self) -> list[int]:
        """Features that vary, best explained first."""
        return [int(j) for j in np.argsort(-self.explained, kind="stable") if np.isfinite(self.explained[j])]

    @cached_property
    def variance_explained(self) -> float:
        """Share of the variance of all rows that lies between the clusters, NaN if the rows are all equal."""
        total = float((self.deviations**2).sum())
        return 1.0 - float(self.squared_distances.mean()) / total if total > 0 else float("nan")

    @cached_property
    def weighted(self) -> bool:
        """Whether the objective counts rows by weights, so that it is not the sum over the rows of the table."""
        plain = float(self.squared_distances.sum())
        return abs(plain - self.objective) > 1e-3 * max(plain, abs(self.objective))

    @cached_property
    def silhouettes(self) -> Silhouettes | None:
        return measure_silhouettes(self.run.X, self.labels, self.sizes)

    @cached_property
    def pair(self) -> BestPair | None:
        """None with fewer than two clusters or features."""
        if len(self.used) < 2 or self.n_features < 2:
            return None
        return find_best_pair(self.run.X, self.labels, self.k, self.explained)

    @property
    def own_units(self) -> NDArray[np.float64]:
        """The rows in the table's own units."""
        return self.run.X if self.run.raw is None else self.run.raw


def measure_clustering(run: Run, card: ModelCard) -> Clustering:
    """The numbers of a clustering; most are computed when first asked for."""
    return Clustering(run, card)
