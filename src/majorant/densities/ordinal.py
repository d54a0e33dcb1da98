"""Independent ordinal columns: adjacent-category logits that differ between states by one number a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from majorant.densities.categorical import Categorical
from majorant.densities.natural import TINY
from majorant.engine.mixture import Array

MOST_STEPS = 30
LONGEST_STEP = 2.0
FARTHEST = 30.0
"""Largest logit: beyond, a probability is as good as zero."""
RIDGE = 1e-9


class Ordinal(Categorical):
    r"""Columns of codes 0, 1, ... in order, :math:`\log f(m; \alpha, \beta_k) = \alpha_m + \beta_k m + c_k`.

    All states share the :math:`\alpha` of a column, with :math:`\alpha_0 = 0`; :math:`\beta_1 = 0`. So neighbouring
    codes have log odds that differ between two states by the same number, whichever the codes. Parameters are the
    probabilities, an array (runs, components, codes of all columns). Missing cells (NaN) are ignored.

    Parameters
    ----------
    sizes : sequence of int
        How many codes each column has.
    """

    exact = False

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__(sizes)

    def _split(self, table: Array) -> list[Array]:
        return np.split(table, self.first[1:], axis=-1)

    def solve(self, statistics: Array, theta: Array | None, share: Array) -> Array:
        """Take a share of the way to the maximum, which Newton's steps find column by column."""
        k = statistics.shape[1]
        if theta is None:
            pooled = np.maximum(statistics.sum(axis=1, keepdims=True), TINY) ** np.ones((1, k, 1))
            total = np.repeat(np.add.reduceat(pooled, self.first, axis=2), self.sizes, axis=2)
            start = self.vector(pooled / total)
            return self._of(np.concatenate(self._newton(statistics, self._pieces(start, k)), axis=1), k)
        start = self.vector(theta)
        end = np.concatenate(self._newton(statistics, self._pieces(start, k)), axis=1)
        return self._of(start + share[:, None] * (end - start), k)

    def _pieces(self, vector: Array, k: int) -> list[Array]:
        """Return the numbers of each column: alpha without its first, beta without its first."""
        return np.split(vector, np.cumsum([size - 1 + k - 1 for size in self.sizes])[:-1], axis=1)

    def _newton(self, statistics: Array, pieces: list[Array]) -> list[Array]:
        return [_maximum(counts, piece) for counts, piece in zip(self._split(statistics), pieces, strict=True)]

    def _of(self, vector: Array, k: int) -> Array:
        """Return the probabilities of unconstrained numbers."""
        pieces = zip(self._pieces(vector, k), self.sizes, strict=True)
        return np.concatenate([_probabilities(piece, size) for piece, size in pieces], axis=2)

    def n_parameters(self, n_components: int) -> int:
        """Return, for each column, one fewer than codes, and one fewer than states."""
        return sum(size - 1 + n_components - 1 for size in self.sizes if size > 1)

    def vector(self, theta: Array) -> Array:
        """Return alpha and beta of each column, without the first of each."""
        out = []
        for p in self._split(np.log(np.maximum(theta, TINY))):
            logits = p - p[:, :, :1]
            alpha = logits[:, 0, 1:]
            m = np.arange(1, p.shape[2])
            beta = np.zeros((len(p), p.shape[1] - 1))
            if len(m):  # each code tells the same beta; the likelier, the more exactly
                weight = np.exp(p[:, 1:, 1:] + p[:, :1, 1:])
                beta = (weight * (logits[:, 1:, 1:] - alpha[:, None]) / m).sum(axis=2) / np.maximum(
                    weight.sum(axis=2), TINY
                )
            out += [alpha, beta]
        return np.asarray(np.clip(np.concatenate(out, axis=1), -FARTHEST, FARTHEST))

    def theta_of(self, vector: Array, like: Array) -> Array:
        """Return the probabilities."""
        return self._of(vector, like.shape[1])

    def score(self, statistics: Array, theta: Array) -> Array:
        """Return counts less those that are expected: of each code but the first, and weighted by the code."""
        mass = np.repeat(np.add.reduceat(statistics, self.first, axis=2), self.sizes, axis=2)
        out = []
        for left in self._split(statistics - mass * theta):
            out += [left.sum(axis=1)[:, 1:], left[:, 1:] @ np.arange(left.shape[2], dtype=np.float64)]
        return np.concatenate(out, axis=1)

    def describe(self, theta: Array) -> dict[str, Array]:
        """Return the probabilities, and the effect of each state on log odds of neighbouring codes, from their mean."""
        k = theta.shape[1]
        betas = [
            piece[:, size - 1 :] for piece, size in zip(self._pieces(self.vector(theta), k), self.sizes, strict=True)
        ]
        effects = np.concatenate([np.zeros((len(theta), 1, len(self.sizes))), np.stack(betas, axis=2)], axis=1)
        return {"probabilities": theta, "effects": effects - effects.mean(axis=1, keepdims=True)}

    def recalled(self, estimates: Mapping[str, Array]) -> Array:
        """Return the probabilities."""
        return np.asarray(estimates["probabilities"], dtype=np.float64)[None]

    def anchored(self, theta: Array) -> Ordinal:
        """Return the density itself: its numbers are told against the first code and state."""
        return self

    def at_edges(self, theta: Array, statistics: Array, rows: float) -> None:
        """Return None: a probability of zero would take others of its column along."""


def _probabilities(piece: Array, size: int) -> Array:
    """Return the probabilities of the codes of one column, (runs, components, codes)."""
    alpha = np.concatenate([np.zeros((len(piece), 1)), piece[:, : size - 1]], axis=1)
    beta = np.concatenate([np.zeros((len(piece), 1)), piece[:, size - 1 :]], axis=1)
    logits = alpha[:, None] + beta[:, :, None] * np.arange(size)
    p = np.exp(logits - logits.max(axis=2, keepdims=True))
    return np.asarray(p / p.sum(axis=2, keepdims=True))


def _maximum(counts: NDArray[np.float64], start: Array) -> Array:
    """Return alpha and beta of the largest likelihood of counts (runs, components, codes), from a start."""
    _, k, size = counts.shape
    at = start.copy()
    if size == 1:
        return at
    design = np.zeros((k, size, size - 1 + k - 1))
    design[:, np.arange(1, size), np.arange(size - 1)] = 1.0
    for j in range(1, k):
        design[j, :, size - 2 + j] = np.arange(size)
    mass = counts.sum(axis=2, keepdims=True)
    scale = np.maximum(mass.sum(axis=(1, 2)), TINY)[:, None]
    for _ in range(MOST_STEPS):
        p = _probabilities(at, size)
        slope = np.einsum("rkm,kmj->rj", counts - mass * p, design)
        centred = design[None] - np.einsum("rkm,kmj->rkj", p, design)[:, :, None]
        curvature = np.einsum("rkm,rkmi,rkmj->rij", mass * p, centred, centred, optimize=True)
        ridge = RIDGE * scale[:, :, None] * np.eye(at.shape[1])
        step = np.linalg.solve(curvature + ridge, slope[:, :, None])[:, :, 0]
        step /= np.maximum(np.abs(step).max(axis=1, keepdims=True) / LONGEST_STEP, 1.0)
        at = np.clip(at + step, -FARTHEST, FARTHEST)
        if float(np.max(np.abs(slope) / scale)) < 1e-12:
            break
    return at
