"""Starts of hidden Markov models: tables of responsibilities, (components, rows), built from stretches of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant.engine.draws import drawn
from majorant.search.starts import one_hot

Array = NDArray[np.float64]
WIDTHS = (1, 1, 3, 7)
"""Rows over which a column is smoothed before it is cut into levels."""


@dataclass(frozen=True)
class Times:
    """Rows in the order of time."""

    points: Array  # (rows, numbers): standardised columns, without missing cells
    weights: Array  # (rows,)
    offsets: NDArray[np.int64]  # (sequences + 1,): first rows of the sequences, and the number of rows
    least: int  # smallest number of rows that determine a state

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.weights)

    def stretch(self, length: int, draws: np.random.Generator) -> slice:
        """Return this many rows around a random one, or its whole sequence if shorter."""
        middle = drawn(self.weights, draws.random())
        i = int(np.searchsorted(self.offsets, middle, side="right")) - 1
        low, high = int(self.offsets[i]), int(self.offsets[i + 1])
        begin = int(np.clip(middle - length // 2, low, max(low, high - length)))
        return slice(begin, min(begin + length, high))

    def windows(self, k: int, draws: np.random.Generator) -> Array:
        """Assign a stretch of time to each state, and leave the other rows unassigned."""
        longest = max(self.least + 1, self.n // (2 * k))
        length, q = int(draws.integers(self.least, longest + 1)), np.zeros((k, self.n))
        for state in range(k):
            q[state, self.stretch(length, draws)] = 1
        return q

    def seeds(self, k: int, draws: np.random.Generator) -> Array:
        """Assign a few rows to each state, and leave the others unassigned."""
        q = np.zeros((k, self.n))
        for state in range(k):
            size = min(self.n, int(draws.integers(self.least, 2 * self.least + 1)))
            q[state, draws.choice(self.n, size, replace=False)] = 1
        return q

    def blocks(self, k: int, draws: np.random.Generator) -> Array:
        """Cut time at random, and deal the stretches to the states."""
        n_cuts = min(self.n - 1, int(draws.integers(k - 1, 4 * k)))
        cuts = np.sort(draws.choice(np.arange(1, self.n), n_cuts, replace=False))
        states = np.append(draws.permutation(k), draws.integers(0, k, 4 * k))
        return one_hot(states[np.searchsorted(cuts, np.arange(self.n), side="right")], k)

    def levels(self, k: int, draws: np.random.Generator) -> Array:
        """Return the quantiles of a column, or of a random combination, smoothed over time."""
        width = self.points.shape[1]
        one = draws.random() < 0.7
        along = (
            self.points[:, draws.integers(width)]
            if one
            else np.einsum("ij,j->i", self.points, draws.normal(size=width))
        )
        size = int(draws.choice(WIDTHS))
        smooth = np.convolve(np.pad(along, size // 2, mode="edge"), np.ones(size) / size, "valid")
        order = np.argsort(smooth, kind="stable")
        rank = np.empty(self.n)
        rank[order] = (np.cumsum(self.weights[order]) - 0.5 * self.weights[order]) / self.weights.sum()
        cuts = draws.dirichlet(np.full(k, 3.0)).cumsum()[:-1]
        return one_hot(np.searchsorted(cuts, rank), k)

    def rows(self, k: int, draws: np.random.Generator) -> Array:
        """Draw a state for every row uniformly."""
        return one_hot(draws.integers(0, k, self.n), k)

    def moved(self, q: Array, draws: np.random.Generator) -> Array:
        """Empty a state into the others, and give it one to three stretches of time."""
        k = len(q)
        a, out = int(draws.integers(k)), q + 1e-12
        out[a] = 0
        out /= out.sum(axis=0)
        longest = max(self.least + 1, self.n // k)
        for _ in range(int(draws.integers(1, 4))):
            at = self.stretch(int(draws.integers(self.least, longest + 1)), draws)
            out[:, at] *= 0.05
            out[a, at] += 0.95
        out = np.maximum(out, 1e-6)
        return np.asarray(out / out.sum(axis=0))
