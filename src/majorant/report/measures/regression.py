"""The numbers of a mixture of regressions: its lines, their residuals, and the other solutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtri

from majorant.energy import posterior
from majorant.models.regression_mixture.words import what_would_admit
from majorant.report.html import column_name, escaped
from majorant.report.measures.mixture import Memberships
from majorant.results.selection import CRITERIA
from majorant.search.record import in_words
from majorant.solvers.responses import Response

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Lines:
    """K lines with noise."""

    coef: Array  # (k, d)
    level: Array  # (k,): value of each line at `center`; for features far from zero an intercept would lose digits
    scale: Array  # (k,): standard deviations of the noise
    weights: Array  # (k,)
    center: Array  # (d,)

    @classmethod
    def of(cls, model: Any) -> Self:
        """Measure the lines of a fitted mixture of regressions."""
        return cls(model.coef_, model.center_fits_, model.scale_, model.weights_, model.center_)

    @classmethod
    def of_optimum(cls, optimum: Mapping[str, Any], center: Array) -> Self:
        """Measure the lines of one of the fit's ``optima_``."""
        return cls(optimum["coef"], optimum["level"], optimum["scale"], optimum["weights"], center)

    @property
    def k(self) -> int:
        return len(self.weights)

    def taken(self, order: NDArray[np.int64]) -> Self:
        """Return the lines in another order."""
        return replace(
            self, coef=self.coef[order], level=self.level[order], scale=self.scale[order], weights=self.weights[order]
        )

    def fits(self, X: Array) -> Array:
        """Return the predictions of every line for some rows, (n, k)."""
        return np.asarray(np.einsum("ij,kj->ik", X - self.center, self.coef) + self.level)

    def responsibilities(self, X: Array, y: Array) -> Array:
        """Return the probability of each line for each row, (n, k)."""
        with np.errstate(divide="ignore"):
            constant = np.log(self.scale) - np.log(self.weights)
        return np.asarray(posterior(constant + 0.5 * ((y[:, None] - self.fits(X)) / self.scale) ** 2, axis=1))

    def along(self, feature: int, values: Array, others: Array) -> Array:
        """Return the predictions (n, k) of every line at some values of one feature, the others held at `others`."""
        X = np.tile(others, (len(values), 1))
        X[:, feature] = values
        return self.fits(X)


def matching_order(labels: NDArray[np.int64], others: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Match components of two labelings: the pairs that share most rows."""
    shared = np.bincount(labels * k + others, minlength=k * k).reshape(k, k)
    return np.asarray(linear_sum_assignment(-shared)[1], dtype=np.int64)


FEWEST_IN_A_BIN = 8
MOST_BINS = 8
MOST_OPTIMA = 3
DRIFT = 0.4
"""Smallest median of residuals, in standard deviations of the noise, at which a line is said not to fit."""
ERRORS = 3.5
"""Number of its standard errors that the median must also exceed."""
ERROR_OF_A_MEDIAN = 1.2533
BEND_BY_CHANCE = 0.001
"""Probability that some bend is told where all lines are straight."""
FEWEST_TO_BEND = 10


@dataclass(frozen=True)
class Optimum:
    """A solution, with components matched to those of the fit.

    Attributes
    ----------
    responsibilities : array of shape (n, k)
    reached : str
        The starts and perturbations that ended there, in words; empty if unknown.
    regular : bool
        False for a degenerate solution.
    """

    log_likelihood: float
    lines: Lines
    responsibilities: Array
    reached: str
    regular: bool = True

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """The most probable component of each row."""
        return np.asarray(self.responsibilities.argmax(axis=1), dtype=np.int64)


@dataclass(frozen=True)
class Residuals:
    """Residuals of one component on the rows that are most probably its own."""

    at: Array  # position of each row on the horizontal axis
    values: Array  # residuals in standard deviations of the noise
    # position, median and size of bins with equally many rows
    median_at: Array
    medians: Array
    n_in_bin: Array

    @property
    def n_beyond(self) -> int:
        """Number of rows more than two standard deviations away."""
        return int((np.abs(self.values) > 2).sum())

    @property
    def drift(self) -> tuple[float, float] | None:
        """The lowest and the highest median, if one is farther from zero than chance explains; otherwise None."""
        if len(self.medians) < 2:
            return None
        chance = ERRORS * ERROR_OF_A_MEDIAN / np.sqrt(self.n_in_bin)
        if not (np.abs(self.medians) > np.maximum(chance, DRIFT)).any():
            return None
        return float(self.medians.min()), float(self.medians.max())


@dataclass(frozen=True)
class Regression(Memberships):
    """A mixture of regressions."""

    @property
    def y(self) -> Array:
        """The target."""
        if self.run.y is None:
            raise ValueError("the report of a mixture of regressions needs y, what the lines predict")
        return np.asarray(self.run.y, dtype=np.float64)

    @property
    def response(self) -> Response:
        """The distribution of y."""
        found: Response = self.run.estimator._response
        return found

    @cached_property
    def lines(self) -> Lines:
        return Lines.of(self.run.estimator)

    @cached_property
    def has_lines(self) -> bool:
        """Whether components are lines with normal noise, so that lines are drawn.

        Not so for other families, and where a formula makes several features of one column, such as x and its square.
        """
        model = self.run.estimator
        formula = getattr(model, "formula_", None)
        has_offset = formula is not None and "offset" in formula.roles
        return self.response.has_normal_noise and model.trim == 0 and not (has_offset or self.is_curved)

    @property
    def is_of_lines_alone(self) -> bool:
        """Whether lines and one weight of each are the whole model: no groups, no gating."""
        return self.has_lines and not (self.has_groups or self.has_gating)

    @property
    def is_curved(self) -> bool:
        """Whether several features are made of one column, so that one cannot change while the others are fixed."""
        formula = getattr(self.run.estimator, "formula_", None)
        return formula is not None and formula.features.is_curved

    @property
    def multiplies(self) -> bool:
        """Whether the exponential of a slope is a factor, of the mean or of odds."""
        return self.response.predicts.startswith(("the logarithm", "the logit"))

    @cached_property
    def feature_names(self) -> list[str]:
        names: list[str] = self.run.estimator._in_words(self.run.feature_names)
        return names  # also what a level is compared with

    @cached_property
    def contrasts(self) -> list[tuple[str, str, str] | None]:
        """Factor, level and reference of each feature that tells a level of a formula's factor, or is 0 or 1."""
        formula = getattr(self.run.estimator, "formula_", None)
        known = {} if formula is None else formula.features.contrasts
        return [known.get(name) or self._of_bits(j) for j, name in enumerate(self.run.feature_names)]

    def _of_bits(self, feature: int) -> tuple[str, str, str] | None:
        is_bits = self.run.raw is None and np.array_equal(np.unique(self.run.X[:, feature]), [0.0, 1.0])
        return (self.feature_names[feature], "1", "0") if is_bits else None

    def along(self, feature: int) -> str:
        """Return "along x", or "from F to M of sex" for the level of a factor, as markup."""
        factor, level, reference = self.contrasts[feature] or ("", "", "")
        if not reference:
            return f"along {self.feature(feature)}"
        return f"from {escaped(reference)} to {escaped(level)} of {column_name(factor)}"

    @property
    def warnings(self) -> Sequence[str]:
        """Without what a section says of a solution that was left out."""
        model = self.run.estimator
        told = "" if model.excluded_ is None else what_would_admit(model.excluded_, model.max_sigma_ratio)
        return [said for said in super().warnings if said != told]

    @property
    def has_groups(self) -> bool:
        """Whether all rows of a group share one component."""
        return getattr(self.run.estimator, "groups_", None) is not None

    @property
    def has_gating(self) -> bool:
        """Whether the weights of components depend on other columns."""
        return bool(np.size(getattr(self.run.estimator, "gating_coef_", ())))

    @property
    def has_noise(self) -> bool:
        """Whether the family has a scale that is estimated."""
        return self.response.has_dispersion

    @cached_property
    def responsibilities(self) -> Array:
        if not self.is_of_lines_alone:
            return np.asarray(self.run.estimator.responsibilities_, dtype=np.float64)
        return self.lines.responsibilities(self.run.X, self.y)

    @cached_property
    def criteria(self) -> dict[str, float]:
        return {name: float(getattr(self.run.estimator, f"{name}_")) for name in CRITERIA}

    @property
    def n_counted(self) -> float:
        return float(self.run.estimator.n_rows_ if self.run.weights is None else self.run.weights.sum())

    @cached_property
    def intervals(self) -> dict[str, tuple[Array, Array]] | None:
        """95 % intervals by parameter name; None if the information matrix is singular."""
        return self.run.estimator._intervals() or None

    @property
    def why_certain(self) -> str:
        if self.k > 1 or not self.regular or self.run.estimator.separated_:
            return ""
        if self.has_lines:
            return "One line has its best place by least squares, so no better one exists."
        if self.response.is_concave and self.run.estimator.trim == 0:
            return "The likelihood of one component has one maximum, so no better one exists."
        return ""

    @cached_property
    def effects(self) -> Array:
        """Effect of each feature: the root mean square of its slopes times its standard deviation."""
        slopes: Array = self.lines.coef * self.deviations
        return np.asarray(np.sqrt(np.average(slopes**2, axis=0, weights=self.weights)))

    @cached_property
    def ranked_features(self) -> list[int]:
        """Features by their effect, the largest first."""
        return [int(j) for j in np.argsort(-self.effects, kind="stable")]

    @property
    def main_feature(self) -> int:
        """The feature of the largest effect."""
        return self.ranked_features[0]

    @property
    def noise_ratio(self) -> float:
        """Largest standard deviation of the noise over the smallest."""
        return float(self.lines.scale.max() / self.lines.scale.min())

    @cached_property
    def main_values(self) -> Array:
        """The main feature in the table's own units."""
        data = self.run.X if self.run.raw is None else self.run.raw
        return np.asarray(data[:, self.main_feature], dtype=np.float64)

    def moved(self, lines: Lines, labels: NDArray[np.int64]) -> Array:
        """Return each row's y adjusted to the means of all features but the main one, by the slopes of its line.

        The residual is unchanged.
        """
        rows = np.arange(self.n_rows)
        left = self.y - lines.fits(self.run.X)[rows, labels]
        seen = self.run.X[:, self.main_feature]
        return np.asarray(left + lines.along(self.main_feature, seen, self.means)[rows, labels])

    def ends(self, lines: Lines) -> tuple[Array, Array]:
        """Return the two ends of the range of the rows, in the table's units, and the lines' values there (2, k)."""
        seen = self.run.X[:, self.main_feature]
        at = np.array([self.main_values.min(), self.main_values.max()])
        return at, lines.along(self.main_feature, np.array([seen.min(), seen.max()]), self.means)

    @property
    def fitted(self) -> Optimum:
        """The fit itself."""
        reached = self._reached(self.objective)
        return Optimum(self.objective, self.lines, self.responsibilities, reached, self.regular)

    @cached_property
    def solutions(self) -> list[Optimum]:
        """The fit, then the other distinct regular optima, best first, and at the end a better degenerate one.

        A degenerate fit is alone, as there is no regular one to compare it with.
        """
        model = self.run.estimator
        found = [self.fitted]
        if not self.regular:
            return found
        others = [(optimum, True) for optimum in model.optima_ if not self._is_fit(optimum["log_likelihood"])]
        others = others[: MOST_OPTIMA - 1]
        if model.excluded_ is not None and not self._is_fit(model.excluded_["log_likelihood"]):
            others.append((model.excluded_, False))
        for optimum, regular in others:
            lines = Lines.of_optimum(optimum, model.center_)
            labels = lines.responsibilities(self.run.X, self.y).argmax(axis=1)
            lines = lines.taken(matching_order(self.labels, labels, self.k))
            height, q = float(optimum["log_likelihood"]), lines.responsibilities(self.run.X, self.y)
            found.append(Optimum(height, lines, q, self._reached(height), regular))
        return found

    def _is_fit(self, height: float) -> bool:
        return abs(height - self.objective) <= self.search.tolerance

    def _reached(self, height: float) -> str:
        near = [o for o in self.search.optima if abs(o.objective - height) <= self.search.tolerance]
        return in_words(sum(o.n_hits for o in near), sum(o.n_perturbations for o in near))

    def n_moved(self, optimum: Optimum) -> int:
        """Return the number of rows whose component differs from that of the fit."""
        return int((optimum.labels != self.labels).sum())

    @cached_property
    def bend(self) -> tuple[int, int] | None:
        """The component and the feature along which residuals bend most; None if chance explains each bend."""
        residuals, X = self.y[:, None] - self.lines.fits(self.run.X), self.run.X
        found = [
            (_curvature(X[:, f], residuals[:, j], self.responsibilities[:, j]), j, f)
            for j in np.flatnonzero(self.sizes >= FEWEST_TO_BEND).tolist()
            for f in range(self.n_features)
        ]
        if not found:
            return None
        t, j, feature = max(found)
        chance = float(-ndtri(BEND_BY_CHANCE / 2 / len(found)))
        return (j, feature) if t > chance else None

    def residuals(self, component: int) -> Residuals:
        """Return the residuals of one component, along the single feature or along its predictions."""
        mine = np.flatnonzero(self.labels == component)
        fits = self.lines.fits(self.run.X[mine])[:, component]
        values = (self.y[mine] - fits) / self.lines.scale[component]
        at = self.main_values[mine] if self.n_features == 1 else fits
        n_bins = min(MOST_BINS, len(mine) // FEWEST_IN_A_BIN)
        bins = np.array_split(np.argsort(at, kind="stable"), n_bins) if n_bins else []
        return Residuals(
            at,
            values,
            np.array([np.median(at[b]) for b in bins]),
            np.array([np.median(values[b]) for b in bins]),
            np.array([float(len(b)) for b in bins]),
        )


def _curvature(values: Array, residuals: Array, weights: Array) -> float:
    """Return the score of the square of a feature in one component, in standard errors.

    By responsibilities as weights, residuals have mean zero at every row where the model is right, even where lines
    cross.
    """
    spread = float(values.std())
    if not spread > 0 or len(np.unique(values)) < 4:
        return 0.0
    z = (values - values.mean()) / spread
    root = np.sqrt(weights)
    line = np.column_stack([root, root * z])
    rest = root * z**2 - line @ np.linalg.lstsq(line, root * z**2, rcond=None)[0]
    scores = root * rest * residuals
    error = float(np.sqrt((scores**2).sum()))
    return abs(float(scores.sum())) / error if error > 0 else 0.0
