r"""Independent columns, each of a one-parameter exponential family.

.. math:: \log f(x; \mu) = a(\mu)\, x + b(\mu) + c(x)

The M-step sets each mean :math:`\mu` to the weighted mean of the cells that are observed; missing cells (NaN) are
ignored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from majorant.data.chunks import Block
from majorant.engine.mixture import Array, Limits, Table

TINY = 1e-300
"""Stand-in for a probability or a rate of zero, so that zero times its logarithm is zero."""


class Natural(ABC):
    """A density of independent columns, parametrised by their means: an array (runs, components, columns).

    Parameters
    ----------
    n_features : int
        Number of columns.

    Attributes
    ----------
    name : str
        What the means are called ("probabilities", "rates").
    is_share : bool
        Whether means are at most one: the sums are then counts of ones and of zeros, so that what is extrapolated from
        positive sums is a share.
    limits : mapping
        Range of the means, as ``{name: (0.0, np.inf)}``; unbounded where empty.
    has_edges : bool
        Whether a mean may lie at an end of its range, where it has no standard error.
    """

    n_columns = 1
    exact = True
    statistics_are_free = True
    name = "means"
    is_share = False
    limits: Mapping[str, Limits] = {}
    has_edges = True

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features

    @property
    def width(self) -> int:
        """A mass and a sum for each column, and the sum of ``c``."""
        return 2 * self.n_features + 1

    @abstractmethod
    def natural(self, mean: Array) -> tuple[Array, Array]:
        """Return ``a`` and ``b`` of every mean."""

    @abstractmethod
    def inverse(self, vector: Array) -> Array:
        """Return the means of unconstrained numbers ``a``."""

    def carrier(self, x: Array) -> Array:
        """Return ``c`` of every cell; of missing ones, which are zero here, it does not count."""
        return np.zeros_like(x)

    @abstractmethod
    def draw(self, mean: Array, random: np.random.Generator) -> Array:
        """Return a cell for every mean."""

    def drawn(self, theta: Array, components: NDArray[np.intp], random: np.random.Generator) -> Array:
        """Draw a row of each of these components, of the first run."""
        return self.draw(theta[0][components], random)

    def log_density(self, theta: Array, rows: Block) -> Table:
        """Return sums over the cells of each row."""
        x, there = cells(rows)
        runs, k, d = theta.shape
        a, b = self.natural(theta)
        out = a.reshape(-1, d) @ x.T
        out += b.reshape(-1, d) @ there.T if there is not None else b.reshape(-1, d).sum(axis=1, keepdims=True)
        return np.asarray((out + self._carried(x, there)).reshape(runs, k, -1))

    def statistics(self, theta: Array | None, rows: Block, q: Table) -> Array:
        """Return weights of the cells of each column (less sums, for shares), their sums, the sum of ``c``."""
        x, there = cells(rows)
        runs, k, n = q.shape
        flat = q.reshape(-1, n)
        sums = flat @ x
        mass = np.repeat(flat.sum(axis=1, keepdims=True), x.shape[1], axis=1) if there is None else flat @ there
        constant = flat @ self._carried(x, there)[:, None]
        return np.concatenate([mass - sums if self.is_share else mass, sums, constant], axis=1).reshape(runs, k, -1)

    def _carried(self, x: Array, there: Array | None) -> Array:
        """Return ``c`` of the cells of each row that are there."""
        carrier = self.carrier(x) if there is None else self.carrier(x) * there
        return np.asarray(carrier.sum(axis=1))

    def _mass_and_sums(self, statistics: Array) -> tuple[Array, Array]:
        first, sums, _ = np.split(statistics, [self.n_features, 2 * self.n_features], axis=2)
        return np.asarray(first + sums if self.is_share else first), sums

    def solve(self, statistics: Array, theta: Array | None, share: Array) -> Array:
        """Return weighted means; a state without a cell of a column keeps what it had, or has the mean of all."""
        mass, sums = self._mass_and_sums(statistics)
        total = np.maximum(mass.sum(axis=1, keepdims=True), TINY)
        other = np.broadcast_to(sums.sum(axis=1, keepdims=True) / total, mass.shape) if theta is None else theta
        return np.asarray(np.divide(sums, mass, out=np.array(other), where=mass > TINY))

    def expected_log_density(self, statistics: Array, theta: Array) -> Array:
        """Return sums times ``a``, masses times ``b``, and the sum of ``c``."""
        mass, sums = self._mass_and_sums(statistics)
        a, b = self.natural(theta)
        return np.asarray(np.sum(a * sums + b * mass, axis=(1, 2)) + statistics[:, :, -1].sum(axis=1))

    def score(self, statistics: Array, theta: Array) -> Array:
        """Return sums less those that are expected."""
        mass, sums = self._mass_and_sums(statistics)
        return np.asarray(sums - mass * theta).reshape(len(theta), -1)

    def n_parameters(self, n_components: int) -> int:
        """Return a mean for each state and column."""
        return n_components * self.n_features

    def describe(self, theta: Array) -> dict[str, Array]:
        """Return the means."""
        return {self.name: theta}

    def recalled(self, estimates: Mapping[str, Array]) -> Array:
        """Return the means."""
        return np.asarray(estimates[self.name], dtype=np.float64)[None]

    def vector(self, theta: Array) -> Array:
        """Return ``a`` of every mean."""
        return self.natural(theta)[0].reshape(len(theta), -1)

    def theta_of(self, vector: Array, like: Array) -> Array:
        """Return the means."""
        return self.inverse(vector).reshape(len(vector), *like.shape[1:])


class Bernoulli(Natural):
    r"""Columns of zeros and ones, :math:`f(x; p) = p^x (1 - p)^{1 - x}`."""

    name = "probabilities"
    is_share = True
    limits: Mapping[str, Limits] = {"probabilities": (0.0, 1.0)}

    def natural(self, mean: Array) -> tuple[Array, Array]:
        """Return logit, and log of the probability of a zero."""
        zero = np.log(np.maximum(1 - mean, TINY))
        return np.log(np.maximum(mean, TINY)) - zero, zero

    def draw(self, mean: Array, random: np.random.Generator) -> Array:
        """Return zeros and ones."""
        return (random.random(mean.shape) < mean).astype(np.float64)

    def inverse(self, vector: Array) -> Array:
        """Return the logistic function."""
        return 1 / (1 + np.exp(-np.clip(vector, -700, 700)))


class Poisson(Natural):
    r"""Columns of counts, :math:`f(x; \lambda) = \lambda^x e^{-\lambda} / x!`."""

    name = "rates"
    limits: Mapping[str, Limits] = {"rates": (0.0, np.inf)}

    def natural(self, mean: Array) -> tuple[Array, Array]:
        """Return log rate, and minus the rate."""
        return np.log(np.maximum(mean, TINY)), -mean

    def draw(self, mean: Array, random: np.random.Generator) -> Array:
        """Return counts."""
        return random.poisson(mean).astype(np.float64)

    def inverse(self, vector: Array) -> Array:
        """Return the exponential function."""
        return np.exp(np.clip(vector, -700, 700))

    def carrier(self, x: Array) -> Array:
        """Return minus the log factorial."""
        return -np.asarray(gammaln(x + 1))


def cells(rows: Block) -> tuple[Array, NDArray[np.float64] | None]:
    """Return cells with zeros for missing ones, and one where a cell is there; None where none is missing.

    They are cached with the block: every pass needs them.
    """
    x = rows.columns[0]
    known = rows.derived.get("cells")
    if known is None or known[0] is not x:
        missing = np.isnan(x)
        filled = np.where(missing, 0.0, x), (~missing).astype(np.float64)
        known = (x, *filled) if missing.any() else (x, np.asarray(x, dtype=np.float64), None)
        rows.derived["cells"] = known
    return known[1], known[2]
