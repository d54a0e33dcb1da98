"""The upper bound on the log-likelihood of mixtures: coordinates, mixing distribution, largest gradient."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from majorant._kernels import BoxSearch
from majorant._numbers import briefly
from majorant.data.measure import empirical_measure
from majorant.engine.threads import one_thread
from majorant.solvers.mixture_bounds.bumps import EPSILON, Bumps, whitened
from majorant.solvers.mixture_bounds.lines import line_bumps
from majorant.solvers.mixture_bounds.mixing import Aim, Mixing, best_mixing

Effort = Literal["fast", "default", "tight"]

SURELY_CLOSED = 3
"""Number of columns up to which the search for the largest gradient nearly always finishes within its work."""
MIXING_SHARE = 0.6
"""Largest share of the work for the mixing distribution."""
PIECE = 30_000_000
"""Work between two checks for KeyboardInterrupt."""


@dataclass(frozen=True)
class _Plan:
    work: float
    """Multiplications; about a billion per second."""
    for_each_point: float
    """Additional multiplications per point."""
    share: float
    """Largest share of the bound's distance from the fit that may come from ending early."""
    columns: int
    """Largest number of columns in which places are searched; the other columns count with their peak density."""


_PLANS: dict[str, _Plan] = {
    "fast": _Plan(3e8, 1e4, 0.02, 3),
    "default": _Plan(8e9, 2e5, 0.01, 5),
    "tight": _Plan(8e10, 1e6, 0.001, 6),
}


@dataclass(frozen=True)
class UpperBound:
    """An upper bound on the log-likelihood of any mixture."""

    bound: float  # the bound in the units of the points
    attained: float  # log-likelihood of some mixture with the smallest covariance, below which no bound can be
    n_atoms: int  # number of components of that mixture
    method: str  # how the bound was proved, in words
    work: float  # approximate number of multiplications


def mixture_upper_bound(
    points: NDArray[Any],  # (n, d): finite
    weights: NDArray[np.float64] | None,  # (n,): nonnegative, not all zero
    # (d, d): S: symmetric, positive definite, in the units of the points; or its diagonal, where the rest is zero
    floor: NDArray[np.float64],
    *,
    # The log-likelihood of a fit, which determines when the bound is close enough. The bound holds for any value.
    reached: float = -np.inf,
    effort: Effort = "default",  # amount of work: some tenths of a second, some seconds, or some minutes
    # Number of multiplications in place of `effort`; about a billion take a second. The result depends on it, never on
    # the clock.
    budget: float | None = None,
) -> UpperBound:
    r"""Return an upper bound on the log-likelihood of every Gaussian mixture with covariances at least S.

    For any positive numbers :math:`p_i` and any mixture :math:`f`, by Jensen's inequality,

    .. math:: \sum_i w_i \log f(x_i) \le \sum_i w_i \log p_i
              + W \log \max_t \frac{1}{W} \sum_i \frac{w_i}{p_i} N(x_i; t, S), \quad W = \sum_i w_i,

    as every normal density of a covariance at least S is a mixture of densities :math:`N(\cdot; t, S)`. The bound holds
    whatever the number of components, and is sharp: with p from the best distribution of t, both sides are equal. The
    maximum over t is enclosed by branch and bound (a valid bound even if it is stopped), in coordinates in which S is
    the identity. A bound on rounding errors is added (not by interval arithmetic).

    Raises ValueError if the arrays do not fit together, `floor` is not positive definite, or `effort` is not known.

    References
    ----------
    .. [1] B. G. Lindsay, "Mixture Models: Theory, Geometry and Applications", IMS, 1995, for the gradient function and
       the bound that it gives.
    """
    x = np.ascontiguousarray(points, dtype=np.float64)
    s = np.asarray(floor, dtype=np.float64)
    if effort not in _PLANS:
        raise ValueError(f"effort must be one of {', '.join(map(repr, _PLANS))}; got {briefly(effort)}")
    if x.ndim != 2 or len(x) == 0 or s.shape not in ((x.shape[1], x.shape[1]), x.shape[1:]):
        raise ValueError(f"points must be (n, d) with n > 0 and floor (d, d) or (d,); got {x.shape} and {s.shape}")
    if weights is not None and weights.shape != (len(x),):
        raise ValueError(f"weights must be ({len(x)},); got {weights.shape}")
    plan = _PLANS[effort]
    # One thread, so that the sums of BLAS are taken in one order whatever the machine's number of threads.
    with one_thread():
        measure = empirical_measure(x, weights)
        try:
            bumps = whitened(measure.points, measure.weights, s * measure.scale**2)
        except np.linalg.LinAlgError:
            raise ValueError("floor must be positive definite") from None
        jacobian = measure.total_weight * x.shape[1] * float(np.log(measure.scale))
        found = _bound(bumps, reached - jacobian, plan, budget)
    return UpperBound(found.bound + jacobian, found.attained + jacobian, found.n_atoms, found.method, found.work)


def regressions_upper_bound(
    # (n, p): an orthonormal design, by the weights, of distinct rows in canonical order; the constant is a combination
    # of its columns
    z: NDArray[np.float64],
    y: NDArray[np.float64],  # (n,): centred, so that rounding errors are small
    weights: NDArray[np.float64],  # (n,): positive
    noise: float,  # s, positive
    features: NDArray[np.float64],  # (n, q): features of which z are combinations
    *,
    # `reached`, `effort`, `budget`: as for `mixture_upper_bound`
    reached: float = -np.inf,
    effort: Effort = "default",
    budget: float | None = None,
) -> UpperBound:
    r"""Return an upper bound on the log-likelihood of every mixture of lines with noise of at least s.

    As `mixture_upper_bound`, with :math:`N(y_i; z_i^T c, s^2)` in place of :math:`N(x_i; t, S)`: a line with more noise
    is a mixture of lines with noise s that are parallel to it, since lines have an intercept. All coefficients c are
    searched, however large: lines are rays (t, u) with c = u / t, in boxes.
    """
    with one_thread():
        return _bound(line_bumps(z, y, weights, noise, features), reached, _PLANS[effort], budget)


def _bound(bumps: Bumps, reached: float, plan: _Plan, budget: float | None) -> UpperBound:
    work = plan.work + plan.for_each_point * len(bumps.rows) if budget is None else float(budget)
    aim, n_columns, left = Aim(reached, plan.share), bumps.n_columns, work
    peak = bumps.total * bumps.log_peak + bumps.coordinate_error
    best = UpperBound(peak, -np.inf, 0, "peak of the density", 0.0)
    attained, n_atoms = best.attained, 0
    parts = list(bumps.parts(plan.columns))
    for part in parts:
        q = part.n_columns
        keeps_back = q > SURELY_CLOSED and part is not parts[-1]
        found, is_closed = _bound_by_search(part, aim, left / 2 if keeps_back else left)
        left -= found.work
        if q == n_columns:
            attained, n_atoms = found.attained, found.n_atoms
        else:
            found = replace(found, method=f"{found.method} in {q} of {n_columns} coordinates, the others at their peak")
        best = min(best, found, key=lambda one: one.bound)
        if is_closed or left <= 0:
            break
    return UpperBound(best.bound, attained, n_atoms, best.method, work - left)


def _bound_by_search(bumps: Bumps, aim: Aim, work: float) -> tuple[UpperBound, bool]:
    """Return the bound with p from a good mixing distribution, and whether the largest gradient was found."""
    mixing, spent = best_mixing(bumps, MIXING_SHARE * work, aim)
    while True:
        attained = bumps.log_likelihood(mixing.log_density)
        tolerance = aim.tolerance(attained)
        search, shift = _start(bumps, mixing, tolerance)
        scale = bumps.total * np.exp(-shift)
        enough = float(scale * np.exp(min(2 * tolerance / bumps.total, 1.0)))
        may_improve = spent < MIXING_SHARE * work
        is_closed = _advance(search, work - spent, enough if may_improve else np.inf)
        if search.lower <= enough or not may_improve:
            break
        # A place that raises the likelihood: a better p gives a better bound.
        place = np.empty((1, bumps.n_columns))
        search.write_centre(place[0])
        better, used = best_mixing(bumps, MIXING_SHARE * work - spent - search.tests, aim, replace(mixing, peaks=place))
        spent += used
        if better.highest >= search.lower / scale:
            is_closed = _advance(search, work - spent)
            break
        spent += search.tests
        mixing = better
    spent += search.tests
    largest = float(np.log(search.upper)) + shift
    size = float(bumps.weights @ np.abs(mixing.log_density)) + bumps.total * (1 + abs(bumps.log_peak) + abs(largest))
    rounding = (len(bumps.weights) + 100) * EPSILON * size + bumps.coordinate_error
    bound = attained + bumps.total * (largest - float(np.log(bumps.total))) + rounding
    return UpperBound(bound, attained, len(mixing.atoms), "mixing distribution and branch and bound", spent), is_closed


def _advance(search: BoxSearch, work: float, enough: float = np.inf) -> bool:
    """Advance a search until it is finished, `work` is spent or `enough` is exceeded; return whether finished."""
    is_closed = search.advance(0)
    while not is_closed and search.tests < work and search.lower <= enough:
        is_closed = search.advance(int(min(PIECE, max(work - search.tests, 1))))
    return is_closed


def _start(bumps: Bumps, mixing: Mixing, tolerance: float) -> tuple[BoxSearch, float]:
    """Start branch and bound for the largest gradient; also return the logarithm of the factor of its values."""
    logarithms = np.log(bumps.weights) - mixing.log_density
    shift = float(logarithms.max())
    width = bumps.total * np.exp(-shift) * np.expm1(min(tolerance / bumps.total, 1.0))
    search = bumps.search(np.exp(logarithms - shift), float(width))
    for place in mixing.peaks:
        search.propose(np.ascontiguousarray(place))
    return search, shift
