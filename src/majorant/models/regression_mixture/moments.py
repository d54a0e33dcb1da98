"""Starts from the moments of the data, for those who ask for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks, Mapped
from majorant.densities import Predictors
from majorant.engine.mixture import Parameters
from majorant.laws.independent import Weights
from majorant.models.regression_mixture.contest import RegressionContest
from majorant.models.regression_mixture.starts import Theta
from majorant.models.regression_mixture.units import AnyUnits, Units
from majorant.search.contestants import NamedStart, entrants
from majorant.starts.moment_least_squares import MomentFit, moment_least_squares
from majorant.starts.regression_moments import regression_moments
from majorant.starts.spectral import SpectralFit, spectral_experts

MOMENTS, SPECTRAL = "moment least squares", "spectral experts"

MOST_OTHERS = 2
"""Most further local minima of moment least squares that are starts."""

N_STEPS, MOST_ROWS = 50, 1 << 15
"""Steps of EM, and most rows, by which one of several starts is chosen."""


def moment_start(contest: RegressionContest, seed: int, *, by_tensors: bool) -> NamedStart[Theta]:
    """Return the start that a user asked for by name: of those that moments leave open, the one best after EM.

    Raises
    ------
    ValueError
        If spectral experts are to find more components than there are coefficients.
    """
    units, k = contest.units, contest.mixture.n_components
    p = units.n_coefficients
    if by_tensors and k > p:
        parts = "the intercept among them" if units.coordinates.fit_intercept else "without an intercept"
        raise ValueError(
            f'init="spectral" finds at most as many components as a line has coefficients; got n_components={k} and '
            f'{p} coefficients, {parts}: ask for fewer components, or use init="auto" or init="moments"'
        )
    rows = units if isinstance(units, Units) else units.sample
    if rows.n_rows > MOST_ROWS:
        rows = rows.subsample(np.random.default_rng(seed), MOST_ROWS)
    starts = _found(units, k, seed, by_tensors=by_tensors)
    ends = contest.run(rows, entrants(starts), N_STEPS, 0.0)
    return starts[min(range(len(ends)), key=lambda i: ends[i].objective)]


def _found(units: AnyUnits, k: int, seed: int, *, by_tensors: bool) -> list[NamedStart[Theta]]:
    """Return the starts that moments of one pass leave open, the best first, in unit coordinates."""
    data, back, pooled = in_features(units)
    moments = regression_moments(data)
    fits: list[MomentFit | SpectralFit]
    if by_tensors:
        experts = spectral_experts(moments, k)
        fits = [experts, *experts.others]
    else:
        fit = moment_least_squares(moments, k, seed=seed)
        fits = [fit, *fit.others[:MOST_OTHERS]]
    starts: list[NamedStart[Theta]] = []
    for f in fits:
        # Moments may say that a component has no weight; EM could then never give it any.
        weights = np.maximum(f.proportions, 0.02 / k)
        coef = np.ascontiguousarray(np.einsum("kj,jp->kp", f.coefficients, back) - pooled)
        dispersion = np.full((1, k), max(f.noise_variance, 1e-6))
        law = Weights((weights / weights.sum())[None])
        starts.append((SPECTRAL if by_tensors else MOMENTS, Parameters(Predictors(coef[None], dispersion), law)))
    return starts


def in_features(units: AnyUnits) -> tuple[Chunks, NDArray[np.float64], NDArray[np.float64]]:
    r"""Return the rows (x, y) for moment methods, and how their lines are those of the units.

    Residuals about one line would not do: the lines of a mixture add up to nothing then, so that K of them span less
    than K dimensions.

    Of a constant, where there is an intercept, the standardised columns, and y in units of the single noise; a line b
    of these is the line ``b @ back - pooled`` of the units.
    """
    c = units.coordinates
    inverse = np.linalg.inv(c.transform[np.abs(c.transform).max(axis=1) > 0])
    pooled = c.pooled / c.sigma

    def columns(block: Block) -> tuple[Any, ...]:
        z, u = block.columns[:2]
        return np.einsum("ip,pj->ij", z, inverse), u + np.einsum("ip,p->i", z, pooled)

    return Chunks(Mapped(units.data.source, columns), n_jobs=units.data.n_jobs), inverse.T, pooled
