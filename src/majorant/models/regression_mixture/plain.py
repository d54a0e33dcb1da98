"""The fast path: lines with Gaussian noise, on rows in memory or streamed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning

from majorant.engine.chunks import Block
from majorant.engine.storage import StoredRows
from majorant.evidence.records import Evidence, StartRecord
from majorant.models.regression_mixture.design import Design, design_in_memory, design_streamed
from majorant.models.regression_mixture.family import RegressionFamily
from majorant.models.regression_mixture.fit import Fitted, fit_lines
from majorant.models.regression_mixture.information import layout_of, standard_errors
from majorant.models.regression_mixture.parameters import Regressions, logits_of
from majorant.models.regression_mixture.race import Run
from majorant.models.regression_mixture.settings import Given, Outcome, Settings
from majorant.models.regression_mixture.words import of_columns, of_irregular, what_would_admit


def fit_plain(
    X: NDArray[Any] | StoredRows, y: NDArray[Any], weights: NDArray[np.float64] | None, settings: Settings
) -> Outcome:
    """Fit lines with Gaussian noise."""
    if isinstance(X, StoredRows):
        X.weights = weights
        design = design_streamed(X, y, settings.fit_intercept, settings.seed, settings.n_jobs)
    else:
        design = design_in_memory(X, y, weights, settings.fit_intercept, settings.n_jobs)
    least_mass = _least_mass(design, settings.min_component_size)
    fitted = fit_lines(
        design,
        settings.n_components,
        settings.rule,
        least_mass,
        init=settings.init if isinstance(settings.init, str) else _given(design, settings.init),
        n_init=settings.n_init,
        bounds=settings.bounds,
        beta=settings.beta,
        max_iter=settings.max_iter,
        tol=settings.tol,
        verbose=settings.verbose,
        seed=settings.seed,
    )
    theta = fitted.solution.theta
    if isinstance(settings.init, str):
        theta = theta.taken(theta.heaviest_first())
    attributes = _fit_attributes(design, fitted, theta, settings, least_mass)
    attributes |= _criteria(design, fitted.solution.theta, settings)
    said: list[tuple[str, type[Warning]]] = []
    if design.standard.dropped:
        said.append((of_columns(design, settings.feature_names), LinAlgWarning))
    if fitted.irregular:
        said.append((attributes["irregularity_"], ConvergenceWarning))
    return Outcome(attributes, said)


def _least_mass(design: Design, asked: float | None) -> float:
    """Smallest weight of a regular component, in rows of average weight."""
    if asked is not None:
        return asked / design.unit
    p = design.n_coefficients
    return float(np.clip(0.05 * design.total_weight, p + 2, 5 * (p + 1)))


def _given(design: Design, init: Given) -> Regressions:
    """The start that the user gave, in the design's coordinates."""
    standard = design.standard
    coef = init["coef"]
    assert coef is not None
    k = len(coef)
    intercept = np.zeros(k) if init["intercept"] is None else init["intercept"]
    weights = np.ones(k) if init["weights"] is None else init["weights"]
    variances = np.ones(k) if init["scale"] is None else (init["scale"] / np.exp(standard.log_unit)) ** 2
    levels = intercept + np.einsum("kj,j->k", coef, standard.origin[:-1])
    return Regressions(weights / weights.sum(), standard.of_lines(coef, levels), variances)


def _fit_attributes(
    design: Design, fitted: Fitted, theta: Regressions, settings: Settings, least_mass: float
) -> dict[str, Any]:
    """The fitted attributes, in the units of X and y."""
    solution, exact = fitted.solution, design.standard.exact
    parameters = _in_units(design, theta)
    excluded = None if fitted.excluded is None else _excluded(design, fitted.excluded, least_mass)
    records = tuple(
        StartRecord(r.source, design.log_likelihood(r.objective), r.n_iter, r.converged) for r in fitted.records
    )
    note = fitted.note
    if excluded is not None:
        note = f"{note} {what_would_admit(excluded, settings.rule.max_sigma_ratio)}".strip()
    logits = logits_of(theta.weights)
    return {
        "coef_": parameters["coef"],
        "intercept_": parameters["intercept"],
        "scale_": parameters["scale"],
        "weights_": parameters["weights"],
        "gating_coef_": np.zeros((len(logits), 0)),
        "gating_intercept_": logits,
        "center_": design.standard.origin[:-1].copy(),
        "center_fits_": parameters["level"],
        "standard_errors_": None if exact else standard_errors(design, theta, common=settings.rule.common),
        "regular_": not fitted.irregular,
        "irregularity_": of_irregular(fitted.irregular, theta.n_components, settings.response),
        "is_exact_": exact,
        "converged_": bool(solution.converged),
        "n_iter_": int(solution.n_iter),
        "excluded_": excluded,
        "optima_": [
            {"log_likelihood": design.log_likelihood(objective), **_in_units(design, t.taken(t.heaviest_first()))}
            for objective, t in fitted.optima
        ],
        "evidence_": Evidence(records, "log-likelihood", "max", note=note),
        "trace_": solution.trace.shifted(design.constant).scaled(design.unit),
    }


def _in_units(design: Design, theta: Regressions) -> dict[str, NDArray[np.float64]]:
    slopes, levels = design.standard.coefficients(theta.coef)
    origin = design.standard.origin[:-1]
    return {
        "coef": slopes,
        "intercept": levels - np.einsum("kj,j->k", slopes, origin),
        "level": levels,
        "scale": np.sqrt(theta.variances) * np.exp(design.standard.log_unit),
        "weights": theta.weights.copy(),
    }


def _excluded(design: Design, excluded: Run[Regressions], least_mass: float) -> dict[str, Any]:
    theta = excluded.theta.taken(excluded.theta.heaviest_first())
    return {
        "log_likelihood": design.log_likelihood(excluded.objective),
        "sigma_ratio": theta.sigma_ratio,
        "smallest_component": float(theta.weights.min()) * design.total_weight * design.unit,
        "regular_from": least_mass * design.unit,
        "reason": excluded.irregular,
        **_in_units(design, theta),
    }


def _criteria(design: Design, theta: Regressions, settings: Settings) -> dict[str, Any]:
    """Log-likelihood and criteria; on the design, where rows have one order."""
    family = RegressionFamily(theta.n_components, settings.rule)

    def visit(block: Block) -> NDArray[np.float64]:
        free, tight = family.tight_pass(theta, block)
        return np.array([free, tight.entropy])

    free, entropy = design.data.map_sum(visit)
    log_likelihood = design.log_likelihood(float(free))
    n_parameters = layout_of(design, theta.n_components, common=settings.rule.common).n_free
    bic = n_parameters * float(np.log(design.total_weight * design.unit)) - 2 * log_likelihood
    return {
        "log_likelihood_": log_likelihood,
        "n_parameters_": n_parameters,
        "aic_": 2 * n_parameters - 2 * log_likelihood,
        "bic_": bic,
        "icl_": bic + 2 * max(float(entropy), 0.0) * design.unit,
    }
