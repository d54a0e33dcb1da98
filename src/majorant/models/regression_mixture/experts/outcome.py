"""The fitted attributes of a general fit, in the units of X and y."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.energy import entropy
from majorant.engine.trace import Trace
from majorant.models.regression_mixture.experts.em import Problem
from majorant.models.regression_mixture.experts.information import layout_of, standard_errors
from majorant.models.regression_mixture.experts.parameters import Experts, stacked
from majorant.models.regression_mixture.experts.statistics import (
    kept_shares,
    log_priors,
    predictors,
    unit_densities,
)
from majorant.models.regression_mixture.experts.streams import AnyUnits, UnitStream
from majorant.models.regression_mixture.experts.units import Units
from majorant.models.regression_mixture.outcome import criteria, excluded_solution, fitted_attributes
from majorant.models.regression_mixture.parameters import logits_of
from majorant.models.regression_mixture.settings import Settings
from majorant.search.race import Found
from majorant.search.record import StartRecord


def parameters_in_units(units: AnyUnits, theta: Experts) -> dict[str, NDArray[np.float64]]:
    """Coefficients, intercepts, levels at the origin, scales, weights and gating."""
    c = units.coordinates
    slopes, levels = c.coefficients(theta.coef)
    out = {
        "coef": slopes,
        "intercept": levels - np.einsum("kj,j->k", slopes, c.origin) if c.fit_intercept else np.zeros(len(slopes)),
        "level": levels,
        "scale": np.sqrt(theta.dispersion) * c.sigma,
        "weights": theta.weights.copy(),
    }
    if theta.gating is not None:
        gates = np.einsum("ig,kg->ki", c.gating_to_user, theta.gating)
        out["gating_coef"], out["gating_intercept"] = gates[:, 1:], gates[:, 0]
    else:
        logits = logits_of(theta.weights)
        out["gating_coef"], out["gating_intercept"] = np.zeros((len(slopes), 0)), logits
    return out


def scores(units: AnyUnits, problem: Problem, theta: Experts) -> dict[str, float]:
    """Log-likelihood, AIC, BIC and ICL; BIC counts rows, as flexmix does, not groups."""
    batch = stacked([theta])

    def densities(block: Units) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return unit_densities(block, problem.response, batch, predictors(block, batch.coef), log_priors(block, batch))

    def visit(block: Units) -> NDArray[np.float64]:
        found, q = densities(block)
        w = block.weights
        if problem.trim > 0:
            w = w * kept_shares(block, found, problem.trim)[:, 0]
        value = float(np.sum(w[w > 0] * found[w > 0, 0]))
        return np.array([value, float(np.sum(w * block.sizes)), float(np.sum(w * np.asarray(entropy(q[:, 0]))))])

    width = theta.n_components
    value, counted, uncertainty = units.summed(visit, width) if isinstance(units, UnitStream) else visit(units)
    n_parameters = layout_of(units, problem, width).n_free
    log_likelihood = units.log_likelihood(float(value), float(counted) / units.row_weight)
    found = criteria(log_likelihood, n_parameters, float(counted) * units.unit, float(uncertainty) * units.unit)
    return {
        "log_likelihood_": log_likelihood,
        "n_parameters_": n_parameters,
        **{f"{name}_": figure for name, figure in found.items()},
    }


def fit_attributes(
    units: AnyUnits, problem: Problem, found: Found[Experts], least: float, settings: Settings, *, reorder: bool
) -> dict[str, Any]:
    """The fitted attributes, and ``trim_threshold``, the log density a row below which units were trimmed."""
    share = 1 - problem.trim

    def ordered(theta: Experts) -> Experts:
        return theta.taken(theta.heaviest_first()) if reorder else theta

    def height(objective: float) -> float:
        return units.log_likelihood(-objective, share)

    theta, excluded = ordered(found.best.theta), None
    if found.excluded is not None:
        run, total = found.excluded, share * units.total_weight * units.unit
        values = parameters_in_units(units, ordered(run.theta))
        excluded = excluded_solution(run, values, height(run.objective), total, least * units.unit)
    trace = Trace([{"objective": f, "bound": f, "gap": 0.0, "exploring": 0.0} for f in found.best.path])
    attributes = fitted_attributes(
        parameters_in_units(units, theta),
        settings,
        center=units.coordinates.origin,
        standard_errors=standard_errors(units, problem, theta),
        degenerate=found.best.degenerate,
        is_exact=units.is_exact,
        converged=found.best.converged,
        n_iter=found.best.n_iter,
        excluded=excluded,
        optima=[
            {"log_likelihood": height(run.objective), **parameters_in_units(units, ordered(run.theta))}
            for run in found.optima
        ],
        records=tuple(StartRecord(r.source, height(r.objective), r.n_iter, r.converged) for r in found.records),
        note=found.note,
        trace=trace.shifted(-units.constant * share).scaled(units.unit),
    )
    threshold = -np.inf
    if isinstance(units, Units) and problem.trim > 0:
        threshold = _trimming_threshold(units, problem, theta)
    return {**attributes, "trim_threshold": threshold}


def _trimming_threshold(units: Units, problem: Problem, theta: Experts) -> float:
    """Log density a row, in the units of y, below which units were trimmed."""
    batch = stacked([theta])
    densities = unit_densities(units, problem.response, batch, predictors(units, batch.coef), log_priors(units, batch))[
        0
    ]
    kept = kept_shares(units, densities, problem.trim)[:, 0] >= 0.5
    level = densities[:, 0] / units.sizes - float(np.log(units.coordinates.sigma))
    if kept.all():
        return -np.inf
    return float((level[~kept].max() + level[kept].min()) / 2)
