"""From a design and the user's choice of starts to the lines that are kept."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from majorant.engine.loop import Solution, minimize
from majorant.engine.policies import BoundPolicy, Tightest
from majorant.engine.trace import Trace
from majorant.models.regression_mixture.design import Design, sample_size
from majorant.models.regression_mixture.family import RegressionFamily, VarianceRule
from majorant.models.regression_mixture.lines import LineContest, run_em
from majorant.models.regression_mixture.moments import moment_start, moment_starts
from majorant.models.regression_mixture.parameters import Regressions
from majorant.models.regression_mixture.starts import ELEMENTAL, POOLED, Sample, elemental, pooled
from majorant.models.regression_mixture.words import EXACT_LINE
from majorant.search.race import Found, Race, Run, followed, of_all_rows
from majorant.search.record import StartRecord
from majorant.starts.restarts import Start, best_of


@dataclass(frozen=True)
class Fitted:
    """What was found, in the design's units.

    Attributes
    ----------
    solution : Solution
    records : tuple of StartRecord
    optima : tuple of (objective, Regressions)
        Distinct ones, best first.
    degenerate : str
        Why the solution does not count; empty where it does.
    excluded : Run or None
    note : str
    """

    solution: Solution[Regressions]
    records: tuple[StartRecord, ...]
    optima: tuple[tuple[float, Regressions], ...]
    degenerate: str = ""
    excluded: Run[Regressions] | None = None
    note: str = ""


def fit_lines(
    design: Design,
    n_components: int,
    rule: VarianceRule,
    least_mass: float,
    *,
    init: str | Regressions,
    n_init: int,
    bounds: BoundPolicy | None,
    beta: float,
    max_iter: int,
    tol: float,
    verbose: int,
    seed: int,
) -> Fitted:
    """Fit by the race, or from starts of one kind where the user chose one, a policy or a temperature."""
    draws = np.random.default_rng(seed)
    contest = LineContest(design, n_components, rule, least_mass, tol, max_iter)
    if n_components == 1 or design.standard.exact:
        return _one_line(contest)
    if init == "auto" and bounds is None and beta == 1.0:
        if contest.is_sampled:  # on few rows the race costs less than the moments
            contest = replace(contest, first_starts=moment_starts(design, n_components, seed))
        return _raced(contest, draws, verbose)
    family = RegressionFamily(n_components, rule, beta, tolerance=tol)
    if bounds is not None:  # a copy either way: a bias keeps what it prepared
        bounds = deepcopy(bounds) if design.positions is None else bounds.renumbered(design.positions)

    def descend(start: Start) -> Solution[Regressions]:
        if bounds is None and beta == 1.0 and contest.fits_in_one_call:
            return _descended(contest, start.theta)
        return minimize(family, design.data, bounds, theta=start.theta, max_iter=max_iter, seed=start.seed)

    starts = _starts(contest, init, n_init, draws)
    solution, records = best_of(starts, descend, verbose=verbose)
    optima = ((solution.objective, solution.theta),)
    return Fitted(solution, records, optima, contest.degeneracy(solution.theta))


def _starts(contest: LineContest, init: str | Regressions, n_init: int, draws: np.random.Generator) -> Iterator[Start]:
    design, k = contest.design, contest.n_components
    seeds = draws.integers(2**31, size=n_init).tolist()
    if isinstance(init, Regressions):
        yield Start("given lines", theta=init, seed=seeds[0])
    elif init in ("moments", "spectral"):
        source, theta = moment_start(design, k, contest.rule, seeds[0], by_tensors=init == "spectral")
        yield Start(source, theta=theta, seed=seeds[0])
    else:
        rows = Sample(design.x, design.y, design.weights)
        for i, seed in enumerate(seeds):
            source, start = (POOLED, pooled) if i % 4 == 3 else (ELEMENTAL, elemental)
            yield Start(source, theta=start(rows, k, draws), seed=seed)


def _one_line(contest: LineContest) -> Fitted:
    """The closed form; where one line fits every row, all components are it."""
    k = contest.n_components
    p = contest.design.n_coefficients
    theta = Regressions(np.full(k, 1 / k), np.zeros((k, p)), np.ones(k))
    family = RegressionFamily(k, contest.rule)
    if contest.design.standard.exact:  # a step of EM would go on to a smaller noise, to which there is no end
        objective = contest.design.data.map_sum(lambda block: family.tight_pass(theta, block)[0])
        trace = Trace([{"objective": objective, "bound": objective, "gap": 0.0, "exploring": 0.0}])
        solution = Solution(theta, objective, 1, 1, converged=True, result="closed form", trace=trace)
    else:
        solution = minimize(family, contest.design.data, theta=theta, max_iter=2)
    record = StartRecord("least squares", solution.objective, 1, True)
    degenerate = EXACT_LINE if contest.design.standard.exact else ""
    return Fitted(solution, (record,), ((solution.objective, theta),), degenerate)


def _raced(contest: LineContest, draws: np.random.Generator, verbose: int) -> Fitted:
    is_stream = contest.design.is_stream
    found = _on_a_sample(contest, draws, verbose) if is_stream else Race(contest, verbose).find(draws)
    ends, solutions = list(found.optima), []
    for i, run in enumerate(found.optima):
        solutions.append(_traced(contest, run))
        end = replace(run, theta=solutions[i].theta, objective=solutions[i].objective)
        ends[i] = replace(end, degenerate=contest.degeneracy(end.theta) or contest.held_back(end))
        if ends[i].is_regular and not is_stream:  # of a stream none is an optimum before it was followed on all rows
            break
    found = followed(contest, found, ends)
    solution = next(s for s in solutions if s.theta is found.best.theta)
    optima = tuple((run.objective, run.theta) for run in found.optima)
    return Fitted(solution, found.records, optima, found.best.degenerate, found.excluded, found.note)


def _on_a_sample(contest: LineContest, draws: np.random.Generator, verbose: int) -> Found[Regressions]:
    """A race on the rows of a stream that are in memory, told in the units of all rows."""
    design, share = contest.design, contest.design.share
    few = replace(contest, design=design.on_sample(), least_mass=contest.least_mass * share)
    found = Race(few, verbose).find(draws)
    n = design.data.n_units
    found = of_all_rows(found, share, sample_size(n, len(design.standard.scales)), n, "rows")
    if found.excluded is None:
        return found
    family, theta = RegressionFamily(contest.n_components, contest.rule), found.excluded.theta
    objective = design.data.map_sum(lambda block: family.tight_pass(theta, block)[0])  # to follow it may take long
    excluded = replace(found.excluded, objective=objective, degenerate=contest.degeneracy(theta))
    return replace(found, excluded=excluded)


def _traced(contest: LineContest, run: Run[Regressions]) -> Solution[Regressions]:
    """The engine's solution from where a run ended, with every step of the run before it."""
    design = contest.design
    rows = Sample(design.x, design.y, design.weights)
    path = np.empty((0, 2))
    if not design.is_stream and run.is_whole:
        path = np.empty((max(run.n_iter, 1), 2))
        run_em(rows, run.start.copy(), contest.rule, len(path), 0.0, path)
    solution = _closed(contest, run.theta, path, contest.max_iter)
    return replace(solution, converged=solution.converged and run.converged)


def _descended(contest: LineContest, start: Regressions) -> Solution[Regressions]:
    """EM from one start in one call of the kernel."""
    theta, path = start.copy(), np.empty((min(contest.max_iter - 1, 10_000), 2))
    n_iter = run_em(contest.whole, theta, contest.rule, len(path), contest.tol, path)[1] if len(path) else 0
    return _closed(contest, theta, path[:n_iter], contest.max_iter - n_iter)


def _closed(
    contest: LineContest, theta: Regressions, path: NDArray[np.float64], max_iter: int
) -> Solution[Regressions]:
    """The engine's solution from `theta` on, with the steps that led there before it."""
    family = RegressionFamily(contest.n_components, contest.rule, tolerance=contest.tol)
    solution = minimize(family, contest.design.data, Tightest(), theta=theta, max_iter=max_iter)
    steps = [{"objective": f, "bound": b, "gap": max(b - f, 0.0), "exploring": 0.0} for f, b in path.tolist()]
    trace = Trace([*steps, *solution.trace])
    return replace(solution, n_iter=len(trace), trace=trace)
