"""The fitted attributes of a general fit, in the units of X and y."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.energy import entropy
from majorant.engine.trace import Trace
from majorant.evidence.records import Evidence, StartRecord
from majorant.models.regression_mixture.experts.em import Problem
from majorant.models.regression_mixture.experts.information import layout_of, standard_errors
from majorant.models.regression_mixture.experts.parameters import Experts, stacked
from majorant.models.regression_mixture.experts.statistics import (
    kept_shares,
    log_priors,
    predictors,
    unit_densities,
)
from majorant.models.regression_mixture.experts.units import Units
from majorant.models.regression_mixture.parameters import logits_of
from majorant.models.regression_mixture.race import Found, Run
from majorant.models.regression_mixture.words import of_irregular, what_would_admit


def parameters_in_units(units: Units, theta: Experts) -> dict[str, NDArray[np.float64]]:
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


def criteria(units: Units, problem: Problem, theta: Experts) -> dict[str, float]:
    """Log-likelihood, AIC, BIC and ICL; BIC counts rows, as flexmix does, not groups."""
    batch = stacked([theta])
    densities, q = unit_densities(
        units, problem.response, batch, predictors(units, batch.coef), log_priors(units, batch)
    )
    kept = np.ones((units.n_units, 1)) if problem.trim == 0 else kept_shares(units, densities, problem.trim)
    w = units.weights * kept[:, 0]
    share = float(np.sum(w * units.sizes)) / units.row_weight
    value = units.log_likelihood(float(np.sum(w[w > 0] * densities[w > 0, 0])), share)
    n_parameters = layout_of(units, problem, theta.n_components).n_free
    bic = n_parameters * float(np.log(share * units.row_weight * units.unit)) - 2 * value
    uncertainty = float(np.sum(w * np.asarray(entropy(q[:, 0])))) * units.unit
    return {
        "log_likelihood_": value,
        "n_parameters_": n_parameters,
        "aic_": 2 * n_parameters - 2 * value,
        "bic_": bic,
        "icl_": bic + 2 * max(uncertainty, 0.0),
    }


def fit_attributes(
    units: Units, problem: Problem, found: Found[Experts], least_mass: float, *, reorder: bool
) -> dict[str, Any]:
    """The fitted attributes, and ``trim_threshold``, the log density a row below which units were trimmed."""
    share = 1 - problem.trim

    def ordered(theta: Experts) -> Experts:
        return theta.taken(theta.heaviest_first()) if reorder else theta

    theta = ordered(found.best.theta)
    values = parameters_in_units(units, theta)

    def described(run: Run[Experts]) -> dict[str, Any]:
        return {
            "log_likelihood": units.log_likelihood(-run.objective, share),
            **parameters_in_units(units, ordered(run.theta)),
        }

    excluded = None
    if found.excluded is not None:
        run = found.excluded
        excluded = {
            **described(run),
            "sigma_ratio": run.theta.sigma_ratio,
            "smallest_component": float(run.theta.weights.min()) * share * units.total_weight * units.unit,
            "reason": run.irregular,
            "regular_from": least_mass * units.unit,
        }
    note = found.note
    if excluded is not None:
        note = f"{note} {what_would_admit(excluded, problem.rule.max_sigma_ratio)}".strip()
    trace = Trace([{"objective": f, "bound": f, "gap": 0.0, "exploring": 0.0} for f in found.best.path])
    records = tuple(
        StartRecord(r.source, units.log_likelihood(-r.objective, share), r.n_iter, r.converged) for r in found.records
    )
    return {
        "coef_": values["coef"],
        "intercept_": values["intercept"],
        "scale_": values["scale"],
        "weights_": values["weights"],
        "gating_coef_": values["gating_coef"],
        "gating_intercept_": values["gating_intercept"],
        "center_": units.coordinates.origin.copy(),
        "center_fits_": values["level"],
        "standard_errors_": standard_errors(units, problem, theta),
        "regular_": found.best.is_regular,
        "irregularity_": of_irregular(found.best.irregular, theta.n_components, problem.response),
        "is_exact_": units.is_exact,
        "converged_": found.best.converged,
        "n_iter_": found.best.n_iter,
        "excluded_": excluded,
        "optima_": [described(run) for run in found.optima],
        "evidence_": Evidence(records, "log-likelihood", "max", note=note),
        "trace_": trace.shifted(-units.constant * share).scaled(units.unit),
        "trim_threshold": _trimming_threshold(units, problem, theta) if problem.trim > 0 else -np.inf,
    }


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
