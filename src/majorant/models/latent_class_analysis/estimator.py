"""Latent class analysis: the estimator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from majorant._validation import check_choice, check_count, check_sample_weight, seed_of
from majorant.data.chunks import Chunks
from majorant.data.storage import StoredRows
from majorant.data.units import blocks_of, merged_units
from majorant.engine.mixture import Array
from majorant.engine.policies import BoundPolicy
from majorant.formulas import Formula
from majorant.laws import ByPopulation
from majorant.models.latent_class_analysis.fitted import FittedLatentClasses
from majorant.models.latent_class_analysis.formulas import learned_formula, rows_of_formula
from majorant.models.latent_class_analysis.identification import Identification, identification
from majorant.models.latent_class_analysis.invariance import InvarianceTests, invariance_tests
from majorant.models.latent_class_analysis.kinds import NormalItems
from majorant.models.latent_class_analysis.measures import comparison
from majorant.models.latent_class_analysis.populations import apart, drawn_rows
from majorant.models.mixture_rows import Rows, row_weight_of
from majorant.models.undetermined_covariances import of_repeated, refuse_wide
from majorant.registry import mixture_card, register
from majorant.search.contest import MixtureContest
from majorant.search.contestants import NamedStart
from majorant.search.effort import Effort, Plan
from majorant.search.record import SearchReport

FEW_ROWS = (10, 1)
"""Rows per parameter below which a search runs twice and three times as long, as few rows have many optima."""


MOST_PATTERNS = 50_000
"""Different rows of a stream up to which they are held in memory, with their numbers."""


@register(
    mixture_card(
        name="latent-class-analysis",
        title="latent class analysis",
        question="Which kinds of respondents are behind the answers to a list of items?",
        part="class",
        takes_text=True,
        page="latent class analysis",
        shapes={
            "weights_": "k",
            "item_center_": "i",
            "item_scale_": "i",
            "item_probabilities_": "kp",
            "normal_means_": "kn",
            "normal_variances_": "kn",
            "gating_coef_": "kh",
        },
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
        What the items are: "categorical", "ordinal", "normal", "count" (Poisson), "negative_binomial" or
        "zero_inflated_poisson", for all columns, for each, or by name or number of the column (others are "auto" then).
        With "auto", text, truth values, columns of at most two different values and of at most ten different whole
        numbers are categorical, and other numbers are normal; ``items_`` says what was read. Ordinal items and counts
        are only read as such where they are named: of an ordinal item, classes differ in the log odds of each level
        against the one below by the same number, whichever the level.
    correlated : None, "all", list of items or dict of lists, default=None
        Which normal items are correlated within a class: none; all; those named, or numbered; or the items of each of
        several blocks, whose names lead those of their estimates.
    population : str or int, optional
        The column of X, by name or number, that tells the population of each row, as text or numbers: classes then
        have shares of their own in each. Covariates (`gating`) take the place of these shares. `items` numbers items,
        without this column.
    equal_items : {"all", "none"}, None or list, default="all"
        Items whose parameters are equal in all populations, by name or number: measurement is invariant in all of them,
        in none (as None says too), or in some. `invariance_tests` compares these.
    variances : {"own", "shared"}, default="own"
        Whether normal items have variances, and covariances, in each class, or the same in all.
    unseen : {"error", "missing"}, default="error"
        How a level is treated that the fit has not seen: as an error, or as a missing cell.
    missing : {"drop", "error"}, default="drop"
        What becomes of rows that lack a covariate (`gating`, `covariate_effects`) or an outcome (`distal_outcome`):
        left out of what depends on it, their number being said, or an error. Predictions of such rows are by their
        items, with the shares of all rows. Missing cells of items need neither.
    sampling_weights : bool, default=False
        Whether `sample_weight` has survey weights: they are rescaled to count the rows, so that criteria do not depend
        on their scale, and errors and intervals are those of the sandwich. By default weights count rows.
    tol : float, default=1e-10
        A run has converged when it can gain no more than this in log-likelihood per row, as its last steps predict.
    max_iter : int, default=5000
        Largest number of steps of EM of each run.
    n_init : "auto" or int, default="auto"
        "auto" searches, or makes six starts where `bounds` or `beta` are set. A number is that of independent starts,
        each run to convergence, and nothing else.
    effort : {"fast", "default", "best"}, default="default"
        How long a search goes on: one round of starts; until the best solution keeps coming back; up to five times
        as long.
    beta : float, default=1.0
        Inverse temperature of the responsibilities; at infinity rows belong to one class (classification EM).
    bounds : bound policy, optional
        How bounds are chosen; by default the tightest, which is EM.
    warm_start : bool, default=False
        Whether a fit begins at the solution of the last one, if that was of estimates of the same shapes. After a fit
        from one start (``n_init=1``) 1 + 1 steps are 2, up to six, after which runs are extrapolated; where starts are
        raced, `max_iter` limits the race too.
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
    populations_ : Populations or None
        With `population`: the column, its ``levels`` and their ``shares`` of the rows.
    population_shares_ : ndarray of shape (n_components, populations)
        With `population`, without `gating`: shares of the classes in each population.
    population_searches_ : dict of SearchReport
        With ``equal_items="none"``: the search in each population, from whose classes the fit begins.
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
    zero_inflated_poisson_means_, zero_inflated_poisson_inflations_ : ndarray of shape (n_components, counts)
        Means of counts, and shares of zeros that are none of Poisson's: the rate is ``mean / (1 - inflation)``.
    gating_coef_ : ndarray of shape (n_components, 1 + covariates)
        With `gating`: logits of the classes against the first, of covariates in standard deviations from their mean.
    log_likelihood_ : float
    n_parameters_ : int
    n_rows_ : float
        Rows of the fit, without those that have no answer at all, or lack covariates.
    left_out_ : list of str
        How many these are, in words.
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

    _beginning: Array
    """Responsibilities of rows at which a fit begins, (rows, components), where another fit has set them."""
    formula_of_fit_: Formula
    population_searches_: dict[str, SearchReport]

    def __init__(
        self,
        n_components: int = 1,
        *,
        items: Any = "auto",
        correlated: Any = None,
        population: str | int | None = None,
        equal_items: Any = "all",
        variances: str = "own",
        unseen: str = "error",
        missing: str = "drop",
        sampling_weights: bool = False,
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
        self.population = population
        self.equal_items = equal_items
        self.variances = variances
        self.unseen = unseen
        self.missing = missing
        self.sampling_weights = sampling_weights

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("variances", self.variances, ["own", "shared"])
        check_choice("unseen", self.unseen, ["error", "missing"])
        check_choice("missing", self.missing, ["drop", "error"])

    def _plan(self) -> Plan:
        k = int(self.n_components)
        return Plan(least_rounds=max(3, k), most_rounds=12 * max(3, k))

    def _cell_names(self) -> list[str]:
        is_split = self.populations_ is not None and self.populations_.free  # into items of one population each
        return [] if is_split else [name for block in self.items_.blocks for name in block.names]

    def _degeneracy(self, contest: Any, ends: Any, order: NDArray[np.intp]) -> str:
        said, repeated = super()._degeneracy(contest, ends, order), ""
        for block, table in zip(self.items_.blocks, contest.columns, strict=False):
            if said and isinstance(block, NormalItems):
                repeated += of_repeated(block.names, table, contest.weights)
                named = re.search(r"(?<=in )normal column (\d+)", said)
                said = said.replace(named[0], f"normal item {block.names[int(named[1]) - 1]!r}") if named else said
        return said + repeated

    def _advice(self) -> str:
        named = re.search(r"in normal item ('.*?'|\".*?\")", self.degeneracy_)
        own = f", or take what holds few values for categories: items={{{named[1]}: 'categorical'}}" if named else ""
        return super()._advice() + own

    def _contest(self, law: Any, rows: Rows, data: Chunks, draws: np.random.Generator) -> MixtureContest:
        refuse_wide(self._matrices(), data.n_units)
        contest = super()._contest(law, rows, data, draws)
        if (given := self.__dict__.get("_beginning")) is not None:
            there = rows.positions >= 0
            self._beginning = np.empty((given.shape[1], len(rows.weights)))
            self._beginning[:, rows.positions[there]] = given[there].T
        patience = 1 + sum(rows.n_rows < few * contest.mixture.n_parameters for few in FEW_ROWS)
        contest.plan = replace(
            contest.plan, least_rounds=patience * contest.plan.least_rounds, sure_rounds=2 * patience - 1
        )
        return contest

    def _rows_streamed(
        self, source: StoredRows, sample_weight: Any, draws: np.random.Generator
    ) -> tuple[Rows, Any, Chunks]:
        rows, law, data = super()._rows_streamed(source, sample_weight, deepcopy(draws))
        if self._is_bounded:
            return rows, law, data

        def parts() -> Iterator[tuple[tuple[NDArray[Any], ...], Array | None]]:
            for block in source.blocks():
                X = self._read_block(block.columns[0])
                there = ~np.isnan(X).all(axis=1)
                weights = None if block.weights is None else block.weights[there]
                yield self._columns(X[there], fitting=False), weights

        if (found := merged_units(parts(), MOST_PATTERNS)) is None:
            return rows, law, data
        columns, weights = found  # few enough to be fitted as rows in memory are
        unit = row_weight_of(source)
        rows = Rows(columns, weights, np.empty(0, dtype=np.intp), unit, float(weights.sum()) / unit)
        return rows, law, Chunks(blocks_of(columns, weights), n_jobs=self.n_jobs)

    def _chosen_starts(self, contest: Any, draws: np.random.Generator) -> list[NamedStart[Any]]:
        chosen = super()._chosen_starts(contest, draws)
        self.__dict__.pop("population_searches_", None)
        beginning = self.__dict__.pop("_beginning", None)
        if beginning is None:
            known = self._by_population
            law, is_one = contest.mixture.law, self.n_components == 1
            if chosen or known is None or not known.all_free or is_one or not isinstance(law, ByPopulation):
                return chosen
            codes, population = known.of_columns(contest.columns), contest.columns[-1]
            counts, seed = contest.weights / contest.row_weight, int(draws.integers(2**31))
            beginning, self.population_searches_ = apart(self, codes, population, counts, contest.points, seed)
        theta = contest.mixture.started(beginning[None], contest.on(contest.whole).data)
        return [("classes of each population", theta)]

    def _note(self, contest: Any, found: Any, on: Any, rows: Rows) -> str:
        note = super()._note(contest, found, on, rows)
        searches: dict[str, SearchReport] = getattr(self, "population_searches_", {})
        told = [f"{level}, {each.n_hits} of {len(each.starts)} ends at the best" for level, each in searches.items()]
        return f"{note} Each population was searched by itself: {'; '.join(told)}.".strip() if told else note

    def identification(self) -> Identification:
        """Return which estimates the items determine, however many rows there are, by the rank of the information.

        Returns
        -------
        Identification
            ``rank``, ``unidentified``; ``print`` says it in a sentence.
        """
        check_is_fitted(self)
        names = [
            f"{estimate} of {entry}".removeprefix("item_probabilities of ").replace("_", " ")
            for estimate in self._density().describe(self._theta().density)
            for entry in self.items_.entry_names(estimate) or []
        ]
        known = self._by_population
        shares = [""] if known is None else [f" ({level})" for level in known.levels]
        return identification(self, [*names, *(f"the shares of the classes{level}" for level in shares)])

    def as_read(self) -> Self:
        """Return a model with these parameters, not fitted, that reads columns as this fit did."""
        known = self.populations_
        if known is None:
            return clone(self).set_params(**self.items_.settings)  # type: ignore[no-any-return]
        equal = [j for j in range(len(known.items.names)) if j not in known.free]
        settings = {**known.items.settings, "population": known.column, "equal_items": equal}
        return clone(self).set_params(**settings)  # type: ignore[no-any-return]

    def sample(
        self, n_samples: int | None = None, *, groups: Any = None, gating: Any = None
    ) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """Draw rows; with populations, that of each row is drawn by their shares, and given in its column of X.

        Parameters
        ----------
        n_samples : int, optional
            By default as many as `groups` and `gating` have, or one.
        groups, gating : array-like of shape (n_samples, ...), optional
            As for `fit`.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        components : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        known = self.populations_
        if known is None:
            return super().sample(n_samples, groups=groups, gating=gating)
        if known is not self._by_population:
            raise TypeError("populations are not drawn where shares depend on covariates: fit without gating")
        n = check_count("n_samples", 1 if n_samples is None else n_samples, width=self.n_features_in_)
        random = np.random.default_rng(seed_of(self.random_state))
        cells, population, components = drawn_rows(self, n, random)
        return known.shown(cells, population), components

    def invariance_tests(self, X: Any, sample_weight: Any = None) -> InvarianceTests:
        """Test whether items are measured alike, and classes are equally large, in all populations.

        Nested models with the settings of this one are fitted: all items equal, each item free in turn, all free, and
        shares equal too. Likelihood-ratio tests against "all equal" tell which restrictions do not hold [1]_; with many
        items, some small p-values are due to chance. A larger model also begins at the classes of a smaller one; where
        it still has the lower log-likelihood there is no test, and degenerate fits are named.

        Parameters
        ----------
        X, sample_weight
            The rows of the fit, which has `population` and no gating.

        Returns
        -------
        InvarianceTests
            ``print`` shows a table and a sentence; ``to_frame()`` makes a data frame.

        References
        ----------
        .. [1] L. M. Collins, S. T. Lanza, "Latent Class and Latent Transition Analysis", 2010, chapter 5.
        """
        check_is_fitted(self)
        if self._by_population is None or self.is_grouped_ or self.is_labelled_:
            raise ValueError(
                "tests of invariance compare populations: fit with population=, and without gating, groups and "
                "component_labels"
            )
        codes, weights = self._read(X, fitting=False), check_sample_weight(sample_weight, len(X))
        items = self._by_population.joined(codes[:, :-1])
        return invariance_tests(self, np.column_stack([items, codes[:, -1]]), weights)

    @classmethod
    def from_formula(cls, formula: str, data: Any, *, sample_weight: Any = None, **parameters: Any) -> Self:
        """Fit a model with the given parameters to a formula and a table, as in poLCA.

        Parameters
        ----------
        formula : str
            ``"cbind(A, B, C) ~ 1"``, or right of the ``~`` covariates on which the shares depend: ``~ age + sex``.
        data : data frame
            Cells of items may be missing, and covariates as `missing` says.
        sample_weight : array-like of shape (n_samples,), optional
        **parameters
            Those of the constructor.

        Returns
        -------
        LatentClassAnalysis
            ``rows_of(table)`` has what its methods take: ``model.predict(**model.rows_of(table))``.
        """
        learned, rows = learned_formula(formula, data)
        model = cls(**parameters)
        model.formula_of_fit_ = learned
        model.fit(**rows, sample_weight=sample_weight)
        model.gating_names_in_ = list(learned.features.names)
        return model

    @staticmethod
    def comparison(fits: Any, X: Any, *, n_resamples: int = 0, **rows: Any) -> Any:
        """Compare numbers of classes: every criterion, test and measure of separation, in one table.

        Parameters
        ----------
        fits : Selection or sequence of LatentClassAnalysis
            What `majorant.select` returns, or fits of the same rows.
        X, **rows
            The rows of the fits; ``sample_weight`` and ``gating`` among them.
        n_resamples : int, default=0
            Data sets of a bootstrap test of each number of classes against one fewer, `majorant.likelihood_ratio_test`;
            none by default, as each takes two searches.

        Returns
        -------
        data frame
            A row for each fit: ``classes``, those of `fit_statistics`, ``smallest_share``, ``hits`` of the search,
            ``regular``, and with `n_resamples` ``bootstrap_p_value``.
        """
        known = getattr(fits, "estimators", fits)
        return comparison([fit for fit in known if fit is not None], X, rows, n_resamples)

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
