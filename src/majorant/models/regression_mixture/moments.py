"""Starts from the moments of the data, where there are rows enough for them."""

from __future__ import annotations

from math import comb

import numpy as np

from majorant.models.regression_mixture.design import Design
from majorant.models.regression_mixture.family import VarianceRule
from majorant.models.regression_mixture.lines import NamedStart, run_em
from majorant.models.regression_mixture.parameters import Regressions
from majorant.models.regression_mixture.starts import Sample
from majorant.starts.moment_least_squares import MomentFit, moment_least_squares
from majorant.starts.regression_moments import regression_moments
from majorant.starts.spectral import SpectralFit, spectral_experts

MOMENTS, SPECTRAL = "moment least squares", "spectral experts"

MOST_THIRD_MOMENTS, ROWS_A_MOMENT = 300, 20
"""Moments of third order up to which they are taken, and rows from which on they tell anything."""

FEWEST_ROWS = 10_000
"""Rows below which a race without them finds as much in a third of the time."""

MOST_OTHERS = 2
"""Further local minima of moment least squares that are tried."""

N_STEPS, MOST_ROWS = 50, 1 << 15
"""Steps of EM, on so many rows at most, by which one of several starts is chosen."""


def moment_start(design: Design, k: int, rule: VarianceRule, seed: int, *, by_tensors: bool) -> NamedStart:
    """The start that a user asked for by name: of those that moments leave open, the one that EM makes most of.

    Raises
    ------
    ValueError
        If spectral experts are to find more components than there are coefficients.
    """
    p = design.n_coefficients
    if by_tensors and k > p:
        parts = "the intercept among them" if design.standard.fit_intercept else "without an intercept"
        raise ValueError(
            f'init="spectral" finds at most as many components as a line has coefficients; got n_components={k} and '
            f'{p} coefficients, {parts}: ask for fewer components, or use init="auto" or init="moments"'
        )
    draws = np.random.default_rng(seed)
    rows = Sample(design.x, design.y, design.weights)
    if len(rows.y) > MOST_ROWS:
        rows = rows.subsample(draws, MOST_ROWS)
    starts = _found(design, k, seed, (SPECTRAL,) if by_tensors else (MOMENTS,))
    return min(starts, key=lambda start: run_em(rows, start[1].copy(), rule, N_STEPS, 0.0)[0])


def moment_starts(design: Design, k: int, seed: int) -> list[NamedStart]:
    """Starts of the race: none where moments are many or rows few."""
    third = comb(design.n_coefficients + 2, 3)
    if third > MOST_THIRD_MOMENTS or design.data.n_units < max(ROWS_A_MOMENT * third, FEWEST_ROWS):
        return []
    return _found(design, k, seed, (MOMENTS, SPECTRAL) if k <= design.n_coefficients else (MOMENTS,))


def _found(design: Design, k: int, seed: int, methods: tuple[str, ...]) -> list[NamedStart]:
    """What the moments of one pass leave open, each method's best first, as lines of the design."""
    data, back, pooled = design.in_features()
    moments = regression_moments(data)
    starts: list[NamedStart] = []
    for method in methods:
        fits: list[MomentFit | SpectralFit]
        if method == MOMENTS:
            fit = moment_least_squares(moments, k, seed=seed)
            fits = [fit, *fit.others[:MOST_OTHERS]]
        else:
            experts = spectral_experts(moments, k)
            fits = [experts, *experts.others]
        for f in fits:
            # Moments may say that a component has no weight; EM could then never give it any.
            weights = np.maximum(f.proportions, 0.02 / k)
            coef = np.ascontiguousarray(np.einsum("kj,jp->kp", f.coefficients, back) - pooled)
            variances = np.full(k, max(f.noise_variance, 1e-6))
            starts.append((method, Regressions(weights / weights.sum(), coef, variances)))
    return starts
