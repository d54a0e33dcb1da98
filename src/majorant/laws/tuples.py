"""Markov chains whose rows depend on the states of rows before too: chains of tuples of states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.engine.mixture import Array, Posterior, Table
from majorant.laws.chain import Chain, Steps, offsets_of


def tuples_of(k: int, order: int) -> NDArray[np.intp]:
    """Return all tuples of the states of a row and of so many rows before it, (tuples, 1 + order), by the row's own."""
    return np.indices((k,) * (order + 1)).reshape(order + 1, -1).T


class TupleChain(Chain):
    """A chain of k states under a density that sees those of a row and of `order` rows before it.

    Densities and responsibilities are of the k ** (order + 1) tuples, each of which has k followers; parameters and
    sums are those of the states. A sequence begins as if its first state had been there before.

    Parameters
    ----------
    start, allowed, sticky
        As of `Chain`.
    """

    def __init__(
        self, order: int, start: str | Array = "free", allowed: NDArray[np.bool_] | None = None, sticky: float = 0.0
    ) -> None:
        super().__init__(start, allowed, sticky)
        self.order = order

    def lifted(self, phi: Steps) -> Steps:
        """Return the chain of the tuples."""
        (runs, k), size = phi.start.shape, phi.start.shape[1] ** self.order
        start, steps = np.zeros((runs, k * size)), np.zeros((runs, k * size, k * size))
        tuples, states = np.arange(k * size), np.arange(k)
        start[:, states * sum(k**lag for lag in range(self.order + 1))] = phi.start
        steps[:, tuples[:, None], states * size + tuples[:, None] // k] = phi.steps[:, tuples // size]
        return Steps(start, steps)

    def posterior(self, phi: Steps, log_density: Table, units: Block, beta: float) -> Posterior:
        """Return responsibilities of tuples, and expected first states and steps of states."""
        found, k = Chain().posterior(self.lifted(phi), log_density, units, beta), phi.start.shape[1]
        first, counts, _ = Chain()._parts(found.statistics)
        own = first.reshape(len(first), k, -1).sum(axis=2)
        steps = counts.reshape(len(first), k, k**self.order, k, -1).sum(axis=(2, 4))
        return replace(found, statistics=np.concatenate([own, steps.reshape(len(first), -1)], axis=1))

    def in_stretches(
        self, phi: Steps, units: Block, log_density: Callable[[slice], Table], visit: Callable[[slice, Table], None]
    ) -> tuple[Array, Array, Callable[[], Array]] | None:
        """Return None: tables of tuples are whole."""
        return None

    def filtered(self, phi: Steps, log_density: Table, units: Block) -> Table:
        """Return the probability of each tuple given the rows up to its own."""
        return Chain().filtered(self.lifted(phi), log_density, units)

    def predicted(self, phi: Steps, log_density: Table, units: Block) -> Table:
        """Return the log probability of each tuple given the rows before its own."""
        return Chain().predicted(self.lifted(phi), log_density, units)

    def first(self, q: Table, units: Block) -> tuple[Table, Array]:
        """Return weighted responsibilities of tuples, of neighbours that are independent, and steps of states."""
        table, sums = super().first(q, units)
        offsets = offsets_of(units)
        at, begins = np.arange(len(units)), np.repeat(offsets[:-1], np.diff(offsets))
        for lag in range(1, self.order + 1):
            before: Any = q[:, :, np.maximum(at - lag, begins)]
            table = (table[:, :, None] * before[:, None]).reshape(len(q), -1, len(units))
        return table, sums
