"""Trimmed mixtures: a share of the data, the units of lowest density, does not count."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.engine.descent import Seen
from majorant.engine.mixture import Array, OnData, Parameters


@dataclass
class Trimmed(OnData):
    r"""The trimmed log-likelihood of a mixture, as a problem of the descent.

    It is the largest log-likelihood over weights between zero and those of the units that remove a given share of the
    rows. The units of lowest log density per row are left out, anew in every pass and for every run, and an M-step with
    the others does not lower the trimmed log-likelihood.

    Parameters
    ----------
    data : Chunks
        In memory.
    first : ndarray of shape (units,)
        First row of each unit.
    weights : ndarray of shape (units,)
    share : float
        Share of the rows that does not count.
    """

    first: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    weights: Array = field(default_factory=lambda: np.zeros(0))
    share: float = 0.0

    def seen(self, theta: Parameters[Any, Any]) -> Seen:
        """Make one pass to find the units that count, and one over these."""
        kept = np.repeat(self.kept(theta) * self.weights, self.sizes, axis=1)[:, None, :]

        def visit(block: Block) -> Seen:
            of_runs = np.ascontiguousarray(kept[:, :, block.at])
            counted = replace(block, weights=of_runs)
            return self.mixture.pass_over(theta, counted)

        return self.data.map_sum(visit)

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Number of rows of each unit."""
        return np.diff(np.append(self.first, self.data.n_units))

    def densities(self, theta: Parameters[Any, Any]) -> Array:
        """Return the log density of each unit, (runs, units)."""
        parts = self.data.map_sum(lambda block: [self.mixture.posterior(theta, block).units])
        return np.concatenate(parts, axis=1)

    def kept(self, theta: Parameters[Any, Any]) -> Array:
        """Return the share of each unit that counts, (runs, units)."""
        rows = self.weights * self.sizes
        gone = self.share * rows.sum()
        level = self.densities(theta) / self.sizes
        kept = np.ones_like(level)
        for run, values in enumerate(level):
            order = np.argsort(values, kind="stable")
            before = np.cumsum(rows[order]) - rows[order]
            kept[run, order] = 1 - np.clip((gone - before) / rows[order], 0.0, 1.0)
        return kept
