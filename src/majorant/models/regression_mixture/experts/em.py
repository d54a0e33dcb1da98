"""EM of many mixtures at once, whose log-likelihood never falls."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from majorant.models.regression_mixture.experts.parameters import Experts
from majorant.models.regression_mixture.experts.statistics import Statistics, log_priors, statistics
from majorant.models.regression_mixture.experts.steps import direction, moved
from majorant.models.regression_mixture.experts.units import Units
from majorant.models.regression_mixture.family import VarianceRule
from majorant.solvers.responses import Response

MOST_HALVINGS = 8


@dataclass(frozen=True)
class Problem:
    """What is maximised.

    Attributes
    ----------
    response : Response
    rule : VarianceRule
    trim : float
        Share of the rows that does not count.
    """

    response: Response
    rule: VarianceRule
    trim: float = 0.0

    def seen(self, units: Units, theta: Experts) -> Statistics:
        return statistics(units, self.response, theta, self.trim)

    def step(self, units: Units, theta: Experts, seen: Statistics) -> tuple[Experts, Statistics]:
        """One step of EM for every mixture, shortened until its log-likelihood does not fall."""
        towards = direction(theta, seen, self.response, units.n_shared)
        shares = np.ones(len(theta.weights))
        new = moved(theta, seen, towards, shares, self.response, self.rule, units.n_shared)
        after = self.seen(units, new)
        for _ in range(MOST_HALVINGS):
            bad = np.flatnonzero(~(after.log_likelihood >= seen.log_likelihood - _slack(seen.log_likelihood)))
            if not len(bad):
                return new, after
            shares[bad] /= 3
            part = replace(
                towards, coef=towards.coef[bad], gating=None if towards.gating is None else towards.gating[bad]
            )
            retried = moved(theta[bad], seen[bad], part, shares[bad], self.response, self.rule, units.n_shared)
            new = put(new, bad, retried)
            after = after.put(bad, self.seen(units, retried))
        bad = np.flatnonzero(~(after.log_likelihood >= seen.log_likelihood - _slack(seen.log_likelihood)))
        return put(new, bad, theta[bad]), after.put(bad, seen[bad])


def _slack(log_likelihood: NDArray[np.float64]) -> NDArray[np.float64]:
    """What rounding may take."""
    return 1e-12 * (1 + np.abs(log_likelihood))


def put(theta: Experts, at: NDArray[np.intp], other: Experts) -> Experts:
    """With the mixtures `at` of a batch replaced."""
    weights, coef, dispersion = theta.weights.copy(), theta.coef.copy(), theta.dispersion.copy()
    weights[at], coef[at], dispersion[at] = other.weights, other.coef, other.dispersion
    gating = None
    if theta.gating is not None and other.gating is not None:
        gating = theta.gating.copy()
        gating[at] = other.gating
    return Experts(weights, coef, dispersion, gating)


@dataclass(frozen=True)
class Ends:
    """Where runs of EM came to.

    Attributes
    ----------
    theta : Experts
    log_likelihood : ndarray of shape (S,)
    rows : ndarray of shape (S, K)
    mass : ndarray of shape (S, K)
    n_iter : ndarray of shape (S,) of int
    converged : ndarray of shape (S,) of bool
    path : list of ndarray
        Log-likelihoods after every step, of the runs still on their way.
    """

    theta: Experts
    log_likelihood: NDArray[np.float64]
    mass: NDArray[np.float64]
    n_iter: NDArray[np.intp]
    converged: NDArray[np.bool_]
    path: list[NDArray[np.float64]]


def run_em(units: Units, problem: Problem, theta: Experts, max_iter: int, tol: float) -> Ends:
    """EM until what is left to gain, by the rate at which gains shrink, is below `tol` a unit of weight."""
    n = len(theta.weights)
    active = np.arange(n)
    seen = problem.seen(units, theta)
    last = np.full(n, np.inf)
    out, values, mass = theta, seen.log_likelihood.copy(), seen.mass.copy()
    n_iter, converged = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=bool)
    path = [values.copy()]
    limit = tol * units.total_weight
    for _ in range(max_iter):
        new, after = problem.step(units, theta, seen)
        gain = np.maximum(after.log_likelihood - seen.log_likelihood, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            rate = np.where(gain < last, gain / last, 1.0)
            rest = np.where(rate < 1, gain * rate / (1 - rate), np.inf)
        rest = np.where(np.isfinite(last), rest, np.inf)
        done = (rest <= limit) | (gain <= 1e-13 * np.abs(after.log_likelihood))
        out = put(out, active, new)
        values[active], mass[active] = after.log_likelihood, after.mass
        n_iter[active] += 1
        converged[active] = done
        path.append(values.copy())
        if done.all():
            break
        keep = np.flatnonzero(~done)
        active, theta, seen, last = active[keep], new[keep], after[keep], gain[keep]
    return Ends(_with_mean_priors(units, out), values, mass, n_iter, converged, path)


def _with_mean_priors(units: Units, theta: Experts) -> Experts:
    """The weights of a mixture with gating are the mean of its priors."""
    if theta.gating is None:
        return theta
    share = units.weights / units.total_weight
    return replace(theta, weights=np.einsum("u,usk->sk", share, np.exp(log_priors(units, theta))))
