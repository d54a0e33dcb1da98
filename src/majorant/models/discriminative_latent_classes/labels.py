"""Distributions of labels given a latent class: one of several labels, or any number of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.engine.latents import collect

Array = NDArray[np.float64]

PRIOR = 1e-9
"""Pseudo-count of each label in every class, as a share of all weight: so little that it only keeps probabilities
off zero, where EM could not leave them."""


@dataclass(frozen=True)
class LabelModel:
    r"""One label per row: ``p(y = m | z) = alpha[z, m]``, rows of `alpha` on the simplex.

    y is the number of each row's label.
    """

    n_labels: int
    prior: float  # pseudo-count of each label in every class

    def logs(self, alpha: Array, y: NDArray[Any]) -> Array:
        """Return ``log p(y | z)``, shape (rows, n_classes)."""
        return np.ascontiguousarray(np.log(alpha).T[y])

    def counts(self, q: NDArray[Any], y: NDArray[Any], weights: Array | None) -> Array:
        """Return the weight of the rows of each class and label, shape (n_classes, n_labels)."""
        return np.ascontiguousarray(collect(y, np.asarray(q, dtype=np.float64), self.n_labels, weights).T)

    def probabilities(self, counts: Array, mass: Array) -> Array:
        """Return the `alpha` that fits best."""
        seen = np.maximum(counts, 0.0) + self.prior
        return np.asarray(seen / seen.sum(axis=1, keepdims=True))

    def expected_log(self, counts: Array, mass: Array, alpha: Array) -> float:
        """Return the expected log-probability of the labels."""
        return float(np.sum(counts * np.log(alpha)))

    def penalty(self, alpha: Array) -> float:
        return -self.prior * float(np.sum(np.log(alpha)))

    def free(self, alpha: Array) -> Array:
        """Return the unconstrained coordinates of `alpha`."""
        logs = np.log(alpha)
        return np.asarray(logs - logs.mean(axis=1, keepdims=True))

    def from_free(self, a: Array) -> Array:
        """Return the inverse of `free`."""
        e = np.exp(a - a.max(axis=1, keepdims=True))
        return np.asarray(np.maximum(e / e.sum(axis=1, keepdims=True), 1e-300))

    def gradient(self, counts: Array, mass: Array, alpha: Array) -> Array:
        """Return the gradient of ``penalty - expected_log`` in the unconstrained coordinates."""
        seen = counts + self.prior
        return np.asarray(seen.sum(axis=1, keepdims=True) * alpha - seen)


@dataclass(frozen=True)
class IndicatorModel(LabelModel):
    """Any number of labels per row: each is present with probability ``alpha[z, m]``, independently given the class.

    y is a table of indicators, shape (rows, n_labels).
    """

    def logs(self, alpha: Array, y: NDArray[Any]) -> Array:
        present, absent = np.log(alpha), np.log1p(-alpha)
        there = np.einsum("im,km->ik", np.asarray(y, dtype=np.float64), present - absent)
        return np.asarray(there + absent.sum(axis=1))

    def counts(self, q: NDArray[Any], y: NDArray[Any], weights: Array | None) -> Array:
        return collect(q, np.asarray(y, dtype=np.float64), q.shape[1], weights)

    def probabilities(self, counts: Array, mass: Array) -> Array:
        low, high = self.prior, mass[:, None] + self.prior
        return np.asarray(np.clip(counts + low, low, high) / (mass[:, None] + 2 * self.prior))

    def expected_log(self, counts: Array, mass: Array, alpha: Array) -> float:
        return float(np.sum(counts * np.log(alpha) + (mass[:, None] - counts) * np.log1p(-alpha)))

    def penalty(self, alpha: Array) -> float:
        return -self.prior * float(np.sum(np.log(alpha) + np.log1p(-alpha)))

    def free(self, alpha: Array) -> Array:
        return np.asarray(np.log(alpha) - np.log1p(-alpha))

    def from_free(self, a: Array) -> Array:
        return np.clip(1 / (1 + np.exp(-np.clip(a, -700, 700))), 1e-15, 1 - 1e-15)

    def gradient(self, counts: Array, mass: Array, alpha: Array) -> Array:
        return np.asarray((mass[:, None] + 2 * self.prior) * alpha - counts - self.prior)
