"""The numbers of a mixture's report, and of any model that gives each row probabilities of components."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.models.mixture_rows import checked_labels
from majorant.report import numbers
from majorant.report.fit import Fit, quotients
from majorant.report.measures.partition import Partition
from majorant.results.selection import CRITERIA
from majorant.solvers.normals import deviations_of, normals_of

CLEAR = 0.9
"""Probability above which a row's component counts as clear."""
SHARE = 0.9
"""Mass of a component within its ellipse."""
MOST_WORK = 1e8
"""Squared number of parameters times rows up to which intervals are computed for the page."""
NOT_DETERMINED = "no solution was found whose components all have a shape that the rows determine"


@dataclass(frozen=True)
class Memberships(Fit):
    """A model that gives each row probabilities of components."""

    @cached_property
    def responsibilities(self) -> NDArray[np.float64]:
        """Probability of each component for each row, (n, k)."""
        method = self.run.estimator.predict_proba
        found = np.asarray(method(self.as_fitted, **self._given_to(method)), dtype=np.float64)
        if (known := self.run.given.get("component_labels")) is not None:
            labels = checked_labels(known, *found.shape)
            found[labels >= 0] = np.eye(found.shape[1])[labels[labels >= 0]]
        return found

    def _given_to(self, method: Callable[..., Any]) -> dict[str, Any]:
        """Return the further arguments of the fit, such as groups, that a method takes."""
        takes = inspect.signature(method).parameters
        return {name: value for name, value in self.run.given.items() if name in takes}

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """The most probable component of each row; that of the most probable path where rows follow each other."""
        if self.card.in_order:
            method = self.run.estimator.predict
            return np.asarray(method(self.as_fitted, **self._given_to(method)), dtype=np.int64)
        return np.asarray(self.responsibilities.argmax(axis=1), dtype=np.int64)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Weight of each component."""
        return np.asarray(self.run.estimator.weights_, dtype=np.float64)

    @property
    def k(self) -> int:
        return len(self.weights)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of rows of each component, by their labels."""
        return np.bincount(self.labels, minlength=self.k)

    @cached_property
    def effective_sizes(self) -> NDArray[np.float64]:
        """Sum of responsibilities of each component."""
        return np.asarray(self.responsibilities.sum(axis=0))

    @cached_property
    def certainty(self) -> NDArray[np.float64]:
        """Probability of each row's component."""
        return np.asarray(np.take_along_axis(self.responsibilities, self.labels[:, None], axis=1)[:, 0])

    @property
    def n_clear(self) -> int:
        """Number of rows whose component is clear."""
        return int((self.certainty > CLEAR).sum())

    @property
    def regular(self) -> bool:
        return bool(getattr(self.run.estimator, "regular_", True))

    @cached_property
    def criteria(self) -> dict[str, float]:
        """Information criteria of the model by name; lower is better."""
        found: dict[str, float] = {}
        for trait, name in (("is_grouped_", "groups"), ("is_labelled_", "component_labels")):
            if getattr(self.run.estimator, trait, False) and name not in self.run.given:
                return found  # of rows alone they would be those of other units
        for name in CRITERIA:
            method = getattr(self.run.estimator, name, None)
            if method is None:
                continue
            takes_weights = "sample_weight" in inspect.signature(method).parameters
            if self.run.weights is None or takes_weights:
                weights = {} if self.run.weights is None else {"sample_weight": self.run.weights}
                found[name] = float(method(self.as_fitted, **weights, **self._given_to(method)))
        return found

    @cached_property
    def n_counted(self) -> float:
        """Rows that the criteria count: without those left out of the fit, and with weights their sum."""
        model = self.run.estimator
        if self.run.weights is None or "bic" not in self.criteria:
            return float(model.n_rows_)
        return float(model._totals(self.as_fitted, sample_weight=self.run.weights, **self._given_to(model.bic))[1])

    def row_number(self, row: int) -> int:
        """Return the number of a row in the table, from 1."""
        return row + 1 if self.run.rows is None else int(self.run.rows[row])


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
    def why_degenerate(self) -> str:
        """The model's own warning, or the general reason."""
        return str(getattr(self.run.estimator, "degeneracy_", "")) or NOT_DETERMINED

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
        share = quotients(between, np.where(self.deviations > 0, total, 0.0))
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
