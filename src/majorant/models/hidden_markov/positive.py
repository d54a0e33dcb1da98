"""Emissions of movement data: steps, which are positive, and turning angles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import i0e, i1e

from majorant.densities import Gamma, VonMises
from majorant.engine.mixture import Array
from majorant.models.hidden_markov.emission import Emission
from majorant.registry import value_class


@value_class
@dataclass(frozen=True)
class GammaEmission(Emission):
    """Positive numbers."""

    name = "gamma"
    is_discrete = False
    expected = "numbers are above 0: make zeros NaN, and a column of emission 'bernoulli' that tells where they are"

    def _is_possible(self, x: Array) -> NDArray[np.bool_]:
        return np.asarray((x > 0) & np.isfinite(x))

    def density(self, has_gaps: bool) -> Gamma:
        """Return gamma distributions."""
        return Gamma(self.n_features)

    def marginals(self, estimates: Mapping[str, Array], j: int, X: Array | None = None) -> Any:
        """Return gamma distributions."""
        mean, shape = estimates["means"][:, [j]], estimates["shapes"][:, [j]]
        return stats.gamma(shape, scale=mean / shape)


@value_class
@dataclass(frozen=True)
class VonMisesEmission(Emission):
    """Directions."""

    name = "von_mises"
    is_discrete = False
    expected = "directions are in radians, from -2 pi to 2 pi: numpy.deg2rad makes them of degrees"

    def _is_possible(self, x: Array) -> NDArray[np.bool_]:
        return np.asarray(np.abs(x) <= 2 * np.pi * (1 + 1e-6))

    def density(self, has_gaps: bool) -> VonMises:
        """Return von Mises distributions."""
        return VonMises(self.n_features)

    def marginals(self, estimates: Mapping[str, Array], j: int, X: Array | None = None) -> Any:
        """Return von Mises distributions."""
        return Directions(estimates["directions"][:, [j]], estimates["concentrations"][:, [j]])


@dataclass(frozen=True)
class Directions:
    """Von Mises distributions, one for each state; quantiles and probabilities of mixtures of them."""

    direction: Array
    concentration: Array

    def pdf(self, x: Array) -> Array:
        """Return densities, (components, values)."""
        return np.asarray(stats.vonmises.pdf(x, self.concentration, self.direction))

    def circle_of(self, states: Array) -> tuple[Array, Array]:
        """Return both ends of the circle, cut opposite to the mean direction of each row of (rows, components)."""
        mean = self.mean_of(states)[:, 0]
        return mean - np.pi, mean + np.pi

    def cdf_of(self, states: Array, x: Array) -> Array:
        """Return the probability from the first end of the circle of each row to each direction, (rows,)."""
        first, _ = self.circle_of(states)
        ends = (first + np.mod(x - first, 2 * np.pi), first)
        high, low = (stats.vonmises.cdf(end, self.concentration, self.direction) for end in ends)
        return np.asarray(np.einsum("nk,kn->n", states, high - low))

    def mean(self) -> Array:
        """Return mean directions, (components, 1)."""
        return self.direction

    def mean_of(self, states: Array) -> Array:
        """Return the mean direction of a mixture, (..., components) to (..., 1)."""
        length = i1e(self.concentration) / i0e(self.concentration)
        towards = states @ (length * np.exp(1j * self.direction))
        return np.asarray(np.angle(towards))
