"""Effects: what the classes depend on, and what depends on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, expit, logit, ndtr, ndtri

from majorant._frames import data_frame
from majorant._numbers import p_value, ratio, told_p
from majorant.models.covariates import ALIKE
from majorant.summary import Column, Table, Tabled

Array = NDArray[np.float64]
NEXT_TO_END = 0.05
"""Distance of a share from 0, or from 1, up to which it may be next to it."""


@dataclass(frozen=True, repr=False)
class CovariateEffects(Tabled):
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
        return self._table(level).to_frame()

    def _table(self, level: float) -> Table:
        coef, errors = self.coef[1:].ravel(), self.standard_errors[1:].ravel()
        reach, z = float(ndtri(0.5 + level / 2)) * errors, np.full(len(coef), np.nan)
        np.divide(coef, errors, out=z, where=errors > 0)
        with np.errstate(over="ignore"):
            odds, low, high = np.exp([coef, coef - reach, coef + reach])
        names = [*self.names] * (len(self.coef) - 1)
        columns = [
            Column("class", np.repeat(np.arange(2, 1 + len(self.coef)), len(self.names))),
            Column("covariate", names, key="name"),
            Column("against", [self.references.get(name, "") for name in names]),
            Column("coef", coef, 3),
            Column("SE", errors, 3, "standard_error"),
            Column("odds ratio", odds, key="odds_ratio", write=ratio),
            *_ends(low, high, level, ratio),
            Column("z", z, 2),
            Column("p", 2 * ndtr(-np.abs(z)), key="p_value", write=p_value),
        ]
        return Table("effects", columns, keys=2)

    @property
    def content(self) -> Sequence[Table | str]:
        """Odds ratios with intervals of 95 %, and p-values."""
        told = "Odds of each class against class 1, for one unit more of a covariate"
        told = "; ".join([told, *(f"{name} against {level}" for name, level in self.references.items())])
        shown = self._table(0.95).without("against", "coef", "standard_error", "z")
        return [shown, f"{told}.", *_told_left_out(self.left_out)]


@dataclass(frozen=True, repr=False)
class DistalOutcome(Tabled):
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

        Directions without a variance that could be told from rounding are left out, with their degrees of freedom. NaN
        where two classes have shares at, or within two errors of, opposite ends of their range, 0 and 1: their errors
        are none to judge by, and ``not_tested`` says so. NaN, too, where BCH's weights put a class beyond its range.

        Raises
        ------
        ValueError
            If there is one class only.
        """
        k = len(self.estimates)
        if k == 1:
            raise ValueError("there is one class: nothing to compare; fit two classes or more")
        return self._wald(np.column_stack([-np.ones(k - 1), np.eye(k - 1)]))

    @property
    def not_tested(self) -> str:
        """Which shares lie so near to opposite ends of their range that Wald's tests of them are left out, in words."""
        low, high = self._near_ends()
        found = [
            f"{level!r} is the answer of almost none in class {', '.join(_numbers(low[:, j]))}, and of almost all in "
            f"class {', '.join(_numbers(high[:, j]))}"
            for j, level in enumerate(self.levels)
            if low[:, j].any() and high[:, j].any()
        ]
        return (
            f"No Wald's test ({'; '.join(found)}): errors of shares next to 0 and 1 are none to judge by, and such "
            "classes differ without one."
            if found
            else ""
        )

    def _near_ends(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which shares are within two errors, and a twentieth, of 0, and which of 1."""
        room = np.minimum(2 * np.nan_to_num(self.standard_errors) + ALIKE, NEXT_TO_END)
        is_share = self.kind == "categorical"
        return is_share & (self.estimates <= room), is_share & (self.estimates >= 1 - room)

    def differences(self) -> Any:
        """Return Wald's test of each pair of classes.

        Beside it is the difference of means, or of shares of the second of two levels, with its standard error.
        """
        rows, (k, c) = [], self.estimates.shape
        for a, b in combinations(range(k), 2):
            contrast = np.eye(k)[b] - np.eye(k)[a]
            apart = float(contrast @ self.estimates[:, -1])
            at = [a * c + c - 1, b * c + c - 1]
            own = self.covariance[np.ix_(at, at)]
            error = float(np.sqrt(np.maximum(own.trace() - own[0, 1] - own[1, 0], 0.0)))
            rows.append((b + 1, a + 1, apart, error, *self._wald(contrast[None])))
        heads = ("class", "against", "difference", "standard_error", "statistic", "df", "p_value")
        of_shares = heads[2:4] if c > 2 else ()
        return data_frame({head: [row[i] for row in rows] for i, head in enumerate(heads) if head not in of_shares})

    def _wald(self, classes: Array) -> WaldTest:
        """Return Wald's test that combinations of the classes, one a row, are zero."""
        c = self.estimates.shape[1]
        low, high = (near[classes.any(axis=0)].any(axis=0) for near in self._near_ends())
        contrast = np.kron(classes, np.eye(c)[: max(c - 1, 1)])
        if (low & high).any():
            return WaldTest(np.nan, len(contrast), np.nan)
        apart = contrast @ self.estimates.ravel()
        at = np.flatnonzero(contrast.any(axis=0))  # a class without errors leaves the others' tests as they are
        own = contrast[:, at] @ self.covariance[np.ix_(at, at)] @ contrast[:, at].T
        return wald(apart, own, float(np.abs(self.estimates).max()))

    @property
    def shown(self) -> dict[str, int]:
        """What is told of a class, by the column of the estimates: the mean, the share of 1, or those of all levels."""
        if self.levels in ((0, 1), (False, True)):
            return {"share of 1": 1}
        return {str(level): j for j, level in enumerate(self.levels or ("mean",))}

    def intervals(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the ends of intervals: of shares by their logits, so within 0 and 1; of means of counts above 0."""
        room = float(ndtri(0.5 + level / 2)) * self.standard_errors
        if self.kind == "categorical":
            p = self.estimates
            with np.errstate(divide="ignore", invalid="ignore"):
                room = room / (p * (1 - p))
                return expit(logit(p) - room), expit(logit(p) + room)
        least = 0.0 if self.kind == "count" else -np.inf
        return np.maximum(self.estimates - room, least), self.estimates + room

    def to_frame(self, level: float = 0.95) -> Any:
        """Return a data frame with a row for each class and level: estimate, error and interval."""
        levels = self.levels or ("mean",)
        return self._table(range(len(levels)), levels, level).to_frame()

    def _table(self, at: Sequence[int], names: Sequence[Any], level: float) -> Table:
        k, (low, high) = len(self.estimates), self.intervals(level)
        columns = [
            Column("class", np.repeat(np.arange(1, k + 1), len(at))),
            Column("", [*names] * k, key="level"),
            Column("estimate", self.estimates[:, at].ravel(), 3),
            Column("SE", self.standard_errors[:, at].ravel(), 3, "standard_error"),
            *_ends(low[:, at], high[:, at], level),
        ]
        return Table("outcome", columns, keys=2)

    @property
    def content(self) -> Sequence[Table | str]:
        """Means or shares with intervals of 95 %, and the test that they are the same."""
        said = []
        if len(self.estimates) > 1:
            statistic, df, p = self.test()
            tested = f"The same in all classes: chi-squared {statistic:.2f} with {df} df, {told_p(p)}."
            untold = self.not_tested or "No Wald's test: some estimates have no errors."
            said.append(untold if np.isnan(p) else tested)
        shown = self._table([*self.shown.values()], [*self.shown], 0.95)
        return [shown, *said, *_told_left_out(self.left_out)]


def _ends(low: Array, high: Array, level: float, write: Callable[[float], str] | None = None) -> list[Column]:
    names = (("low", low), ("high", high))
    return [Column(f"{100 * level:g} % {side}", ends.ravel(), 3, side, write=write) for side, ends in names]


def _numbers(which: NDArray[np.bool_]) -> list[str]:
    """Return the numbers of some classes, from 1."""
    return [str(k + 1) for k in np.flatnonzero(which)]


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
