"""The numbers of any model that assigns rows to components by probabilities."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.models.mixture_rows import checked_labels
from majorant.report.fit import Fit
from majorant.results.selection import CRITERIA

CLEAR = 0.9
"""Probability above which a row's component counts as clear."""


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
