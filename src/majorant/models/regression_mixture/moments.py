"""Starts from the moments of the data, where there are rows enough for them."""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from majorant.models.regression_mixture.design import Design
from majorant.models.regression_mixture.parameters import Regressions
from majorant.starts.moment_least_squares import moment_least_squares
from majorant.starts.regression_moments import RegressionMoments, regression_moments
from majorant.starts.spectral import spectral_experts

MOMENTS, SPECTRAL = "moment least squares", "spectral experts"

MOST_THIRD_MOMENTS, ROWS_A_MOMENT = 300, 20
"""Moments of third order up to which they are taken, and rows from which on they tell anything."""

MOST_OTHERS = 2
"""Further local minima of moment least squares that are tried."""


def moment_start(design: Design, k: int, seed: int, method: str) -> tuple[str, Regressions]:
    """The start that a user asked for by name: "moments" or "spectral".

    Raises
    ------
    ValueError
        If spectral experts are to find more components than there are coefficients.
    """
    moments = regression_moments(design.data)
    return (_by_least_squares(moments, k, seed)[0]) if method == "moments" else _by_tensors(moments, k)


def moment_starts(design: Design, k: int, seed: int) -> list[tuple[str, Regressions]]:
    """Starts of the race: none where moments are many or rows few."""
    third = comb(design.n_coefficients + 2, 3)
    if third > MOST_THIRD_MOMENTS or design.data.n_units < ROWS_A_MOMENT * third:
        return []
    moments = regression_moments(design.data)
    starts = _by_least_squares(moments, k, seed)
    if k <= design.n_coefficients:
        starts.append(_by_tensors(moments, k))
    return starts


def _by_least_squares(moments: RegressionMoments, k: int, seed: int) -> list[tuple[str, Regressions]]:
    fit = moment_least_squares(moments, k, seed=seed)
    fits = [fit, *fit.others[:MOST_OTHERS]]
    return [(MOMENTS, _start(f.proportions, f.coefficients, f.noise_variance)) for f in fits]


def _by_tensors(moments: RegressionMoments, k: int) -> tuple[str, Regressions]:
    fit = spectral_experts(moments, k)
    return SPECTRAL, _start(fit.proportions, fit.coefficients, fit.noise_variance)


def _start(proportions: NDArray[np.float64], coef: NDArray[np.float64], noise: float) -> Regressions:
    """Moments may say that a component has no weight; EM could then never give it any."""
    weights = np.maximum(proportions, 0.02 / len(proportions))
    variances = np.full(len(coef), max(noise, 1e-6))
    return Regressions(weights / weights.sum(), np.ascontiguousarray(coef), variances)
