"""From rows to a fitted mixture: which search, on which rows, in which coordinates, and what is done on all rows."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Chunks
from majorant.data.measure import Measure
from majorant.data.patterns import patterns
from majorant.data.rows import Rows
from majorant.data.scratch import cached_as
from majorant.data.storage import mapped
from majorant.densities.coordinates import Coordinates, Frames, frames
from majorant.densities.gaussian import Gaussian
from majorant.densities.gaussian_gaps import GaussianGaps
from majorant.engine.checkpoint import entered
from majorant.engine.descent import descend
from majorant.engine.draws import thinned
from majorant.engine.loop import Solution, minimize
from majorant.engine.mixture import Mixture as Model
from majorant.engine.mixture import OnData, SingleRun
from majorant.engine.policies import BoundPolicy
from majorant.engine.trace import Trace
from majorant.models.gaussian_mixture.contest import LEAST_FLOOR, GaussianContest, Theta, contest_of, search
from majorant.models.gaussian_mixture.given import chosen_starts
from majorant.models.gaussian_mixture.missing import TOTAL_FLOOR, total_gaussian
from majorant.models.gaussian_mixture.regularity import Fault, Regularity
from majorant.models.gaussian_mixture.starts import KINDS
from majorant.search.contestants import Found, NamedStart, Run, entrants
from majorant.search.record import StartRecord
from majorant.solvers.covariance_types import COVARIANCES, Covariance, CovarianceType
from majorant.solvers.gaussian import Array, Mixture
from majorant.solvers.gaussian_missing import impute

LONG_RUN = 2000
"""Steps of a run of the search; `max_iter` is about the last one."""

MOST_POINTS = 10_000
"""The search goes over so many distinct rows at most; of more it takes a sample."""

MOST_PATTERNS = 64
"""The search goes over the observed entries themselves if they have no more patterns; over rows that were filled in
otherwise, as each pattern costs its own pass."""

STILL_PRECISION = float(np.sqrt(10 * TOTAL_FLOOR))
"""Beside missing entries, directions in which rows vary less than the total covariance can tell count as still."""


@dataclass(frozen=True)
class Settings:
    """The parameters of `GaussianMixture`, checked; arrays in the units of X."""

    n_components: int
    covariance_type: CovarianceType
    tol: float
    covariance_floor: float | None
    reg_covar: float
    max_iter: int
    n_init: int | None
    init_params: str
    weights: Array | None
    means: Array | None
    covariances: Array | None
    beta: float
    bounds: BoundPolicy | None
    verbose: int

    @property
    def is_given(self) -> bool:
        """Whether the user gave a part of the start, whose order is then kept."""
        return any(part is not None for part in (self.weights, self.means, self.covariances))

    @property
    def is_automatic(self) -> bool:
        """Whether starts are left to the search."""
        return self.init_params == "auto" and not self.is_given

    @property
    def by_engine(self) -> bool:
        """Whether bounds or a temperature were chosen, which are left to do their part."""
        return self.bounds is not None or self.beta != 1.0


@dataclass(frozen=True)
class Fit:
    """A fitted mixture.

    Attributes
    ----------
    mixture : Mixture
        In `coordinates`.
    coordinates : Coordinates
        Of rows in the units of X.
    log_likelihood : float
        Of the weighted rows, in the units of X.
    total_weight : float
    converged : bool
    log_likelihoods : tuple of float
        After every iteration of the last climb.
    regularity : Regularity
    best_degenerate : float or None
        The highest log-likelihood among degenerate solutions that were seen.
    records : tuple of StartRecord
    trace : Trace
        Of minus the log-likelihood.
    note : str
    frames : Frames
    """

    mixture: Mixture
    coordinates: Coordinates
    log_likelihood: float
    total_weight: float
    converged: bool
    log_likelihoods: tuple[float, ...]
    regularity: Regularity
    best_degenerate: float | None
    records: tuple[StartRecord, ...]
    trace: Trace
    note: str
    frames: Frames


def fit_mixture(rows: Rows, settings: Settings, precision: float, random: np.random.RandomState) -> Fit:
    """Fit a mixture to rows.

    Parameters
    ----------
    rows : Rows
    settings : Settings
    precision : float
        Rounding of the numbers of X, as a share of the spread of their column.
    random : numpy.random.RandomState

    Returns
    -------
    Fit
    """
    draws = np.random.default_rng(int(random.randint(2**31)))
    measure, kind = _searched(rows, draws), COVARIANCES[settings.covariance_type]
    weights = measure.weights / float(np.sort(measure.weights)[measure.n_points // 2])
    unit = rows.data.total_weight / float(weights.sum())
    is_whole = measure is rows.measure and not rows.is_stream
    total, observed = None, None
    if rows.n_missing:
        normal = total_gaussian(rows)
        total = (normal.means[0], normal.covariances[0])
        observed = measure.points if len(patterns(measure.points)) <= MOST_PATTERNS else None
        measure = replace(measure, points=impute(normal, measure.points))
        precision = max(precision, STILL_PRECISION)
    x = measure.points.astype(np.float64, copy=False)
    views = frames(x, weights, precision, total)
    if views.of_type(kind.name).rank == 0:
        return _one_point(rows, settings.n_components, kind, views)
    contest = contest_of(
        x,
        weights,
        views,
        kind,
        n_components=settings.n_components,
        beta=settings.beta,
        covariance_floor=settings.covariance_floor,
        noise=precision**2 + 1e-26,
        tol=settings.tol,
        max_iter=max(settings.max_iter, LONG_RUN) if settings.is_automatic else settings.max_iter,
        observed=observed,
        n_jobs=rows.data.n_jobs,
    )
    on_filled = rows.n_missing > 0 and observed is None
    trace: Trace | None = None
    if settings.is_automatic and not settings.by_engine and settings.max_iter > 0:
        raced = _searches(contest, settings, draws)
    else:
        policy = settings.bounds
        if policy is not None:  # it may speak of rows that are not in a sample
            policy = policy.renumbered(rows.measure.positions) if is_whole else None
        found, trace = _from_chosen_starts(contest, measure, settings, policy, draws)
        raced = [(contest, found)]
    where, found = min(
        raced, key=lambda one: (not one[1].best.is_regular, -one[0].log_likelihood(one[1].best.objective))
    )
    best = found.best
    offset = float(np.log(measure.scale)) * rows.entry_weight
    shift = where.coordinates.log_volume * rows.data.total_weight + offset
    theta, objectives, converged = best.theta, [best.objective * unit], best.converged
    trace = (trace or _of_objectives(best.path)).scaled(unit)
    ended = settings.by_engine and is_whole and not settings.reg_covar and not on_filled
    if settings.max_iter > 0 and not ended:
        theta, last, converged = _on_all_rows(rows, where, settings, best.theta)
        objectives = last["objective"].tolist()
        # The search's log-likelihoods are of all rows, or of another sample.
        trace = Trace([*trace, *last]) if is_whole else last
    elif len(trace):
        objectives = trace["objective"].tolist()
    regularity = where.judged(theta)
    if not found.records:
        end = replace(best, theta=theta, objective=objectives[-1] / unit, n_iter=len(objectives), converged=converged)
        raced = [(where, replace(found, records=(StartRecord(end.source, end.objective, end.n_iter, end.converged),)))]
    records, note = _told(raced, best.is_regular, unit, offset)
    if not is_whole and len(x) < rows.data.n_units:
        note += f" The search went over {len(x)} of {rows.data.n_units} rows, the last climb over all."
    if rows.n_missing:
        note += f" {_missing_sentence(rows, on_filled)}"
    seen = [one.log_likelihood(one.best_degenerate.objective) for one, _ in raced if one.best_degenerate is not None]
    return Fit(
        where.mixture_of(theta),
        where.coordinates.in_units(measure.scale, measure.origin),
        shift - objectives[-1],
        rows.data.total_weight,
        converged,
        tuple(shift - value for value in objectives),
        regularity,
        max(seen) * unit + offset if seen else None,
        records,
        _moved(trace, shift),
        note.strip(),
        views,
    )


def _searches(
    contest: GaussianContest, settings: Settings, draws: np.random.Generator
) -> list[tuple[GaussianContest, Found[Theta]]]:
    """So many searches; one where another would end at the same."""
    if contest.mixture.n_components == 1:
        start = contest.mixture.started(np.ones((1, 1, len(contest.weights))), contest.on(contest.whole).data)
        return [
            (
                contest,
                _found(contest.run(contest.whole, entrants([("all rows", start)]), contest.max_iter, contest.tol)),
            )
        ]
    n = 1 if contest.is_hopeless else settings.n_init or 1
    return [one for _ in range(n) for one in search(contest, draws, settings.verbose)]


def _found(runs: list[Run[Theta]]) -> Found[Theta]:
    """What runs that did not race lead to."""
    best = min(runs, key=lambda run: run.rank)
    kept = [run for run in runs if run.is_regular == best.is_regular]
    records = tuple(StartRecord(run.source, run.objective, run.n_iter, run.converged) for run in kept)
    return Found(best, records, (best,), n_degenerate=len(runs) - len(kept))


def _told(
    raced: list[tuple[GaussianContest, Found[Theta]]], is_regular: bool, unit: float, offset: float
) -> tuple[tuple[StartRecord, ...], str]:
    """The runs of all searches in the units of X, and in words what else there was."""
    records, n_degenerate = [], 0
    for contest, found in raced:
        n_degenerate += found.n_degenerate
        if found.best.is_regular != is_regular:
            n_degenerate += len(found.records)
            continue
        for record in found.records:
            value = contest.log_likelihood(record.objective) * unit + offset
            records.append(replace(record, objective=value, n_iter=max(record.n_iter, 1)))
    n_starts, n_perturbed = (sum(n) for n in zip(*(f.raced for _, f in raced), strict=True))
    note = ""
    if n_starts:
        perturbations = f" and {n_perturbed} perturbations" if n_perturbed else ""
        note = f"{n_starts} starts{perturbations} were raced; only those that led were followed to their end."
    if n_degenerate and is_regular:
        of = n_degenerate + len(records)
        note += f" {n_degenerate} of {of} runs ended at degenerate solutions, which are no answers: left out here."
    return tuple(records), note


def _one_point(rows: Rows, k: int, kind: Covariance, views: Frames) -> Fit:
    """Rows that are all equal: components that cannot be told apart, of a width that is made up."""
    mixture = Mixture(np.full(k, 1.0 / k), np.zeros((k, 0)), np.zeros(kind.shape(k, 0)), kind.name)
    coordinates = views.of_type(kind.name).in_units(rows.measure.scale, rows.measure.origin)
    total = rows.data.total_weight
    value = coordinates.log_volume * total
    regularity = Regularity(Fault.FLOORED, np.zeros(k), np.full(k, 1.0 / k), 0)
    record, trace = StartRecord("all rows", value, 1, True), _of_objectives([-value])
    return Fit(mixture, coordinates, value, total, True, (value,), regularity, value, (record,), trace, "", views)


def _of_objectives(values: Any) -> Trace:
    """Minus the log-likelihoods of EM: its bounds touch."""
    return Trace([{"objective": v, "bound": v, "gap": 0.0, "exploring": 0.0} for v in values])


def _missing_sentence(rows: Rows, on_filled: bool) -> str:
    n_entries = rows.n_rows * len(rows.variances)
    share = f"{rows.n_missing} of {n_entries} entries ({rows.n_missing / n_entries:.1%})"
    said = f"{share} are missing, taken to be so at random."
    if on_filled:
        return f"{said} The search had them filled in by a normal distribution, the last climb did not."
    return said


def _searched(rows: Rows, draws: np.random.Generator) -> Measure:
    """The measure that is searched: that of the rows, or a sample of it."""
    measure = rows.measure
    if measure.n_points <= MOST_POINTS:
        return measure
    met, times = thinned(measure.weights, MOST_POINTS, draws)
    return Measure(measure.points[met], times.astype(np.float64), met, measure.origin, measure.scale)


def _moved(trace: Trace, shift: float) -> Trace:
    """A trace of minus log-likelihoods that are all higher by `shift`."""
    return Trace([{n: v - shift if n in ("objective", "bound") else v for n, v in row.items()} for row in trace])


# Starts that were chosen


def _from_chosen_starts(
    contest: GaussianContest,
    measure: Measure,
    settings: Settings,
    policy: BoundPolicy | None,
    draws: np.random.Generator,
) -> tuple[Found[Theta], Trace | None]:
    """The best of the starts that the user chose; a single one is left to the last climb, with no record yet."""
    starts = _starts(contest, measure, settings, draws)
    if settings.by_engine:
        solutions = [_by_engine(contest, settings, policy, theta, int(draws.integers(2**31))) for _, theta in starts]
        runs = [
            Run(
                source,
                theta,
                solution.theta,
                solution.objective,
                solution.n_iter,
                solution.converged,
                Fault(contest.judged(solution.theta).fault).word,
            )
            for (source, theta), solution in zip(starts, solutions, strict=True)
        ]
        found = _found(runs)
        chosen = next(i for i, run in enumerate(runs) if run is found.best)
        return found, solutions[chosen].trace
    is_single = len(starts) == 1
    max_iter = 0 if is_single else contest.max_iter
    found = _found(contest.run(contest.whole, entrants(starts), max_iter, contest.tol))
    return (replace(found, records=()) if is_single else found), None


def _starts(
    contest: GaussianContest, measure: Measure, settings: Settings, draws: np.random.Generator
) -> list[NamedStart[Theta]]:
    n_init = (settings.n_init or 1) if settings.max_iter > 0 else 1
    if settings.is_automatic and settings.max_iter > 0:
        plan = replace(contest.plan, n_starts=settings.n_init or len(KINDS))
        every = replace(contest, plan=plan, kinds=KINDS)
        return every.starts(every.whole, True, draws)
    means = None if settings.means is None else (settings.means - measure.origin) * measure.scale
    covariances = None if settings.covariances is None else settings.covariances * measure.scale**2
    given = settings.weights, means, covariances
    seeds = draws.integers(2**31, size=n_init).tolist()
    return list(chosen_starts(contest, measure, settings.init_params, given, seeds))


def _by_engine(
    contest: GaussianContest, settings: Settings, policy: BoundPolicy | None, start: Theta, seed: int
) -> Solution[Theta]:
    """A start followed by the engine's loop."""
    data = Chunks(*contest.columns, weights=contest.weights)
    tol = max(settings.tol, 1e-15)
    return minimize(
        SingleRun(contest.mixture),
        data,
        deepcopy(policy),
        theta=start,
        tol=tol,
        max_iter=settings.max_iter,
        seed=seed,
    )


# All rows


def _on_all_rows(rows: Rows, contest: GaussianContest, settings: Settings, start: Theta) -> tuple[Theta, Trace, bool]:
    """The solution of the search, gone on from on all rows; with `reg_covar` by scikit-learn's M-step.

    Returns parameters, a trace of objectives in the coordinates, and whether it converged.
    """
    coordinates, kind, dtype = contest.coordinates, contest.kind, rows.dtype

    def to_u(x: NDArray[np.floating]) -> NDArray[np.floating]:
        return np.ascontiguousarray(coordinates.of(x), dtype=dtype)

    if rows.n_missing:
        data = rows.data
    elif rows.is_stream:
        data = Chunks(cached_as(rows.data.source, mapped(rows.data.source, to_u)), n_jobs=rows.data.n_jobs)
    else:
        data = Chunks(to_u(rows.measure.points), weights=rows.measure.weights, n_jobs=rows.data.n_jobs)
    floor, added = contest.model.floor, None
    if settings.reg_covar > 0:
        added = _added(coordinates, settings.reg_covar * rows.measure.scale**2, kind)
        if settings.covariance_floor is None:  # what is added is a floor of its own
            floor = LEAST_FLOOR if kind.has_matrices and contest.model.d > 1 else 1e-30
    model = Gaussian(kind, contest.model.d, floor, single=dtype == np.float32, added=added)
    density = GaussianGaps(model, coordinates) if rows.n_missing else model
    mixture: Model = replace(contest.mixture, density=density)
    if settings.by_engine and added is None:
        policy = deepcopy(settings.bounds) if rows.is_stream else None
        tol = max(settings.tol, 1e-15)
        solution = minimize(SingleRun(mixture), data, policy, theta=start, tol=tol, max_iter=settings.max_iter)
        return solution.theta, solution.trace, solution.converged
    tol, max_iter = settings.tol, settings.max_iter
    entry = entered(loop="descent", start=start, rows=data.n_units, tol=tol, max_iter=max_iter)
    ends = descend(OnData(mixture, data), start, tol=tol, max_iter=max_iter, accelerate=added is None, entry=entry)
    return ends.theta, _of_objectives(ends.paths[0]), bool(ends.converged[0])


def _added(coordinates: Coordinates, reg_covar: float, kind: Covariance) -> Array:
    """`reg_covar` times the identity, in other coordinates."""
    return kind.mapped(reg_covar * kind.identity(len(coordinates.forward)), coordinates.forward)
