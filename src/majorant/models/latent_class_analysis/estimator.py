"""Latent class analysis: the estimator."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from majorant._validation import check_choice, is_missing, levels_to_user, validate_data
from majorant.data.chunks import Chunks
from majorant.data.storage import StoredRows, stored_rows
from majorant.data.units import blocks_of
from majorant.densities import Product
from majorant.engine.mixture import Array, Mixture
from majorant.engine.policies import BoundPolicy
from majorant.engine.threads import one_thread
from majorant.formulas import Formula
from majorant.models.latent_class_analysis.density import density_of, points_of
from majorant.models.latent_class_analysis.formulas import learned_formula, rows_of_formula
from majorant.models.latent_class_analysis.items import KINDS, Items, column_of, learned, levels_met, moments, orders_of
from majorant.models.latent_class_analysis.measures import (
    Classification,
    FitStatistics,
    bivariate_residuals,
    classification,
    entropy_measures,
    residual_parts,
    tests_of_fit,
    warned,
)
from majorant.models.latent_class_analysis.steps import (
    CovariateEffects,
    DistalOutcome,
    Method,
    covariate_table,
    earlier_step,
    effects,
    later_step,
    of_covariates,
    of_outcome,
    outcome,
    outcome_table,
)
from majorant.models.mixture import MixtureEstimator
from majorant.models.mixture_rows import Rows, check_given, density_and_responsibilities
from majorant.registry import mixture_card, register
from majorant.results.criteria import criteria
from majorant.search.contest import MixtureContest
from majorant.search.effort import Effort, Plan

FEW_ROWS = (10, 1)
"""Rows per parameter below which a search runs twice and three times as long, as few rows have many optima."""


@register(
    mixture_card(
        name="latent-class-analysis",
        title="latent class analysis",
        question="Which kinds of respondents are behind the answers to a list of items?",
        part="class",
        takes_text=True,
    )
)
class LatentClassAnalysis(MixtureEstimator):
    r"""Latent class analysis: classes of respondents within which items are independent.

    .. math:: \ell = \sum_i w_i \log \sum_k \pi_k \prod_j f_j(x_{ij}; \theta_{jk})

    over the cells :math:`x_{ij}` that are there (full information), with items of any kind: categories (latent class
    analysis), numbers (latent profile analysis) and counts, side by side. Many starts are searched for the best
    optimum.

    Parameters
    ----------
    n_components : int, default=1
        Number of classes.
    items : "auto", str, sequence of str or dict, default="auto"
        What the items are: "categorical", "normal" or "count", for all columns, for each, or by name or number of the
        column (others are "auto" then). With "auto", text, truth values, columns of at most two different values and of
        at most ten different whole numbers are categorical, and other numbers are normal; ``items_`` says what was
        read. Counts are only read as such where they are named.
    variances : {"own", "shared"}, default="own"
        Whether a normal item has a variance in each class, or one in all.
    unseen : {"error", "missing"}, default="error"
        How a level is treated that the fit has not seen: as an error, or as a missing cell.
    tol : float, default=1e-10
        A descent has converged when it can gain no more than this in log-likelihood per row, as its last steps predict.
    max_iter : int, default=5000
        Largest number of steps of EM of each run.
    n_init : "auto" or int, default="auto"
        Number of searches, one by default; where `bounds` or `beta` are set, of starts, six by default.
    effort : {"fast", "default", "best"}, default="default"
        How long a search goes on: one round of starts; until the best solution keeps coming back; five times as long.
    beta : float, default=1.0
        Inverse temperature of the responsibilities; at infinity rows belong to one class (classification EM).
    bounds : bound policy, optional
        How bounds are chosen; by default the tightest, which is EM.
    warm_start : bool, default=False
        Whether a fit begins at the solution of the last one.
    random_state : int, RandomState instance or None, default=None
        Seed of starts, perturbations and random bounds.
    verbose : int, default=0
        1 shows runs as they end, on stderr.
    n_jobs : int, optional
        Threads that work on blocks of rows at a time; the result does not depend on it.

    Attributes
    ----------
    items_ : Items
        Names, kinds and levels of the items.
    weights_ : ndarray of shape (n_components,)
        Shares of the classes, the largest first; with `component_labels`, class k has label k.
    item_probabilities_ : ndarray of shape (n_components, levels of all categorical items)
        Probability of each level in each class, item by item.
    normal_means_, normal_variances_ : ndarray of shape (n_components, normal items)
    count_rates_ : ndarray of shape (n_components, counts)
    gating_coef_ : ndarray of shape (n_components, 1 + covariates)
        With `gating`: logits of the classes against the first, of covariates in standard deviations from their mean.
    log_likelihood_ : float
    n_parameters_ : int
    n_rows_ : float
        Rows of the fit, without those that have no answer at all.
    converged_, n_iter_, regular_, degeneracy_
        As in any mixture.
    search_ : SearchReport
    trace_ : Trace

    References
    ----------
    .. [1] L. A. Goodman, "Exploratory latent structure analysis using both identifiable and unidentifiable models",
       Biometrika 61, 1974.

    Examples
    --------
    >>> import numpy as np, pandas as pd, majorant as mj
    >>> random = np.random.default_rng(0)
    >>> buyer = random.random(300) < 0.4
    >>> table = pd.DataFrame(
    ...     {name: np.where(random.random(300) < np.where(buyer, 0.85, 0.2), "yes", "no") for name in "abcd"}
    ... )
    >>> model = mj.LatentClassAnalysis(2, random_state=0).fit(table)
    >>> model.items_.sentence
    '4 categorical items (a, b, c, d)'
    >>> model.weights_.round(1).tolist()
    [0.7, 0.3]
    """

    items_: Items
    formula_of_fit_: Formula
    item_probabilities_: Array
    normal_means_: Array
    count_rates_: Array

    def __init__(
        self,
        n_components: int = 1,
        *,
        items: Any = "auto",
        variances: str = "own",
        unseen: str = "error",
        tol: float = 1e-10,
        max_iter: int = 5000,
        n_init: str | int = "auto",
        effort: Effort = "default",
        beta: float = 1.0,
        bounds: BoundPolicy | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            n_components,
            tol=tol,
            max_iter=max_iter,
            n_init=n_init,
            effort=effort,
            beta=beta,
            bounds=bounds,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
            n_jobs=n_jobs,
        )
        self.items = items
        self.variances = variances
        self.unseen = unseen

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("variances", self.variances, ["own", "shared"])
        check_choice("unseen", self.unseen, ["error", "missing"])

    def _plan(self) -> Plan:
        k = int(self.n_components)
        return Plan(least_rounds=max(3, k), most_rounds=12 * max(3, k))

    def _contest(self, law: Any, rows: Rows, data: Chunks, draws: np.random.Generator) -> MixtureContest:
        contest = super()._contest(law, rows, data, draws)
        patience = 1 + sum(rows.n_rows < few * contest.mixture.n_parameters for few in FEW_ROWS)
        contest.plan = replace(
            contest.plan, least_rounds=patience * contest.plan.least_rounds, sure_rounds=2 * patience - 1
        )
        return contest

    # Reading rows

    def _read(self, X: Any, *, fitting: bool) -> Any:
        if type(X) is dict:
            raise TypeError(
                f"X must be a data frame or an array, not a {type(X).__name__}: pandas.DataFrame(X) makes one"
            )
        table = validate_data(self, X, reset=fitting, dtype=None, ensure_all_finite="allow-nan")
        if fitting:
            self._orders = orders_of(X)
            return table
        return self.items_.coded(table, self.unseen)

    def _counted(self, X: Any, weights: Array | None, *, fitting: bool) -> tuple[Array, Array | None]:
        names = self._feature_names()
        if fitting:
            numbers = [column_of(X, j, name) for j, name in enumerate(names)]
            empty = np.all([is_missing(column) for column in numbers], axis=0)
        else:
            empty = np.isnan(X).all(axis=1)
        if empty.any():  # what answers nothing says nothing, and does not count
            weights = np.where(empty, 0.0, 1.0 if weights is None else weights)
            if not (weights > 0).any():
                raise ValueError("no row has an answer to any item: there is nothing to fit")
        if fitting:
            self.items_ = learned(
                X if weights is None else X[weights > 0], names, self.items, self.__dict__.pop("_orders")
            )
            X = self.items_.coded(X, "error" if weights is None else "missing")
        return X, weights

    def _look_at(self, source: StoredRows) -> None:
        table = levels_met((block.columns[0] for block in source.blocks()), source.n_features)
        self.items_ = learned(table, self._feature_names(), self.items)

    def _read_block(self, X: NDArray[Any]) -> Array:
        return self.items_.coded(X.astype(np.float64), self.unseen)

    def _columns(self, X: NDArray[Any], *, fitting: bool) -> tuple[NDArray[Any], ...]:
        return tuple(X[:, own] for kind in KINDS if (own := self.items_.of_kind(kind)))

    def _prepare(self, rows: Rows) -> None:
        if self.items_.of_kind("normal"):
            x = rows.columns[1 if self.items_.sizes else 0]
            self.normal_center_, self.normal_scale_ = moments(x, rows.weights)
        n, k = len(rows.weights), self.n_components
        if n < k:
            said = f"X has {n} distinct rows, too few to tell {k} classes apart: ask for at most {n}."
            warnings.warn(said, ConvergenceWarning, stacklevel=levels_to_user())

    def _points(self, rows: Rows) -> Array:
        return points_of(self.items_, rows)

    def _density(self) -> Product:
        return density_of(self)

    # How well the classes fit

    def _seen(self, X: Any, sample_weight: Any, groups: Any, gating: Any, labels: Any) -> tuple[Rows, Array, Array]:
        """Return the distinct rows of X, their log densities and responsibilities."""
        if stored_rows(X) is not None:
            raise TypeError("statistics of a fit need rows in memory: take a part of them")
        check_given(self, groups, gating, labels)
        rows, law = self._rows_in_memory(X, sample_weight, groups, gating, labels, fitting=False)
        mixture = Mixture(self._density(), law, len(self.weights_), float(self.beta))
        data = Chunks(blocks_of(rows.columns, None, rows.groups), n_jobs=self.n_jobs)
        with one_thread():
            visit = partial(density_and_responsibilities, mixture, self._theta())
            both = data.map_rows(visit, (len(self.weights_) + 1,))
        return rows, both[:, 0], both[:, 1:]

    def fit_statistics(
        self,
        X: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        gating: Any = None,
        component_labels: Any = None,
    ) -> FitStatistics:
        """Return the criteria, separation of the classes, and tests of fit against the saturated table.

        Parameters
        ----------
        X, sample_weight, groups, gating, component_labels
            The rows of the fit.

        Returns
        -------
        FitStatistics
            ``print`` shows a table; ``to_frame()`` makes a data frame. A model that is not identified is warned of.
        """
        given = {"groups": groups, "gating": gating, "component_labels": component_labels}
        value, n, entropy = self._totals(X, sample_weight=sample_weight, **given)
        rows, log_density, q = self._seen(X, sample_weight, *given.values())
        p = self.n_parameters_
        told: dict[str, Any] = {**criteria(-2 * value, n, p, entropy), **entropy_measures(q, rows.weights, entropy)}
        is_table = set(self.items_.kinds) == {"categorical"}
        if is_table and groups is None and gating is None and component_labels is None:
            told |= tests_of_fit(rows.columns[0], rows.weights, self.items_.sizes, log_density, p)
        return warned(FitStatistics(log_likelihood=value, n_rows=n, n_parameters=p, **told))

    def classification(
        self,
        X: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        gating: Any = None,
        component_labels: Any = None,
    ) -> Classification:
        """Return the certainty of the assignment of rows to classes.

        Parameters
        ----------
        X, sample_weight, groups, gating, component_labels
            The rows of the fit.

        Returns
        -------
        Classification
            ``assigned``, ``average_posteriors`` and ``error``.
        """
        rows, _, q = self._seen(X, sample_weight, groups, gating, component_labels)
        return classification(q, rows.weights)

    def bivariate_residuals(
        self,
        X: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        gating: Any = None,
        component_labels: Any = None,
    ) -> Any:
        """Return bivariate residuals: the dependence of pairs of items that the classes do not explain.

        Of two categorical items, Pearson's statistic of their two-way table against the classes', over rows that have
        both; of two numbers or counts, rows times their squared correlation within classes. Divided by its degrees of
        freedom, a residual well above 4 indicates that the pair is not independent within classes.

        Parameters
        ----------
        X, sample_weight, groups, gating, component_labels
            The rows of the fit.

        Returns
        -------
        data frame
            A row for each pair: ``first``, ``second``, ``statistic``, ``df``, ``residual`` and ``p_value``.
        """
        rows, _, q = self._seen(X, sample_weight, groups, gating, component_labels)
        parts = residual_parts(self, rows.columns)
        return bivariate_residuals(self.items_.names, parts, q, rows.weights / rows.row_weight, self.weights_)

    # Covariates and outcomes, after the classes

    def covariate_effects(
        self,
        X: Any,
        covariates: Any,
        sample_weight: Any = None,
        *,
        method: Method = "ml",
        assignment: str = "proportional",
    ) -> CovariateEffects:
        """Relate the classes to covariates after they are found, with errors corrected for estimated classes.

        In one step, the classes may change with the covariates: that is ``fit(X, gating=covariates)``.

        Parameters
        ----------
        X, sample_weight
            The rows of the fit, which has no gating.
        covariates : array-like of shape (n_samples, n_covariates), or data frame
            Numbers, none missing.
        method : {"ml", "bch", "two-step", "naive"}, default="ml"
            Three steps with the errors of assignment accounted for, by maximum likelihood or by weights [1]_ [2]_; two
            steps, with the densities of the items held fixed; or as if assignments were true, which is biased.
        assignment : {"proportional", "modal"}, default="proportional"
            Of rows to classes in three steps.

        Returns
        -------
        CovariateEffects
            ``coef``, ``standard_errors``; ``to_frame()`` with odds ratios and intervals.

        Warns
        -----
        UserWarning
            If the classes lie too near each other for estimates in steps.

        References
        ----------
        .. [1] J. K. Vermunt, "Latent class modeling with covariates: two improved three-step approaches", Political
           Analysis 18, 2010.
        .. [2] A. Bolck, M. Croon, J. Hagenaars, "Estimating latent structure models with categorical variables:
           one-step versus three-step estimators", Political Analysis 12, 2004.
        """
        items, on = earlier_step(self, X, sample_weight, method, assignment)
        table, names = covariate_table(covariates, items.weights, len(self.weights_))
        later = of_covariates(table, items.weights, len(self.weights_))
        return effects(names, *later_step(items, on, later, method, assignment), method)

    def distal_outcome(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        method: Method = "bch",
        assignment: str = "modal",
    ) -> DistalOutcome:
        """Compare an outcome between the classes after they are found.

        Parameters
        ----------
        X, sample_weight
            The rows of the fit, which has no gating.
        y : array-like of shape (n_samples,)
            Numbers, whose means are compared, or text, whose shares are; none missing.
        method : {"bch", "ml", "two-step", "naive"}, default="bch"
            As for `covariate_effects`; "ml" and "two-step" take numbers for normal in each class.
        assignment : {"modal", "proportional"}, default="modal"

        Returns
        -------
        DistalOutcome
            ``estimates``, ``standard_errors``, ``test()`` of equality between classes, ``to_frame()``.
        """
        items, on = earlier_step(self, X, sample_weight, method, assignment)
        k = len(self.weights_)
        values, levels = outcome_table(y, items.weights)
        later = of_outcome(values, items.weights, self.weights_, is_categorical=bool(levels))
        return outcome(levels, k, *later_step(items, on, later, method, assignment), method)

    def _shown(self, X: Array) -> NDArray[Any]:
        return self.items_.decoded(X)

    def _entry_names(self, name: str) -> list[str] | None:
        return self.items_.entry_names(name) or super()._entry_names(name)

    @classmethod
    def from_formula(cls, formula: str, data: Any, *, sample_weight: Any = None, **parameters: Any) -> Self:
        """Fit a model with the given parameters to a formula and a table, as in poLCA.

        Parameters
        ----------
        formula : str
            ``"cbind(A, B, C) ~ 1"``, or right of the ``~`` covariates on which the shares depend: ``~ age + sex``.
        data : data frame
            Cells of items may be missing; covariates may not.
        sample_weight : array-like of shape (n_samples,), optional
        **parameters
            Those of the constructor.

        Returns
        -------
        LatentClassAnalysis
            ``rows_of(table)`` has what its methods take: ``model.predict(**model.rows_of(table))``.
        """
        learned, rows = learned_formula(formula, data)
        model = cls(**parameters).fit(**rows, sample_weight=sample_weight)
        model.formula_of_fit_, model.gating_names_in_ = learned, list(learned.features.names)
        return model

    def rows_of(self, data: Any) -> dict[str, Any]:
        """Items and covariates of a table, by the formula of the fit: what `fit`, `predict` and others take.

        Parameters
        ----------
        data : data frame

        Returns
        -------
        dict
            ``X`` and, where the formula has covariates, ``gating``.
        """
        if not hasattr(self, "formula_of_fit_"):
            raise ValueError("this fit is by no formula: give the methods X, and gating if it had some")
        return rows_of_formula(self.formula_of_fit_, data)
