"""From units and the user's choice of starts to the mixture that is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from majorant._progress import end_of_starts, report_start
from majorant.evidence.records import StartRecord
from majorant.models.regression_mixture.experts.contest import ExpertContest
from majorant.models.regression_mixture.experts.em import Problem
from majorant.models.regression_mixture.experts.parameters import Experts
from majorant.models.regression_mixture.experts.starts import Starts
from majorant.models.regression_mixture.experts.units import Units
from majorant.models.regression_mixture.race import Found, Race, Run, distinct, entrants, same_optimum
from majorant.models.regression_mixture.starts import ELEMENTAL, POOLED

POLISH = 1e-4
"""Share of the tolerance to which the solution that is kept is followed."""


def fit_experts(
    units: Units,
    problem: Problem,
    n_components: int,
    least_mass: float,
    *,
    init: str | Experts,
    n_init: int,
    max_iter: int,
    tol: float,
    verbose: int,
    seed: int,
) -> Found[Experts]:
    """Fit by the race, or from starts of one kind where the user chose one."""
    draws = np.random.default_rng(seed)
    contest = ExpertContest(units, problem, n_components, least_mass, tol, max_iter)
    if init == "auto" and n_components > 1 and not units.is_exact:
        found = Race(contest, verbose).find(draws)
    else:
        found = _best(contest, _starts(contest, init, n_init, draws), verbose)
    return _polished(contest, found)


def _polished(contest: ExpertContest, found: Found[Experts]) -> Found[Experts]:
    """Its optima followed to the end; one that was none, on a plateau, may leave for where it does not count."""
    ends = contest.run(contest.units, list(found.optima), contest.max_iter, contest.tol * POLISH)
    ends = [replace(end, converged=end.converged or run.converged) for end, run in zip(ends, found.optima, strict=True)]
    ends.sort(key=lambda end: (not end.is_regular, end.objective))
    best = ends[0]
    optima = distinct([end for end in ends if end.is_regular == best.is_regular], 4, contest.constant)
    excluded = found.excluded
    if excluded is not None and excluded.objective >= best.objective - same_optimum(best.objective, contest.constant):
        excluded = None
    return replace(found, best=best, is_regular=best.is_regular, optima=tuple(optima), excluded=excluded)


def _starts(
    contest: ExpertContest, init: str | Experts, n_init: int, draws: np.random.Generator
) -> list[tuple[str, Experts]]:
    units, k = contest.units, contest.n_components
    starts = Starts(units, contest.problem.response, k)
    if isinstance(init, Experts):
        return [("given parameters", init)]
    if k == 1 or units.is_exact:
        return [("single model", starts.as_batch(np.zeros((1, k, units.n_coefficients)))[0])]
    kinds = [(POOLED, starts.pooled) if i % 4 == 3 else (ELEMENTAL, starts.elemental) for i in range(n_init)]
    return [(source, start(draws, 1)[0]) for source, start in kinds]


def _best(contest: ExpertContest, starts: list[tuple[str, Experts]], verbose: int) -> Found[Experts]:
    """The best end of some starts, whether it counts or not."""
    ends: list[Run[Experts]] = contest.run(contest.units, entrants(starts), contest.max_iter, contest.tol)
    for number, end in enumerate(ends):
        result = "tolerance reached" if end.converged else "iteration limit reached"
        report_start(number + 1, end.source, -end.objective - contest.constant, result, verbose)
    end_of_starts(verbose)
    records = tuple(StartRecord(end.source, end.objective, end.n_iter, end.converged) for end in ends)
    best = min(ends, key=lambda end: end.objective)
    return Found(best, best.is_regular, records, (best,), None, "")


def given_start(values: Mapping[str, NDArray[np.float64]], units: Units, k: int) -> Experts:
    """The start that the user gave, in the coordinates of the units."""
    c = units.coordinates
    levels = values["intercept"] + np.einsum("kj,j->k", values["coef"], c.origin)
    gating = None if units.gating is None else np.zeros((k, units.gating.shape[1]))
    if gating is not None:
        gating[:, 0] = np.log(values["weights"]) - np.log(values["weights"][0])
    weights = values["weights"] / values["weights"].sum()
    coef = c.of_coefficients(values["coef"], levels)
    if units.n_shared:
        coef[:, -units.n_shared :] = coef[:, -units.n_shared :].mean(axis=0)
    return Experts(weights, coef, (values["scale"] / c.sigma) ** 2, gating)
