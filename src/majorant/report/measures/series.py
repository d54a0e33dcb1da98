"""The numbers of a hidden Markov model's report: rows in order of time, transitions, forecasts, residuals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.models.hidden_markov.times import Times, labels_of, read_times, times_ahead
from majorant.report.measures.mixture import Mixture

Array = NDArray[np.float64]
MOST_LAGS = 20


@dataclass(frozen=True)
class Series:
    """A hidden Markov model and its sequences, one after the other."""

    mixture: Mixture

    @property
    def model(self) -> Any:
        return self.mixture.run.estimator

    @cached_property
    def cuts(self) -> dict[str, Any]:
        """What says which rows are one sequence, and what transitions depend on."""
        given = self.mixture.run.given
        return {name: given[name] for name in ("lengths", "groups", "gating") if name in given}

    @cached_property
    def names(self) -> NDArray[Any] | None:
        """Name of each row's sequence; None where all rows are one."""
        if "groups" in self.cuts:
            return np.asarray(self.cuts["groups"])
        if "lengths" in self.cuts:
            return np.repeat(np.arange(1, len(self.cuts["lengths"]) + 1), self.cuts["lengths"])
        return None

    @cached_property
    def codes(self) -> NDArray[np.intp]:
        """Number of each row's sequence, in the order of their names."""
        if self.names is None:
            return np.zeros(self.mixture.n_rows, dtype=np.intp)
        return np.unique(self.names, return_inverse=True)[1].reshape(-1).astype(np.intp)

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The rows, sequence by sequence."""
        return np.argsort(self.codes, kind="stable")

    @cached_property
    def begins(self) -> NDArray[np.bool_]:
        """Whether each row in order is the first of its sequence."""
        return np.asarray(np.diff(self.codes[self.order], prepend=-1) != 0)

    @cached_property
    def path(self) -> NDArray[np.int64]:
        """The most probable state of each row in order."""
        return self.mixture.labels[self.order]

    @cached_property
    def times(self) -> Times | None:
        """Times of the rows in order; None where they are not known."""
        given = self.mixture.run.times
        return None if given is None else read_times(np.asarray(given)[self.order])

    def times_ahead(self, n_steps: int) -> list[str] | None:
        """Return the times of the rows to come of each sequence, one after the other, as text."""
        found = None if self.times is None else times_ahead(self.times, self.codes[self.order], n_steps)
        return None if found is None else labels_of(found.ravel())

    def forecast(self, n_steps: int) -> Any:
        """Return the forecast of every sequence; None of a degenerate fit, or without rows that it needs."""
        if not self.mixture.regular:
            return None
        try:
            return self.model.forecast(self.mixture.as_fitted, n_steps, **self.cuts)
        except (TypeError, ValueError):
            return None

    @cached_property
    def residuals(self) -> Array:
        """Forecast residuals of each row in order: normal if the model is right, NaN where a cell is missing."""
        return np.asarray(self.model.pseudo_residuals(self.mixture.as_fitted, **self.cuts))[self.order]

    def residuals_of(self, column: int) -> Array:
        """Return the residuals of the cells of a column that are there."""
        found = self.residuals[:, column]
        return found[~np.isnan(found)]

    @cached_property
    def has_residuals(self) -> NDArray[np.intp]:
        """Columns that have residuals."""
        return np.flatnonzero((~np.isnan(self.residuals)).sum(axis=0) > 2)

    def autocorrelations(self, column: int) -> tuple[Array, Array]:
        """Return the correlations of a column's residuals with those some rows before, and the pairs of each lag."""
        r = self.residuals[:, column] - np.nanmean(self.residuals[:, column])
        variance, codes = np.nanmean(r**2), self.codes[self.order]
        found, pairs = [], []
        for lag in range(1, min(MOST_LAGS, len(r) // 4) + 1):
            products = np.where(codes[lag:] == codes[:-lag], r[lag:] * r[:-lag], np.nan)
            n = int((~np.isnan(products)).sum())
            found.append(float(np.nansum(products)) / n / variance if n and variance > 0 else np.nan)
            pairs.append(n)
        return np.array(found), np.array(pairs, dtype=np.float64)

    @cached_property
    def durations(self) -> tuple[Array, Array]:
        """Mean length of a visit to each state: by the transitions, and as met."""
        by_transitions, met = self.model.durations(self.mixture.as_fitted, **self.cuts)
        return np.asarray(by_transitions), np.asarray(met)
