"""From rows to a fitted mixture: which search, on which rows, in which coordinates, and what is done on all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from majorant._progress import end_of_starts
from majorant.data.chunks import Block, Chunks
from majorant.data.measure import Measure
from majorant.data.patterns import patterns
from majorant.data.rows import Rows
from majorant.data.scratch import cached_as
from majorant.data.storage import mapped
from majorant.engine.checkpoint import entered
from majorant.engine.draws import thinned
from majorant.engine.loop import minimize
from majorant.engine.policies import BoundPolicy
from majorant.engine.problem import Sweep
from majorant.engine.trace import Trace
from majorant.models.gaussian_mixture.coordinates import Coordinates, Frames, frames
from majorant.models.gaussian_mixture.descent import Climb, Step, climb
from majorant.models.gaussian_mixture.family import GaussianFamily
from majorant.models.gaussian_mixture.given import chosen_starts
from majorant.models.gaussian_mixture.missing import TOTAL_FLOOR, MissingFamily, total_gaussian
from majorant.models.gaussian_mixture.problem import LEAST_FLOOR, Candidate, Ledger, Problem, history
from majorant.models.gaussian_mixture.regularity import Fault, Regularity
from majorant.models.gaussian_mixture.search import Search, one_hot
from majorant.models.gaussian_mixture.starts import KINDS, partitions
from majorant.search.record import StartRecord
from majorant.solvers.covariance_types import COVARIANCES, CovarianceType
from majorant.solvers.gaussian import Array, Mixture
from majorant.solvers.gaussian_missing import impute

LONG_CLIMB = 1000
"""Iterations of a climb of the search; `max_iter` is about the last one."""

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
    measure = _searched(rows, draws)
    weights = measure.weights / float(np.sort(measure.weights)[measure.n_points // 2])
    unit = rows.data.total_weight / float(weights.sum())
    is_whole = measure is rows.measure and not rows.is_stream
    total, observed = None, None
    if rows.n_missing:
        normal = total_gaussian(rows)
        total = (normal.means[0], normal.covariances[0])
        if len(patterns(measure.points)) <= MOST_PATTERNS:
            observed = Chunks(measure.points, weights=weights, n_jobs=rows.data.n_jobs)
        measure = replace(measure, points=impute(normal, measure.points))
        precision = max(precision, STILL_PRECISION)
    x = measure.points.astype(np.float64, copy=False)
    problem = Problem(
        x,
        weights,
        frames(x, weights, precision, total),
        settings.n_components,
        settings.covariance_type,
        settings.covariance_floor,
        precision**2 + 1e-26,
        settings.tol,
        max(settings.max_iter, LONG_CLIMB) if settings.is_automatic else settings.max_iter,
        observed,
    )
    if problem.own.rank == 0:
        return _one_point(rows, problem)
    offset = float(np.log(measure.scale)) * rows.entry_weight
    ledger = Ledger(unit, offset, settings.verbose)
    on_filled = rows.n_missing > 0 and observed is None
    policy = settings.bounds
    if policy is not None:  # it may speak of rows that are not in a sample
        policy = policy.renumbered(rows.measure.positions) if is_whole else None
    note = ""
    if settings.is_automatic and not settings.by_engine and settings.max_iter > 0:
        is_easy = problem.n_components == 1 or problem.is_hopeless  # another search would end at the same
        for _ in range(1 if is_easy else settings.n_init or 1):
            Search(problem, ledger).find(draws)
        best = ledger.winner
        if ledger.n_raced > len(ledger.records):
            perturbations = f" and {ledger.n_perturbed} perturbations" if ledger.n_perturbed else ""
            note = f"{ledger.n_raced} starts{perturbations} were raced; only those that led were followed to their end."
    else:
        best = _from_chosen_starts(problem, ledger, measure, settings, policy, draws)
    if ledger.regular and ledger.degenerate:
        n, of = len(ledger.degenerate), len(ledger.degenerate) + len(ledger.regular)
        note = f"{note} {n} of {of} runs ended at degenerate solutions, which are no answers: left out here.".strip()
    last = best
    ended = settings.by_engine and is_whole and not settings.reg_covar and not on_filled
    if settings.max_iter > 0 and not ended:
        last = _on_all_rows(rows, problem, settings, best, unit)
        if ledger.best is None:
            ledger.offer(last, best.source)
    end_of_starts(settings.verbose)
    if not is_whole and len(x) < rows.data.n_units:
        searched = f"The search went over {len(x)} of {rows.data.n_units} rows, the last climb over all."
        note = f"{note} {searched}".strip()
    if rows.n_missing:
        note = f"{note} {_missing_sentence(rows, on_filled)}".strip()
    # The search's log-likelihoods are of all rows, or of another sample.
    trace = last.trace if last is best or not is_whole else Trace([*best.trace, *last.trace])
    coordinates = last.coordinates.in_units(measure.scale, measure.origin)
    degenerate = ledger.best_degenerate
    shift = last.coordinates.log_volume * rows.data.total_weight + offset
    return Fit(
        last.end.mixture,
        coordinates,
        last.log_likelihood * unit + offset,
        rows.data.total_weight,
        last.end.converged,
        tuple(v * unit + shift for v in last.end.log_likelihoods),
        last.regularity,
        None if degenerate is None else degenerate.log_likelihood * unit + offset,
        ledger.records,
        _moved(trace.scaled(unit), shift),
        note,
        problem.frames,
    )


def _one_point(rows: Rows, problem: Problem) -> Fit:
    """Rows that are all equal: components that cannot be told apart, of a width that is made up."""
    k, measure, kind = problem.n_components, rows.measure, COVARIANCES[problem.covariance_type]
    mixture = Mixture(np.full(k, 1.0 / k), np.zeros((k, 0)), np.zeros(kind.shape(k, 0)), kind.name)
    coordinates = problem.own.in_units(measure.scale, measure.origin)
    total = rows.data.total_weight
    value = coordinates.log_volume * total
    regularity = Regularity(Fault.FLOORED, np.zeros(k), np.full(k, 1.0 / k), 0)
    record = StartRecord("all rows", value, 1, True)
    trace = Trace([{"objective": -value, "bound": -value, "gap": 0.0, "exploring": 0.0}])
    return Fit(
        mixture, coordinates, value, total, True, (value,), regularity, value, (record,), trace, "", problem.frames
    )


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
    problem: Problem,
    ledger: Ledger,
    measure: Measure,
    settings: Settings,
    policy: BoundPolicy | None,
    draws: np.random.Generator,
) -> Candidate:
    """The best of the starts that the user chose; a single one is left to the last climb, and not offered yet."""
    u = problem.own.of(problem.points)
    starts = list(_starts(problem, u, measure, settings, draws))
    if len(starts) == 1 and not settings.by_engine:
        source, start = starts[0]
        run = problem.run_em(u, problem.own, [start], 0)[0]
        end = Climb(start, run.log_likelihood, np.zeros(start.n_components, dtype=bool), False, ())
        candidate = replace(problem.candidate(problem.own, end, Trace()), source=source)
        if settings.max_iter == 0:
            ledger.offer(candidate, source)
        return candidate
    for source, start in starts:
        ledger.n_raced += 1
        if settings.by_engine:
            seed = int(draws.integers(2**31))
            candidate = _by_engine(problem, u, settings, policy, start, seed)
        else:
            candidate = problem.climbed(u, problem.own, start)
        ledger.offer(candidate, source)
    return ledger.winner


def _starts(
    problem: Problem, u: Array, measure: Measure, settings: Settings, draws: np.random.Generator
) -> Iterator[tuple[str, Mixture]]:
    n_init = (settings.n_init or 1) if settings.max_iter > 0 else 1
    if settings.is_automatic and settings.max_iter > 0:
        for source, labels in partitions(problem.views(u), problem.n_components, settings.n_init or len(KINDS), draws):
            q = one_hot(labels, problem.n_components)
            run = problem.run_em(u, problem.own, [q], 0)[0]
            yield source, run.mixture
        return
    given_means = None if settings.means is None else (settings.means - measure.origin) * measure.scale
    given_covariances = None if settings.covariances is None else settings.covariances * measure.scale**2
    yield from chosen_starts(
        problem,
        u,
        measure,
        settings.init_params,
        (settings.weights, given_means, given_covariances),
        draws.integers(2**31, size=n_init).tolist(),
    )


def _by_engine(
    problem: Problem, u: Array, settings: Settings, policy: BoundPolicy | None, start: Mixture, seed: int
) -> Candidate:
    """A start followed by the engine's loop."""
    model = GaussianFamily(problem.n_components, u.shape[1], problem.covariance_type, problem.floor, settings.beta)
    data = Chunks(u, weights=problem.weights)
    family: GaussianFamily | MissingFamily = model
    if problem.observed is not None:
        family, data = MissingFamily(model, problem.own), problem.observed
    solution = minimize(
        family,
        data,
        deepcopy(policy),
        theta=start,
        tol=max(settings.tol, 1e-15),
        max_iter=settings.max_iter,
        seed=seed,
    )
    values = tuple(float(-v) for v in solution.trace["objective"])
    theta = solution.theta
    end = Climb(theta, -solution.objective, np.asarray(family.floored(theta)), solution.converged, values)
    return problem.candidate(problem.own, end, solution.trace)


# All rows


def _on_all_rows(rows: Rows, problem: Problem, settings: Settings, best: Candidate, unit: float) -> Candidate:
    """The solution of the search, climbed from on all rows; with `reg_covar` by scikit-learn's M-step."""
    coordinates, start = best.coordinates, best.end.mixture
    dtype = rows.dtype
    data: Chunks

    def to_u(x: NDArray[np.floating]) -> NDArray[np.floating]:
        return np.ascontiguousarray(coordinates.of(x), dtype=dtype)

    if rows.n_missing:
        data = rows.data
    elif rows.is_stream:
        data = Chunks(cached_as(rows.data.source, mapped(rows.data.source, to_u)), n_jobs=rows.data.n_jobs)
    else:
        measure = rows.measure
        data = Chunks(to_u(measure.points), weights=measure.weights, n_jobs=rows.data.n_jobs)
    reg_covar = settings.reg_covar and settings.reg_covar * rows.measure.scale * rows.measure.scale
    added = _added(coordinates, reg_covar, problem.covariance_type)
    floor = problem.floor
    if settings.reg_covar > 0 and settings.covariance_floor is None:  # what is added is a floor of its own
        has_matrices = start.covariance.has_matrices and start.n_features > 1
        floor = LEAST_FLOOR if has_matrices else 1e-30
    model = GaussianFamily(problem.n_components, start.n_features, problem.covariance_type, floor, settings.beta)
    family = MissingFamily(model, coordinates) if rows.n_missing else model
    if settings.by_engine and not settings.reg_covar:
        policy = deepcopy(settings.bounds) if rows.is_stream else None
        solution = minimize(family, data, policy, theta=start, tol=max(settings.tol, 1e-15), max_iter=settings.max_iter)
        values = tuple(float(-v) for v in solution.trace["objective"])
        floored = np.asarray(family.floored(solution.theta))
        end = Climb(solution.theta, -solution.objective, floored, solution.converged, values).scaled(1 / unit)
        return problem.candidate(coordinates, end, solution.trace.scaled(1 / unit))
    end = climb(
        _steps_over(data, family, added),
        start,
        floor=floor,
        tol=settings.tol * data.total_weight,
        max_iter=settings.max_iter,
        accelerate=added is None,
        entry=entered(loop="climb", start=start, rows=data.n_units, tol=settings.tol, max_iter=settings.max_iter),
    ).scaled(1 / unit)
    return problem.candidate(coordinates, end, history(end))


def _added(coordinates: Coordinates, reg_covar: float, covariance_type: CovarianceType) -> Array | None:
    """`reg_covar` times the identity, in other coordinates."""
    if not reg_covar:
        return None
    kind = COVARIANCES[covariance_type]
    return kind.mapped(reg_covar * kind.identity(len(coordinates.forward)), coordinates.forward)


def _steps_over(data: Chunks, family: GaussianFamily | MissingFamily, added: Array | None) -> Callable[[Mixture], Step]:
    """Steps of EM over chunks; a covariance that is made of little but what was `added` counts as floored."""

    def visit(mixture: Mixture, block: Block) -> Sweep:
        free, bound = family.tight_pass(mixture, block)
        return Sweep(free, bound, bound)

    def step(mixture: Mixture) -> Step:
        seen = data.map_sum(lambda block: visit(mixture, block))
        new, _ = family.solve(seen.tight.statistics, mixture, data)
        floored = np.asarray(family.floored(new))
        if added is not None:
            new = replace(new, covariances=new.covariances + added)
            floored = floored | _mostly(new, added)
        return Step(-seen.free, new, floored)

    return step


def _mostly(mixture: Mixture, added: Array) -> NDArray[np.bool_]:
    """Components that along some direction have no more variance of their own than was added."""
    least = mixture.covariance.eigenvalues(mixture.covariances - 2 * added).min(axis=1)
    return np.broadcast_to(least <= 0, (mixture.n_components,))
