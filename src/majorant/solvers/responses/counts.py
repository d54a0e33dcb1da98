"""Counts: Poisson with a logarithmic link, binomial with a logistic one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log1p

from majorant.solvers.responses.response import Response, Table, log_peak, refuse

LARGEST_LOG = 700.0
"""Largest argument whose exponential does not overflow."""

NO_COUNT = 1e-20
"""Replacement of a count of zero in logarithms."""

LARGEST_COUNT = 2.0**53
"""Largest count: floats represent all whole numbers up to it."""


def _log_most(y: Table) -> Table:
    """Return the log density of a Poisson count whose mean is the count itself, the largest possible."""
    some = np.where(y > 0, y, 1.0)
    return np.where(y > 0, log_peak(some) - np.log(some), 0.0)


def _lost(count: Table, log_ratio: Table) -> Table:
    """Return ``m - y - y log(m / y)`` from ``log(m / y)``: for large counts y each term is far larger than the sum."""
    return np.asarray(count * (np.expm1(log_ratio) - log_ratio))


def _refuse_large(name: str, counts: NDArray[np.float64]) -> None:
    refuse(
        counts,
        counts > LARGEST_COUNT,
        f"{name} must be at most 2**53 = {LARGEST_COUNT:.4g}, above which numbers of 64 bits skip whole ones",
        'Use family="gamma", or "gaussian" on logarithms of counts or logits of shares',
        what=name,
    )


class Poisson(Response):
    r"""Counts: ``log E y = eta``; the logarithm of the exposure is an offset."""

    name = "poisson"
    title = "Poisson"
    predicts = "the logarithm of the mean"
    is_concave = True

    def mean(self, eta: Table, trials: Table) -> Table:
        return np.asarray(np.exp(np.minimum(eta, LARGEST_LOG)))

    def log_density(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        return self.peak(y, dispersion, trials) - self._lost(y, eta)

    def peak(self, y: Table, dispersion: Table, trials: Table) -> Table:
        return _log_most(y)

    def _lost(self, y: Table, eta: Table) -> Table:
        some = np.where(y > 0, y, 1.0)
        away = np.minimum(eta - np.log(some), LARGEST_LOG)
        return np.where(y > 0, _lost(some, away), np.exp(np.minimum(eta, LARGEST_LOG)))

    def score(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        return y - self.mean(eta, trials)

    def weight(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        return self.mean(eta, trials)

    def working(self, y: Table, trials: Table) -> tuple[Table, Table]:
        return np.log(y + 0.5), y + 0.5

    def deviance(self, y: Table, eta: Table, trials: Table) -> Table:
        return 2 * self._lost(y, eta)

    def draw(self, eta: Table, dispersion: Table, trials: Table, random: np.random.RandomState) -> Table:
        mean = self.mean(eta, trials)
        return np.where(mean > 1e15, np.rint(mean), random.poisson(np.minimum(mean, 1e15)))

    def check(self, y: NDArray[np.float64], trials: NDArray[np.float64]) -> None:
        refuse(
            y,
            (y < 0) | (y != np.floor(y)),
            'family="poisson" needs counts: whole numbers of at least 0',
            "Rates are counts with offset=log(exposure)",
        )
        _refuse_large("y", y)


class Binomial(Response):
    r"""Successes among `trials` (one by default): ``log(p / (1 - p)) = eta``."""

    name = "binomial"
    title = "logistic"
    predicts = "the logit of the probability"
    takes_trials = True
    is_concave = True

    def mean(self, eta: Table, trials: Table) -> Table:
        return np.asarray(trials * expit(eta))

    def log_density(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        return self.peak(y, dispersion, trials) - self._lost(y, eta, trials)

    def peak(self, y: Table, dispersion: Table, trials: Table) -> Table:
        # Successes and failures as two Poisson counts, given their sum.
        return _log_most(y) + _log_most(trials - y) - _log_most(trials)

    def _lost(self, y: Table, eta: Table, trials: Table) -> Table:
        # log(1 + e^-eta) without overflow and without logaddexp, which is slow
        less = log1p(np.exp(-np.abs(eta)))
        hits, misses = np.minimum(eta, 0) - less, -np.maximum(eta, 0) - less  # logarithms of their shares
        lost = np.zeros_like(hits)
        for count, log_share in ((y, hits), (trials - y, misses)):
            some = np.maximum(count, NO_COUNT)
            lost = lost + _lost(some, log_share - np.log(some / trials))
        return np.asarray(lost)

    def score(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        return y - self.mean(eta, trials)

    def weight(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        p = expit(eta)
        return np.asarray(trials * p * expit(-eta))

    def working(self, y: Table, trials: Table) -> tuple[Table, Table]:
        p = (y + 0.5) / (trials + 1)
        return np.log(p / (1 - p)), (trials + 1) * p * (1 - p)

    def deviance(self, y: Table, eta: Table, trials: Table) -> Table:
        return 2 * self._lost(y, eta, trials)

    def draw(self, eta: Table, dispersion: Table, trials: Table, random: np.random.RandomState) -> Table:
        return random.binomial(trials.astype(np.int64), expit(eta)).astype(np.float64)

    def check(self, y: NDArray[np.float64], trials: NDArray[np.float64]) -> None:
        ones = bool((trials == 1).all())
        upper = "0 or 1" if ones else "whole numbers from 0 to trials"
        refuse(
            y,
            (y < 0) | (y > trials) | (y != np.floor(y)),
            f'family="binomial" needs numbers of successes: {upper}',
            "Give the numbers of trials as trials=; shares times trials are successes",
        )
        _refuse_large("trials", trials)
