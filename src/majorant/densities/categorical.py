"""Columns of categories that are independent within a state: the items of latent class analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from majorant.data.chunks import Block
from majorant.densities.natural import TINY, Natural
from majorant.engine.mixture import Array, Limits, Table


class Categorical(Natural):
    r"""Columns of codes 0, 1, ..., each with a probability for every code, :math:`f(x; p) = p_x`.

    Parameters are an array (runs, components, codes of all columns). A missing cell (NaN) says nothing.

    Parameters
    ----------
    sizes : sequence of int
        How many codes each column has.
    """

    name = "probabilities"
    limits: Mapping[str, Limits] = {"probabilities": (0.0, 1.0)}

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__(len(sizes))
        self.sizes = tuple(int(size) for size in sizes)
        self.first = np.cumsum((0, *self.sizes[:-1]))
        self._is_free = np.ones(sum(self.sizes), dtype=bool)
        self._is_free[self.first] = False

    @property
    def width(self) -> int:
        """A count for each code."""
        return sum(self.sizes)

    def natural(self, mean: Array) -> tuple[Array, Array]:
        """Return log probabilities."""
        return np.log(np.maximum(mean, TINY)), np.zeros_like(mean)

    def inverse(self, vector: Array) -> Array:
        """Return the softmax of each column's numbers, the first of which are zero."""
        columns = np.split(vector, np.cumsum(np.subtract(self.sizes, 1))[:-1], axis=-1)
        out = []
        for free in columns:
            logits = np.concatenate([np.zeros((*free.shape[:-1], 1)), free], axis=-1)
            p = np.exp(logits - logits.max(axis=-1, keepdims=True))
            out.append(p / p.sum(axis=-1, keepdims=True))
        return np.concatenate(out, axis=-1)

    def draw(self, mean: Array, random: np.random.Generator) -> Array:
        """Return a code for every column."""
        ends = np.split(mean, self.first[1:], axis=1)
        uniform = random.random((len(mean), len(self.sizes)))
        drawn = [(np.cumsum(p, axis=1) <= u[:, None]).sum(axis=1) for p, u in zip(ends, uniform.T, strict=True)]
        return np.asarray(np.minimum(np.column_stack(drawn), np.subtract(self.sizes, 1)), dtype=np.float64)

    def log_density(self, theta: Array, rows: Block) -> Table:
        """Return sums of log probabilities over the cells of each row."""
        hot = self._one_hot(rows)
        runs, k, d = theta.shape
        return (self.natural(theta)[0].reshape(-1, d) @ hot.T).reshape(runs, k, -1)

    def statistics(self, theta: Array | None, rows: Block, q: Table) -> Array:
        """Return counts of every code."""
        runs, k, n = q.shape
        return (q.reshape(-1, n) @ self._one_hot(rows)).reshape(runs, k, -1)

    def solve(self, statistics: Array, theta: Array | None, share: Array) -> Array:
        """Return shares of the codes among the cells that are there."""
        mass = np.repeat(np.add.reduceat(statistics, self.first, axis=2), self.sizes, axis=2)
        pooled = statistics.sum(axis=1, keepdims=True) / np.maximum(mass.sum(axis=1, keepdims=True), TINY)
        other = np.broadcast_to(pooled, statistics.shape) if theta is None else theta
        return np.asarray(np.divide(statistics, mass, out=np.array(other), where=mass > TINY))

    def expected_log_density(self, statistics: Array, theta: Array) -> Array:
        """Return counts times log probabilities."""
        return np.asarray(np.sum(statistics * self.natural(theta)[0], axis=(1, 2)))

    def score(self, statistics: Array, theta: Array) -> Array:
        """Return counts less those that are expected, of all codes but the first of each column."""
        mass = np.repeat(np.add.reduceat(statistics, self.first, axis=2), self.sizes, axis=2)
        return np.asarray((statistics - mass * theta)[:, :, self._is_free].reshape(len(theta), -1))

    def n_parameters(self, n_components: int) -> int:
        """Return one fewer than codes for each state and column."""
        return n_components * sum(size - 1 for size in self.sizes)

    def vector(self, theta: Array) -> Array:
        """Return logits against the first code of each column."""
        log = self.natural(theta)[0]
        against = np.repeat(log[:, :, self.first], self.sizes, axis=2)
        return (log - against)[:, :, self._is_free].reshape(len(theta), -1)

    def theta_of(self, vector: Array, like: Array) -> Array:
        """Return the probabilities."""
        return self.inverse(vector.reshape(*like.shape[:2], -1))

    def _one_hot(self, rows: Block) -> Array:
        """Return rows with a column for every code, zero where a cell is missing; kept beside the rows."""
        x = rows.columns[0]
        known = rows.memory.get("codes")
        if known is None or known[0] is not x:
            there = ~np.isnan(x)
            hot = np.zeros((len(x), sum(self.sizes)))
            at, column = np.nonzero(there)
            hot[at, self.first[column] + x[at, column].astype(np.intp)] = 1.0
            rows.memory["codes"] = known = (x, hot)
        return np.asarray(known[1])
