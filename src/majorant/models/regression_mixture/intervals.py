"""Intervals of the parameters from their standard errors, and notes on these."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from majorant.results.information import interval

Array = NDArray[np.float64]
LIMITS = {"scale": (0.0, np.inf), "weights": (0.0, 1.0)}


def intervals(model: Any, level: float = 0.95) -> dict[str, tuple[Array, Array]] | None:
    """Intervals of every parameter by its name; None where there are no standard errors, NaN where one has none."""
    if model.standard_errors_ is None:
        return None
    z = float(norm.ppf(0.5 + level / 2))
    return {
        name: interval(np.asarray(getattr(model, f"{name}_")), error, z, LIMITS.get(name, (-np.inf, np.inf)))
        for name, error in model.standard_errors_.items()
    }


def why_no_errors(model: Any) -> str:
    """Return why a fit has no standard errors from the observed information."""
    if model.is_exact_:
        return "one line fits every row exactly: there is no noise to estimate standard errors from"
    return "the information of the rows that are left knows nothing of those that were trimmed: resample the rows"


def reservations(model: Any) -> list[str]:
    """Return the note on the standard errors of a fit that has them."""
    if model.regular_:
        return []
    return [
        "The solution is not a regular one: a component's noise is on its bound, it is too small, or its predictor "
        "runs to infinity. Standard errors from the information are then unreliable."
    ]
