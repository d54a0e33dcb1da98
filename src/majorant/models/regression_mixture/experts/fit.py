"""The general path: from rows to units, from the user's choice of starts to the mixture that is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning

from majorant._progress import end_of_starts, report_start
from majorant.data.chunks import effective_threads
from majorant.data.storage import StoredRows
from majorant.engine.policies import Tightest
from majorant.models.regression_mixture.experts.build import units_of
from majorant.models.regression_mixture.experts.contest import ExpertContest
from majorant.models.regression_mixture.experts.em import Problem
from majorant.models.regression_mixture.experts.extras import Extras, check_unit_weights
from majorant.models.regression_mixture.experts.outcome import fit_attributes, scores
from majorant.models.regression_mixture.experts.parameters import Experts, stacked
from majorant.models.regression_mixture.experts.read import unit_stream
from majorant.models.regression_mixture.experts.starts import Starts
from majorant.models.regression_mixture.experts.streams import AnyUnits
from majorant.models.regression_mixture.experts.units import Units
from majorant.models.regression_mixture.outcome import least_mass
from majorant.models.regression_mixture.settings import Given, Outcome, Settings
from majorant.models.regression_mixture.starts import ELEMENTAL, POOLED
from majorant.models.regression_mixture.words import EXACT_LINE, PLAIN_ONLY, of_dropped
from majorant.search.race import Found, Race, Run, entrants, followed, of_all_rows
from majorant.search.record import StartRecord
from majorant.solvers.responses import Response

POLISH = 1e-4
"""Share of the tolerance to which the solution that is kept is followed."""


def fit_general(
    X: NDArray[np.float64] | StoredRows,
    y: NDArray[np.float64] | None,
    weights: NDArray[np.float64] | None,
    extras: Extras,
    settings: Settings,
) -> Outcome:
    """Fit any family, with groups, gating, shared coefficients, offsets, trials, trimming, labels.

    Stored rows bring their target, weights, and what else is beside them.

    Raises
    ------
    ValueError
        If the target cannot be of the family, or what was asked for goes with plain Gaussian lines only.
    """
    _refuse_plain_settings(settings)
    response, k = settings.response, settings.n_components
    fit_intercept, shared = settings.fit_intercept, settings.shared
    units: AnyUnits
    if isinstance(X, StoredRows):
        units = unit_stream(
            X, response, fit_intercept=fit_intercept, shared=shared, seed=settings.seed, n_jobs=settings.n_jobs
        )
    else:
        assert y is not None
        check_unit_weights(weights, extras)
        trials = np.ones(len(y)) if extras.trials is None else extras.trials
        response.check(y, trials)
        _check_response(response, y[:, None], trials[:, None])
        units = units_of(X, y, weights, extras, response, fit_intercept=fit_intercept, shared=shared)
    if units.n_units < k:
        raise ValueError(f"{units.n_units} distinct units do not determine n_components={k} components: ask for fewer")
    problem = Problem(response, settings.rule, settings.trim, effective_threads(settings.n_jobs))
    least = _least_mass(units, response, settings.min_component_size)
    found = fit_units(units, problem, least, settings)
    reorder = isinstance(settings.init, str) and units.labels is None
    attributes = fit_attributes(units, problem, found, least, settings, reorder=reorder)
    attributes |= scores(units, problem, found.best.theta)
    said: list[tuple[str, type[Warning]]] = []
    if units.coordinates.dropped:
        names = [settings.feature_names[j] for j in units.coordinates.dropped]
        said.append((of_dropped(names, fit_intercept=settings.fit_intercept), LinAlgWarning))
    if not found.best.is_regular:
        said.append((attributes["degeneracy_"], ConvergenceWarning))
    return Outcome(attributes, said)


def _check_response(response: Response, y: NDArray[np.float64], trials: NDArray[np.float64]) -> None:
    """Refuse a family whose functions give no number for each row, here at a predictor of zero."""
    eta, one = np.zeros_like(y), np.ones(1)
    for name in ("log_density", "score", "weight"):
        with np.errstate(all="ignore"):  # far from the targets of a fit, a density may be too small to write
            found = np.asarray(getattr(response, name)(y, eta, one, trials))
        if found.shape != y.shape or np.isnan(found).any():
            got = f"shape {found.shape}" if found.shape != y.shape else "NaN"
            raise ValueError(
                f"{name} of family={response!r} must give a number for each of {len(y)} rows, shape {y.shape}, "
                f"where the predictor is 0 and the dispersion 1; got {got}"
            )


def _refuse_plain_settings(settings: Settings) -> None:
    asked = [] if isinstance(settings.bounds, Tightest | None) else ["bounds"]
    asked += [] if settings.beta == 1.0 else ["beta"]
    if settings.init in ("moments", "spectral"):
        asked.append(f"init={settings.init!r}")
    if asked:
        raise ValueError(
            f"{' and '.join(asked)} {PLAIN_ONLY}: leave {'them' if len(asked) > 1 else 'it'} at the default"
        )


def _least_mass(units: AnyUnits, response: Response, asked: float | None) -> float:
    """Smallest weight of a regular component, in units of average weight; of counts one unit."""
    if asked is None and not response.has_dispersion:
        return 1.0
    return least_mass(asked, units.unit, units.total_weight, units.n_coefficients, units.n_rows / units.n_units)


def _given(units: AnyUnits, init: Given) -> Experts:
    """The start that the user gave, in the coordinates of the units."""
    c, coef = units.coordinates, init["coef"]
    assert coef is not None
    k = len(coef)
    intercept = np.zeros(k) if init["intercept"] is None else init["intercept"]
    weights = np.ones(k) if init["weights"] is None else init["weights"]
    dispersion = np.ones(k) if init["scale"] is None else (init["scale"] / c.sigma) ** 2
    gating = None if units.gating is None else np.zeros((k, units.gating.shape[1]))
    if gating is not None:
        gating[:, 0] = np.log(weights) - np.log(weights[0])
        slopes, levels = init["gating_coef"], init["gating_intercept"]
        if slopes is not None:
            logits = np.column_stack([np.zeros(k) if levels is None else levels, slopes])
            gating = np.einsum("gi,ki->kg", np.linalg.pinv(c.gating_to_user), logits - logits[0])
    coef = c.of_coefficients(coef, intercept + np.einsum("kj,j->k", coef, c.origin))
    if units.n_shared:
        coef[:, -units.n_shared :] = coef[:, -units.n_shared :].mean(axis=0)
    return Experts(weights / weights.sum(), coef, dispersion, gating)


def fit_units(units: AnyUnits, problem: Problem, least_mass: float, settings: Settings) -> Found[Experts]:
    """Fit by the race, or from starts of one kind where the user chose one."""
    draws = np.random.default_rng(settings.seed)
    contest = ExpertContest(units, problem, settings.n_components, least_mass, settings.tol, settings.max_iter)
    is_open = settings.init == "auto" and settings.bounds is None
    if units.is_exact:
        return _exact(contest)
    if is_open and settings.n_components > 1:
        found = _raced(contest, draws, settings.verbose)
    else:
        init = settings.init if isinstance(settings.init, str) else _given(units, settings.init)
        found = _best(contest, _starts(contest, init, settings.n_init, draws), settings.verbose)
    return _polished(contest, found)


def _raced(contest: ExpertContest, draws: np.random.Generator, verbose: int) -> Found[Experts]:
    """By the race; of a stream on its sample, told in the weight of all."""
    units, problem = contest.units, contest.problem
    if isinstance(units, Units):
        return Race(contest, verbose).find(draws)
    few = replace(contest, units=units.sample, least_mass=contest.least_mass * units.share)
    found = Race(few, verbose).find(draws)
    noun = "groups" if units.n_units < units.n_rows else "rows"
    found = of_all_rows(found, units.share, units.n_sampled, units.n_units, noun)
    if found.excluded is None:
        return found
    theta = found.excluded.theta
    seen = problem.seen(units, stacked([theta]))  # to follow it may take long
    objective, degenerate = -float(seen.log_likelihood[0]), contest.degeneracy(theta, seen[0])
    return replace(found, excluded=replace(found.excluded, objective=objective, degenerate=degenerate))


def _exact(contest: ExpertContest) -> Found[Experts]:
    """The single model, which fits every row, is every component."""
    units, k = contest.units, contest.n_components
    gating = None if units.gating is None else np.zeros((k, units.gating.shape[1]))
    theta = Experts(np.full(k, 1 / k), np.zeros((k, units.n_coefficients)), np.ones(k), gating)
    objective = -float(contest.problem.seen(units, stacked([theta])).log_likelihood[0])
    run = Run("least squares", theta, theta, objective, 1, converged=True, degenerate=EXACT_LINE, path=(objective,))
    return Found(run, (StartRecord(run.source, objective, 1, True),), (run,))


def _polished(contest: ExpertContest, found: Found[Experts]) -> Found[Experts]:
    """Its optima followed to the end."""
    ends = contest.run(contest.units, list(found.optima), contest.max_iter, contest.tol * POLISH)
    ends = [
        replace(end, converged=end.converged or run.converged, degenerate=end.degenerate or contest.held_back(end))
        for end, run in zip(ends, found.optima, strict=True)
    ]
    return followed(contest, found, ends)


def _starts(
    contest: ExpertContest, init: str | Experts, n_init: int, draws: np.random.Generator
) -> list[tuple[str, Experts]]:
    units, k = contest.units, contest.n_components
    starts = Starts(units if isinstance(units, Units) else units.sample, contest.problem.response, k)
    if isinstance(init, Experts):
        return [("given parameters", init)]
    if k == 1:
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
    return Found(best, records, (best,))
