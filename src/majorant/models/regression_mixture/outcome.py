"""What a fit leaves, by the names of its attributes: the same for both paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.engine.trace import Trace
from majorant.models.regression_mixture.settings import Settings
from majorant.models.regression_mixture.words import of_degenerate, what_would_admit
from majorant.search.race import Run
from majorant.search.record import SearchReport, StartRecord

Values = Mapping[str, NDArray[np.float64]]


def criteria(log_likelihood: float, n_parameters: int, n_rows: float, uncertainty: float) -> dict[str, float]:
    """AIC, BIC and ICL from the summed weight of the rows and the entropy of the responsibilities."""
    bic = n_parameters * float(np.log(n_rows)) - 2 * log_likelihood
    return {"aic": 2 * n_parameters - 2 * log_likelihood, "bic": bic, "icl": bic + 2 * max(uncertainty, 0.0)}


def least_mass(
    asked: float | None, unit: float, total_weight: float, n_coefficients: int, rows_a_unit: float = 1.0
) -> float:
    """Smallest weight of a regular component with noise, in units of average weight."""
    if asked is not None:
        return asked / unit
    least = max((n_coefficients + 2) / rows_a_unit, 1.0)
    return float(np.clip(0.05 * total_weight, least, 5 * (n_coefficients + 1)))


def excluded_solution(
    run: Run[Any], values: Values, log_likelihood: float, total_weight: float, regular_from: float
) -> dict[str, Any]:
    """A solution that the rule leaves out, and why; weights are those of the user."""
    return {
        "log_likelihood": log_likelihood,
        "sigma_ratio": run.theta.sigma_ratio,
        "smallest_component": float(run.theta.weights.min()) * total_weight,
        "regular_from": regular_from,
        "reason": run.degenerate,
        **values,
    }


def fitted_attributes(
    values: Values,
    settings: Settings,
    *,
    center: NDArray[np.float64],
    standard_errors: dict[str, Any] | None,
    degenerate: str,
    is_exact: bool,
    converged: bool,
    n_iter: int,
    excluded: dict[str, Any] | None,
    optima: Sequence[dict[str, Any]],
    records: tuple[StartRecord, ...],
    note: str,
    trace: Trace,
) -> dict[str, Any]:
    """The attributes of an estimator, in the units of X and y; `values` has parameters and the levels at `center`."""
    if excluded is not None:
        note = f"{note} {what_would_admit(excluded, settings.rule.max_sigma_ratio)}".strip()
    names = ("coef", "intercept", "scale", "weights", "gating_coef", "gating_intercept")
    return {
        **{f"{name}_": values[name] for name in names},
        "center_": center.copy(),
        "center_fits_": values["level"],
        "standard_errors_": standard_errors,
        "regular_": not degenerate,
        "degeneracy_": of_degenerate(degenerate, settings.n_components, settings.response),
        "is_exact_": is_exact,
        "converged_": bool(converged),
        "n_iter_": int(n_iter),
        "excluded_": excluded,
        "optima_": list(optima),
        "search_": SearchReport(records, "log-likelihood", "max", note=note),
        "trace_": trace,
    }
