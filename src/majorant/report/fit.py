"""Facts about a run that every kind of report needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._frames import data_frame
from majorant._numbers import plural_of
from majorant.engine.trace import Trace
from majorant.registry import ModelCard
from majorant.report import numbers
from majorant.report.html import column_name
from majorant.report.run import Run
from majorant.results.certificate import Certificate, certificate_of
from majorant.search.record import SearchReport


@dataclass(frozen=True)
class Fit:
    """A run and its model's card."""

    run: Run
    card: ModelCard

    @cached_property
    def objective(self) -> float:
        """The objective of the fitted model."""
        return float(getattr(self.run.estimator, self.card.objective_attribute))

    @property
    def search(self) -> SearchReport:
        return self.run.estimator.search_  # type: ignore[no-any-return]

    @property
    def trace(self) -> Trace:
        return self.run.estimator.trace_  # type: ignore[no-any-return]

    @cached_property
    def params(self) -> Mapping[str, Any]:
        """The settings of the estimator."""
        return dict(self.run.estimator.get_params(deep=False))

    @property
    def why_certain(self) -> str:
        """A sentence on why no other start can end better, where no bound is needed for that; otherwise ""."""
        certificate = getattr(self.run.estimator, "certificate_", None)
        if certificate is None or not certificate.is_global:
            return self.search.certain
        return f"No other start can end better, as the certificate of a global optimum shows{self.proviso}."

    @property
    def proviso(self) -> str:
        """Reservation about a certificate and its bound, as the end of a sentence; "" where they are proved."""
        return getattr(getattr(self.run.estimator, "certificate_", None), "proviso", "")

    @property
    def parts(self) -> str:
        """The word for parts, in the plural."""
        return plural_of(self.part)

    @property
    def part(self) -> str:
        """The word for a part, in the singular."""
        return self.card.part

    @cached_property
    def feature_names(self) -> Sequence[str]:
        """Names of the features, as a person says them: ``kind: b`` for the column of a level."""
        names = self.run.feature_names
        words = getattr(self.run.estimator, "_in_words", list)(names)
        return [
            word if word == name else word.partition(" against ")[0] for name, word in zip(names, words, strict=True)
        ]

    def feature(self, number: int) -> str:
        """Return the name of a feature in prose, as markup."""
        return column_name(self.feature_names[number])

    @property
    def warnings(self) -> Sequence[str]:
        """What the summary warns of; a degenerate fit has a section of its own on that."""
        said = getattr(self.run.estimator, "summary", None)
        return said().look_out if said is not None and getattr(self.run.estimator, "regular_", True) else ()

    @property
    def n_rows(self) -> int:
        return int(self.run.X.shape[0])

    @property
    def n_lacking(self) -> int:
        """Rows of the table that the fit left out, though the page shows them."""
        return 0

    @property
    def n_left_out(self) -> int:
        """Rows of the table that were not used, as cells are empty."""
        return self.run.n_left_out + self.n_lacking

    @property
    def n_features(self) -> int:
        return int(self.run.X.shape[1])

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """Mean of each feature over all rows."""
        return np.asarray(np.nanmean(self.run.X, axis=0))

    @cached_property
    def deviations(self) -> NDArray[np.float64]:
        """Standard deviation of each feature over all rows; exactly 0 for a constant one."""
        X = self.run.X
        low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
        flat = high - low <= 1e-12 * np.maximum(np.abs(low), np.abs(high))
        return np.where(flat, 0.0, np.nanstd(X, axis=0))

    @cached_property
    def explained(self) -> NDArray[np.float64]:
        """Share of each feature's variance that lies between the parts, NaN on constant features."""
        raise NotImplementedError(f"{type(self).__name__} must say how much of each feature its parts explain")

    def _explained_by(self, rows: NDArray[np.float64], own: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of each feature's variance that is not about the rows' own centres."""
        return np.clip(1.0 - quotients(((rows - own) ** 2).mean(axis=0), self.deviations**2), 0.0, 1.0)

    @cached_property
    def ranked_features(self) -> list[int]:
        """Features that vary, best explained first."""
        return [int(j) for j in np.argsort(-self.explained, kind="stable") if np.isfinite(self.explained[j])]

    @cached_property
    def as_fitted(self) -> Any:
        """The rows as the estimator takes them: a data frame if it was fitted with names."""
        if self.run.frame is not None:
            return self.run.frame
        if not hasattr(self.run.estimator, "feature_names_in_"):
            return self.run.X
        return data_frame({name: self.run.X[:, j] for j, name in enumerate(self.run.feature_names)})

    @property
    def gap_to_bound(self) -> float | None:
        """Gap between fit and proved bound, as a share of the bound.

        None without a bound or with an uninformative one (zero or less for a quantity that cannot be negative).
        """
        return None if self.proof is None or not math.isfinite(self.proof.gap) else self.proof.gap

    @property
    def gap_text(self) -> str:
        """The gap in words, rounded up: per cents, or the difference of logarithms, whose ratios mean nothing."""
        if self.proof is None or self.gap_to_bound is None:
            return ""
        return self.proof.gap_text.replace(" ", numbers.NARROW_SPACE, 1)

    @cached_property
    def proof(self) -> Certificate | None:
        """The certificate of the proved bound; None without one."""
        return certificate_of(self.search, self.objective)

    @property
    def converged(self) -> bool:
        """Whether the start that reached the best objective ended within the tolerance."""
        search = self.search
        return any(
            start.converged
            for start, distance in zip(search.starts, search.distances, strict=True)
            if distance <= search.tolerance
        )


def quotients(parts: NDArray[Any], wholes: NDArray[Any]) -> NDArray[np.float64]:
    """Divide, and return NaN where the divisor is not positive."""
    out = np.full(np.broadcast_shapes(np.shape(parts), np.shape(wholes)), np.nan)
    return np.asarray(np.divide(parts, wholes, out=out, where=wholes > 0))


def largest(sizes: NDArray[Any], most: int) -> list[int]:
    """Return the numbers of the largest parts, in their usual order."""
    return sorted(np.argsort(-sizes, kind="stable")[:most].tolist())
