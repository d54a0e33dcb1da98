r"""Independent columns of two-parameter exponential families: positive numbers, and directions.

.. math:: \log f(x; \eta) = \eta_1 t_1(x) + \eta_2 t_2(x) - a(\eta)

The M-step sets the parameters at which :math:`t_1` and :math:`t_2` have their weighted means over the cells that are
observed; missing cells (NaN) are ignored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, i0e, i1e

from majorant.data.chunks import Block
from majorant.densities.natural import TINY
from majorant.densities.negative_binomial import SIZES, shape_of
from majorant.engine.mixture import Array, Limits, Mixture, Table

LOG_2PI = float(np.log(2 * np.pi))


class Pairs(ABC):
    """A density of independent columns with two parameters each: an array (runs, components, 2 columns).

    Parameters
    ----------
    n_features : int
        Number of columns.
    """

    n_columns = 1
    exact = True
    names: ClassVar[tuple[str, str]]
    """What the two parameters are called."""
    most: ClassVar[float]
    """Largest second parameter: one that is there belongs to cells that are all equal."""
    limits: Mapping[str, Limits] = {}

    def __init__(self, n_features: int) -> None:
        self.d = n_features

    @property
    def width(self) -> int:
        """A mass and two sums for each column."""
        return 3 * self.d

    @abstractmethod
    def told(self, x: Array) -> tuple[Array, Array]:
        """Return ``t_1`` and ``t_2`` of cells."""

    @abstractmethod
    def natural(self, first: Array, second: Array) -> tuple[Array, Array, Array]:
        """Return the natural parameters, and ``a``."""

    @abstractmethod
    def solved(self, one: Array, other: Array) -> tuple[Array, Array]:
        """Return the parameters at which ``t_1`` and ``t_2`` have these means."""

    def _cells(self, rows: Block) -> tuple[Array, Array, Array]:
        """Return what is told of cells, zero where they are missing, and which are there; kept beside the rows."""
        x = rows.columns[0]
        known = rows.derived.get("pairs")
        if known is None or known[0] is not x:
            there = ~np.isnan(x)
            one, other = (np.where(there, t, 0.0) for t in self.told(np.where(there, x, 1.0)))
            rows.derived["pairs"] = known = (x, one, other, there.astype(np.float64))
        return known[1], known[2], known[3]

    def log_density(self, theta: Array, rows: Block) -> Table:
        """Return sums over the cells of each row that are there."""
        runs, k, _ = theta.shape
        parts = zip(self.natural(*np.split(theta.reshape(runs * k, -1), 2, axis=1)), self._cells(rows), strict=True)
        (a, one), (b, other), (constant, there) = parts
        return np.asarray((a @ one.T + b @ other.T - constant @ there.T).reshape(runs, k, -1))

    def statistics(self, theta: Array | None, rows: Block, q: Table) -> Array:
        """Return the mass of the cells of each column, and their sums."""
        one, other, there = self._cells(rows)
        flat = q.reshape(-1, q.shape[2])
        return np.concatenate([flat @ there, flat @ one, flat @ other], axis=1).reshape(*q.shape[:2], -1)

    def solve(self, statistics: Array, theta: Array | None, share: Array) -> Array:
        """Take the M-step; a state without a cell of a column keeps what it had, or has what all cells say."""
        mass, one, other = np.split(statistics, 3, axis=2)
        there = mass > TINY
        means = (np.where(there, s / np.where(there, mass, 1.0), 1.0) for s in (one, other))
        found = np.concatenate(self.solved(*means), axis=2)
        if there.all():
            return found
        if theta is None:
            total = np.maximum(mass.sum(axis=1, keepdims=True), TINY)
            pooled = self.solved(*(s.sum(axis=1, keepdims=True) / total for s in (one, other)))
            theta = np.broadcast_to(np.concatenate(pooled, axis=2), found.shape)
        return np.where(np.concatenate([there, there], axis=2), found, theta)

    def expected_log_density(self, statistics: Array, theta: Array) -> Array:
        """Return sums times natural parameters, less masses times ``a``."""
        mass, one, other = np.split(statistics, 3, axis=2)
        first, second, constant = self.natural(*np.split(theta, 2, axis=2))
        return np.asarray((first * one + second * other - constant * mass).sum(axis=(1, 2)))

    def n_parameters(self, n_components: int) -> int:
        """Return two for each state and column."""
        return 2 * n_components * self.d

    def degeneracy(self, theta: Array, sizes: Array, mixture: Mixture) -> str:
        """Name a state whose cells of a column are all equal."""
        at = np.argwhere(theta[0, :, self.d :] >= 0.99 * self.most)
        return f"state {at[0][0] + 1} (of {len(sizes)}) has practically equal values in a column" if len(at) else ""

    def describe(self, theta: Array) -> dict[str, Array]:
        """Return both parameters by name."""
        return dict(zip(self.names, np.split(theta, 2, axis=2), strict=True))

    def recalled(self, estimates: Mapping[str, Array]) -> Array:
        """Return the inverse of `describe`."""
        return np.concatenate([np.asarray(estimates[name], dtype=np.float64) for name in self.names], axis=1)[None]

    def _by_state(self, vector: Array, like: Array) -> tuple[Array, Array]:
        """Return the two numbers of each state and column."""
        shape = len(vector), like.shape[1], self.d
        one, other = np.split(vector, 2, axis=1)
        return one.reshape(shape), other.reshape(shape)


class Gamma(Pairs):
    r"""Positive numbers of gamma distributions, with means :math:`\mu` and shapes r: the variance is :math:`\mu^2 / r`.

    .. math:: f(x; \mu, r) = \frac{(r / \mu)^r}{\Gamma(r)} x^{r - 1} e^{-r x / \mu}
    """

    names = ("means", "shapes")
    most = SIZES[1]
    limits: Mapping[str, Limits] = {"means": (0.0, np.inf), "shapes": (0.0, np.inf)}

    def told(self, x: Array) -> tuple[Array, Array]:
        """Return numbers and their logarithms."""
        return x, np.log(x)

    def natural(self, first: Array, second: Array) -> tuple[Array, Array, Array]:
        """Return minus the rate, the shape less one, and the logarithm of the constant."""
        return -second / first, second - 1, gammaln(second) - second * np.log(second / first)

    def solved(self, one: Array, other: Array) -> tuple[Array, Array]:
        """Return the mean, and the shape at which the logarithm has its mean."""
        mean = np.maximum(one, TINY)
        return mean, shape_of(np.log(mean) - other)

    def score(self, statistics: Array, theta: Array) -> Array:
        """Return slopes by the logarithms of means and shapes."""
        mass, sums, logs = np.split(statistics, 3, axis=2)
        mean, shape = np.split(theta, 2, axis=2)
        of_shape = shape * (mass * (np.log(shape / mean) + 1 - digamma(shape)) + logs - sums / mean)
        return np.concatenate([p.reshape(len(theta), -1) for p in (shape * (sums / mean - mass), of_shape)], axis=1)

    def vector(self, theta: Array) -> Array:
        """Return logarithms of means and shapes."""
        return np.concatenate([p.reshape(len(theta), -1) for p in np.split(np.log(theta), 2, axis=2)], axis=1)

    def theta_of(self, vector: Array, like: Array) -> Array:
        """Return means and shapes, within their range."""
        mean, shape = self._by_state(np.exp(np.clip(vector, -700, 700)), like)
        return np.concatenate([mean, np.clip(shape, *SIZES)], axis=2)

    def drawn(self, theta: Array, components: NDArray[np.intp], random: np.random.Generator) -> Array:
        """Draw a row of each of these components, of the first run."""
        mean, shape = np.split(theta[0][components], 2, axis=1)
        return np.asarray(np.maximum(random.standard_gamma(shape), TINY) * mean / shape)


class VonMises(Pairs):
    r"""Directions in radians of von Mises distributions, with mean directions and concentrations :math:`\kappa`.

    .. math:: f(x; \mu, \kappa) = \frac{e^{\kappa \cos(x - \mu)}}{2 \pi I_0(\kappa)}
    """

    names = ("directions", "concentrations")
    most = 1e5
    limits: Mapping[str, Limits] = {"concentrations": (0.0, np.inf)}

    def told(self, x: Array) -> tuple[Array, Array]:
        """Return cosines and sines."""
        return np.cos(x), np.sin(x)

    def natural(self, first: Array, second: Array) -> tuple[Array, Array, Array]:
        """Return the concentration along both axes, and the logarithm of the constant."""
        return second * np.cos(first), second * np.sin(first), LOG_2PI + np.log(i0e(second)) + second

    def solved(self, one: Array, other: Array) -> tuple[Array, Array]:
        """Return the direction of the mean, and the concentration that has its length."""
        return np.arctan2(other, one), concentration_of(np.hypot(one, other), self.most)

    def score(self, statistics: Array, theta: Array) -> Array:
        """Return slopes by the concentration along both axes."""
        mass, one, other = np.split(statistics, 3, axis=2)
        direction, kappa = np.split(theta, 2, axis=2)
        mean = mass * i1e(kappa) / i0e(kappa)
        parts = one - mean * np.cos(direction), other - mean * np.sin(direction)
        return np.concatenate([part.reshape(len(theta), -1) for part in parts], axis=1)

    def vector(self, theta: Array) -> Array:
        """Return concentrations along both axes."""
        parts = self.natural(*np.split(theta, 2, axis=2))[:2]
        return np.concatenate([part.reshape(len(theta), -1) for part in parts], axis=1)

    def theta_of(self, vector: Array, like: Array) -> Array:
        """Return directions and concentrations."""
        one, other = self._by_state(vector, like)
        return np.concatenate([np.arctan2(other, one), np.minimum(np.hypot(one, other), self.most)], axis=2)

    def drawn(self, theta: Array, components: NDArray[np.intp], random: np.random.Generator) -> Array:
        """Draw a row of each of these components, of the first run."""
        direction, kappa = np.split(theta[0][components], 2, axis=1)
        return np.asarray(random.vonmises(direction, kappa))


def concentration_of(length: Array, most: float) -> Array:
    r"""Solve :math:`I_1(\kappa) / I_0(\kappa) = R` for lengths R of mean directions, by Newton's method."""
    length = np.clip(length, 0.0, 1 - 1e-12)
    kappa = np.clip(length * (2 - length**2) / (1 - length**2), 1e-12, most)
    for _ in range(8):
        ratio = i1e(kappa) / i0e(kappa)
        kappa = np.clip(kappa - (ratio - length) / (1 - ratio / kappa - ratio**2), 1e-12, most)
    return np.asarray(kappa)
