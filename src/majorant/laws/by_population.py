"""Populations: weights of the states that are known to differ between groups of rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.engine.mixture import Array, Limits, Posterior, Table
from majorant.laws.independent import LEAST_LOG, Weights, entropy_of, normalised, weighted


class ByPopulation:
    r"""States of rows are independent, with weights of each population: :math:`p(z_i = k) = \pi_{k g_i}`.

    The law reads one column, the population of each row: 0, 1 and so on. Parameters are `Weights` of shape (runs,
    components, populations); their statistics are masses.

    Parameters
    ----------
    n_populations : int

    References
    ----------
    .. [1] C. C. Clogg, L. A. Goodman, "Latent structure analysis of a set of multidimensional contingency tables",
       Journal of the American Statistical Association 79, 1984.
    """

    rows_are_units = True
    statistics_are_free = True
    numbers_states = False
    limits: Mapping[str, Limits] = {"population_shares": (0.0, 1.0)}

    def __init__(self, n_populations: int) -> None:
        self.n_populations = n_populations

    def posterior(self, phi: Weights, log_density: Table, units: Block, beta: float) -> Posterior:
        """Return the responsibilities of each row, and their sums in each population."""
        log_sum, q = normalised(log_density + self.log_prior(phi, units), beta)
        w = units.weights
        if w is not None:
            q *= w
        value = weighted(log_sum, np.ones(1) if w is None else w)
        return Posterior(value, q, self._sums(q, units), partial(entropy_of, q, w, beta), log_sum)

    def log_weights(self, phi: Weights) -> None:
        """Return None: weights differ between rows."""

    def log_prior(self, phi: Weights, units: Block) -> Table:
        """Return the log weights of the population of each row; -inf where a state is absent."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(phi.weights)[:, :, np.asarray(units.columns[0], dtype=np.intp)])

    def first(self, q: Table, units: Block) -> tuple[Table, Array]:
        """Return weighted responsibilities and their sums in each population."""
        given = q if units.weights is None else q * units.weights
        return given, self._sums(given, units)

    def _sums(self, q: Table, units: Block) -> Array:
        of_population = units.columns[0][:, None] == np.arange(self.n_populations)
        return np.asarray((q @ of_population.astype(np.float64)).reshape(len(q), -1))

    def _masses(self, statistics: Array) -> Array:
        return statistics.reshape(len(statistics), -1, self.n_populations)

    def solve(self, statistics: Array, phi: Weights | None, share: Array) -> Weights:
        """Return the share of each state in each population; of one without rows, what it was, or equal shares."""
        masses = self._masses(statistics)
        total = masses.sum(axis=1, keepdims=True)
        other = np.full(masses.shape, 1 / masses.shape[1]) if phi is None else phi.weights
        return Weights(np.where(total > 0, masses / np.where(total > 0, total, 1.0), other))

    def expected_log_prior(self, statistics: Array, phi: Weights) -> Array:
        """Return ``sum_k sum_g n_kg log pi_kg``."""
        masses = self._masses(statistics)
        with np.errstate(divide="ignore"):
            log = np.maximum(np.log(phi.weights), LEAST_LOG)
        return np.asarray(np.sum(np.where(masses > 0, masses * log, 0.0), axis=(1, 2)))

    def score(self, statistics: Array, phi: Weights) -> Array:
        """Return masses less those that are expected, of all states but the first."""
        masses = self._masses(statistics)
        left = masses - masses.sum(axis=1, keepdims=True) * phi.weights
        return np.asarray(left[:, 1:].reshape(len(left), -1))

    def n_parameters(self, n_components: int) -> int:
        """Return one fewer than states in each population."""
        return (n_components - 1) * self.n_populations

    def shares(self, phi: Weights, statistics: Array) -> Array:
        """Return the share of each state among the rows of all populations."""
        mass = self._masses(statistics).sum(axis=2)
        return np.asarray(mass / mass.sum(axis=1, keepdims=True))

    def relabelled(self, phi: Weights, order: NDArray[np.intp]) -> Weights:
        """Return the weights of the states in another order."""
        return Weights(phi.weights[:, order])

    def describe(self, phi: Weights) -> dict[str, Array]:
        """Return the weights."""
        return {"population_shares": phi.weights}

    def recalled(self, estimates: Mapping[str, Array]) -> Weights:
        """Return the weights."""
        return Weights(np.asarray(estimates["population_shares"], dtype=np.float64)[None])

    def vector(self, phi: Weights) -> Array:
        """Return logits against the first state in each population."""
        log = np.log(np.maximum(phi.weights, 1e-300))
        return np.asarray((log[:, 1:] - log[:, :1]).reshape(len(log), -1))

    def theta_of(self, vector: Array, like: Weights) -> Weights:
        """Return the weights of logits."""
        free = vector.reshape(len(vector), -1, self.n_populations)
        logits = np.concatenate([np.zeros((len(vector), 1, self.n_populations)), free], axis=1)
        w = np.exp(logits - logits.max(axis=1, keepdims=True))
        return Weights(w / w.sum(axis=1, keepdims=True))
