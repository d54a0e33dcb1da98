"""The hidden Markov model estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from majorant._numbers import briefly
from majorant._validation import check_enough_rows, check_integer, seed_of
from majorant.data.chunks import Chunks
from majorant.data.rows import unobserved_message
from majorant.data.scratch import cached
from majorant.data.units import blocks_of
from majorant.engine.mixture import Array, Mixture, OnData
from majorant.engine.threads import one_thread
from majorant.formulas import column_of, is_design
from majorant.models.formula_estimator import FromFormula
from majorant.models.hidden_markov.contest import PLAN, SequenceContest, times_of
from majorant.models.hidden_markov.emission import SHAPES, Emission
from majorant.models.hidden_markov.emissions import (
    AUTOREGRESSIONS,
    REGRESSIONS,
    emissions,
    regression_of,
)
from majorant.models.hidden_markov.formula import SeriesFormula
from majorant.models.hidden_markov.given import give
from majorant.models.hidden_markov.judged import JudgedMarkovModel
from majorant.models.hidden_markov.lags import with_lags
from majorant.models.hidden_markov.law import chain_of
from majorant.models.hidden_markov.means import check_lines
from majorant.models.hidden_markov.sequences import Sequences, SeriesRows, one_table, sequences_of, weights_of_rows
from majorant.models.hidden_markov.stream import SeriesStream, is_stream
from majorant.models.mixture_rows import Rows, refuse_beside_stream, standardise_gating
from majorant.models.undetermined_covariances import WIDE, refuse_wide
from majorant.registry import mixture_card, register
from majorant.search.contest import BATCH
from majorant.search.effort import Effort, Plan


@register(
    mixture_card(
        name="hmm",
        title="hidden Markov model",
        question="Which states does a series go through, and what comes next?",
        part="state",
        sections=(
            "majorant.report.sections.series:states_section",
            "majorant.report.sections.series:transitions_section",
            "majorant.report.sections.series:series_residuals_section",
        ),
        in_order=True,
        shapes=SHAPES,
    )
)
class HiddenMarkovModel(FromFormula, JudgedMarkovModel):
    r"""A hidden Markov model, fitted by a search for the best optimum.

    .. math::
       \ell = \sum_u w_u \log \sum_s p_{s_1} f(x_1; \theta_{s_1}) \prod_{t > 1} A_{s_{t-1} s_t} f(x_t; \theta_{s_t})

    over sequences u, with rows in the order of time. Missing cells are ignored; a row without any
    cell only advances time.

    Parameters
    ----------
    n_components : int, default=1
        Number of states.
    emission : str or list of str, default="gaussian"
        How rows come from a state: "gaussian", "student", "gamma" (positive numbers), "von_mises" (directions in
        radians), "poisson", "negative_binomial", "zero_inflated_poisson", "bernoulli", "categorical" or "regression". A
        list has one for each column, which are then independent given the state. "student" rows, some of which lie far
        out, have all their cells or none. "regression" is Markov switching: a line of the first column of X on the
        others, with a constant. "poisson_regression" is one of counts, on the logarithm of the mean, and
        "bernoulli_regression" of zeros and ones, on the logit. "switching_mean" is Hamilton's autoregression: one
        column on its own `lags`, about a mean that switches; in "switching_autoregression" its coefficients do too.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Of Gaussian and Student rows; of lines, whose noise is the same in all states where it is "tied".
    lags : int, default=0
        Own lags of a regression or an autoregression. First rows of a sequence, which lack them, say nothing.
    fit_intercept : bool, default=True
        Whether the lines of a "regression" have a constant in each state.
    start : {"free", "stationary"} or array-like of shape (n_components,), default="free"
        Whether the law of first states is estimated, is the stationary one of the transitions, or is given.
    allowed : array-like of shape (n_components, n_components) of bool, optional
        Which transitions may happen (from row to column); by default all.
    sticky : float, default=0.0
        A prior on staying: so many steps of staying are counted in each state beside those of the rows, so that the fit
        maximises :math:`\ell + \kappa \sum_i \log A_{ii}`. ``log_likelihood_`` and criteria are without it.
    tol : float, default=1e-8
        A run has converged when it can gain no more than this in log-likelihood per row, as its last steps predict.
    max_iter : int, default=2000
        Largest number of steps of EM of each run.
    n_init : "auto" or int, default="auto"
        "auto" searches. A number is that of independent starts, each run to convergence, and nothing else.
    effort : {"fast", "default", "best"}, default="default"
        How long a search goes on: one round of starts; until perturbations find nothing better; up to five
        times as long.
    warm_start : bool, default=False
        Whether a fit begins at the solution of the last one, if that was of estimates of the same shapes. After a fit
        from one start (``n_init=1``) 1 + 1 steps are 2, up to six, after which runs are extrapolated; where starts are
        raced, `max_iter` limits the race too.
    random_state : int, RandomState instance or None, default=None
        Seed of starts and perturbations.
    verbose : int, default=0
        1 shows runs as they end, on stderr.
    n_jobs : int, optional
        Threads that work on sequences at a time; the result does not depend on it.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Expected shares of the states among the rows. The state with the most is the first, except where a given
        `start`, `allowed` or known states say which is which.
    start_probabilities_ : ndarray of shape (n_components,)
        Probabilities of the first state of a sequence.
    transitions_ : ndarray of shape (n_components, n_components)
        Probabilities of a step from a state (row) to the next (column); with `gating` where covariates are at their
        mean.
    gating_coef_ : ndarray of shape (n_components, n_components, 1 + n_covariates)
        With `gating`: logits of the steps from a state (first axis) to the next (second) against staying, a constant
        and then covariates in standard deviations from their mean, ``(gating - gating_center_) / gating_scale_``.
    gating_center_, gating_scale_ : ndarray of shape (n_covariates,)
    means_, covariances_ : ndarray
        Of Gaussian rows, in scikit-learn's shapes, but that "tied" has a copy for each state.
    scale_matrices_, degrees_of_freedom_ : ndarray
        Of Student rows, beside ``means_``: in the shapes of covariances, and (n_components,).
    shapes_ : ndarray of shape (n_components, n_features)
        Of gamma rows, beside ``means_``: a variance is ``mean**2 / shape``.
    directions_, concentrations_ : ndarray of shape (n_components, n_features)
        Of directions.
    intercept_, coef_, variances_ : ndarray of shape (n_components, ...)
        Of lines.
    rates_, sizes_, inflations_, probabilities_ : ndarray of shape (n_components, ...)
        Means of counts; of "negative_binomial" also sizes, so that a variance is ``rate + rate**2 / size``; of
        "zero_inflated_poisson", beside ``means_``, shares of zeros that are none of Poisson's. Probabilities of ones,
        or of categories. With a list of emissions all these names are led by that of their column.
    log_likelihood_ : float
        Of the sequences of the fit, weighted.
    n_parameters_ : int
    converged_ : bool
    n_iter_ : int
    regular_ : bool
        Whether the solution is regular; if not, ``degeneracy_`` says why.
    degeneracy_ : str
    formula_of_fit_ : SeriesFormula
        After `from_formula` or `fit_formula`: data frames then go through it.
    search_ : SearchReport
    trace_ : Trace

    References
    ----------
    .. [1] L. R. Rabiner, "A tutorial on hidden Markov models", Proceedings of the IEEE 77, 1989.
    .. [2] W. Zucchini, I. MacDonald, R. Langrock, "Hidden Markov Models for Time Series", 2nd edition, 2016.

    Examples
    --------
    >>> import numpy as np, majorant as mj
    >>> counts = np.array([1, 0, 2, 1, 9, 8, 11, 10, 1, 0, 1, 2, 0, 9, 12, 8])[:, None]
    >>> model = mj.HiddenMarkovModel(2, emission="poisson", random_state=0).fit(counts)
    >>> model.predict(counts)
    array([0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1])
    >>> model.rates_.round(2).ravel()
    array([0.89, 9.56])
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        emission: str | Sequence[str] = "gaussian",
        covariance_type: str = "full",
        lags: int = 0,
        fit_intercept: bool = True,
        start: str | ArrayLike = "free",
        allowed: ArrayLike | None = None,
        sticky: float = 0.0,
        tol: float = 1e-8,
        max_iter: int = 2000,
        n_init: str | int = "auto",
        effort: Effort = "default",
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.emission = emission
        self.covariance_type = covariance_type
        self.lags = lags
        self.fit_intercept = fit_intercept
        self.start = start
        self.allowed = allowed
        self.sticky = sticky
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.effort = effort
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    @classmethod
    def from_parameters(
        cls,
        start_probabilities: ArrayLike,
        transitions: ArrayLike,
        *,
        emission: str | Sequence[str] = "gaussian",
        covariance_type: str = "full",
        random_state: Any = None,
        **estimates: ArrayLike,
    ) -> Self:
        """Return a model with given parameters, to decode, score and draw; by `warm_start` a fit begins at them.

        Parameters
        ----------
        start_probabilities, transitions : array-like
            As the attributes.
        emission, covariance_type, random_state
            As for the class; "categorical" rows have one column, with the values 0, 1, ...
        **estimates : array-like
            Attributes of the emission without their underscore, such as ``means=``, ``covariances=``.

        Returns
        -------
        HiddenMarkovModel

        Raises
        ------
        ValueError, TypeError
            If parameters lack, or do not fit each other or the emission.

        Examples
        --------
        >>> import majorant as mj
        >>> dice = [[1 / 6] * 6, [0.1] * 5 + [0.5]]
        >>> casino = mj.HiddenMarkovModel.from_parameters(
        ...     [0.9, 0.1], [[0.95, 0.05], [0.1, 0.9]], emission="categorical", probabilities=dice
        ... )
        >>> casino.predict([[0], [3], [1], [5], [5], [5], [2], [5], [5], [5]])
        array([0, 0, 0, 1, 1, 1, 1, 1, 1, 1])
        """
        model = cls(emission=emission, covariance_type=covariance_type, random_state=random_state)
        return give(model, start_probabilities, transitions, estimates)

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,
        *,
        sequence_weight: Any = None,
        lengths: Any = None,
        groups: Any = None,
        time: Any = None,
        gating: Any = None,
        component_labels: Any = None,
    ) -> Self:
        """Find the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), a list of these, Chunks, or a Dask collection
            Rows in the order of time; NaN where a cell is missing. A list has one table for each sequence, or an array
            of one dimension where there is one column. Chunks (``majorant.open_rows``) and Dask collections are read
            part by part, with `lengths` or `groups`: the search goes over a sample of whole sequences, the last run
            over all.
        y : ignored
        sequence_weight : array-like of shape (n_sequences,), optional
            Nonnegative weights of the sequences, in the order of their names in `groups`; whole numbers count them.
        lengths : array-like of shape (n_sequences,), optional
            Rows of each sequence, which lie one after the other in X.
        groups : array-like of shape (n_samples,) or str, optional
            The sequence of each row, instead of `lengths`, or a column of a data frame that has it; rows of one keep
            their order.
        time : array-like of shape (n_samples,) or str, optional
            Times by which the rows of a sequence are sorted, or a column of a data frame that has them. Every row is
            one step, however far its time is: keep rows without a cell for times that lack.
        gating : array-like of shape (n_samples, n_covariates), optional
            Covariates on which transitions depend, by a multinomial logit in each state: numbers, and in a data frame
            text. Those of a row are of the step into it; those of first rows are of no step.
        component_labels : array-like of shape (n_samples,), optional
            States that are known, from 0; -1 where one is not.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data, weights or parameters cannot be used; the message says what to change.

        Warns
        -----
        ConvergenceWarning
            If no regular solution was found, or `max_iter` was reached.
        """
        with self._all_or_nothing(), one_thread():
            if not is_design(X):
                self.__dict__.pop("formula_of_fit_", None)
            self._check_parameters()
            draws = np.random.default_rng(seed_of(self.random_state))
            if is_stream(X):
                refuse_beside_stream(component_labels=component_labels)
                stream = self._stream(X, lengths, groups, time, gating, sequence_weight, fitting=True)
                rows, law, data = self._learn_stream(stream, int(draws.integers(2**31)))
                sequences = stream.sequences
            else:
                X, sequences = sequences_of(X, lengths, groups, time)
                X = self._learn(X, sequences, sequence_weight)
                given = SeriesRows(X, sequences, self._learn_gating(gating, sequences, sequence_weight))
                rows, law = self._sequences(given, sequence_weight, component_labels, lambda one, *on: one.learned(*on))
                data = Chunks(blocks_of(rows.columns, rows.weights, rows.groups), n_jobs=self.n_jobs)
            self._fit(law, rows, data, draws)
            self.is_grouped_ = len(sequences) > 1
        return self

    def fit_formula(
        self,
        formula: str,
        data: Any,
        *,
        groups: Any = None,
        time: Any = None,
        gating: Any = None,
        sequence_weight: Any = None,
        component_labels: Any = None,
    ) -> Self:
        """Fit to a formula and a table.

        With terms the formula makes the `emission` "gaussian" a "regression", "poisson" a "poisson_regression" and
        "bernoulli" a "bernoulli_regression", and sets ``fit_intercept`` and, by its own lags, ``lags``. Methods
        then take tables with the columns of the formula, and know by their names which rows are one sequence and when
        they were.

        Parameters
        ----------
        formula : str
            ``"y ~ x + lag(y) | id"``: the target, the terms, and after ``|`` the column of the sequences, if there are
            several; ``0 +`` leaves the constants out; ``"y ~ 1"`` or ``"cbind(y, z) ~ 1"`` for rows without terms, by
            the `emission` that is set. ``lag(x)`` and ``lag(x, 2)`` are the values one and two rows before in the
            sequence. Other terms are those of `RegressionMixture.fit_formula`. Where ``lag(y)``, ..., ``lag(y, L)`` of
            the target y are terms, they come first, as `lags`, and forecasts feed on themselves.
        data : data frame
            A row that lacks a value of the target or of a term says nothing, and only advances time.
        groups, time : str or array-like, optional
            As for `fit`.
        gating : str or array-like, optional
            Terms on which transitions depend, as ``"x + lag(z)"``, or as for `fit`.
        sequence_weight : array-like of shape (n_sequences,), optional
        component_labels : str or array-like, optional
            States that are known, or a column of them; -1 where one is not.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If formulaic is not installed.
        ValueError, TypeError
            If the formula contains code that is not allowed, the table lacks a column, or the data cannot be used.

        Examples
        --------
        >>> import numpy as np, pandas as pd, majorant as mj
        >>> random, state = np.random.default_rng(0), np.repeat([0, 1, 0, 1], 40)
        >>> x = random.normal(size=160)
        >>> y = np.where(state == 0, 1 + 2 * x, 4 - x) + 0.2 * random.normal(size=160)
        >>> table = pd.DataFrame({"x": x, "y": y})
        >>> model = mj.HiddenMarkovModel.from_formula("y ~ x + lag(x)", table, n_components=2, random_state=0)
        >>> model.feature_names_in_.tolist(), model.coef_[:, 0].round(1).tolist()
        (['y', 'x', 'lag(x)'], [-1.0, 2.0])
        """
        with self._all_or_nothing():
            terms = gating if isinstance(gating, str) else None
            learned, X, sequences = SeriesFormula.learn(formula, data, groups, time, terms)
            table = gating if terms is None else learned.gating(data, sequences)
            if learned.lags:
                self.set_params(lags=learned.lags)
            if learned.formula.features.names or self.lags:
                own = regression_of(self.emission, learned.formula.response.names[0])
                self.set_params(emission=own, fit_intercept=learned.has_constant)
            labels = column_of(data, component_labels) if isinstance(component_labels, str) else component_labels
            names = sequences.codes if sequences.names is None else sequences.names[sequences.codes]
            given = {"groups": names if sequences.are_given else None, "time": np.argsort(sequences.order)}
            self.formula_of_fit_ = learned
            self.fit(X, sequence_weight=sequence_weight, gating=table, component_labels=labels, **given)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if check_integer("lags", self.lags, low=0) and self.emission not in AUTOREGRESSIONS:
            known = " or ".join(f'"{name}"' for name in AUTOREGRESSIONS)
            raise ValueError(f"lags={self.lags} are of {known}; got emission={briefly(self.emission)}")
        chain_of(self.n_components, self.start, self.allowed, 0, self.sticky, self._order)
        if not self.fit_intercept and self.emission not in REGRESSIONS:
            raise ValueError(f'fit_intercept=False is of emission="regression"; got emission={briefly(self.emission)}')

    def _learn(self, X: Any, sequences: Sequences, sequence_weight: Any) -> Array:
        """Learn the columns; return the rows as numbers, with own lags."""
        X = self._read(X, fitting=True)
        weights = weights_of_rows(sequence_weight, sequences)
        unobserved = np.isnan(X if weights is None else X[weights > 0]).all(axis=0)
        if unobserved.any():
            raise ValueError(unobserved_message(unobserved, getattr(self, "feature_names_in_", None)))
        check_enough_rows(len(X), "n_components", self.n_components, "state")
        self.emissions_ = self._emissions_of(X.shape[1] + self.lags)
        for one in self.emissions_:
            one.check(X, names=getattr(self, "feature_names_in_", None))
        return with_lags(X, sequences, self.lags)

    def _emissions_of(self, width: int) -> tuple[Emission, ...]:
        """Return the emissions of so many columns."""
        check_lines(self.emission, self.lags, bool(self.fit_intercept), width)
        return emissions(self.emission, self.covariance_type, width, bool(self.fit_intercept))

    def _learn_stream(self, stream: SeriesStream, seed: int) -> tuple[Rows, Any, Chunks]:
        """Learn what rows that are read part by part hold; return a sample for the search, the law, and all rows."""
        source = stream.source
        check_enough_rows(source.n_units, "n_components", self.n_components, "state")
        self.emissions_ = self._emissions_of(source.n_features + self.lags)
        seen = stream.looked_at(self.emissions_, source.names)
        self._learn_gating(None, stream.sequences, None)
        sample, weights = stream.sample(seed)
        rows, law = self._sequences(sample, weights, None, lambda one, *on: one.learned(*on).completed(*seen))
        data = Chunks(cached(stream.read(self.emissions_), source.cache), n_jobs=self.n_jobs)
        return replace(rows, n_rows=source.total_weight / rows.row_weight), law, data

    def _learn_gating(self, gating: Any, sequences: Sequences, sequence_weight: Any) -> Array | None:
        """Learn the covariates of transitions; return a constant and standardised covariates, if there are any."""
        if gating is None:
            for name in ("gating_center_", "gating_scale_", "gating_names_in_", "covariates_"):
                self.__dict__.pop(name, None)  # of a fit before this one
            return None
        n, table = len(sequences.codes), one_table(gating, None)[0]
        standardise_gating(self, table, n, weights_of_rows(sequence_weight, sequences))
        self._chain()
        return self._gating(table, n)

    def _law_before(self, law: Any) -> Any:
        before, now = self._law_of_fit(), getattr(law, "law", law)
        same = getattr(before, "n_covariates", 0) == getattr(now, "n_covariates", 0)
        return self._theta().law if same else None

    def _keep(self, contest: Any, found: Any, ends: Any, on: OnData, rows: Rows) -> None:
        super()._keep(contest, found, ends, on, rows)
        if self.sticky:
            self.log_likelihood_ += float(on.mixture.law.penalty(ends.theta.law)[0])  # type: ignore[attr-defined]

    def _note(self, contest: Any, found: Any, on: OnData, rows: Rows) -> str:
        said, searched = super()._note(contest, found, on, rows), contest.total_weight / rows.row_weight
        if searched > (1 - 1e-9) * rows.n_rows:
            return said
        return f"{said} The search went over whole sequences, {searched:.0f} of {rows.n_rows:.0f} rows."

    def _plan(self) -> Plan:
        return PLAN

    def _contest(self, law: Any, rows: Rows, data: Chunks, draws: np.random.Generator) -> SequenceContest:
        """Return the race of hidden Markov models on rows in memory."""
        refuse_wide(self._matrices(), data.n_units)
        if self.emission in REGRESSIONS and (width := self.n_features_in_) > max(WIDE, data.n_units):
            raise ValueError(f"{data.n_units:,} rows determine no line on {width - 1:,} columns: choose fewer")
        mixture = Mixture(self._density(), law, int(self.n_components), 1.0)
        times, groups = times_of(rows, mixture), rows.groups
        return SequenceContest(
            mixture=mixture,
            columns=rows.columns,
            points=times.points,
            weights=rows.weights,
            plan=self._plan().at(self.effort).of_starts(self.n_init),
            tol=self._tolerance,
            max_iter=int(self.max_iter),
            data=lambda *columns, weights: Chunks(blocks_of(columns, weights, groups), n_jobs=self.n_jobs),
            # One row has a density of any height of numbers, and of counts tells of no other, as in regressions.
            least_size=float(np.clip(0.05 * rows.n_rows, 1.0, 2.0))
            if all(e.is_discrete for e in self.emissions_)
            else 0.0,
            row_weight=rows.row_weight,
            batch=int(BATCH * min(1.0, 8192 / np.diff(times.offsets).max())),
            times=times,
            chain=getattr(law, "law", law),
        )
