"""The numbers of a clustering's report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from majorant.data.directions import unit_rows
from majorant.registry import ModelCard
from majorant.report.fit import quotients
from majorant.report.measures.partition import Partition
from majorant.report.run import Run
from majorant.results.silhouettes import Silhouettes, clusters_directions, measure_silhouettes


@dataclass(frozen=True)
class Clustering(Partition):
    """A clustering."""

    @property
    def counts_distances(self) -> bool:
        """Whether the objective is the sum of squared distances to centres."""
        return self.search.objective_name == "SSE"

    @property
    def why_certain(self) -> str:
        if self.counts_distances and self.k == 1:
            return "One cluster has its best centre at the mean of the rows, so no better one exists."
        if self.counts_distances and self.objective == 0:
            return "Every row lies at the centre of its cluster, so nothing better exists."
        return super().why_certain

    @cached_property
    def squared_distances(self) -> NDArray[np.float64]:
        """Squared distance of each row to the centre of its cluster."""
        return np.asarray(((self.run.X - self.centres[self.labels]) ** 2).sum(axis=1), dtype=np.float64)

    @cached_property
    def spreads(self) -> NDArray[np.float64]:
        """Root mean square distance to the centre, NaN for a cluster without rows."""
        sums = np.bincount(self.labels, weights=self.squared_distances, minlength=self.k)
        return np.sqrt(quotients(sums, self.sizes))

    @property
    def spread(self) -> float:
        """Root mean square distance of all rows to their centres."""
        return float(np.sqrt(self.squared_distances.mean()))

    @cached_property
    def variance_explained(self) -> float:
        """Share of the variance of all rows that lies between the clusters, NaN if the rows are all equal."""
        total = float((self.deviations**2).sum())
        return 1.0 - float(self.squared_distances.mean()) / total if total > 0 else float("nan")

    @cached_property
    def weighted(self) -> bool:
        """Whether rows have weights, so that the objective is not a plain sum over the rows of the table."""
        plain = float(self.squared_distances.sum())
        return self.counts_distances and abs(plain - self.objective) > 1e-3 * max(plain, abs(self.objective))

    @cached_property
    def silhouettes(self) -> Silhouettes | None:
        return measure_silhouettes(self.run.X, self.labels, self.sizes, self.run.estimator)


def measure(run: Run, card: ModelCard) -> Clustering:
    """Measure a clustering; most numbers are computed when first used.

    Where the distance is the cosine, the rows are shown as what is clustered: divided by their lengths.
    """
    if getattr(run.estimator, "metric", None) == "precomputed":
        raise ValueError("a report shows rows, and this model was fitted to their distances: give it rows and a metric")
    if clusters_directions(run.estimator):
        run = replace(run, X=unit_rows(run.X), raw=None)
    return Clustering(run, card)
