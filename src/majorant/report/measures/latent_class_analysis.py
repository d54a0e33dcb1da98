"""The numbers of the report of a latent class analysis."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.models.covariates import completed
from majorant.models.mixture_rows import checked_labels
from majorant.report.measures.mixture import MOST_WORK, Mixture


@dataclass(frozen=True)
class LatentClasses(Mixture):
    """A latent class analysis; what the rows tell is None where the page lacks groups, or it would take long."""

    @property
    def why_certain(self) -> str:
        return self.search.certain

    @cached_property
    def lacks_covariate(self) -> NDArray[np.bool_]:
        """Which rows lack a covariate."""
        gating = self.run.given.get("gating")
        if gating is None:
            return np.zeros(self.n_rows, dtype=bool)
        return completed(gating, self.n_rows, self.run.estimator.covariates_)[1]

    @property
    def known_rows(self) -> list[int] | None:
        """Rows whose class was known, by class; None where none was."""
        labels = self.run.given.get("component_labels")
        if labels is None:
            return None
        known = checked_labels(labels, self.n_rows, self.k)
        return [int((known == k).sum()) for k in range(self.k)]

    @property
    def n_lacking(self) -> int:
        """Rows that lack a covariate, or any answer."""
        return int((self.lacks_covariate | np.isnan(self.run.X).all(axis=1)).sum())

    @cached_property
    def _given(self) -> dict[str, Any]:
        """Further arguments of the fit, weights among them."""
        weights = {} if self.run.weights is None else {"sample_weight": self.run.weights}
        return {**weights, **self.run.given}

    def _told(self, name: str, *, takes_time: bool = False, **settings: Any) -> Any:
        """Return what a method of the model says of the rows; None where it needs what the page lacks."""
        model = self.run.estimator
        if not self.regular or (takes_time and model.n_parameters_**2 * self.n_rows > 10 * MOST_WORK):
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return getattr(model, name)(self.as_fitted, **self._given, **settings)
        except ValueError:  # groups or labels that the page lacks
            return None

    @cached_property
    def profile(self) -> Any:
        """What each class answers, with intervals unless they would take long."""
        found = self._told("class_profile", takes_time=True)
        return self.run.estimator.class_profile() if found is None else found

    @cached_property
    def share_intervals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Intervals of the shares."""
        return self._intervals.get("weights")

    @cached_property
    def _intervals(self) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Intervals of all estimates, unless they would take long."""
        return self._told("confidence_intervals", takes_time=True) or {}

    def intervals_of(self, name: str, values: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the intervals of an estimate, NaN where there are none."""
        return self._intervals.get(name, (np.full_like(values, np.nan),) * 2)

    @cached_property
    def population_shares(self) -> tuple[NDArray[np.float64], ...] | None:
        """Shares of the classes in each population, (classes, populations), and the ends of their intervals."""
        shares = getattr(self.run.estimator, "population_shares_", None)
        if shares is None or "population_shares" not in self.run.estimator.estimate_names_:
            return None
        return (shares, *self.intervals_of("population_shares", shares))

    @cached_property
    def statistics(self) -> Any:
        """Criteria, separation and tests of fit."""
        return self._told("fit_statistics")

    @cached_property
    def assignment(self) -> Any:
        """How certain the assignment of rows to classes is."""
        return self._told("classification")

    @cached_property
    def residuals(self) -> list[tuple[str, str, float, int, float, float]]:
        """First and second item, statistic, degrees of freedom, residual and p-value; the largest residual first."""
        found = None if self.n_features < 2 else self._told("bivariate_residuals")
        if found is None:
            return []
        heads = ("first", "second", "statistic", "df", "residual", "p_value")
        rows = zip(*(list(found[head]) for head in heads), strict=True)
        return sorted(rows, key=lambda row: -row[4])

    @cached_property
    def effects(self) -> Any:
        """Effects of the covariates, if there are some."""
        if "effects" in self.run.later:
            return self.run.later["effects"]
        if "gating" not in self.run.given or self.k == 1 or not self.regular:
            return None
        given, labels = self.run.given["gating"], self.run.given.get("component_labels")
        return self.run.estimator.covariate_effects(self.as_fitted, given, self.run.weights, component_labels=labels)
