"""Independent categorical columns, as in latent class analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.data.chunks import Block, Chunks
from majorant.densities.natural import TINY, Natural
from majorant.engine.descent import Ends, Seen, descend
from majorant.engine.mixture import Array, Limits, Mixture, OnData, Parameters, Sums, Table

LONGEST_RUN = 1 << 20
"""Most steps of one call."""
NOTHING = 1e-100
"""Expected rows of what an extrapolated logarithm leaves of a zero."""


class Categorical(Natural):
    r"""Columns of codes 0, 1, ..., each with a probability for every code, :math:`f(x; p) = p_x`.

    Parameters are an array (runs, components, codes of all columns). Missing cells (NaN) are ignored.

    Parameters
    ----------
    sizes : sequence of int
        How many codes each column has.
    reference : ndarray of int, shape (components, columns), optional
        The codes, counted through all columns, that logits are told against; by default the first of each column.
    """

    name = "probabilities"
    limits: Mapping[str, Limits] = {"probabilities": (0.0, 1.0)}

    def __init__(self, sizes: Sequence[int], *, reference: NDArray[np.intp] | None = None) -> None:
        super().__init__(len(sizes))
        self.sizes = tuple(int(size) for size in sizes)
        self.first = np.cumsum((0, *self.sizes[:-1]))
        self.reference = reference

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

    def fused_runs(self, mixture: Mixture, data: Chunks, theta: Any, *, tol: float, max_iter: int) -> Ends[Any]:
        """Run EM in one call per run where rows are one block; of the statistics only masses are known then."""
        log_weights = mixture.law.log_weights(theta.law)
        if not self.exact or log_weights is None or mixture.beta != 1.0 or data.n_blocks > 1:
            return descend(OnData(mixture, data), theta, tol=tol, max_iter=max_iter)
        block = next(iter(data.source.blocks()))
        x = block.columns[0]
        codes = np.where(np.isnan(x), -1, self.first + np.where(np.isnan(x), 0, x)).astype(np.int32)
        rows = codes, np.append(self.first, self.width).astype(np.int64), block.weights, tol * data.total_weight
        weights, p = np.exp(log_weights), theta.density.copy()
        path, paths, told = np.empty(min(max_iter, LONGEST_RUN)), [], []
        for own_weights, own in zip(weights, p, strict=True):
            told.append(_kernels.category_em(*rows, own_weights, own, path))
            paths.append(path[: told[-1][1]].tolist())
        objective, n_iter, converged = (np.array(part) for part in zip(*told, strict=True))
        mass = weights * data.total_weight
        law = mixture.law.solve(mass, theta.law, np.ones(len(mass)))
        seen = Seen(objective, Sums(np.zeros((*mass.shape, 0)), mass))
        return Ends(Parameters(p, law), seen, n_iter.astype(np.intp), converged, paths)

    def expected_log_density(self, statistics: Array, theta: Array) -> Array:
        """Return counts times log probabilities."""
        return np.asarray(np.sum(statistics * self.natural(theta)[0], axis=(1, 2)))

    def score(self, statistics: Array, theta: Array) -> Array:
        """Return counts less those that are expected, of all codes but the first of each column."""
        mass = np.repeat(np.add.reduceat(statistics, self.first, axis=2), self.sizes, axis=2)
        return np.asarray((statistics - mass * theta)[:, self._free(theta.shape[1])].reshape(len(theta), -1))

    def n_parameters(self, n_components: int) -> int:
        """Return one fewer than codes for each state and column."""
        return n_components * sum(size - 1 for size in self.sizes)

    def vector(self, theta: Array) -> Array:
        """Return logits against the first code of each column, or against those of `reference`."""
        log = self.natural(theta)[0]
        against = log[:, :, self.first]
        if self.reference is not None:
            against = np.take_along_axis(
                log, np.broadcast_to(self.reference, (len(log), *self.reference.shape)), axis=2
            )
        logits = log - np.repeat(against, self.sizes, axis=2)
        return logits[:, self._free(theta.shape[1])].reshape(len(theta), -1)

    def theta_of(self, vector: Array, like: Array) -> Array:
        """Return the probabilities."""
        logits = np.zeros((len(vector), *like.shape[1:]))
        logits[:, self._free(like.shape[1])] = vector
        top = np.repeat(np.maximum.reduceat(logits, self.first, axis=2), self.sizes, axis=2)
        p = np.exp(logits - top)
        return np.asarray(p / np.repeat(np.add.reduceat(p, self.first, axis=2), self.sizes, axis=2))

    def _free(self, n_components: int) -> NDArray[np.bool_]:
        """Tell which probabilities have a logit, (components, codes): all but those that logits are told against."""
        free = np.ones((n_components, sum(self.sizes)), dtype=bool)
        held = (
            np.broadcast_to(self.first, (n_components, len(self.sizes))) if self.reference is None else self.reference
        )
        np.put_along_axis(free, held, False, axis=1)
        return free

    def anchored(self, theta: Array) -> Categorical:
        """Return the density that tells logits against the likeliest code of each state and column."""
        ends = zip(self.first, self.sizes, strict=True)
        likeliest = [a + theta[0][:, a : a + size].argmax(axis=1) for a, size in ends]
        return Categorical(self.sizes, reference=np.stack(likeliest, axis=1))

    def at_edges(self, theta: Array, statistics: Array, rows: float) -> Array | None:
        """Return zero for probabilities of few rows that EM makes smaller still; None if there are none."""
        mass = np.repeat(np.add.reduceat(statistics, self.first, axis=2), self.sizes, axis=2)
        small = (theta > 0) & (mass * theta < rows) & ((statistics <= mass * theta) | (mass * theta < NOTHING))
        if not small.any():
            return None
        p = np.where(small, 0.0, theta)
        total = np.repeat(np.add.reduceat(p, self.first, axis=2), self.sizes, axis=2)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), theta)

    def _one_hot(self, rows: Block) -> Array:
        """Return rows with a column for every code, zero where a cell is missing; cached with the block."""
        x = rows.columns[0]
        known = rows.derived.get("codes")
        if known is None or known[0] is not x:
            there = ~np.isnan(x)
            hot = np.zeros((len(x), sum(self.sizes)))
            at, column = np.nonzero(there)
            hot[at, self.first[column] + x[at, column].astype(np.intp)] = 1.0
            rows.derived["codes"] = known = (x, hot)
        return np.asarray(known[1])
