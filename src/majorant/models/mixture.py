"""The base estimator of mixtures: a model adds its density, its law, and the columns that they read."""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import replace
from inspect import signature
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from majorant._order import ordered
from majorant._validation import (
    check_choice,
    check_enough_rows,
    check_integer,
    check_n_init,
    check_positive,
    check_real,
    check_verbose,
    levels_to_user,
    seed_of,
)
from majorant.data.chunks import Chunks
from majorant.data.rows import drawn_rows
from majorant.data.storage import StoredRows, stored_rows
from majorant.data.units import blocks_of, distinct_units, row_weight
from majorant.engine.checkpoint import entered
from majorant.engine.descent import Ends, descend
from majorant.engine.loop import Solution, minimize
from majorant.engine.mixture import Array, Mixture, OnData, SingleRun
from majorant.engine.policies import BoundPolicy, check_bounds
from majorant.engine.threads import one_thread
from majorant.engine.trace import Trace, touching
from majorant.laws.separation import separated
from majorant.models.edges import at_edges
from majorant.models.fitted_mixture import FittedMixture
from majorant.models.mixture_rows import Rows, estimates_of_law, gating_width, of_weighted_rows, refuse_beside_stream
from majorant.models.mixture_summary import degenerate_sentence, fewer_parts, in_its_words, renumbered
from majorant.models.undetermined_covariances import apart, of_never_together, of_undetermined, undetermined
from majorant.models.unlinked import of_unlinked_columns, unlinked_columns
from majorant.search.contest import MixtureContest
from majorant.search.contestants import Found, NamedStart, Run, entrants, found_of
from majorant.search.effort import EFFORTS, Effort, Plan
from majorant.search.race import Race
from majorant.search.record import SearchReport, StartRecord, cut_short


class MixtureEstimator(FittedMixture):
    r"""A mixture, fitted by a search for the best regular optimum.

    .. math:: \ell = \sum_i w_i \log \sum_k \pi_k f(x_i; \theta_k)

    Parameters
    ----------
    n_components : int, default=1
        Number of components.
    tol : float, default=1e-8
        A run has converged when it can gain no more than this in log-likelihood per row, as its last steps predict.
    max_iter : int, default=2000
        Largest number of steps of EM of each run.
    n_init : "auto" or int, default="auto"
        "auto" searches, or with `bounds` or `beta` makes six starts. A number is that of starts, and nothing else.
    effort : {"fast", "default", "best"}, default="default"
        How long a search goes on: one round of starts; until the best solution keeps coming back; up to five times
        as long.
    beta : float, default=1.0
        Inverse temperature of the responsibilities; at infinity rows belong to one component (classification EM).
    bounds : bound policy, optional
        How bounds are chosen; by default the tightest, which is EM.
    warm_start : bool, default=False
        Whether a fit begins at the solution of the last one, if that was of estimates of the same shapes.
    random_state : int, RandomState instance or None, default=None
        Seed of starts, perturbations and random bounds.
    verbose : int, default=0
        1 shows runs as they end, on stderr.
    n_jobs : int, optional
        Threads that work on blocks of rows at a time; the result does not depend on it.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Shares of the components, the largest first; with `component_labels`, component k has label k.
    gating_coef_ : ndarray of shape (n_components, 1 + n_covariates)
        With `gating`: logits of the weights against the first component, a constant and then covariates in standard
        deviations from their mean, ``(gating - gating_center_) / gating_scale_``. Divided by ``gating_scale_`` they
        are per unit of a covariate.
    gating_center_, gating_scale_ : ndarray of shape (n_covariates,)
    log_likelihood_ : float
        Weighted log-likelihood of the rows of the fit.
    n_parameters_ : int
        Free parameters.
    converged_ : bool
    n_iter_ : int
        Steps of EM of the run that is kept.
    regular_ : bool
        Whether the solution is regular; if not, ``degeneracy_`` says why.
    degeneracy_ : str
    separated_ : str
        Which columns separate the components, or the target on lines, so that coefficients run to infinity; or empty.
    never_together_ : list of [str, str]
        Columns of a covariance that no row has cells of both, so that the rows do not determine it.
    unlinked_ : tuple of tuple of str
        Groups of columns that no row links, so that which component of one is which of another may be chance.
    is_grouped_ : bool
        Whether rows of one group share a component; criteria then need the groups.
    is_labelled_ : bool
        Whether components of some rows were known; criteria and errors then need them.
    search_ : SearchReport
    trace_ : Trace
        Minus the log-likelihood, step by step.
    """

    least_size = 1.0
    """Smallest number of rows of a regular component."""

    def __init__(
        self,
        n_components: int = 1,
        *,
        tol: float = 1e-8,
        max_iter: int = 2000,
        n_init: str | int = "auto",
        effort: Effort = "default",
        beta: float = 1.0,
        bounds: BoundPolicy | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.effort = effort
        self.beta = beta
        self.bounds = bounds
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    # Fitting

    def _plan(self) -> Plan:
        """Return the search settings."""
        return Plan(least_rounds=max(2, min(self.n_components, 6)))

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        gating: Any = None,
        component_labels: Any = None,
    ) -> Self:
        """Find the mixture.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks
            Rows; missing cells (NaN) do not enter their row's density. ``majorant.open_rows(path)`` is read block by
            block: the search goes over a sample, the last descent over all rows.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights, not all zero; whole numbers count rows.
        groups : array-like of shape (n_samples,), optional
            Rows of one group have the same component.
        gating : array-like of shape (n_samples, n_covariates), optional
            Covariates on which the weights of the components depend: numbers, and in a data frame text.
        component_labels : array-like of shape (n_samples,), optional
            Components that are known, from 0; -1 where one is not.

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
            self._check_parameters()
            draws = np.random.default_rng(seed_of(self.random_state))
            source = stored_rows(X)
            if source is None:
                rows, law = self._rows_in_memory(X, sample_weight, groups, gating, component_labels)
                data = Chunks(blocks_of(rows.columns, rows.weights, rows.groups), n_jobs=self.n_jobs)
            else:
                refuse_beside_stream(groups=groups, gating=gating, component_labels=component_labels)
                rows, law, data = self._rows_streamed(source, sample_weight, draws)
            self._prepare(rows)
            self._fit(law, rows, data, draws)
        return self

    def _look_at(self, source: StoredRows) -> None:
        """Learn what rows of a stream can only be read with, in a pass over them."""

    def _prepare(self, rows: Rows) -> None:
        """Learn what the density needs of the distinct rows of the fit, which are in memory."""

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, low=1)
        check_integer("max_iter", self.max_iter, low=1)
        check_real("tol", self.tol, low=0.0)
        check_n_init(self.n_init)
        check_choice("effort", self.effort, list(EFFORTS))
        check_positive("beta", self.beta)
        check_verbose(self.verbose)
        check_bounds(self.bounds)

    def _rows_streamed(
        self, source: StoredRows, sample_weight: Any, draws: np.random.Generator
    ) -> tuple[Rows, Any, Chunks]:
        """Return a sample in memory for the search, and all rows."""
        n = self._check_stored(source, reset=True)
        check_enough_rows(n, "n_components", self.n_components, "component")
        source.weigh(sample_weight)
        self._look_at(source)
        chosen = drawn_rows(n, source.n_features, int(draws.integers(2**31)))
        parts, weights = [], []
        for block in source.blocks():
            at = slice(*np.searchsorted(chosen, [block.first, block.first + len(block)]))
            own = chosen[at] - block.first
            parts.append(self._read_block(block.columns[0][own]))
            weights.append(np.ones(len(own)) if block.weights is None else block.weights[own])
        sample, w = np.concatenate(parts), np.concatenate(weights)
        columns = self._checked_columns(sample, chosen, fitting=True)
        units = distinct_units(columns, w if source.has_weights else None)
        data = Chunks(self._columns_of(source), n_jobs=self.n_jobs)
        unit = row_weight(w if source.has_weights else None)
        rows = Rows(units.columns, units.weights, units.positions, unit, source.total_weight / unit)
        return rows, self._plain_law(), data

    def _fit(self, law: Any, rows: Rows, data: Chunks, draws: np.random.Generator) -> None:
        contest, found, ends, on = self._ended(self._contest(law, rows, data, draws), rows, data, draws)
        self._keep(contest, found, ends, on, rows)
        for sentence in self._warnings(contest):
            warnings.warn(sentence, ConvergenceWarning, stacklevel=levels_to_user())

    def _ended(
        self, contest: Any, rows: Any, data: Chunks, draws: np.random.Generator
    ) -> tuple[Any, Found[Any], Ends[Any], OnData]:
        """Return what was found, where, and the end of the last descent on all rows."""
        self.trace_ = Trace([])
        if self._is_bounded:
            found = self._by_bounds(contest, rows, data, draws)
        else:
            contest, found = self._searched(contest, draws)
        on = self._on_all_rows(contest, rows, data)
        ends = self._ends(contest, found, on)
        ends = ends if self._is_bounded else at_edges(on, ends, tol=self._tolerance, max_iter=int(self.max_iter))
        return contest, found, ends, on

    def _contest(self, law: Any, rows: Rows, data: Chunks, draws: np.random.Generator) -> MixtureContest:
        """Return the race of mixtures on rows in memory."""
        mixture = Mixture(self._density(), law, int(self.n_components), float(self.beta))
        contest = MixtureContest(
            mixture=mixture,
            columns=rows.columns,
            points=self._points(rows),
            weights=rows.weights,
            plan=self._plan(),
            tol=self._tolerance,
            max_iter=int(self.max_iter),
            data=lambda *columns, weights: Chunks(blocks_of(columns, weights, rows.groups), n_jobs=self.n_jobs),
            least_size=self.least_size,
            row_weight=rows.row_weight,
        )
        plan = contest.plan.within(contest.n_raced * mixture.n_parameters)
        contest.plan = plan.at(self.effort).of_starts(self.n_init)
        return contest

    def _points(self, rows: Rows) -> Array:
        """Return the rows as starts see them: numbers of like spread, none missing."""
        return standardised(rows.columns[0], rows.weights)

    def _on_all_rows(self, contest: Any, rows: Rows, data: Chunks) -> OnData:
        """Return the mixture on all rows, on which the last descent goes."""
        return OnData(contest.mixture, data)

    def _chosen_starts(self, contest: Any, draws: np.random.Generator) -> list[NamedStart[Any]]:
        """Return the starts that replace a search: the last solution, on a warm start, if it is one of such rows."""
        if not self.warm_start or not hasattr(self, "weights_") or len(self.weights_) != self.n_components:
            return []
        mixture = contest.mixture
        even = np.full((1, mixture.n_components, len(contest.weights)), 1 / mixture.n_components)
        new = mixture.started(even, contest.on(contest.whole).data)
        for name, values in mixture.density.describe(new.density).items():
            if name not in self.estimate_names_ or getattr(self, f"{name}_").shape != values.shape[1:]:
                return []
        law = self._law_before(mixture.law)
        return [("warm start", replace(self._theta(), law=new.law if law is None else law))]

    def _law_before(self, law: Any) -> Any:
        """Return the parameters of the law in the fit before this one; None if that had other covariates."""
        known = self.gating_coef_.shape if "gating_coef" in self.estimate_names_ else (self.n_components, 0)
        return self._theta().law if known == (self.n_components, gating_width(law)) else None

    def _searched(self, contest: Any, draws: np.random.Generator) -> tuple[Any, Found[Any]]:
        """Run the search; return where it ended and what it found. A single start is left to the last descent."""
        starts = self._chosen_starts(contest, draws)
        if not starts and self.n_components == 1:
            one = np.ones((1, 1, len(contest.weights)))
            starts = [("all rows", contest.mixture.started(one, contest.on(contest.whole).data))]
        if not starts:
            return self._raced(contest, draws)
        is_single = len(starts) == 1
        max_iter = 0 if is_single else contest.max_iter
        found = found_of(contest.run(contest.whole, entrants(starts), max_iter, contest.tol))
        return contest, replace(found, records=()) if is_single else found

    def _raced(self, contest: Any, draws: np.random.Generator) -> tuple[Any, Found[Any]]:
        return contest, Race(contest, self.verbose).find(draws)

    @property
    def _is_bounded(self) -> bool:
        """Whether the user chose bounds or a temperature, which replace the race."""
        return self.bounds is not None or self.beta != 1.0

    @property
    def _tolerance(self) -> float:
        """Tolerance of the remaining gain per row."""
        return float(self.tol)

    def _by_bounds(self, contest: Any, rows: Rows, data: Chunks, draws: np.random.Generator) -> Found[Any]:
        """Run the engine's loop from starts of every kind; on a sample, by the tightest bounds."""
        policy = self._policy(rows) if contest.is_of(data) else None
        starts = self._chosen_starts(contest, draws)
        if not starts:
            n_starts = 6 if isinstance(self.n_init, str) else int(self.n_init)
            every = replace(contest, plan=replace(contest.plan, n_starts=n_starts))
            starts = every.starts(every.whole, True, draws)
        on = contest.on(contest.whole)
        solutions = [self._minimised(on, policy, theta, int(draws.integers(2**31))) for _, theta in starts]
        runs = []
        for (source, theta), end in zip(starts, solutions, strict=True):
            run = contest.run(contest.whole, [Run(source, theta, end.theta)], 0, 0.0)[0]
            runs.append(replace(run, objective=end.objective, n_iter=end.n_iter, converged=end.converged))
        found = found_of(runs)
        self.trace_ = next(end.trace for end, run in zip(solutions, runs, strict=True) if run is found.best)
        return found

    def _policy(self, rows: Rows) -> BoundPolicy | None:
        """Return the bound policy as the distinct rows are numbered."""
        return None if self.bounds is None else self.bounds.renumbered(rows.positions)

    def _minimised(self, on: OnData, policy: BoundPolicy | None, theta: Any, seed: int = 0) -> Solution[Any]:
        return minimize(
            SingleRun(on.mixture),
            on.data,
            deepcopy(policy),
            theta=theta,
            tol=max(self._tolerance, 1e-15),
            max_iter=int(self.max_iter),
            seed=seed,
        )

    def _ends(self, contest: Any, found: Found[Any], on: OnData) -> Ends[Any]:
        """Continue the best run on all rows; its steps go into the trace."""
        start, is_of_all = found.best.theta, contest.is_of(on.data)
        unit = on.total_weight / contest.total_weight
        if self._is_bounded:
            end: Run[Any] | Solution[Any] = found.best
            if is_of_all:
                self.trace_ = self.trace_.scaled(unit)
            else:
                end = solution = self._minimised(on, self.bounds, start)
                self.trace_ = solution.trace
            return Ends(end.theta, on.seen(end.theta), np.array([end.n_iter]), np.array([end.converged]))
        used = is_of_all * (not found.best.converged) * found.best.n_iter
        tol, max_iter = self._tolerance, max(int(self.max_iter) - used, 0)
        entry = entered(loop="mixture", start=start, rows=on.data.n_units, tol=tol, max_iter=max_iter)
        ends = descend(on, start, tol=tol, max_iter=max_iter, entry=entry)
        path = [unit * value for value in found.best.path] if is_of_all else []
        self.trace_ = touching([*path, *ends.paths[0]] or ends.objective.tolist())
        return ends

    def _keep(self, contest: Any, found: Found[Any], ends: Ends[Any], on: OnData, rows: Rows) -> None:
        """Set the fitted attributes, the largest component first."""
        if not ends.objective[0] < np.inf:
            found_is = "-inf: no solution gives every row a density" if ends.objective[0] == np.inf else "not a number"
            raise ValueError(f"the log-likelihood is {found_is}; change the rows, or what is given of the model")
        mixture = on.mixture
        shares = mixture.law.shares(ends.theta.law, ends.seen.statistics.law)[0]
        keeps_order = mixture.law.numbers_states or found.best.source in ("warm start", "given")
        first = next(iter(mixture.density.describe(ends.theta.density).values()))[0].reshape(len(shares), -1)
        rounded = -np.round(shares, 9)  # so that the last digits decide nothing
        order = np.arange(len(shares)) if keeps_order else ordered(rounded, first)
        self._keep_estimates(contest, ends.theta, shares, order)
        if "gating_coef" not in self.estimate_names_:  # of a fit before this one
            for name in ("gating_coef_", "gating_center_", "gating_scale_", "gating_names_in_", "covariates_"):
                self.__dict__.pop(name, None)
        self.n_parameters_ = mixture.n_parameters
        self.n_rows_ = rows.n_rows
        self.is_grouped_ = rows.groups is not None
        self.is_labelled_ = mixture.law.numbers_states
        self.converged_ = bool(ends.converged[0])
        self.degeneracy_ = of_weighted_rows(self._degeneracy(contest, ends, order), rows.row_weight)
        self.regular_ = not self.degeneracy_
        self.separated_ = separated(on, ends.theta, self._in_words(getattr(self, "gating_names_in_", [])))
        self.never_together_ = apart(on.data, self._matrices())
        self.unlinked_ = unlinked_columns(on, self._cell_names(), self._feature_names())
        self.n_iter_ = len(self.trace_)
        unit = on.total_weight / contest.total_weight
        self.log_likelihood_ = -float(ends.objective[0]) - unit * contest.constant
        self.trace_ = self.trace_.shifted(unit * contest.constant) if contest.constant else self.trace_
        records = tuple(replace(record, objective=unit * contest.shown(record.objective)) for record in found.records)
        records = records or (StartRecord(found.best.source, self.log_likelihood_, self.n_iter_, self.converged_),)
        certain = self.n_components == 1 and mixture.density.exact and self.bounds is None
        self.search_ = SearchReport(
            records,
            "log-likelihood",
            "max",
            note=self._note(contest, found, on, rows).strip(),
            raced=found.raced,
            n_degenerate=found.n_degenerate,
            certain="One component is fitted in closed form, so no better one exists." if certain else "",
            effort=self.effort,
        )

    def _keep_estimates(self, contest: Any, theta: Any, shares: Array, order: NDArray[np.intp]) -> None:
        """Set the estimates of the components, in a given order."""
        mixture = contest.mixture
        estimates = {name: values[0][order] for name, values in mixture.density.describe(theta.density).items()}
        estimates |= estimates_of_law(mixture.law, theta.law, order)
        for name, values in estimates.items():
            setattr(self, f"{name}_", values)
        self.estimate_names_ = list(estimates)
        self._check_recalled()
        self.weights_ = shares[order]

    def _degeneracy(self, contest: Any, ends: Ends[Any], order: NDArray[np.intp]) -> str:
        """Return why the solution does not count; empty where it does."""
        said = renumbered(self, str(contest.judged(ends)), order.tolist())
        self.dependent_, self.constant_ = undetermined(self._matrices() * bool(said), contest.columns, contest.weights)
        return of_undetermined(self.dependent_, self.constant_) or said

    def _note(self, contest: Any, found: Found[Any], on: OnData, rows: Rows) -> str:
        """Return what was searched, in words."""
        excluded = found.excluded if found.n_degenerate and self.regular_ else None
        told = "" if excluded is None else f" A solution was left out: {in_its_words(self, excluded.degenerate)}."
        return f"{found.told}{told}"

    def _warnings(self, contest: Any) -> list[str]:
        """Return the warnings of the fit."""
        said = [] if self.regular_ else [degenerate_sentence(self)]
        said += filter(None, [self.separated_, of_never_together(self.never_together_), of_unlinked_columns(self)])
        if not self.converged_ and self.max_iter > 0:
            said.append(cut_short(self.max_iter))
        return said

    def _advice(self) -> str:
        """Return what to do where no solution is regular."""
        if self.dependent_ or self.constant_:
            one = f"one of {', '.join(self.dependent_)}" if self.dependent_ else ""
            return f"leave out {' and '.join(filter(None, [', '.join(self.constant_), one]))}"
        return fewer_parts(self) if self.n_components > 1 else "more distinct rows are needed"

    def _check_recalled(self) -> None:
        """Refuse a density whose `recalled` does not give the parameters back."""
        density = self._density()
        again = density.describe(self._theta().density)
        for name, values in again.items():
            expected = (1, *np.shape(getattr(self, f"{name}_")))
            if np.shape(values) != expected:
                raise ValueError(
                    f"{type(density).__name__}.recalled must give a batch of one run, from which describe makes "
                    f"{name!r} of shape {expected}; got {np.shape(values)}"
                )

    def fit_predict(self, X: Any, y: Any = None, **fit_params: Any) -> NDArray[np.intp]:
        """Fit with the arguments of `fit`, and return the component of each row."""
        taken = signature(self.predict).parameters
        known = {name: value for name, value in fit_params.items() if name in taken}
        return np.asarray(self.fit(X, **fit_params).predict(X, **known))


def standardised(x: NDArray[Any], weights: Array) -> Array:
    """Return the rows in standard deviations of their columns, missing cells at the mean."""
    table = np.asarray(x, dtype=np.float64).reshape(len(x), -1)
    there = ~np.isnan(table)
    filled = np.where(there, table, 0.0)
    mass = np.maximum(np.einsum("i,ij->j", weights, there), 1e-300)
    mean = np.einsum("i,ij->j", weights, filled) / mass
    away = np.where(there, filled - mean, 0.0)
    scale = np.sqrt(np.einsum("i,ij,ij->j", weights, away, away) / mass)
    return np.asarray(away / np.where(scale > 0, scale, 1.0))
