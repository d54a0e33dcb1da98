"""The fast path: lines with Gaussian noise, on rows in memory or streamed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning

from majorant.data.chunks import Block
from majorant.data.storage import StoredRows
from majorant.models.regression_mixture.design import Design, design_in_memory, design_streamed
from majorant.models.regression_mixture.family import RegressionFamily
from majorant.models.regression_mixture.fit import Fitted, fit_lines
from majorant.models.regression_mixture.information import layout_of, standard_errors
from majorant.models.regression_mixture.outcome import criteria, excluded_solution, fitted_attributes, least_mass
from majorant.models.regression_mixture.parameters import Regressions, logits_of
from majorant.models.regression_mixture.settings import Given, Outcome, Settings
from majorant.models.regression_mixture.words import of_columns
from majorant.search.record import StartRecord


def fit_plain(
    X: NDArray[Any] | StoredRows, y: NDArray[Any] | None, weights: NDArray[np.float64] | None, settings: Settings
) -> Outcome:
    """Fit lines with Gaussian noise; stored rows bring their target and weights."""
    if isinstance(X, StoredRows):
        design = design_streamed(X, settings.fit_intercept, settings.seed, settings.n_jobs)
    else:
        assert y is not None
        design = design_in_memory(X, y, weights, settings.fit_intercept, settings.n_jobs)
    least = least_mass(settings.min_component_size, design.unit, design.total_weight, design.n_coefficients)
    fitted = fit_lines(
        design,
        settings.n_components,
        settings.rule,
        least,
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
    attributes = _fit_attributes(design, fitted, theta, settings, least)
    attributes |= _criteria(design, fitted.solution.theta, settings)
    said: list[tuple[str, type[Warning]]] = []
    if design.standard.dropped:
        said.append((of_columns(design, settings.feature_names), LinAlgWarning))
    if fitted.degenerate:
        said.append((attributes["degeneracy_"], ConvergenceWarning))
    return Outcome(attributes, said)


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
    design: Design, fitted: Fitted, theta: Regressions, settings: Settings, least: float
) -> dict[str, Any]:
    """The fitted attributes, in the units of X and y."""
    solution, exact, unit = fitted.solution, design.standard.exact, design.unit
    excluded = None
    if fitted.excluded is not None:
        run = fitted.excluded
        values, height = _ordered_in_units(design, run.theta), design.log_likelihood(run.objective)
        excluded = excluded_solution(run, values, height, design.total_weight * unit, least * unit)
    return fitted_attributes(
        {**_in_units(design, theta), **_logits_in_units(theta)},
        settings,
        center=design.standard.origin[:-1],
        standard_errors=None if exact else standard_errors(design, theta, common=settings.rule.common),
        degenerate=fitted.degenerate,
        is_exact=exact,
        converged=solution.converged,
        n_iter=solution.n_iter,
        excluded=excluded,
        optima=[
            {"log_likelihood": design.log_likelihood(objective), **_ordered_in_units(design, t)}
            for objective, t in fitted.optima
        ],
        records=tuple(
            StartRecord(r.source, design.log_likelihood(r.objective), r.n_iter, r.converged) for r in fitted.records
        ),
        note=fitted.note,
        trace=solution.trace.shifted(design.constant).scaled(unit),
    )


def _logits_in_units(theta: Regressions) -> dict[str, NDArray[np.float64]]:
    """Of a mixture without gating columns."""
    logits = logits_of(theta.weights)
    return {"gating_coef": np.zeros((len(logits), 0)), "gating_intercept": logits}


def _ordered_in_units(design: Design, theta: Regressions) -> dict[str, NDArray[np.float64]]:
    """The heaviest component first."""
    return _in_units(design, theta.taken(theta.heaviest_first()))


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


def _criteria(design: Design, theta: Regressions, settings: Settings) -> dict[str, Any]:
    """Log-likelihood and criteria; on the design, where rows have one order."""
    family = RegressionFamily(theta.n_components, settings.rule)

    def visit(block: Block) -> NDArray[np.float64]:
        free, tight = family.tight_pass(theta, block)
        return np.array([free, tight.entropy])

    free, entropy = design.data.map_sum(visit)
    log_likelihood = design.log_likelihood(float(free))
    n_parameters = layout_of(design, theta.n_components, common=settings.rule.common).n_free
    found = criteria(log_likelihood, n_parameters, design.total_weight * design.unit, float(entropy) * design.unit)
    return {
        "log_likelihood_": log_likelihood,
        "n_parameters_": n_parameters,
        **{f"{name}_": value for name, value in found.items()},
    }
