"""Starts from the moments of the data, for those who ask for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks, Mapped
from majorant.densities import Predictors
from majorant.engine.mixture import Parameters
from majorant.laws.independent import Weights
from majorant.models.regression_mixture.contest import RegressionContest, contest_of
from majorant.models.regression_mixture.starts import Starts, Theta
from majorant.models.regression_mixture.units import AnyUnits, Units
from majorant.search.contestants import NamedStart, entrants
from majorant.search.effort import Plan
from majorant.search.race import Race
from majorant.starts.moment_least_squares import NOISE_FLOOR, MomentFit, moment_least_squares
from majorant.starts.regression_moments import regression_moments
from majorant.starts.spectral import SpectralFit, spectral_experts
from majorant.starts.vanishing_polynomial import MOST_PRODUCTS, sizes, vanishing_polynomial

MOMENTS, SPECTRAL, VANISHING = "moment least squares", "spectral experts", "vanishing polynomial"

MOST_OTHERS = 2
"""Most further local minima of moment least squares that are starts."""

N_STEPS, MOST_ROWS = 50, 1 << 15
"""Steps of EM, and most rows, by which one of several starts is chosen."""

N_DRAWS, N_POINTS = 3, 150
"""Starts with gating, and rows whose points on the lines each of them is made from."""
TRIM = 0.25
"""Share of these points that may be on no line: those of a line are far off where hardly a row is on it."""
SHORT = Plan(n_starts=16, n_perturbations=16, race=((15, 8), (40, 4)), n_beyond=0, least_rounds=2, most_rounds=4)
"""The search for lines through points, which are nearly free of noise."""


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
    starts = _found(units, k, seed, by_tensors=by_tensors) if units.gating is None else _gated(contest, rows, seed)
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


def _gated(contest: RegressionContest, rows: Units, seed: int) -> list[NamedStart[Theta]]:
    """Return lines through the points of a vanishing polynomial: of every row one on each line, whatever the gating.

    Raises
    ------
    ValueError
        If the polynomial has too many coefficients.
    """
    units, k, draws = contest.units, contest.mixture.n_components, np.random.default_rng(seed)
    response, rule = contest.density.response, replace(contest.density.rule, common=True)
    if (n := sum(sizes(units.n_coefficients, k))) > MOST_PRODUCTS:
        raise ValueError(
            f'init="moments" with gating takes at most {MOST_PRODUCTS} products of at most n_components features; '
            f'n_components={k} and {units.n_coefficients} coefficients a line have {n}: use init="auto"'
        )
    polynomial = vanishing_polynomial(units.data, k)
    largest, law = float(np.abs(rows.y).max()), Starts(rows, response, k).even_law(1)
    dispersion = np.full((1, k), max(polynomial.noise_variance, NOISE_FLOOR))
    starts: list[NamedStart[Theta]] = []
    for _ in range(N_DRAWS):
        few = rows.subsample(draws, min(N_POINTS, rows.n_units))
        roots = polynomial.roots(few.z)
        is_point = (np.abs(roots.imag) < 1e-6 * largest) & (np.abs(roots.real) <= largest)
        if is_point.sum() < 2 * k * (units.n_coefficients + 1):
            is_point[:] = True
        at, y = np.nonzero(is_point)[0], np.clip(roots.real[is_point], -largest, largest)
        first, weights = np.arange(len(y)), np.ones(len(y))
        points = replace(few, z=few.z[at], y=y, first=first, weights=weights, unit=1.0, gating=None, positions=None)
        plain = points.mixture(response, rule, k, fused=False)
        race = contest_of(points, plain, least_size=1.0, tol=contest.tol, max_iter=contest.max_iter, trim=TRIM)
        coef = Race(replace(race, plan=SHORT), 0).find(draws).best.theta.density.coef
        starts.append((VANISHING, Parameters(Predictors(coef, dispersion), law)))
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
