"""Counts: Poisson with a logarithmic link, binomial with a logistic one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln, log1p, xlogy

from majorant.solvers.responses.response import Response, Table, refuse

LARGEST_LOG = 700.0
"""Where an exponential is still a number."""


class Poisson(Response):
    r"""Counts: ``log E y = eta``; exposure is an offset, its logarithm."""

    name = "poisson"
    title = "Poisson"
    predicts = "the logarithm of the mean"
    is_concave = True

    def mean(self, eta: Table, trials: Table) -> Table:
        return np.asarray(np.exp(np.minimum(eta, LARGEST_LOG)))

    def log_density(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        return np.asarray(y * eta - self.mean(eta, trials) - gammaln(y + 1))

    def score(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        return y - self.mean(eta, trials)

    def weight(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        return self.mean(eta, trials)

    def working(self, y: Table, trials: Table) -> tuple[Table, Table]:
        return np.log(y + 0.5), y + 0.5

    def deviance(self, y: Table, eta: Table, trials: Table) -> Table:
        return np.asarray(2 * (xlogy(y, y) - y - y * eta + self.mean(eta, trials)))

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
        choose = gammaln(trials + 1) - gammaln(y + 1) - gammaln(trials - y + 1)
        # log(1 + e^eta) without overflow and without logaddexp, which is slow
        softplus = np.maximum(eta, 0) + log1p(np.exp(-np.abs(eta)))
        return np.asarray(choose + y * eta - trials * softplus)

    def score(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        return y - self.mean(eta, trials)

    def weight(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        p = expit(eta)
        return np.asarray(trials * p * expit(-eta))

    def working(self, y: Table, trials: Table) -> tuple[Table, Table]:
        p = (y + 0.5) / (trials + 1)
        return np.log(p / (1 - p)), (trials + 1) * p * (1 - p)

    def deviance(self, y: Table, eta: Table, trials: Table) -> Table:
        softplus = np.maximum(eta, 0) + log1p(np.exp(-np.abs(eta)))
        best = xlogy(y, y) + xlogy(trials - y, trials - y) - xlogy(trials, trials)
        return np.asarray(2 * (best - y * eta + trials * softplus))

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
