"""Effects: what the classes depend on, and what depends on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtr, ndtri

from majorant._frames import data_frame
from majorant.models.covariates import ALIKE

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CovariateEffects:
    """How covariates change the odds of the classes against the first.

    Attributes
    ----------
    method : str
    names : tuple of str
        Of the columns: a constant, then the covariates; ``sex=male`` for a level of text.
    coef : ndarray of shape (n_components, 1 + covariates)
        Logits against the first class, in the units of the covariates.
    standard_errors : ndarray of shape (n_components, 1 + covariates)
        Corrected for the classes having been estimated; zero for the first class, NaN where the rows determine none.
    uncorrected_errors : ndarray of shape (n_components, 1 + covariates)
        As if the earlier step were certain; in one step, the same.
    covariance : ndarray
        Of the coefficients of all classes but the first.
    references : mapping of str to str
        The level that a column of text is told against: ``{"sex=male": "female"}``.
    n_rows : float
        Rows that have all covariates; the others are left out of this step.
    left_out : str
        How many these are, in words; empty if none.
    """

    method: str
    names: tuple[str, ...]
    coef: Array
    standard_errors: Array
    uncorrected_errors: Array
    covariance: Array
    references: Mapping[str, str]
    n_rows: float = np.nan
    left_out: str = ""

    @property
    def odds_ratios(self) -> Array:
        """Exponentials of the coefficients."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.coef))

    def tests(self) -> Any:
        """Return Wald's test of each covariate, that it changes no odds: statistic, degrees of freedom, p-value."""
        m = len(self.names)
        of_text = {name: name.removesuffix(f"={name.split('=')[-1]}") for name in self.references}
        terms: dict[str, list[int]] = {}
        for j, name in enumerate(self.names[1:], 1):
            terms.setdefault(of_text.get(name, name), []).append(j)
        rows = []
        for name, columns in terms.items():
            at = [k * m + j for k in range(len(self.coef) - 1) for j in columns]
            rows.append((name, *wald(self.coef[1:].ravel()[at], self.covariance[np.ix_(at, at)])))
        heads = ("covariate", "statistic", "df", "p_value")
        return data_frame({head: [row[i] for row in rows] for i, head in enumerate(heads)})

    def to_frame(self, level: float = 0.95) -> Any:
        """Return a data frame with a row for each coefficient: odds ratio, interval, z and p-value."""
        z = float(ndtri(0.5 + level / 2))
        rows = []
        for k in range(1, len(self.coef)):
            for name, b, e in zip(self.names, self.coef[k].tolist(), self.standard_errors[k].tolist(), strict=True):
                ratio = b / e if e > 0 else np.nan
                with np.errstate(over="ignore"):
                    odds = np.exp([b, b - z * e, b + z * e]).tolist()
                against = self.references.get(name, "")
                rows.append((k + 1, name, against, b, e, *odds, ratio, 2 * ndtr(-abs(ratio))))
        heads = ("class", "name", "against", "coef", "standard_error", "odds_ratio", "low", "high", "z", "p_value")
        return data_frame({head: [row[i] for row in rows] for i, head in enumerate(heads)})

    def __str__(self) -> str:
        lines = [f"{'class':<7}{'covariate':<24}{'odds ratio':>11}{'95 % low':>11}{'95 % high':>11}{'p':>9}"]
        z = float(ndtri(0.975))
        for k in range(1, len(self.coef)):
            for name, b, e in zip(self.names, self.coef[k].tolist(), self.standard_errors[k].tolist(), strict=True):
                told = f"{name} (against {self.references[name]})" if name in self.references else name
                with np.errstate(over="ignore"):
                    odds = [f"{value:11.4g}" for value in np.exp([b, b - z * e, b + z * e]).tolist()]
                p = 2 * ndtr(-abs(b / e)) if e > 0 else np.nan
                lines.append(f"{k + 1:<7}{told:<24}{''.join(odds)}{p:9.3g}")
        lines.append("Odds of each class against class 1, for one unit more of a covariate.")
        return "\n".join([*lines, *_told_left_out(self.left_out)])


@dataclass(frozen=True)
class DistalOutcome:
    """An outcome in each class.

    Attributes
    ----------
    method : str
    levels : tuple
        Of an outcome of categories; empty for numbers.
    estimates : ndarray of shape (n_components, 1 or levels)
        Means, or shares of the levels.
    standard_errors, uncorrected_errors : ndarray of the same shape
        NaN for a share of 0 or 1, at the edge of its range, and in a class that BCH's weights put beyond it.
    covariance : ndarray
        Of the estimates, class by class; NaN in a class that BCH's weights put beyond its range.
    kind : {"normal", "count", "categorical"}
    n_rows : float
        Rows that have an outcome; the others are left out of this step, not of the classes.
    left_out : str
        How many these are, in words; empty if none.
    """

    method: str
    levels: tuple[Any, ...]
    estimates: Array
    standard_errors: Array
    uncorrected_errors: Array
    covariance: Array
    kind: str = "normal"
    n_rows: float = np.nan
    left_out: str = ""

    def test(self) -> WaldTest:
        """Return Wald's test that the outcome is the same in all classes: statistic, degrees of freedom, p-value.

        Directions without a variance that could be told from rounding are left out, with their degrees of freedom; NaN
        where classes differ along one, as they do where each answers in its own way without exception, or where BCH's
        weights put a class beyond its range.

        Raises
        ------
        ValueError
            If there is one class only.
        """
        k = len(self.estimates)
        if k == 1:
            raise ValueError("there is one class: nothing to compare; fit two classes or more")
        return self._wald(np.column_stack([-np.ones(k - 1), np.eye(k - 1)]))

    def differences(self) -> Any:
        """Return Wald's test of each pair of classes; of numbers with the difference of their means and its error."""
        rows = []
        for a, b in combinations(range(len(self.estimates)), 2):
            contrast = np.eye(len(self.estimates))[b] - np.eye(len(self.estimates))[a]
            apart = float(contrast @ self.estimates[:, 0])
            own = self.covariance[np.ix_([a, b], [a, b])]
            error = np.nan if self.levels else float(np.sqrt(np.maximum(own.trace() - own[0, 1] - own[1, 0], 0.0)))
            rows.append((b + 1, a + 1, apart, error, *self._wald(contrast[None])))
        heads = ("class", "against", "difference", "standard_error", "statistic", "df", "p_value")
        of_shares = heads[2:4] if self.levels else ()
        return data_frame({head: [row[i] for row in rows] for i, head in enumerate(heads) if head not in of_shares})

    def _wald(self, classes: Array) -> WaldTest:
        """Return Wald's test that combinations of the classes, one a row, are zero."""
        c = self.estimates.shape[1]
        contrast = np.kron(classes, np.eye(c)[: max(c - 1, 1)])
        apart = contrast @ self.estimates.ravel()
        at = np.flatnonzero(contrast.any(axis=0))  # a class without errors leaves the others' tests as they are
        own = contrast[:, at] @ self.covariance[np.ix_(at, at)] @ contrast[:, at].T
        return wald(apart, own, float(np.abs(self.estimates).max()))

    def _intervals(self, level: float) -> tuple[Array, Array]:
        """Return ends of intervals, within 0 and 1 of shares and above 0 of means of counts."""
        room = float(ndtri(0.5 + level / 2)) * self.standard_errors
        least = -np.inf if self.kind == "normal" else 0.0
        most = 1.0 if self.kind == "categorical" else np.inf
        return np.maximum(self.estimates - room, least), np.minimum(self.estimates + room, most)

    def to_frame(self, level: float = 0.95) -> Any:
        """Return a data frame with a row for each class and level: estimate, error and interval."""
        low, high = self._intervals(level)
        rows = [
            (k + 1, name, self.estimates[k, j], self.standard_errors[k, j], low[k, j], high[k, j])
            for k in range(len(self.estimates))
            for j, name in enumerate(self.levels or ("mean",))
        ]
        heads = ("class", "level", "estimate", "standard_error", "low", "high")
        return data_frame({head: [row[i] for row in rows] for i, head in enumerate(heads)})

    def __str__(self) -> str:
        low, high = self._intervals(0.95)
        lines = [f"{'class':<7}{'':<20}{'estimate':>11}{'95 % low':>11}{'95 % high':>11}"]
        for k, own in enumerate(self.estimates.tolist()):
            for j, name in enumerate(self.levels or ("mean",)):
                lines.append(f"{k + 1:<7}{name!s:<20}{own[j]:11.4g}{low[k, j]:11.4g}{high[k, j]:11.4g}")
        if len(self.estimates) > 1:
            statistic, df, p = self.test()
            lines.append(f"The same in all classes: chi-squared {statistic:.2f} with {df} df, p = {p:.3g}.")
        return "\n".join([*lines, *_told_left_out(self.left_out)])


def _told_left_out(said: str) -> list[str]:
    return [f"{said}: left out here."] if said else []


class WaldTest(NamedTuple):
    """Wald's test: a chi-squared statistic, its degrees of freedom, and the p-value."""

    statistic: float
    df: int
    p_value: float


def wald(values: Array, covariance: Array, size: float = 0.0) -> WaldTest:
    """Return Wald's test that all values are zero.

    Directions without a variance that could be told from rounding (of numbers of a size) are left out; NaN where an
    error is not known, or numbers differ without a variance.
    """
    if not np.isfinite(covariance).all():
        return WaldTest(np.nan, len(values), np.nan)
    variances, directions = np.linalg.eigh(covariance)
    told = variances > ALIKE * max(float(variances[-1]), size**2 * ALIKE)
    if size and (np.abs(values @ directions[:, ~told]) > np.sqrt(ALIKE) * size).any():
        return WaldTest(np.nan, len(values), np.nan)
    df = int(told.sum())
    statistic = float(((values @ directions[:, told]) ** 2 / variances[told]).sum())
    return WaldTest(statistic, df, float(chdtrc(df, statistic)) if df else 1.0)
