"""The parametric bootstrap of the likelihood-ratio test of a mixture with one more component."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_array

from majorant._frames import check_row_names, data_frame
from majorant._numbers import counted
from majorant._told import Told
from majorant._validation import check_count, check_groups, check_integer, check_sample_weight, is_missing
from majorant.formulas import is_table
from majorant.registry import ModelCard, card_of

Array = NDArray[np.float64]
MISSED = 1e-6
"""Relative shortfall of the larger fit's log-likelihood from which its search counts as having missed the optimum."""


@dataclass(frozen=True, repr=False)
class LikelihoodRatioTest(Told):
    """A test of some number of components against one more.

    Attributes
    ----------
    model, part : str
        Words for the model and for one of its parts ("Gaussian mixture", "component").
    size : int
        Number of parts of the smaller model, the null hypothesis.
    statistic : float
        Twice the increase of the log-likelihood by one more part.
    simulated : ndarray of shape (n_used,)
        The statistic on data drawn from the smaller fit.
    n_resamples : int
        Number of data sets drawn.
    n_degenerate : int
        Number of data sets that do not count, as a fit failed or had only degenerate solutions.
    n_missed : int
        Number of counted data sets whose larger fit was below the smaller one: there the search missed the best
        optimum, and the statistic is zero.
    """

    model: str
    part: str
    size: int
    statistic: float
    simulated: Array
    n_resamples: int
    n_degenerate: int = 0
    n_missed: int = 0

    @property
    def p_value(self) -> float:
        """Share of the data sets, including the given one, whose statistic is at least as large."""
        return (1 + int(np.sum(self.simulated >= self.statistic))) / (1 + len(self.simulated))

    @property
    def p_value_error(self) -> float:
        """Monte-Carlo standard error of the p-value."""
        return math.sqrt(self.p_value * (1 - self.p_value) / (1 + len(self.simulated)))

    @property
    def sentence(self) -> str:
        """The result of the test, in a sentence."""
        as_large = int(np.sum(self.simulated >= self.statistic))
        drawn = f"{counted(len(self.simulated), 'data set')} drawn from the {self.model}"
        smaller = counted(self.size, self.part)
        text = (
            f"One {self.part} more than {self.size} adds {self.statistic / 2:.2f} to the log-likelihood; of {drawn} "
            f"with {smaller} {as_large} gained as much: p = {self.p_value:.3g}, with a Monte-Carlo error of "
            f"{self.p_value_error:.1g}."
        )
        if self.n_degenerate:
            text += f" {self.n_degenerate} more do not count, as a fit failed or had no regular solution."
        if self.n_missed:
            text += f" In {self.n_missed} the larger fit ended below the smaller one and counts as no gain."
        return text


def likelihood_ratio_test(
    est: Any,
    X: Any,
    y: Any = None,
    *,
    n_components: int | None = None,
    n_resamples: int = 99,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    **fit_parameters: Any,
) -> LikelihoodRatioTest:
    r"""Test a mixture of K parts against one of K + 1, by the parametric bootstrap.

    The statistic is :math:`2(\ell_{K+1} - \ell_K)`. Its distribution under K parts is not chi-squared, so data are
    drawn from the fit with K parts and both sizes are fitted to them, each by the estimator's own search [1]_. Cells
    that are missing are missing in drawn data too.

    Parameters
    ----------
    est : estimator
        A mixture that has a likelihood and can be sampled from: `GaussianMixture`, `LatentClassAnalysis`,
        `RegressionMixture`. It is not changed; every fit is that of a clone.
    X : array-like of shape (n_samples, n_features), or data frame
        For a model that was fitted by a formula, the table with y, groups and so on.
    y : array-like of shape (n_samples,), optional
        Target, for models that have one.
    n_components : int, optional
        K; by default that of the estimator.
    n_resamples : int, default=99
        Number of data sets to draw. The p-value is a multiple of ``1 / (n_resamples + 1)``.
    sample_weight : array-like of shape (n_samples,), optional
        Whole numbers: how often each row was observed.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, optional
        Number of processes; the result does not depend on it.
    **fit_parameters
        Further arguments of both ``fit`` and ``sample``: ``groups``, ``gating``, ``offset``, ``trials``.

    Returns
    -------
    LikelihoodRatioTest
        ``p_value``, ``p_value_error``, ``statistic`` and, in words, ``sentence``.

    Raises
    ------
    TypeError
        If `est` has no likelihood or cannot be sampled from.
    ValueError
        If data cannot be used, or fits to them or to all of the drawn data sets have only degenerate solutions.

    References
    ----------
    .. [1] G. J. McLachlan, "On Bootstrapping the Likelihood Ratio Test Statistic for the Number of Components in a
       Normal Mixture", Journal of the Royal Statistical Society C, 1987.

    Examples
    --------
    >>> import numpy as np, majorant as mj
    >>> x = np.random.default_rng(0).normal(size=(60, 1)) + np.repeat([[0.0], [6.0]], 30, axis=0)
    >>> found = mj.likelihood_ratio_test(mj.GaussianMixture(1), x, n_resamples=19, random_state=0)
    >>> found.size, found.p_value < 0.1
    (1, True)
    """
    card = card_of(est)
    if card.objective_name != "log-likelihood" or not hasattr(type(est), "sample"):
        raise TypeError(f"{type(est).__name__} has no likelihood that can be sampled from: there is no such test of it")
    size = int(card.size_of(est)) if n_components is None else check_integer("n_components", n_components, low=1)
    check_count("n_resamples", n_resamples)
    unknown = [name for name in fit_parameters if name not in signature(est.sample).parameters]
    if unknown:
        raise TypeError(f"{type(est).__name__}.sample takes no {unknown[0]}: no data with it can be drawn from the fit")
    check_row_names({"X": X, "y": y, "sample_weight": sample_weight, **fit_parameters})
    random = check_random_state(random_state)
    formula = getattr(est, "formula_", None)
    if formula is not None and is_table(X):
        table = formula.apply(X, set(formula.roles) - set(fit_parameters), y is None)
        X, y, fit_parameters = table.X, table.y if y is None else y, {**table.keywords, **fit_parameters}
    rows = _rows(est, X, y, sample_weight, fit_parameters, card)
    seeds = random.randint(2**31, size=n_resamples + 1)
    is_named = card.takes_text and hasattr(X, "columns")  # settings may name columns
    named = {**rows, "X": data_frame(dict(zip(map(str, X.columns), rows["X"].T, strict=True)))} if is_named else rows
    smaller, larger = (_fitted(est, card, size + more, named, int(seeds[0])) for more in (0, 1))
    for fitted in (smaller, larger):
        if not getattr(fitted, "regular_", True):
            k = card.size_of(fitted)
            raise ValueError(f"no regular solution with {counted(k, card.part)} was found: its likelihood says nothing")
    statistic = 2 * max(_objective(larger, card) - _objective(smaller, card), 0.0)
    est = smaller.as_read() if card.takes_text else est
    ends = Parallel(n_jobs=n_jobs)(delayed(_simulated)(est, smaller, card, size, rows, int(seed)) for seed in seeds[1:])
    used = [end for end in ends if end is not None]
    if not used:
        raise ValueError(
            f"none of {n_resamples} data sets drawn from the fit has regular solutions: nothing to compare"
        )
    simulated = np.array([max(gain, 0.0) for gain, _ in used])
    n_missed = sum(missed for _, missed in used)
    n_degenerate = n_resamples - len(simulated)
    return LikelihoodRatioTest(card.title, card.part, size, statistic, simulated, n_resamples, n_degenerate, n_missed)


Rows = Mapping[str, Any]


def _rows(est: Any, X: Any, y: Any, sample_weight: Any, given: Mapping[str, Any], card: ModelCard) -> Rows:
    """Return keywords of ``fit`` with rows repeated by weight; sorted, where their order is no part of the data."""
    finite = "allow-nan" if get_tags(est).input_tags.allow_nan else True
    rows: dict[str, Any] = {
        "X": check_array(X, dtype=None if card.takes_text else np.float64, ensure_all_finite=finite)
    }
    n = len(rows["X"])
    if card.needs_target:
        if y is None:
            raise ValueError(f"a {card.title} needs y")
        rows["y"] = np.asarray(check_array(y, ensure_2d=False, dtype=np.float64)).ravel()
    for name, value in given.items():
        rows[name] = check_groups(value, n)[0] if name == "groups" else _each(value, n)
    wrong = next((name for name, value in rows.items() if len(value) != n), None)
    if wrong is not None:
        raise ValueError(f"X has {n} rows and {wrong} has {len(rows[wrong])}")
    weights = check_sample_weight(sample_weight, n)
    if weights is not None:
        if (weights != np.round(weights)).any() or "groups" in rows:
            raise ValueError(
                "sample_weight must be whole numbers, and goes without groups: data are drawn row by row, so a row "
                "must be there as often as it weighs"
            )
        rows = {name: np.repeat(value, weights.astype(np.intp), axis=0) for name, value in rows.items()}
    if card.in_order:
        return rows
    order = np.lexsort(np.concatenate([_sortable(value) for value in rows.values()], axis=1).T[::-1])
    return {name: value[order] for name, value in rows.items()}


def _sortable(values: NDArray[Any]) -> Array:
    """Return a table, text as its place among the sorted texts of its column."""
    table = values.reshape(len(values), -1)
    if table.dtype.kind != "O" and table.dtype.kind not in "UT":
        return table.astype(np.float64)
    return np.column_stack([np.unique(column.astype(str), return_inverse=True)[1] for column in table.T]).astype(float)


def _each(value: Any, n: int) -> NDArray[Any]:
    """Return one entry per row; a single value, such as an offset, is repeated."""
    return np.full(n, value) if np.ndim(value) == 0 else np.asarray(value)


def _fitted(est: Any, card: ModelCard, size: int, rows: Rows, seed: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return card.with_size(clone(est), size).set_params(random_state=seed).fit(**rows)


def _objective(fitted: Any, card: ModelCard) -> float:
    return float(getattr(fitted, card.objective_attribute))


def _simulated(est: Any, smaller: Any, card: ModelCard, size: int, rows: Rows, seed: int) -> tuple[float, bool] | None:
    """Return the statistic on data drawn from a fit and whether the search missed; None if degenerate."""
    drawn = dict(rows)
    if card.needs_target:
        others = {name: value for name, value in rows.items() if name not in ("X", "y")}
        drawn["y"] = smaller.sample(rows["X"], np.random.RandomState(seed), **others)[0]
    else:
        other = copy(smaller)
        other.random_state = seed
        given = {name: value for name, value in rows.items() if name != "X"}
        drawn["X"], components = other.sample(len(rows["X"]), **given)
        missing = np.column_stack([is_missing(column) for column in rows["X"].T])
        if missing.any() and (np.diff(components) >= 0).all():
            # Drawn rows come component by component, given ones sorted: one component would lose all its cells.
            missing = missing[np.random.RandomState(seed).permutation(len(missing))]
        drawn["X"][missing] = np.nan
    try:
        fits = [_fitted(est, card, size + more, drawn, seed) for more in (0, 1)]
    except ValueError:
        return None
    if not all(getattr(fitted, "regular_", True) for fitted in fits):
        return None
    less, more = (_objective(fitted, card) for fitted in fits)
    return 2 * (more - less), more - less < -MISSED * (1 + abs(less))
