"""Independent states: one for every row, drawn by weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.engine.mixture import Array, Limits, Posterior, Table
from majorant.registry import value_class

LEAST_LOG = -745.0
"""Logarithm of the smallest number: what has no weight times this is zero."""


@value_class
@dataclass(frozen=True)
class Weights:
    """Weights of the states of a batch of runs, (runs, components, ...); a state whose weight is zero is absent."""

    weights: Array


def normalised(joint: Table, beta: float) -> tuple[NDArray[np.float64], Table]:
    """Return log of the sum over states, and the posterior: each unit of each run.

    At an infinite beta the best state has all of it, the first one where several are equal.
    """
    top = joint.max(axis=1, keepdims=True)
    if np.isinf(beta):
        q = np.zeros_like(joint)
        np.put_along_axis(q, joint.argmax(axis=1)[:, None], 1.0, axis=1)
        return top[:, 0], q
    finite = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.exp(beta * (joint - finite))
        total = q.sum(axis=1, keepdims=True)
        q /= total
        log_sum = (finite + np.log(total) / beta)[:, 0]
    impossible = total[:, 0] == 0  # no state can have made the unit
    if impossible.any():
        q = np.where(impossible[:, None], 1 / joint.shape[1], q)
    return log_sum, q


def entropy_of(q: Table, weights: Array | None, beta: float) -> Array:
    """Return the entropy of responsibilities (times weights) over beta, summed over the units of each run."""
    own = q if weights is None else np.divide(q, weights, out=np.zeros_like(q), where=weights > 0)
    return np.asarray(-np.sum(q * np.log(np.where(own > 0, own, 1.0)), axis=(1, 2)) / beta)


class Independent:
    r"""States of rows are independent with weights: :math:`p(z_i = k) = \pi_k`.

    Attributes
    ----------
    rows_are_units, statistics_are_free : bool
    numbers_states : bool
        Whether data say which state is which, so that they keep their order.
    """

    rows_are_units = True
    statistics_are_free = True
    numbers_states = False
    limits: Mapping[str, Limits] = {"weights": (0.0, 1.0)}

    def posterior(self, phi: Weights, log_density: Table, units: Block, beta: float) -> Posterior:
        """Return the responsibilities of each row, and their sums."""
        log_sum, q = normalised(log_density + self.log_weights(phi)[:, :, None], beta)
        w = units.weights
        if w is not None:
            q *= w
        value = weighted(log_sum, np.ones(1) if w is None else w)
        return Posterior(value, q, q.sum(axis=2), partial(entropy_of, q, w, beta), log_sum)

    def log_weights(self, phi: Weights) -> Array:
        """Return the log weights; -inf where a state is absent."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(phi.weights))

    def log_prior(self, phi: Weights, units: Block) -> Table:
        """Return log weights, the same for all rows."""
        return self.log_weights(phi)[:, :, None]

    def first(self, q: Table, units: Block) -> tuple[Table, Array]:
        """Return weighted responsibilities and their sums."""
        given = q if units.weights is None else q * units.weights
        return given, given.sum(axis=2)

    def solve(self, statistics: Array, phi: Weights | None, share: Array) -> Weights:
        """Return the share of each state."""
        return Weights(statistics / statistics.sum(axis=1, keepdims=True))

    def expected_log_prior(self, statistics: Array, phi: Weights) -> Array:
        """Return ``sum_k n_k log pi_k``."""
        return np.asarray(
            np.sum(np.where(statistics > 0, statistics * np.maximum(self.log_weights(phi), LEAST_LOG), 0.0), axis=1)
        )

    def score(self, statistics: Array, phi: Weights) -> Array:
        """Return masses less those that are expected, of all states but the first."""
        return np.asarray((statistics - statistics.sum(axis=1, keepdims=True) * phi.weights)[:, 1:])

    def n_parameters(self, n_components: int) -> int:
        """Return one fewer than states."""
        return n_components - 1

    def shares(self, phi: Weights, statistics: Array) -> Array:
        """Return the weights."""
        return phi.weights

    def relabelled(self, phi: Weights, order: NDArray[np.intp]) -> Weights:
        """Return the weights in another order."""
        return Weights(phi.weights[:, order])

    def describe(self, phi: Weights) -> dict[str, Array]:
        """Return the weights."""
        return {"weights": phi.weights}

    def recalled(self, estimates: Mapping[str, Array]) -> Weights:
        """Return the weights."""
        return Weights(np.asarray(estimates["weights"], dtype=np.float64)[None])

    def vector(self, phi: Weights) -> Array:
        """Return logits against the first state."""
        log = np.log(np.maximum(phi.weights, 1e-300))
        return np.asarray(log[:, 1:] - log[:, :1])

    def theta_of(self, vector: Array, like: Weights) -> Weights:
        """Return the weights of logits."""
        logits = np.concatenate([np.zeros((len(vector), 1)), vector], axis=1)
        w = np.exp(logits - logits.max(axis=1, keepdims=True))
        return Weights(w / w.sum(axis=1, keepdims=True))


def weighted(values: Array, weights: Array) -> Array:
    """Return each run's weighted sum; -inf if any unit of positive weight has -inf.

    Weights have shape (units,), or (runs, 1, units) where each run has its own.
    """
    weights = weights if weights.ndim == 1 else weights[:, 0]
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.where(weights > 0, values * weights, 0.0).sum(axis=1))
