"""EM of many mixtures at once, whose log-likelihood never falls."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from majorant.models.regression_mixture.experts.parameters import Experts
from majorant.models.regression_mixture.experts.statistics import Statistics, log_priors, statistics
from majorant.models.regression_mixture.experts.steps import direction, moved
from majorant.models.regression_mixture.experts.streams import AnyUnits
from majorant.models.regression_mixture.experts.units import Units
from majorant.models.regression_mixture.family import VarianceRule
from majorant.solvers.responses import Response

MOST_HALVINGS = 8
PLAIN_STEPS = 6
"""Steps of EM before the first extrapolation."""

LONGEST_EXTRAPOLATION = 64.0


@dataclass(frozen=True)
class Problem:
    """What is maximised.

    Attributes
    ----------
    response : Response
    rule : VarianceRule
    trim : float
        Share of the rows that does not count.
    n_threads : int
        Threads that work on blocks of units at a time; the result does not depend on it.
    """

    response: Response
    rule: VarianceRule
    trim: float = 0.0
    n_threads: int = 1

    def seen(self, units: AnyUnits, theta: Experts) -> Statistics:
        return statistics(units, self.response, theta, self.trim, self.n_threads)

    def with_one_dispersion(self, theta: Experts) -> Experts:
        """Where components share their dispersion, theirs on average: no step may then gain by keeping them apart."""
        if not (self.response.has_dispersion and self.rule.common):
            return theta
        mean = np.sum(theta.weights * theta.dispersion, axis=-1, keepdims=True)
        return replace(theta, dispersion=np.repeat(mean, theta.n_components, axis=-1))

    def step(self, units: AnyUnits, theta: Experts, seen: Statistics) -> tuple[Experts, Statistics]:
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
    seen : Statistics
        There.
    n_iter : ndarray of shape (S,) of int
    converged : ndarray of shape (S,) of bool
    paths : list of list of float
        Log-likelihood after every step of each run.
    """

    theta: Experts
    seen: Statistics
    n_iter: NDArray[np.intp]
    converged: NDArray[np.bool_]
    paths: list[list[float]]


def run_em(units: AnyUnits, problem: Problem, theta: Experts, max_iter: int, tol: float) -> Ends:
    """EM until what is left to gain, by the rate at which gains shrink, is below `tol` a unit of weight.

    After every two steps of EM comes an extrapolation (SQUAREM [1]_), which is kept where it gains.

    References
    ----------
    .. [1] R. Varadhan, C. Roland, "Simple and Globally Convergent Methods for Accelerating the Convergence of Any EM
       Algorithm", Scandinavian Journal of Statistics, 2008.
    """
    n = len(theta.weights)
    active = np.arange(n)
    theta = problem.with_one_dispersion(theta)
    seen = problem.seen(units, theta)
    out, at_end = theta, seen
    n_iter, converged = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=bool)
    paths: list[list[float]] = [[] for _ in range(n)]
    limit = tol * units.total_weight
    count = 0
    while count < max_iter and len(active):
        first, seen_first = problem.step(units, theta, seen)
        count += 1
        _follow(paths, active, seen_first)
        two = (first, seen_first)
        done = np.zeros(len(active), dtype=bool)
        if count < max_iter:
            two = problem.step(units, first, seen_first)
            count += 1
            _follow(paths, active, two[1])
            done = _is_done(seen.log_likelihood, seen_first.log_likelihood, two[1].log_likelihood, limit)
        n_iter[active], converged[active] = count, done
        out, at_end = put(out, active, two[0]), at_end.put(active, two[1])
        keep = np.flatnonzero(~done)
        if not len(keep):
            break
        active = active[keep]
        before, first, theta, seen = theta[keep], first[keep], two[0][keep], two[1][keep]
        if PLAIN_STEPS <= count < max_iter:
            theta, seen = _extrapolated(units, problem, before, first, theta, seen)
            out, at_end = put(out, active, theta), at_end.put(active, seen)
    return Ends(_with_mean_priors(units, out), at_end, n_iter, converged, paths)


def _follow(paths: list[list[float]], active: NDArray[np.intp], seen: Statistics) -> None:
    for i, value in zip(active.tolist(), seen.log_likelihood.tolist(), strict=True):
        paths[i].append(value)


def _is_done(a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64], limit: float) -> NDArray[np.bool_]:
    """Whether gains from a to b to c, if they go on shrinking at this rate, add up to less than a limit."""
    first, second = np.maximum(b - a, 0.0), np.maximum(c - b, 0.0)
    rate = np.divide(second, first, out=np.ones_like(first), where=first > 0)
    rest = np.divide(second * rate, 1 - rate, out=np.full_like(first, np.inf), where=rate < 1)
    return np.asarray((rest <= limit) | (second <= 1e-13 * np.abs(c)))


def _extrapolated(
    units: AnyUnits, problem: Problem, before: Experts, first: Experts, second: Experts, seen: Statistics
) -> tuple[Experts, Statistics]:
    """Beyond two steps of EM, for the mixtures that gain by it."""
    vectors = [_packed(theta) for theta in (before, first, second)]
    move = vectors[1] - vectors[0]
    bend = vectors[2] - vectors[1] - move
    size = np.sqrt(np.sum(bend**2, axis=1))
    length = np.divide(np.sqrt(np.sum(move**2, axis=1)), size, out=np.ones(len(size)), where=size > 0)
    far = np.flatnonzero(length > 1)
    if not len(far):
        return second, seen
    a = np.minimum(length[far], LONGEST_EXTRAPOLATION)[:, None]
    tried = _unpacked(vectors[0][far] + 2 * a * move[far] + a**2 * bend[far], second)
    if problem.response.has_dispersion and not problem.rule.common:
        ratio = tried.dispersion.max(axis=1) / tried.dispersion.min(axis=1)
        legal = (ratio <= problem.rule.max_sigma_ratio**2) & (tried.dispersion.min(axis=1) >= problem.rule.floor)
        far, tried = far[legal], tried[legal]
    if not len(far):
        return second, seen
    after = problem.seen(units, tried)
    better = np.flatnonzero(after.log_likelihood > seen.log_likelihood[far])
    return put(second, far[better], tried[better]), seen.put(far[better], after[better])


def _packed(theta: Experts) -> NDArray[np.float64]:
    """Parameters without constraints, (S, number)."""
    s = len(theta.weights)
    last = np.log(np.maximum(theta.weights, 1e-300)) if theta.gating is None else theta.gating.reshape(s, -1)
    return np.concatenate([theta.coef.reshape(s, -1), np.log(theta.dispersion), last], axis=1)


def _unpacked(vectors: NDArray[np.float64], like: Experts) -> Experts:
    k, p = like.coef.shape[1:]
    s = len(vectors)
    coef, dispersion = vectors[:, : k * p].reshape(s, k, p), np.exp(vectors[:, k * p : k * p + k].clip(-700, 700))
    last = vectors[:, k * p + k :]
    if like.gating is not None:
        return Experts(np.full((s, k), 1 / k), coef, dispersion, last.reshape(s, *like.gating.shape[1:]))
    weights = np.exp(last - last.max(axis=1, keepdims=True))
    return Experts(weights / weights.sum(axis=1, keepdims=True), coef, dispersion)


def _with_mean_priors(units: AnyUnits, theta: Experts) -> Experts:
    """The weights of a mixture with gating are the mean of its priors."""
    if theta.gating is None or not isinstance(units, Units):
        return theta
    share = units.weights / units.total_weight
    return replace(theta, weights=np.einsum("u,usk->sk", share, np.exp(log_priors(units, theta))))
