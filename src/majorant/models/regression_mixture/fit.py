"""The fit: from rows to units, from starts to the mixture that is kept."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning

from majorant._numbers import counted
from majorant._progress import end_of_starts, report_start
from majorant._validation import warn_of_one_start
from majorant.data.storage import StoredRows
from majorant.densities import Predictors, VarianceRule
from majorant.densities.regression import EXACT_LINE
from majorant.engine.loop import minimize
from majorant.engine.mixture import Parameters, SingleRun
from majorant.engine.policies import BoundPolicy, Tightest
from majorant.engine.trace import Trace
from majorant.laws.gated import Logits
from majorant.laws.independent import Weights
from majorant.models.covariates import of_undetermined, refuse_wide_covariates
from majorant.models.regression_mixture.build import units_of
from majorant.models.regression_mixture.contest import RegressionContest, contest_of, named
from majorant.models.regression_mixture.extras import Extras, check_unit_weights, shared_columns
from majorant.models.regression_mixture.moments import moment_start
from majorant.models.regression_mixture.outcome import fit_attributes
from majorant.models.regression_mixture.read import unit_stream
from majorant.models.regression_mixture.settings import Given, check_init
from majorant.models.regression_mixture.starts import ELEMENTAL, POOLED, Starts, Theta
from majorant.models.regression_mixture.units import AnyUnits, Units
from majorant.models.regression_mixture.words import PLAIN_ONLY, of_dropped, of_one_line, of_saturated
from majorant.search.contestants import Found, NamedStart, Run, entrants
from majorant.search.race import Race, followed, of_all_rows
from majorant.search.record import StartRecord, cut_short
from majorant.solvers.responses import Response

Warned = tuple[str, type[Warning]]

FLOOR = 1e-16
"""Smallest variance, in units of the single model's."""
SAME = 3e-6
"""Share of a column of the gating, apart from those before it, up to which it has no coefficient of its own."""
POLISH = 1e-5
"""Tolerance of the solution that is kept, as a share of `tol`."""


def fit(
    model: Any,
    X: NDArray[np.float64] | StoredRows,
    y: NDArray[np.float64] | None,
    weights: NDArray[np.float64] | None,
    extras: Extras,
    seed: int,
) -> tuple[dict[str, Any], list[Warned]]:
    """Return the fitted attributes of a model, and the warnings; stored rows bring their own target and weights.

    Raises
    ------
    ValueError
        If the target cannot be of the family, or what was asked for goes with plain Gaussian lines only.
    """
    response, trim = model._response, float(model.trim)
    named = () if model.shared is None else model.shared
    shared = shared_columns(named, model._feature_names(), fit_intercept=model.fit_intercept)
    is_plain = response.has_normal_noise and not shared and trim == 0 and extras.is_empty
    if not is_plain or (isinstance(X, StoredRows) and X.beside_names):
        is_gated = extras.gating is not None and replace(extras, gating=None).is_empty
        _refuse_plain_settings(model, has_moments=response.has_normal_noise and not shared and trim == 0 and is_gated)
    if extras.gating is not None:
        refuse_wide_covariates(extras.gating)
    given = model.init
    if not isinstance(given, str):
        n_gating = 0 if extras.gating is None else extras.gating.shape[1]
        given = check_init(given, model.n_components, model.n_features_in_, n_gating)
    how = {"fit_intercept": bool(model.fit_intercept), "shared": shared, "n_jobs": model.n_jobs}
    if isinstance(X, StoredRows):
        units: AnyUnits = unit_stream(X, response, seed=seed, **how)
    else:
        assert y is not None
        units = _units_in_memory(X, y, weights, extras, response, how)
    if units.n_units < model.n_components:
        do = "does" if units.n_units == 1 else "do"
        raise ValueError(
            f"{counted(units.n_units, 'distinct unit')} {do} not determine n_components={model.n_components} "
            "components: ask for fewer"
        )
    rule = VarianceRule(float(model.max_sigma_ratio), FLOOR, common=model.variance == "common")
    contest = contest_of(
        units,
        units.mixture(response, rule, model.n_components, beta=float(model.beta), fused=trim == 0),
        least_size=_least_size(units, model),
        tol=float(model.tol),
        max_iter=model.max_iter,
        trim=trim,
    )
    found, trace = _found(model, contest, given, seed)
    gating_names = model._in_words(_gating_names(extras))
    attributes = fit_attributes(model, contest, found, trace, gating_names)
    said: list[Warned] = []
    if units.coordinates.dropped:
        said.append((of_dropped(units, model._in_words(model._feature_names())), LinAlgWarning))
    if extras.gating is not None and (undetermined := of_undetermined(extras.gating, gating_names, SAME)):
        said.append((undetermined, ConvergenceWarning))
    if saturated := of_saturated(units, model.n_components, model._in_words(model._feature_names())):
        said.append((saturated, ConvergenceWarning))
    if attributes["separated_"]:
        said.append((attributes["separated_"], ConvergenceWarning))
    if not found.best.is_regular:
        said.append((attributes["degeneracy_"], ConvergenceWarning))
    if not attributes["converged_"]:
        said.append((cut_short(model.max_iter), ConvergenceWarning))
    return attributes, said


def _gating_names(extras: Extras) -> list[str]:
    if extras.gating is None:
        return []
    if extras.gating_names is not None:
        return list(extras.gating_names)
    return [f"column {j + 1}" for j in range(extras.gating.shape[1])]


def _units_in_memory(
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    extras: Extras,
    response: Response,
    how: dict[str, Any],
) -> Units:
    check_unit_weights(weights, extras)
    trials = np.ones(len(y)) if extras.trials is None else extras.trials
    response.check(y, trials)
    _check_response(response, y[:, None], trials[:, None])
    return units_of(X, y, weights, extras, response, **how)


def _check_response(response: Response, y: NDArray[np.float64], trials: NDArray[np.float64]) -> None:
    """Raise an error if a family's functions do not return a number per row at a predictor of zero."""
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


def _refuse_plain_settings(model: Any, *, has_moments: bool) -> None:
    asked = [] if isinstance(model.bounds, Tightest | None) else ["bounds"]
    asked += [] if model.beta == 1.0 else ["beta"]
    if isinstance(model.init, str) and model.init in ("moments", "spectral")[has_moments:]:
        asked.append(f"init={model.init!r}")
    if asked:
        raise ValueError(
            f"{' and '.join(asked)} {PLAIN_ONLY}: leave {'them' if len(asked) > 1 else 'it'} at the default"
        )


def _least_size(units: AnyUnits, model: Any) -> float:
    """Return the smallest number of rows (or groups) of a regular component."""
    if not isinstance(model.min_component_size, str):
        return float(model.min_component_size) / units.unit
    p, rows_a_unit = units.n_coefficients, units.n_rows / units.n_units
    least, most = (p + 2) / rows_a_unit, 5.0 * (p + 1)
    if not model._response.has_dispersion:  # one row has no exact fit, but a component of it tells of no other
        least, most = 1.0, 2.0
    return float(np.clip(0.05 * units.total_weight, max(least, 1.0), most))


def _given(units: AnyUnits, init: Given) -> Theta:
    """Return the start that the user gave, in the coordinates of the units."""
    c, coef = units.coordinates, init["coef"]
    assert coef is not None
    k = len(coef)
    intercept = np.zeros(k) if init["intercept"] is None else init["intercept"]
    weights = np.ones(k) if init["weights"] is None else init["weights"]
    dispersion = np.ones(k) if init["scale"] is None else (init["scale"] / c.sigma) ** 2
    law: Any = Weights((weights / weights.sum())[None])
    if units.gating is not None:
        gating = np.zeros((k, units.gating.shape[1]))
        gating[:, 0] = np.log(weights) - np.log(weights[0])
        slopes, levels = init["gating_coef"], init["gating_intercept"]
        if slopes is not None:
            logits = np.column_stack([np.zeros(k) if levels is None else levels, slopes])
            gating = np.einsum("gi,ki->kg", np.linalg.pinv(c.gating_to_user), logits - logits[0])
        law = Logits(gating[None])
    coef = c.of_coefficients(coef, intercept + np.einsum("kj,j->k", coef, c.origin))
    if units.n_shared:
        coef[:, -units.n_shared :] = coef[:, -units.n_shared :].mean(axis=0)
    return Parameters(Predictors(np.ascontiguousarray(coef)[None], dispersion[None]), law)


def _found(model: Any, contest: RegressionContest, given: str | Given, seed: int) -> tuple[Found[Theta], Trace]:
    """Fit by the race, or from starts of one kind where the user chose one, a policy or a temperature."""
    draws, units, k = np.random.default_rng(seed), contest.units, contest.mixture.n_components
    by_bounds = (model.bounds is not None or model.beta != 1.0) and k > 1
    is_plain = units.is_plain and contest.density.response.has_normal_noise
    if units.is_exact:
        found = _exact(contest)
    elif isinstance(given, str) and given == "auto" and not by_bounds and k > 1:
        found = _polished(contest, _raced(contest, model, draws))
    else:
        init = given if isinstance(given, str) else _given(units, given)
        if isinstance(init, Parameters):
            warn_of_one_start(model.n_init)
        n_init = 10 if model.n_init == "auto" else int(model.n_init)
        starts = _starts(contest, init, n_init, draws, seed)
        if by_bounds and is_plain:
            found, trace = _by_bounds(contest, starts, model.bounds, draws, model.verbose)
            return _told(contest, found), trace
        found = _polished(contest, _best(contest, starts, model.verbose))
    found = _told(contest, found)
    path = found.best.path or (found.best.objective,)
    return found, Trace([{"objective": f, "bound": f, "gap": 0.0, "exploring": 0.0} for f in path])


def _told(contest: RegressionContest, found: Found[Theta]) -> Found[Theta]:
    """Return the result with what is to say of lines without noise; those that every row is on are the solution."""
    if contest.units.is_exact:
        return found
    excluded, best = found.excluded, found.excluded or found.best
    why = contest.density.exactness(best.theta.density)
    if why and not best.is_regular and contest.is_admissible(best):
        why = of_one_line(contest.mixture.n_components) if why == EXACT_LINE else why
        best = replace(
            best, degenerate=why.replace("every row", "every row that was not trimmed") if contest.trim else why
        )
        records = () if excluded is None else _of_ends([best], 0).records
        return replace(found, best=best, records=(*records, *found.records), optima=(best,), excluded=None)
    if excluded is not None and contest.density.on_floor(excluded.theta.density.dispersion)[0]:
        told = f" A solution was left out: {contest.explained(excluded).degenerate}." * found.best.is_regular
        found = replace(found, excluded=None, note=f"{found.note}{told}".strip())
    return replace(found, best=contest.explained(found.best))


def _by_bounds(
    contest: RegressionContest,
    starts: list[NamedStart[Theta]],
    policy: BoundPolicy | None,
    draws: np.random.Generator,
    verbose: int,
) -> tuple[Found[Theta], Trace]:
    """Run the descents of the engine's loop."""
    units = contest.units
    if policy is not None:  # a copy either way: a bias keeps what it prepared
        policy = deepcopy(policy) if units.positions is None else policy.renumbered(units.positions)
    family, ends, traces = SingleRun(contest.mixture), [], []
    for number, (source, theta) in enumerate(starts):
        seed = int(draws.integers(2**31))
        made = minimize(family, units.data, policy, theta=theta, tol=contest.tol, max_iter=contest.max_iter, seed=seed)
        run = Run(source, theta, made.theta, made.objective, made.n_iter, made.converged)
        end = contest.run(contest.whole, [run], 0, 0.0)[0]
        ends.append(replace(run, degenerate=end.degenerate))
        traces.append(made.trace)
        report_start(number + 1, source, -made.objective - contest.constant, made.result, verbose)
    end_of_starts(verbose)
    best = min(range(len(ends)), key=lambda i: ends[i].objective)
    return _of_ends(ends, best), traces[best]


def _raced(contest: RegressionContest, model: Any, draws: np.random.Generator) -> Found[Theta]:
    """Fit by the race, of a stream on its sample; records are scaled to the weight of all rows."""
    units = contest.units

    def found_by(contest: RegressionContest) -> Found[Theta]:
        plan = contest.plan.at(model.effort).of_starts(model.n_init)
        return Race(replace(contest, plan=plan), model.verbose).find(draws)

    if isinstance(units, Units):
        return found_by(contest)
    few = contest_of(
        units.sample,
        units.sample.mixture(contest.density.response, contest.density.rule, contest.mixture.n_components),
        least_size=contest.least_size * units.share,
        tol=contest.tol,
        max_iter=contest.max_iter,
        trim=0.0,
    )
    found = found_by(few)
    noun = "groups" if units.is_grouped else "rows"
    found = of_all_rows(found, units.share, units.n_sampled, units.n_units, noun)
    if found.excluded is None:
        return found
    excluded = contest.run(contest.whole, [found.excluded], 0, 0.0)[0]  # to follow it may take long
    return replace(found, excluded=excluded)


def _exact(contest: RegressionContest) -> Found[Theta]:
    """Make every component the single model, which fits every row."""
    units, k = contest.units, contest.mixture.n_components
    law: Any = Weights(np.full((1, k), 1 / k))
    if units.gating is not None:
        law = Logits(np.zeros((1, k, units.gating.shape[1])))
    least = contest.density.response.least_dispersion or 1.0  # of a location-scale target noise is the unit
    theta = Parameters(Predictors(np.zeros((1, k, units.n_coefficients)), np.full((1, k), least)), law)
    objective = float(contest.on(contest.whole).seen(theta).objective[0])
    run = Run("least squares", theta, theta, objective, 1, converged=True, degenerate=of_one_line(k), path=(objective,))
    return _of_ends([run], 0)


def _polished(contest: RegressionContest, found: Found[Theta]) -> Found[Theta]:
    """Run the optima to convergence, in memory until one counts, and return the best."""
    ends: list[Run[Theta]] = []
    in_memory = isinstance(contest.units, Units)
    for run in found.optima:
        if ends and ends[-1].is_regular and in_memory:
            ends += found.optima[len(ends) :]
            break
        rest = contest.max_iter if run.converged or not in_memory else max(contest.max_iter - run.n_iter, 0)
        end = contest.followed(contest.run(contest.whole, [run], rest, contest.tol * POLISH)[0])
        degenerate = end.degenerate or contest.held_back(end)
        ends.append(replace(end, converged=run.converged if in_memory else end.converged, degenerate=degenerate))
    return followed(contest, found, ends)


def _starts(
    contest: RegressionContest, init: str | Theta, n_init: int, draws: np.random.Generator, seed: int
) -> list[NamedStart[Theta]]:
    units, k = contest.units, contest.mixture.n_components
    sample = units if isinstance(units, Units) else units.sample
    if isinstance(init, Parameters):
        return [("given parameters", init)]
    if init in ("moments", "spectral"):
        return [moment_start(contest, seed, by_tensors=init == "spectral")]
    starts = Starts(sample, contest.density.response, k)
    if k == 1:
        return named("single model", starts.of_coefficients(np.zeros((1, k, units.n_coefficients))))
    kinds = [(POOLED, starts.pooled) if i % 4 == 3 else (ELEMENTAL, starts.elemental) for i in range(n_init)]
    return [(source, start(draws, 1)) for source, start in kinds]


def _best(contest: RegressionContest, starts: list[NamedStart[Theta]], verbose: int) -> Found[Theta]:
    """Return the best end of some starts, whether it counts or not."""
    ends: list[Run[Theta]] = contest.run(contest.whole, entrants(starts), contest.max_iter, contest.tol)
    for number, end in enumerate(ends):
        result = "tolerance reached" if end.converged else "iteration limit reached"
        report_start(number + 1, end.source, -end.objective - contest.constant, result, verbose)
    end_of_starts(verbose)
    return _of_ends(ends, min(range(len(ends)), key=lambda i: ends[i].objective))


def _of_ends(ends: list[Run[Theta]], best: int) -> Found[Theta]:
    records = tuple(StartRecord(end.source, end.objective, end.n_iter, end.converged) for end in ends)
    return Found(ends[best], records, (ends[best],))
