r"""The mixing distribution with the highest likelihood, whatever its number of atoms.

Over all distributions Q of the place t, :math:`\sum_i w_i \log \int k(x_i, t) dQ(t)` is concave. Shares of atoms are
improved by Newton steps on the nonnegative orthant, and new atoms are taken at local maxima of the gradient

.. math:: g(t) = \sum_i \frac{w_i}{p_i} k(x_i, t), \quad p_i = \int k(x_i, t) dQ(t),

where it exceeds the summed weight; at the optimum it nowhere does.

References
----------
.. [1] B. G. Lindsay, "The geometry of mixture likelihoods: a general theory", Annals of Statistics, 1983.
.. [2] Y. Wang, "On fast computation of the non-parametric maximum likelihood estimate of a mixing distribution",
   Journal of the Royal Statistical Society B, 2007.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from majorant.solvers.mixture_bounds.bumps import Array, Bumps

MOST_POINTS = 2500
"""Number of points above which nearby points are merged in the search for new atoms."""
MOST_NEW = 40
APART = 0.5
"""Smallest distance between new atoms of one round."""
FIRST_ATOMS = 200
EM_STEPS, EM_ROUNDS = 3, 4
"""EM moves many atoms at once, but may move one away from its optimal place; so it is used in the first rounds only."""
NEWTON_STEPS = 10
LOCAL_STEPS = 60
MOST_ROUNDS = 300


@dataclass(frozen=True)
class Mixing:
    """A mixing distribution."""

    atoms: Array  # (m, d)
    shares: Array  # (m,): positive, of sum one
    log_density: Array  # (n,): log density at the points, in units of the kernel
    peaks: Array  # (s, d): places where the gradient is large, highest first
    highest: float  # the gradient at the first peak divided by the summed weight


@dataclass(frozen=True)
class Aim:
    """When a bound is close enough."""

    reached: float  # log-likelihood of the fit
    share: float  # largest relative increase of the bound's distance from it by ending early

    def tolerance(self, attained: float) -> float:
        """Return the tolerance of the log-likelihood, given the log-likelihood of the mixing distribution."""
        far = attained - self.reached if np.isfinite(self.reached) else 0.0
        return 1e-3 + 0.5 * self.share * max(far, 0.0)


def best_mixing(
    bumps: Bumps,
    work: float,  # approximate number of multiplications allowed
    aim: Aim,  # the search ends once no known place can raise the likelihood by more than its tolerance
    start: Mixing | None = None,  # mixing distribution to start from: its atoms and peaks
) -> tuple[Mixing, float]:
    """Return a mixing distribution whose likelihood is within the tolerance of the highest, and the work done."""
    spent, total = 0.0, bumps.total
    coarse, cell = bumps.in_cells(MOST_POINTS) if len(bumps.rows) > MOST_POINTS else (None, None)
    if start is None and coarse is not None:
        start, spent = best_mixing(coarse, 0.5 * work, aim)
    atoms, shares = (
        bumps.first_places(FIRST_ATOMS) if start is None else _extended(start.atoms, start.shares, start.peaks)
    )
    best: Mixing | None = None
    for turn in range(MOST_ROUNDS):
        if start is None and turn < EM_ROUNDS:
            atoms, shares = _moved(bumps, atoms, shares)
        table, offset = bumps.table(atoms)
        n, m = table.shape
        shares = improved_shares(table, bumps.weights, shares)
        kept = shares > 1e-9 / total
        atoms, shares, table = atoms[kept], shares[kept] / shares[kept].sum(), table[:, kept]
        log_density = np.log(table @ shares) + offset
        heights = np.exp(np.log(bumps.weights / total) - log_density)
        if coarse is None or cell is None:
            peaks, values, looks = _peaks(
                bumps, heights, np.concatenate((atoms, bumps.candidates(heights))), MOST_NEW, LOCAL_STEPS
            )
        else:
            near = np.bincount(cell, heights).astype(np.float64)
            peaks, _, looks = _peaks(
                coarse, near, np.concatenate((atoms, coarse.candidates(near))), MOST_NEW, LOCAL_STEPS
            )
            tall = bumps.candidates(heights, MOST_NEW)
            peaks, values, more = _peaks(bumps, heights, np.concatenate((atoms, peaks, tall)), MOST_NEW // 4, 3)
            looks += more
        spent += looks + n * m * (bumps.look + NEWTON_STEPS * (m / 4 + 2.0))
        found = Mixing(atoms, shares, log_density, peaks, float(values[0]))
        if best is None or found.highest < best.highest:
            best = found
        tolerance = aim.tolerance(bumps.log_likelihood(log_density))
        new = peaks[values > 1 + 0.1 * tolerance / total]
        if total * np.log(best.highest) <= tolerance or len(new) == 0 or spent > work:
            break
        atoms, shares = _extended(atoms, shares, new)
    assert best is not None
    return best, spent


def improved_shares(table: Array, weights: Array, shares: Array, max_steps: int = NEWTON_STEPS) -> Array:
    r"""Improve shares of the concave :math:`\sum_i w_i \log \sum_j q_j k_{ij} - W \sum_j q_j`; the optimum sums to one.

    Newton steps on the nonnegative orthant with a line search: the value never falls.

    Parameters
    ----------
    table : ndarray of shape (n, m)
        Nonnegative, with a positive entry in every row.
    weights : ndarray of shape (n,)
    shares : ndarray of shape (m,)
        Positive.
    """
    total, m = float(weights.sum()), len(shares)
    density = table @ shares
    value = float(weights @ np.log(density)) - total * float(shares.sum())
    for _ in range(max_steps):
        ratios = table / density[:, None]
        gradient = weights @ ratios
        if np.max(gradient - total) <= 1e-9 * total and np.max(shares * (total - gradient)) <= 1e-9 * total:
            break
        hessian = (ratios * weights[:, None]).T @ ratios
        hessian[np.diag_indices(m)] *= 1 + 1e-9
        hessian[np.diag_indices(m)] += 1e-10 * np.trace(hessian) / m
        root = np.linalg.cholesky(hessian)
        target = solve_triangular(root, 2 * gradient - total, lower=True)
        try:
            aim = nnls(root.T, target)[0] - shares
        except RuntimeError:  # too many iterations
            aim = shares * (gradient / total - 1)
        slope, step = float((gradient - total) @ aim), 1.0
        while step > 1e-6:
            trial = shares + step * aim
            density_there = table @ trial
            if density_there.min() > 0:
                there = float(weights @ np.log(density_there)) - total * float(trial.sum())
                if there >= value + 0.1 * step * slope:
                    break
            step /= 2
        else:
            break
        gain, shares, density, value = there - value, trial, density_there, there
        if gain <= 1e-12 * total:
            break
    return shares / float(shares.sum())


def _extended(atoms: Array, shares: Array, new: Array) -> tuple[Array, Array]:
    """Return atoms and shares with new atoms of small shares appended."""
    return np.concatenate((atoms, new)), np.concatenate((shares * (1 - 1e-3), np.full(len(new), 1e-3 / len(new))))


def _moved(bumps: Bumps, atoms: Array, shares: Array) -> tuple[Array, Array]:
    """Return places and shares after a few steps of EM."""
    for _ in range(EM_STEPS):
        joint = bumps.table(atoms)[0] * shares
        joint *= (bumps.weights / joint.sum(axis=1))[:, None]
        mass = joint.sum(axis=0)
        kept = mass > 1e-9
        atoms, shares = bumps.means(joint[:, kept]), mass[kept] / mass[kept].sum()
    return atoms, shares


def _peaks(bumps: Bumps, heights: Array, starts: Array, most: int, steps: int) -> tuple[Array, Array, float]:
    """Climb to local maxima of the gradient; return them, highest first, their heights, and the work."""
    _, values, work = bumps.climb(heights, starts, 0)
    chosen: list[int] = []
    for j in np.argsort(-values, kind="stable"):
        if all(((starts[j] - starts[i]) ** 2).sum() > APART**2 for i in chosen):
            chosen.append(int(j))
            if len(chosen) == most:
                break
    peaks, values, more = bumps.climb(heights, starts[chosen], steps, 1e-9)
    order = np.argsort(-values, kind="stable")
    return peaks[order], values[order], work + more
