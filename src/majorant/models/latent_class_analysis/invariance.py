"""Tests of measurement invariance: are the items answered alike, and the classes equally large, in all populations?"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc
from sklearn.base import clone

from majorant._numbers import p_value, told_p
from majorant.models.latent_class_analysis.populations import Populations
from majorant.summary import Column, Table, Tabled

Array = NDArray[np.float64]

ROUNDED = 1e-2
"""A statistic may be so far below zero where EM stops a little before the optimum."""


@dataclass(frozen=True, repr=False)
class InvarianceTests(Tabled):
    """Likelihood-ratio tests between nested fits of the same rows.

    Attributes
    ----------
    models : tuple of str
        "all equal": items are measured alike in all populations, and classes have shares of their own in each; "shares
        equal": the shares are equal too; "free: A": item A has parameters of its own in each population; "all free":
        every item has. Correlated items are free together.
    log_likelihoods : ndarray of shape (models,)
    n_parameters : ndarray of shape (models,)
    aic, bic : ndarray of shape (models,)
        Smaller is better.
    statistics, df, p_values : ndarray of shape (models,)
        Of the test against "all equal": twice the difference of the log-likelihoods, the difference of the parameters,
        and the probability of a chi-squared variable to be larger. NaN for "all equal" itself, and where the larger
        model has the lower log-likelihood: its search missed the best fit, and a higher `effort` may find it.
    regular : ndarray of bool, shape (models,)
        Whether the fit is regular, not degenerate.
    """

    models: tuple[str, ...]
    log_likelihoods: Array
    n_parameters: NDArray[np.intp]
    aic: Array
    bic: Array
    statistics: Array
    df: Array
    p_values: Array
    regular: NDArray[np.bool_]

    @property
    def sentence(self) -> str:
        """What the test of all items at once says."""
        i = self.models.index("all free")
        if np.isnan(self.p_values[i]):
            return (
                "No test of all items at once: their free fit missed the best optimum, or has no more parameters. "
                'Where its log-likelihood is the lower one, fit with effort="best".'
            )
        return (
            f"Items measured alike in all populations against items free in each: chi-squared {self.statistics[i]:.2f} "
            f"with {self.df[i]:.0f} degrees of freedom, {told_p(self.p_values[i])}; "
            f"the BIC prefers {self.models[int(self.bic.argmin())]!r}."
        )

    def to_frame(self) -> Any:
        """Return a data frame with a row for each model."""
        return self._table.to_frame()

    @property
    def _table(self) -> Table:
        columns = [
            Column("model", self.models),
            Column("log-likelihood", self.log_likelihoods, 4, "log_likelihood"),
            Column("parameters", self.n_parameters, key="n_parameters"),
            Column("AIC", self.aic, 2, "aic"),
            Column("BIC", self.bic, 2, "bic"),
            Column("chi2", self.statistics, 2, "statistic"),
            Column("df", [None if np.isnan(df) else int(df) for df in self.df]),
            Column("p", self.p_values, key="p_value", write=p_value),
            Column("regular", self.regular),
        ]
        return Table("invariance", columns)

    @property
    def content(self) -> Sequence[Table | str]:
        """The models side by side, and what the test of all items says."""
        degenerate = [name for name, is_regular in zip(self.models, self.regular, strict=True) if not is_regular]
        told = [f"Degenerate fits, whose tests mean nothing: {', '.join(degenerate)}."] if degenerate else []
        return [self._table.without("aic", "regular"), self.sentence, *told]


def invariance_tests(model: Any, codes: Array, weights: Array | None) -> InvarianceTests:
    """Fit the nested models to coded rows, and compare them.

    Parameters
    ----------
    model : LatentClassAnalysis
        Fitted with populations; not changed.
    codes : ndarray of shape (rows, items + 1)
        Items as they are in X, coded, and the population last.
    weights : ndarray of shape (rows,), optional
    """
    found: Populations = model.populations_
    names, last = found.items.names, len(found.items.names)
    settings = {**found.items.settings, "population": last, "warm_start": False}
    together = {j: columns for _, columns in found.items.correlated for j in columns}
    parts = dict.fromkeys(together.get(j, (j,)) for j in range(last))

    def fitted(begins: Array | None = None, X: Array = codes, **changed: Any) -> Any:
        own = clone(model).set_params(**{**settings, **changed})
        if begins is not None:
            own._beginning = begins
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return own.fit(X, sample_weight=weights)

    smallest = fitted(X=codes[:, :-1], population=None, equal_items="all")
    begins = smallest.predict_proba(codes[:, :-1])
    equal = _best(fitted(equal_items="all"), fitted(begins, equal_items="all"))
    begins = equal.predict_proba(codes)
    fits = {"all equal": equal, "shares equal": smallest}
    if len(parts) > 1:
        for part in parts:
            told = ", ".join(names[j] for j in part)
            fits[f"free: {told}"] = fitted(begins, equal_items=[i for i in range(last) if i not in part])
    largest = _best(*fits.values())
    if largest is not smallest:
        begins = largest.predict_proba(codes)
    fits["all free"] = _best(fitted(equal_items="none"), fitted(begins, equal_items="none"))
    values = np.array([fit.log_likelihood_ for fit in fits.values()])
    p = np.array([fit.n_parameters_ for fit in fits.values()])
    statistics, df, p_values = chi_squared_tests(values, p)
    aic, bic = -2 * values + 2 * p, -2 * values + p * np.log(equal.n_rows_)
    regular = np.array([fit.regular_ for fit in fits.values()])
    return InvarianceTests(tuple(fits), values, p, aic, bic, statistics, df, p_values, regular)


def _best(*fits: Any) -> Any:
    """Return the fit of the highest log-likelihood; a degenerate one only where all are."""
    return max(fits, key=lambda fit: (fit.regular_, fit.log_likelihood_))


def chi_squared_tests(values: Array, p: NDArray[np.intp]) -> tuple[Array, Array, Array]:
    """Return statistics, degrees of freedom and p-values of models against the first one.

    Parameters
    ----------
    values, p : ndarray of shape (models,)
        Log-likelihoods, and numbers of parameters.
    """
    df = np.where(np.arange(len(p)) > 0, np.abs(p - p[0]), np.nan).astype(np.float64)
    statistics = 2 * (values - values[0]) * np.sign(p - p[0])
    in_order = (df > 0) & (statistics >= -ROUNDED)
    statistics = np.where(in_order, np.maximum(statistics, 0.0), np.nan)
    return statistics, df, chdtrc(df, statistics)
