r"""Independent columns of counts with more zeros than Poisson's.

.. math::
   f(0; \mu, \pi) = \pi + (1 - \pi) e^{-\lambda}, \qquad
   f(x; \mu, \pi) = (1 - \pi) e^{-\lambda} \lambda^x / x!, \qquad \lambda = \mu / (1 - \pi)

with mean :math:`\mu`, share :math:`\pi` of zeros that are none of Poisson's, and variance
:math:`\mu + \mu^2 \pi / (1 - \pi)`. The M-step needs no latent zeros: the counts above zero have the mean of a Poisson
distribution without its zeros, which gives :math:`\lambda`, and the share of zeros then gives :math:`\pi`; where zeros
are fewer than Poisson's, :math:`\pi = 0` is the maximum. Missing cells (NaN) are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln, lambertw

from majorant.data.chunks import Block
from majorant.densities.natural import TINY, cells
from majorant.engine.mixture import Array, Limits, Table

MOST = 1 - 1e-15
"""Largest share of needless zeros, as counts above zero keep a probability."""


class ZeroInflatedPoisson:
    """Columns of counts; parameters are an array (runs, components, 2 columns): means, then shares of needless zeros.

    Parameters
    ----------
    n_features : int
        Number of columns.
    """

    n_columns = 1
    exact = True
    statistics_are_free = True
    limits: Mapping[str, Limits] = {"means": (0.0, np.inf), "inflations": (0.0, 1.0)}

    def __init__(self, n_features: int) -> None:
        self.d = n_features

    @property
    def width(self) -> int:
        """Of each column cells of zero, cells above it, and what those exceed one by; the sum of log factorials."""
        return 3 * self.d + 1

    def log_density(self, theta: Array, rows: Block) -> Table:
        """Return sums over the cells of each row that are there."""
        factors = np.concatenate([self._logs(theta), np.full((*theta.shape[:2], 1), -1.0)], axis=2)
        return np.asarray((factors.reshape(-1, self.width) @ _table(rows).T).reshape(*theta.shape[:2], -1))

    def statistics(self, theta: Array | None, rows: Block, q: Table) -> Array:
        """Return sums over the rows."""
        return np.asarray((q.reshape(-1, q.shape[2]) @ _table(rows)).reshape(*q.shape[:2], -1))

    def solve(self, statistics: Array, theta: Array | None, share: Array) -> Array:
        """Return the maximum; a state without a cell of a column keeps what it had, or has that of all."""
        own, everyone = _solved(statistics), _solved(statistics.sum(axis=1, keepdims=True))
        zeros, positive, _ = np.split(statistics[:, :, :-1], 3, axis=2)
        return np.where(np.tile(zeros + positive > TINY, 2), own, everyone if theta is None else theta)

    def expected_log_density(self, statistics: Array, theta: Array) -> Array:
        """Return sums times logarithms of the parameters, less log factorials."""
        value = np.sum(self._logs(theta) * statistics[:, :, :-1], axis=(1, 2)) - statistics[:, :, -1].sum(axis=1)
        return np.asarray(value)

    def score(self, statistics: Array, theta: Array) -> Array:
        """Return slopes by the logarithms of means and the logits of shares."""
        zeros, positive, excess = np.split(statistics[:, :, :-1], 3, axis=2)
        (mean, share), (none, _, _) = np.split(theta, 2, axis=2), np.split(self._logs(theta), 3, axis=2)
        rate = mean / (1 - share)
        of_poisson = positive + zeros * np.exp(np.log1p(-share) - rate - none)
        by_mean = positive + excess - rate * of_poisson
        by_share = zeros + positive - of_poisson - share * (zeros + positive) + share * by_mean
        return np.concatenate([part.reshape(len(theta), -1) for part in (by_mean, by_share)], axis=1)

    def n_parameters(self, n_components: int) -> int:
        """Return a mean and a share for each state and column."""
        return 2 * n_components * self.d

    def describe(self, theta: Array) -> dict[str, Array]:
        """Return the means, and the shares of needless zeros."""
        return {"means": theta[:, :, : self.d], "inflations": theta[:, :, self.d :]}

    def recalled(self, estimates: Mapping[str, Array]) -> Array:
        """Return the means and shares."""
        return np.concatenate([estimates["means"], estimates["inflations"]], axis=1, dtype=np.float64)[None]

    def vector(self, theta: Array) -> Array:
        """Return logarithms of means and logits of shares."""
        mean, share = np.split(np.maximum(theta, TINY), 2, axis=2)
        parts = np.log(mean), np.log(share) - np.log1p(-share)
        return np.concatenate([part.reshape(len(theta), -1) for part in parts], axis=1)

    def theta_of(self, vector: Array, like: Array) -> Array:
        """Return means and shares."""
        mean, share = np.split(np.clip(vector, -700, 700), 2, axis=1)
        shape = len(vector), like.shape[1], self.d
        return np.concatenate([np.exp(mean).reshape(shape), np.minimum(expit(share), MOST).reshape(shape)], axis=2)

    def drawn(self, theta: Array, components: NDArray[np.intp], random: np.random.Generator) -> Array:
        """Draw a row of each of these components, of the first run."""
        mean, share = np.split(theta[0][components], 2, axis=1)
        return np.where(random.random(mean.shape) < share, 0.0, random.poisson(mean / (1 - share)))

    def _logs(self, theta: Array) -> Array:
        """Return logarithms of the probabilities of zero and one, and of the rates."""
        mean, share = np.split(theta, 2, axis=2)
        log_rate = np.log(np.maximum(mean / (1 - share), TINY))
        some = np.log1p(-share) - mean / (1 - share)
        none = np.logaddexp(np.log(np.maximum(share, TINY)), some)
        return np.concatenate([none, some + log_rate, log_rate], axis=2)


def _table(rows: Block) -> Array:
    """Return what the sums are of, cached with the block: every pass needs it."""
    x, there = cells(rows)
    known = rows.derived.get("counts above zero")
    if known is None or known[0] is not x:
        above = x > 0
        zeros = ~above if there is None else there - above
        constant = gammaln(x + 1).sum(axis=1, keepdims=True)
        table = np.concatenate([zeros, above, np.where(above, x - 1, 0.0), constant], axis=1)
        rows.derived["counts above zero"] = known = (x, table)
    found: Array = known[1]
    return found


def _solved(statistics: Array) -> Array:
    """Return means, and shares of needless zeros."""
    zeros, positive, excess = np.split(statistics[:, :, :-1], 3, axis=2)
    total = np.maximum(zeros + positive, TINY)
    rate = rate_above_zero(excess / np.maximum(positive, TINY))
    share = 1 - positive / total / np.maximum(-np.expm1(-rate), TINY)
    return np.concatenate([(positive + excess) / total, np.where(rate > 0, np.clip(share, 0.0, MOST), 0.0)], axis=2)


def rate_above_zero(excess: Array) -> Array:
    """Return the rate of Poisson counts of which those above zero have the mean 1 + `excess`."""
    mean = 1 + excess
    rate = np.fmin(np.fmax(mean + lambertw(-mean * np.exp(-mean)).real, excess), 2 * excess)  # not a number near one
    above = np.maximum(-np.expm1(-rate), TINY)
    found = rate / above
    slope = np.clip((1 - found * (1 - above)) / above, 0.5, 1.0)
    return np.asarray(np.clip(rate - (found - mean) / slope, excess, 2 * excess))
