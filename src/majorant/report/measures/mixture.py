"""The numbers of a mixture's report."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from majorant.evidence.selection import CRITERIA
from majorant.registry import ModelCard
from majorant.report.measures.partition import Partition
from majorant.report.run import Run
from majorant.summary.normals import deviations_of, normals_of

CLEAR = 0.9
"""Probability above which a row is said to belong to its component clearly."""
SHARE = 0.9
"""Mass of a component within its ellipse."""


@dataclass(frozen=True)
class Mixture(Partition):
    """A mixture of normal components and what is computed from it."""

    @cached_property
    def centres(self) -> NDArray[np.float64]:
        return np.asarray(self.run.estimator.means_, dtype=np.float64)

    @cached_property
    def responsibilities(self) -> NDArray[np.float64]:
        """Probability of each component for each row, (n, k)."""
        return np.asarray(self.run.estimator.predict_proba(self.as_fitted), dtype=np.float64)

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        return np.asarray(self.responsibilities.argmax(axis=1), dtype=np.int64)

    @property
    def why_certain(self) -> str:
        if self.k == 1 and not self.n_missing:
            return "One component has its best place at the mean and covariance of the rows, so no better one exists."
        return ""

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Weight of each component."""
        return np.asarray(self.run.estimator.weights_, dtype=np.float64)

    @cached_property
    def effective_sizes(self) -> NDArray[np.float64]:
        """Rows of each component, each counted by its probability."""
        return np.asarray(self.responsibilities.sum(axis=0))

    @cached_property
    def certainty(self) -> NDArray[np.float64]:
        """Probability of each row's component."""
        return np.asarray(self.responsibilities.max(axis=1))

    @property
    def n_clear(self) -> int:
        """Rows that belong to their component clearly."""
        return int((self.certainty > CLEAR).sum())

    @property
    def n_missing(self) -> int:
        """Cells without a value."""
        return int(np.isnan(self.run.X).sum())

    @property
    def regular(self) -> bool:
        return bool(getattr(self.run.estimator, "regular_", True))

    @cached_property
    def complete(self) -> NDArray[np.float64]:
        """The rows, with what is missing at the mean of its component."""
        return np.where(np.isnan(self.run.X), self.centres[self.labels], self.run.X)

    @cached_property
    def deviations_within(self) -> NDArray[np.float64]:
        """Standard deviation of each component on each feature, (k, d)."""
        model = self.run.estimator
        return deviations_of(model.covariances_, model.covariance_type, self.centres.shape)

    @cached_property
    def explained(self) -> NDArray[np.float64]:
        """Share of each feature's fitted variance that lies between the components, NaN on constant features."""
        mean = self.weights @ self.centres
        between = self.weights @ (self.centres - mean) ** 2
        total = between + self.weights @ self.deviations_within**2
        share: NDArray[np.float64] = np.full(self.n_features, np.nan)
        np.divide(between, total, out=share, where=(self.deviations > 0) & (total > 0))
        return share

    @property
    def has_outlines(self) -> bool:
        return True

    def outline(self, part: int, features: tuple[int, int]) -> NDArray[np.float64]:
        """Points of the ellipse that holds nine tenths of a component on two features, in the table's own units."""
        points = normals_of(self.run.estimator, features).ellipse(part, SHARE).points()
        slope, shift = self._to_own_units
        return points * slope[list(features)] + shift[list(features)]

    def in_own_units(self, values: NDArray[np.float64], feature: int, *, spread: bool = False) -> NDArray[np.float64]:
        """Values of a feature, or lengths along it, in the table's own units."""
        slope, shift = self._to_own_units
        return np.asarray(values * slope[feature] + (0.0 if spread else shift[feature]))

    @cached_property
    def _to_own_units(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if self.run.raw is None:
            return np.ones(self.n_features), np.zeros(self.n_features)
        slope = np.ones(self.n_features)
        np.divide(np.nanstd(self.run.raw, axis=0), self.deviations, out=slope, where=self.deviations > 0)
        return slope, np.asarray(np.nanmean(self.run.raw, axis=0) - slope * self.means)

    @cached_property
    def criteria(self) -> dict[str, float]:
        """The criteria that the model has, by name; lower is better."""
        found = {}
        for name in CRITERIA:
            method = getattr(self.run.estimator, name, None)
            if method is None:
                continue
            takes_weights = "sample_weight" in inspect.signature(method).parameters
            if self.run.weights is None or takes_weights:
                weights = {} if self.run.weights is None else {"sample_weight": self.run.weights}
                found[name] = float(method(self.as_fitted, **weights))
        return found

    def row_number(self, row: int) -> int:
        """The number of a row in the table, from 1."""
        return row + 1 if self.run.rows is None else int(self.run.rows[row])


def measure_mixture(run: Run, card: ModelCard) -> Mixture:
    """The numbers of a mixture; most are computed when first asked for."""
    return Mixture(run, card)
