"""The numbers of a mixture's report."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from majorant.registry import ModelCard
from majorant.report import numbers
from majorant.report.measures.memberships import Memberships
from majorant.report.measures.partition import Partition
from majorant.report.run import Run
from majorant.solvers.normals import deviations_of, normals_of

SHARE = 0.9
"""Mass of a component within its ellipse."""
MOST_WORK = 1e8
"""Squared number of parameters times rows up to which intervals are computed for the page."""


@dataclass(frozen=True)
class Mixture(Memberships, Partition):
    """A mixture, with normal components or any others."""

    @property
    def is_normal(self) -> bool:
        """Whether components have means and covariances; otherwise the weighted moments of rows are used."""
        return hasattr(self.run.estimator, "covariances_")

    @cached_property
    def centres(self) -> NDArray[np.float64]:
        if self.is_normal:
            return np.asarray(self.run.estimator.means_, dtype=np.float64)
        centres = self._moment(np.nan_to_num(self.run.X))
        centres[:, self.directions] = np.angle(self._resultants)
        return centres

    @cached_property
    def directions(self) -> list[int]:
        """Features on a circle, which have no variance that components could explain."""
        parts = [one.columns for one in getattr(self.run.estimator, "emissions_", ()) if one.name == "von_mises"]
        return [j for columns in parts for j in range(columns.start, columns.stop)]

    @property
    def _resultants(self) -> NDArray[np.complex128]:
        """Mean unit vectors of the directions of each component."""
        cosines, sines = (self._moment(np.nan_to_num(f(self.run.X)))[:, self.directions] for f in (np.cos, np.sin))
        return np.asarray(cosines + 1j * sines)

    def _moment(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the means of observed cells, weighted by the responsibilities of their rows."""
        mass = np.einsum("ik,ij->kj", self.responsibilities, ~np.isnan(self.run.X))
        sums = np.einsum("ik,ij->kj", self.responsibilities, np.where(np.isnan(self.run.X), 0.0, cells))
        return np.asarray(sums / np.maximum(mass, 1e-300))

    @property
    def why_certain(self) -> str:
        if self.k == 1 and not self.n_missing:
            best = "the mean and covariance of the rows" if self.is_normal else "the frequencies of the rows"
            return f"One component has its best place at {best}, so no better one exists."
        return ""

    @property
    def n_missing(self) -> int:
        """Number of missing cells."""
        return int(np.isnan(self.run.X).sum())

    @property
    def missing_cells(self) -> str:
        """How many cells are missing, as a clause."""
        n, cells = self.n_missing, numbers.integer(self.n_rows * self.n_features)
        return f"{numbers.integer(n)} of {cells} cells {'is' if n == 1 else 'are'} empty"

    @cached_property
    def complete(self) -> NDArray[np.float64]:
        """The rows, with missing cells replaced by the mean of the component."""
        return np.where(np.isnan(self.run.X), self.centres[self.labels], self.run.X)

    @cached_property
    def deviations_within(self) -> NDArray[np.float64]:
        """Standard deviation of each component on each feature, (k, d)."""
        if not self.is_normal:
            squares = self._moment(np.nan_to_num(self.run.X) ** 2)
            spreads = np.sqrt(np.maximum(squares - self.centres**2, 0.0))
            spreads[:, self.directions] = np.sqrt(-2 * np.log(np.clip(np.abs(self._resultants), 1e-300, 1.0)))
            return np.asarray(spreads)
        return deviations_of(self.run.estimator)

    @cached_property
    def explained(self) -> NDArray[np.float64]:
        """Share of each feature's fitted variance between the components, NaN on constant ones and on directions."""
        mean = self.weights @ self.centres
        between = self.weights @ (self.centres - mean) ** 2
        total = between + self.weights @ self.deviations_within**2
        share: NDArray[np.float64] = np.full(self.n_features, np.nan)
        np.divide(between, total, out=share, where=(self.deviations > 0) & (total > 0))
        share[self.directions] = np.nan
        return share

    @cached_property
    def intervals(self) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]] | None:
        """95 % intervals of every estimate, by its name; None where there are none, or they would take long."""
        model = self.run.estimator
        method = getattr(model, "confidence_intervals", None)
        if method is None or not self.regular or model.n_parameters_**2 * self.n_rows > MOST_WORK:
            return None
        try:
            weights = {} if self.run.weights is None else {"sample_weight": self.run.weights}
            found = method(self.as_fitted, **weights, **self._given_to(method))
        except (
            TypeError,
            ValueError,
        ):  # no unconstrained numbers, or groups that the page lacks
            return None
        return dict(found)

    @property
    def has_outlines(self) -> bool:
        return self.is_normal

    def outline(self, part: int, features: tuple[int, int]) -> NDArray[np.float64] | None:
        """Return the ellipse that holds nine tenths of a component on two features, in the table's units."""
        if not self.is_normal:
            return None
        points = normals_of(self.run.estimator, features).ellipse(part, SHARE).points()
        slope, shift = self._to_own_units
        return points * slope[list(features)] + shift[list(features)]


def measure(run: Run, card: ModelCard) -> Mixture:
    """Measure a mixture; most numbers are computed when first used."""
    return Mixture(run, card)
