"""Autoregressions about a mean that switches: a row depends on its state and on those of the rows before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from majorant.data.chunks import Block
from majorant.densities import GaussianRegression, Predictors
from majorant.densities.regression import ridge_solved
from majorant.engine.mixture import Array, Table
from majorant.laws.tuples import tuples_of
from majorant.models.hidden_markov.lines import SwitchingLines

ROUNDS = 4
"""Alternations of means, autoregression and variances in an M-step: none lowers the likelihood."""
MOST_TUPLES = 256
SWITCHING_MEAN, SWITCHING_AUTOREGRESSION = "switching_mean", "switching_autoregression"


class SwitchingMeans(SwitchingLines):
    r"""An autoregression about a mean that switches, by tuples of the states :math:`m = (s_t, \dots, s_{t-r})`.

    .. math:: y_t - \mu_{s_t} = \sum_j \phi_{j s_t} (y_{t-j} - \mu_{s_{t-j}}) + \sigma_{s_t} e_t

    So the row of a tuple is on a line with the slopes phi and the constant
    :math:`\mu_{s_t} - \sum_j \phi_{j s_t} \mu_{s_{t-j}}`. Parameters are coefficients (mean, phi) of each state; phi is
    the same in all unless it switches. Target and lags have one centre and one scale.
    """

    def __init__(self, centre: Array, scale: Array, is_common: bool, slopes_switch: bool = False) -> None:
        super().__init__(centre, scale, is_common)
        self.alone = SwitchingLines(centre, scale, is_common)
        self.order, self.slopes_switch = self.p - 1, slopes_switch
        self.inner = GaussianRegression(None, self.p, self.inner.rule, n_shared=0 if slopes_switch else self.order)
        self.exact = False

    def lifted(self, theta: Predictors) -> Predictors:
        """Return the lines of the tuples."""
        tuples = tuples_of(theta.coef.shape[1], self.order)
        means, own = theta.coef[:, tuples, 0], theta.coef[:, tuples[:, 0], 1:]
        constants = means[:, :, 0] - (means[:, :, 1:] * own).sum(axis=2)
        return Predictors(np.concatenate([constants[:, :, None], own], axis=2), theta.dispersion[:, tuples[:, 0]])

    def log_density(self, theta: Predictors, rows: Block) -> Table:
        """Return the log density of each target under each tuple."""
        return super().log_density(self.lifted(theta), rows)

    def statistics(self, theta: Predictors | None, rows: Block, q: Table) -> Array:
        """Return sums of the tuples about their lines."""
        return super().statistics(None if theta is None else self.lifted(theta), rows, q)

    def solve(self, statistics: Array, theta: Predictors | None, share: Array) -> Predictors:
        """Raise the expected log density in turn over means, autoregression and variances; or take a share of that."""
        runs, n_tuples, _ = statistics.shape
        k = round(n_tuples ** (1 / (self.order + 1)))
        if theta is None:
            theta = Predictors(np.zeros((runs, k, self.p)), np.ones((runs, k)))
        tuples, about, now = tuples_of(k, self.order), self.lifted(theta).coef, theta
        score, information = self.inner._score_and_information(statistics)
        is_state = np.eye(k)[tuples]  # (tuples, 1 + order, states)
        mass = statistics[:, :, 0].reshape(runs, k, -1).sum(axis=2)
        for _ in range(ROUNDS):
            by_mean = np.zeros((runs, n_tuples, self.p, k))
            by_mean[:, :, 0] = is_state[:, 0] - np.einsum(
                "mjk,rmj->rmk", is_state[:, 1:], now.coef[:, tuples[:, 0], 1:]
            )
            coef = now.coef.copy()
            coef[:, :, 0] += self._step(now, about, score, information, by_mean)
            by_own = np.zeros((runs, n_tuples, self.p, self.order))
            by_own[:, :, 0] = -coef[:, tuples[:, 1:], 0]
            by_own[:, :, 1:] = np.eye(self.order)
            if self.slopes_switch:
                by_own = (by_own[..., None, :] * is_state[:, 0, None, :, None]).reshape(runs, n_tuples, self.p, -1)
            now = Predictors(coef, now.dispersion)
            step = self._step(now, about, score, information, by_own).reshape(runs, -1, self.order)
            coef = coef.copy()
            coef[:, :, 1:] += step
            now = self._with_variances(coef, now.dispersion, about, statistics, mass)
        if (share == 1).all():
            return now
        coef = theta.coef + share[:, None, None] * (now.coef - theta.coef)
        return self._with_variances(coef, now.dispersion, about, statistics, mass)

    def _step(self, now: Predictors, about: Array, score: Array, information: Array, slopes: Array) -> Array:
        """Return the best step in numbers on which the lines of tuples depend by `slopes`."""
        lines = self.lifted(now)
        rest = score - np.einsum("rmpq,rmq->rmp", information, lines.coef - about)
        rest, curved = rest / lines.dispersion[..., None], information / lines.dispersion[..., None, None]
        matrix = np.einsum("rmpa,rmpq,rmqb->rab", slopes, curved, slopes, optimize=True)
        return ridge_solved(matrix, np.einsum("rmpa,rmp->ra", slopes, rest))

    def _with_variances(self, coef: Array, before: Array, about: Array, statistics: Array, mass: Array) -> Predictors:
        """Return coefficients with the best variances."""
        score, information = self.inner._score_and_information(statistics)
        change = self.lifted(Predictors(coef, before)).coef - about
        gain = 2 * np.einsum("rmp,rmp->rm", change, score)
        gain -= np.einsum("rmp,rmpq,rmq->rm", change, information, change, optimize=True)
        spread = np.maximum(statistics[:, :, 1] - gain, 0.0).reshape(*mass.shape, -1).sum(axis=2)
        return Predictors(coef, self.inner._dispersions(spread, mass, before))

    def describe(self, theta: Predictors) -> dict[str, Array]:
        """Return the means, the autoregression and the variances."""
        means = self.centre[0] + self.scale[0] * theta.coef[:, :, :1]
        return {"means": means, "coef": theta.coef[:, :, 1:], "variances": theta.dispersion * self.scale[0] ** 2}

    def recalled(self, estimates: Mapping[str, Array]) -> Predictors:
        """Return the parameters of one model."""
        means, coef, variances = (np.asarray(estimates[name]) for name in ("means", "coef", "variances"))
        own = np.concatenate([(means - self.centre[0]) / self.scale[0], coef], axis=1)
        return Predictors(own[None], variances[None] / self.scale[0] ** 2)


def by_tuple(estimates: Mapping[str, Array]) -> dict[str, Array]:
    """Return the lines of the tuples of states, as estimates of a regression has them."""
    means, coef = estimates["means"][:, 0], estimates["coef"]
    tuples = tuples_of(len(means), coef.shape[1])
    first = tuples[:, 0]
    constants = means[first] - (means[tuples[:, 1:]] * coef[first]).sum(axis=1)
    return {"intercept": constants, "coef": coef[first], "variances": estimates["variances"][first]}


class OfTuples:
    """What a model needs to know where rows depend on the states of rows before."""

    n_components: int
    emission: Any
    lags: int
    estimate_names_: list[str]

    @property
    def _order(self) -> int:
        """Number of rows before whose states a row depends on."""
        return self.lags if self.emission in (SWITCHING_MEAN, SWITCHING_AUTOREGRESSION) else 0

    @property
    def _n_tuples(self) -> int:
        return int(self.n_components ** (1 + self._order))

    def _folded(self, q: Array) -> Array:
        """Return probabilities of states (last axis) from those of tuples of states, of which theirs are the first."""
        return np.asarray(q.reshape(*q.shape[:-1], self.n_components, -1).sum(axis=-1))

    def _estimates(self) -> dict[str, Array]:
        return {name: np.asarray(getattr(self, f"{name}_"), dtype=np.float64) for name in self.estimate_names_}

    def _lines(self) -> dict[str, Array]:
        return by_tuple(self._estimates()) if self._order else self._estimates()


def check_lines(emission: Any, lags: int, fit_intercept: bool, width: int) -> None:
    """Refuse lines without anything, and an autoregression about switching means on other columns than its own lags."""
    if emission in (SWITCHING_MEAN, SWITCHING_AUTOREGRESSION):
        if not lags or width != 1 + lags:
            got = f"{width - lags} columns" if lags else "lags=0"
            raise ValueError(f"emission={emission!r} is of one column on its own lags, at least one; got {got}")
        if not fit_intercept:
            raise ValueError(f"emission={emission!r} has a mean in each state: leave fit_intercept=True")
    if not fit_intercept and width == 1:
        raise ValueError("fit_intercept=False leaves lines without anything: give columns beside the target, or lags")
