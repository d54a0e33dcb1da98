r"""Stationary Markov chains: the law of states at any time, and the M-step that accounts for it.

The stationary law :math:`\delta = \delta A` moves with the steps A by :math:`d\delta = \delta\, dA\, Z`, with
:math:`Z = (I - A + 1 \delta)^{-1}`.
"""

from __future__ import annotations

import numpy as np

from majorant.engine.mixture import Array

ROUNDS = 3
LEAST_FACTOR = 0.1
"""Smallest factor of a step probability in one round: one that vanishes must not slow the others."""
SHORTEST = 1e-6


def stationary_law(steps: Array) -> tuple[Array, Array]:
    """Return the stationary laws of a batch of steps (runs, k, k), and the matrices Z of their derivatives."""
    k = steps.shape[-1]
    rest = np.eye(k) - steps
    law = np.linalg.inv(rest + 1).sum(axis=1)
    return law, np.linalg.inv(rest + law[:, None, :])


def law_slopes(steps: Array, first: Array) -> Array:
    r"""Return the derivatives of :math:`\sum_k c_k \log \delta_k` in the steps, for expected first states c."""
    law, z = stationary_law(steps)
    return np.asarray(law[:, :, None] * np.einsum("rij,rj->ri", z, first / law)[:, None, :])


def stationary_steps(
    first: Array,  # (runs, k): expected first states c
    counts: Array,  # (runs, k, k): expected steps C
    steps: Array,  # (runs, k, k): A, positive where a step is allowed
) -> Array:
    r"""Raise :math:`\sum_k c_k \log \delta_k(A) + \sum_{ij} C_{ij} \log A_{ij}` from given steps.

    Each round multiplies steps by one plus their slope beyond the mean of their row, over the row's count: without the
    first term one round is the maximum.
    """
    is_open = steps > 0
    mass = np.maximum(counts.sum(axis=2, keepdims=True), 1e-9)

    def value(a: Array) -> Array:
        law = stationary_law(a)[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(is_open, counts * np.log(np.where(is_open, a, 1.0)), 0.0)
            return np.asarray(np.sum(first * np.log(law), axis=1) + logs.sum(axis=(1, 2)))

    best = value(steps)
    for _ in range(ROUNDS):
        slopes = law_slopes(steps, first) + np.divide(counts, steps, out=np.zeros_like(counts), where=is_open)
        rise = (slopes - (steps * slopes).sum(axis=2, keepdims=True)) / mass
        going, length, before = np.ones(len(steps), dtype=bool), 1.0, best.copy()
        while length > SHORTEST and going.any():
            tried = steps * np.maximum(1 + length * rise, LEAST_FACTOR)
            tried /= tried.sum(axis=2, keepdims=True)
            found = value(tried)
            better = going & (found >= best)
            steps, best = np.where(better[:, None, None], tried, steps), np.where(better, found, best)
            going &= ~better
            length /= 2
        if (best - before <= 1e-12 * np.abs(best)).all():
            break
    return steps
