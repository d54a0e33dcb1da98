"""Latent class analysis: the estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from majorant._validation import check_choice
from majorant.data.chunks import Chunks
from majorant.engine.policies import BoundPolicy
from majorant.formulas import Formula
from majorant.models.latent_class_analysis.fitted import FittedLatentClasses
from majorant.models.latent_class_analysis.formulas import learned_formula, rows_of_formula
from majorant.models.latent_class_analysis.measures import comparison
from majorant.models.mixture_rows import Rows
from majorant.registry import mixture_card, register
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
        page="latent class analysis",
    )
)
class LatentClassAnalysis(FittedLatentClasses):
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
        What the items are: "categorical", "ordinal", "normal", "count" (Poisson) or "negative_binomial", for all
        columns, for each, or by name or number of the column (others are "auto" then). With "auto", text, truth values,
        columns of at most two different values and of at most ten different whole numbers are categorical, and other
        numbers are normal; ``items_`` says what was read. Ordinal items and counts are only read as such where they are
        named: of an ordinal item, classes differ in the log odds of each level against the one below by the same
        number, whichever the level.
    correlated : None, "all", list of items or dict of lists, default=None
        Which normal items are correlated within a class: none; all; those named, or numbered; or the items of each of
        several blocks, whose names lead those of their estimates.
    variances : {"own", "shared"}, default="own"
        Whether normal items have variances, and covariances, in each class, or the same in all.
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
    ordinal_probabilities_, ordinal_effects_ : ndarray
        The same of ordinal items, and by how much more than the mean of the classes the log odds of a level against the
        one below are in each, (n_components, ordinal items).
    normal_means_, normal_variances_ : ndarray of shape (n_components, normal items)
        Of those that are not correlated.
    correlated_means_, correlated_covariances_ : ndarray of shape (n_components, ...)
        Of those that are; ``normal_means_`` and ``normal_covariances_`` where `correlated` is "all", led by the name
        of the block where there are several.
    count_rates_ : ndarray of shape (n_components, counts)
    negative_binomial_rates_, negative_binomial_sizes_ : ndarray of shape (n_components, counts)
        Means of counts with variances ``rate + rate**2 / size``.
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

    formula_of_fit_: Formula

    def __init__(
        self,
        n_components: int = 1,
        *,
        items: Any = "auto",
        correlated: Any = None,
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
        self.correlated = correlated
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

    @staticmethod
    def comparison(fits: Any, X: Any, **rows: Any) -> Any:
        """Compare numbers of classes: every criterion, test and measure of separation, in one table.

        Parameters
        ----------
        fits : Selection or sequence of LatentClassAnalysis
            What `majorant.select` returns, or fits of the same rows.
        X, **rows
            The rows of the fits; ``sample_weight`` and ``gating`` among them.

        Returns
        -------
        data frame
            A row for each fit: ``classes``, those of `fit_statistics`, ``smallest_share``, ``hits`` of the search and
            ``regular``.
        """
        known = getattr(fits, "estimators", fits)
        return comparison([fit for fit in known if fit is not None], X, rows)

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
