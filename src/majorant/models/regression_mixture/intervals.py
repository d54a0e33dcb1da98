"""Intervals of the parameters from their standard errors, and what is to be said of these."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Array = NDArray[np.float64]


def intervals(model: Any, level: float = 0.95) -> dict[str, tuple[Array, Array]] | None:
    """Intervals of every parameter: symmetric for coefficients, for noise on the scale of the logarithm, for weights of
    the logit.

    By the name of the parameter; None where there are no standard errors.
    """
    errors = model.standard_errors_
    if errors is None:
        return None
    z = float(norm.ppf(0.5 + level / 2))
    weights, scale = model.weights_, model.scale_
    spread = weights * (1 - weights)
    on_logit = np.divide(errors["weights"], spread, out=np.zeros_like(weights), where=spread > 0)
    found = {
        name: (getattr(model, f"{name}_") - z * e, getattr(model, f"{name}_") + z * e) for name, e in errors.items()
    }
    with np.errstate(over="ignore"):  # of a scale that the rows do not determine the bound is infinity
        found["scale"] = (scale * np.exp(-z * errors["scale"] / scale), scale * np.exp(z * errors["scale"] / scale))
    found["weights"] = (_moved(weights, -z * on_logit), _moved(weights, z * on_logit))
    return found


def _moved(weights: Array, by: Array) -> Array:
    """Probabilities whose logits are moved."""
    with np.errstate(over="ignore"):
        return np.asarray(weights / (weights + (1 - weights) * np.exp(-by)))


def why_no_errors(model: Any) -> str:
    """Why a fit has no standard errors from the observed information."""
    if model.is_exact_:
        return "one line fits every row exactly: there is no noise to take errors from"
    if model.trim > 0:
        return "the information of the rows that are left knows nothing of those that were trimmed: resample the rows"
    if not model.regular_:
        return str(model.degeneracy_)
    return (
        "the observed information is singular: the rows do not determine all parameters; "
        "fit fewer components or leave out columns that are combinations of others"
    )


def reservations(model: Any) -> list[str]:
    """What is to be said of the standard errors of a fit that has them."""
    if model.regular_:
        return []
    return [
        "The solution is not a regular one: a component's noise is on its bound, it is too small, or its predictor "
        "runs to infinity. Errors from the information then mean little."
    ]
