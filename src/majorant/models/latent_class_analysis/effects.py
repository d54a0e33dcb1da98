"""Effects: what the classes depend on, and what depends on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm

from majorant._frames import data_frame
from majorant._validation import is_missing
from majorant.models.covariates import ALIKE, Covariates, undetermined

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
    """

    method: str
    names: tuple[str, ...]
    coef: Array
    standard_errors: Array
    uncorrected_errors: Array
    covariance: Array
    references: Mapping[str, str]

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
        z = float(norm.ppf(0.5 + level / 2))
        rows = []
        for k in range(1, len(self.coef)):
            for name, b, e in zip(self.names, self.coef[k].tolist(), self.standard_errors[k].tolist(), strict=True):
                ratio = b / e if e > 0 else np.nan
                with np.errstate(over="ignore"):
                    odds = np.exp([b, b - z * e, b + z * e]).tolist()
                against = self.references.get(name, "")
                rows.append((k + 1, name, against, b, e, *odds, ratio, 2 * norm.sf(abs(ratio))))
        heads = ("class", "name", "against", "coef", "standard_error", "odds_ratio", "low", "high", "z", "p_value")
        return data_frame({head: [row[i] for row in rows] for i, head in enumerate(heads)})

    def __str__(self) -> str:
        lines = [f"{'class':<7}{'covariate':<24}{'odds ratio':>11}{'95 % low':>11}{'95 % high':>11}{'p':>9}"]
        z = float(norm.ppf(0.975))
        for k in range(1, len(self.coef)):
            for name, b, e in zip(self.names, self.coef[k].tolist(), self.standard_errors[k].tolist(), strict=True):
                told = f"{name} (against {self.references[name]})" if name in self.references else name
                with np.errstate(over="ignore"):
                    odds = [f"{value:11.4g}" for value in np.exp([b, b - z * e, b + z * e]).tolist()]
                p = 2 * norm.sf(abs(b / e)) if e > 0 else np.nan
                lines.append(f"{k + 1:<7}{told:<24}{''.join(odds)}{p:9.3g}")
        return "\n".join([*lines, "Odds of each class against class 1, for one unit more of a covariate."])


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
        NaN for a share of 0 or 1, at the edge of its range.
    covariance : ndarray
        Of the estimates, class by class.
    """

    method: str
    levels: tuple[Any, ...]
    estimates: Array
    standard_errors: Array
    uncorrected_errors: Array
    covariance: Array

    def test(self) -> tuple[float, int, float]:
        """Return Wald's test that the outcome is the same in all classes: statistic, degrees of freedom, p-value.

        Directions without a variance that could be told from rounding are left out, with their degrees of freedom; NaN
        where classes differ along one, as they do where each answers in its own way without exception.

        Raises
        ------
        ValueError
            If there is one class only.
        """
        k, c = self.estimates.shape
        if k == 1:
            raise ValueError("there is one class: nothing to compare; fit two classes or more")
        free = max(c - 1, 1)
        contrast = np.kron(np.column_stack([-np.ones(k - 1), np.eye(k - 1)]), np.eye(c)[:free])
        apart = contrast @ self.estimates.ravel()
        return wald(apart, contrast @ self.covariance @ contrast.T, float(np.abs(self.estimates).max()))

    def to_frame(self, level: float = 0.95) -> Any:
        """Return a data frame with a row for each class and level: estimate, error and interval."""
        z = float(norm.ppf(0.5 + level / 2))
        names = self.levels or ("mean",)
        rows = [
            (k + 1, name, x, e, x - z * e, x + z * e)
            for k in range(len(self.estimates))
            for name, x, e in zip(names, self.estimates[k], self.standard_errors[k], strict=True)
        ]
        heads = ("class", "level", "estimate", "standard_error", "low", "high")
        return data_frame({head: [row[i] for row in rows] for i, head in enumerate(heads)})


def wald(values: Array, covariance: Array, size: float = 0.0) -> tuple[float, int, float]:
    """Return Wald's test that all values are zero: statistic, degrees of freedom, p-value.

    Directions without a variance that could be told from rounding (of numbers of a size) are left out; NaN where an
    error is not known, or numbers differ without a variance.
    """
    if not np.isfinite(covariance).all():
        return np.nan, len(values), np.nan
    variances, directions = np.linalg.eigh(covariance)
    told = variances > ALIKE * max(float(variances[-1]), size**2 * ALIKE)
    if size and (np.abs(values @ directions[:, ~told]) > np.sqrt(ALIKE) * size).any():
        return np.nan, len(values), np.nan
    df = int(told.sum())
    statistic = float(((values @ directions[:, told]) ** 2 / variances[told]).sum())
    return statistic, df, float(chi2.sf(statistic, df)) if df else 1.0


class CovariateUnits(NamedTuple):
    """What covariates are, and the means and standard deviations by which they are standardised."""

    learned: Covariates
    center: Array
    scale: Array


class OutcomeUnits(NamedTuple):
    """Levels of an outcome of text; of numbers none, and the mean and standard deviation that standardise them."""

    levels: tuple[Any, ...]
    center: float
    scale: float


def effects(units: CovariateUnits, beta: Array, corrected: Array, plain: Array, method: str) -> CovariateEffects:
    """Return coefficients of all classes, zero for the first, in the units of the covariates.

    Parameters
    ----------
    units : CovariateUnits
    beta : ndarray
        Coefficients of all classes but the first, class by class.
    corrected, plain : ndarray
        Their covariance, corrected for the classes having been estimated and not; NaN where the rows determine none.
    """
    learned = units.learned
    names = ("Intercept", *learned.column_names)
    m = len(names)
    own = np.diag(np.concatenate([[1.0], 1 / units.scale]))
    own[0, 1:] = -units.center / units.scale
    every = np.kron(np.eye(len(beta) // m), own)

    def moved(covariance: Array) -> Array:
        unknown = np.abs(every) @ np.isnan(np.diag(covariance)) > 0
        found = every @ np.where(np.isnan(covariance), 0.0, covariance) @ every.T
        found[unknown] = found[:, unknown] = np.nan
        return np.asarray(found)

    def table(values: Array) -> Array:
        return np.concatenate([np.zeros((1, m)), values.reshape(-1, m)])

    corrected, plain = moved(corrected), moved(plain)
    errors, uncorrected = (table(np.sqrt(np.maximum(np.diag(v), 0.0))) for v in (corrected, plain))
    return CovariateEffects(method, names, table(every @ beta), errors, uncorrected, corrected, learned.references)


def outcome(units: OutcomeUnits, k: int, beta: Array, corrected: Array, plain: Array, method: str) -> DistalOutcome:
    """Return estimates of the classes, in the units of the outcome; a share of 0 or 1 has no standard error."""
    levels, center, scale = units
    c = max(len(levels), 1)
    size = k * c
    estimates = center + scale * beta[:size].reshape(k, c)
    at_edge = np.minimum(np.abs(estimates), np.abs(1 - estimates)) < ALIKE if levels else np.zeros((k, c), dtype=bool)
    errors, uncorrected = (
        np.where(at_edge, np.nan, scale * np.sqrt(np.maximum(np.diag(v)[:size], 0.0)).reshape(k, c))
        for v in (corrected, plain)
    )
    return DistalOutcome(method, levels, estimates, errors, uncorrected, scale**2 * corrected[:size, :size])


def covariate_table(given: Any, weights: Array, k: int) -> tuple[Array, CovariateUnits]:
    """Return a constant beside covariates in standard units.

    Raises
    ------
    ValueError
        If there is one class only, or if in the rows that count a column is a linear function of those before it.
    """
    if k == 1:
        raise ValueError("one class has the share 1 whatever the covariates are: fit two classes or more")
    learned = Covariates.learned(given, len(weights))
    table = learned.table(given, len(weights))
    for name, why in undetermined(table[weights > 0], learned.column_names).items():
        raise ValueError(
            f"covariate {name!r} {why}, so it has no effect{'' if 'vary' in why else ' of its own'}: leave it out"
        )
    center = np.average(table, axis=0, weights=weights)
    scale = np.sqrt(np.average((table - center) ** 2, axis=0, weights=weights))
    return np.column_stack([np.ones(len(table)), (table - center) / scale]), CovariateUnits(learned, center, scale)


def outcome_table(y: Any, weights: Array) -> tuple[Array, OutcomeUnits]:
    """Return numbers in standard units as one column, or a column for each level of text.

    Raises
    ------
    ValueError
        If there is not one value a row, one is missing, or all that count are the same.
    """
    values, n = np.asarray(y), len(weights)
    if values.shape != (n,):
        raise ValueError(f"y must be one value a row, shape ({n},); got shape {values.shape}")
    missing = is_missing(values)
    if missing.any():
        raise ValueError(f"y has no value in row {int(missing.argmax())}: leave the row out of X and y")
    known = values[weights > 0]
    is_number = values.dtype.kind in "biuf"
    if np.ptp(known.astype(float)) <= ALIKE * np.abs(known).max() if is_number else len(set(known.tolist())) < 2:
        raise ValueError(f"y is {known.tolist()[0]!r} in every row: give an outcome that varies")
    if is_number:
        numbers = values.astype(np.float64)
        center = float(np.average(numbers, weights=weights))
        scale = float(np.sqrt(np.average((numbers - center) ** 2, weights=weights)))
        return ((numbers - center) / scale)[:, None], OutcomeUnits((), center, scale)
    levels = tuple(sorted(set(values.tolist())))
    told = [[value == level for level in levels] for value in values.tolist()]
    return np.asarray(told, dtype=np.float64), OutcomeUnits(levels, 0.0, 1.0)
