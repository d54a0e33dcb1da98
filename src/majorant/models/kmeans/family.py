"""The k-means family of the engine: energies, statistics, M-step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.engine.problem import Bound
from majorant.solvers.nearest import assign, centres_of, moments, squared_distances
from majorant.solvers.relocation import relocate_empty


@dataclass
class KMeansFamily:
    r"""Hard clusters by squared distance: ``E_i(z; C) = |x_i - c_z|^2``, at temperature zero."""

    n_states: int  # number of clusters
    tolerance: float = 0.0  # settled when the centres' squared shifts sum to no more than this, or no label changed
    slack: float = 0.0  # what rounding may add to an objective
    # Whether an empty cluster is moved to the row farthest from its centre; statistics must then be tight ones.
    # Otherwise it keeps its centre.
    relocate: bool = False
    on_sphere: bool = False  # whether rows and centres have length one, so that half an energy is one minus the cosine
    beta: float = np.inf

    def energies(self, theta: NDArray[Any], block: Block) -> NDArray[Any]:
        return squared_distances(block.columns[0], theta)

    def statistics(self, block: Block, q: NDArray[Any], theta: NDArray[Any] | None) -> NDArray[np.float64]:
        x = block.columns[0]
        centres = np.zeros((self.n_states, x.shape[1]), dtype=x.dtype) if theta is None else theta
        return moments(x, block.weights, centres, q)

    def tight_pass(self, theta: NDArray[Any], block: Block) -> tuple[float, Bound]:
        labels = block.memory.get("labels")
        if labels is None:
            labels = block.memory["labels"] = np.full(len(block), -1, dtype=np.int32)
        s, changed = assign(block.columns[0], block.weights, theta, labels)
        assert s is not None
        return float(s[:, -1].sum()), Bound(s, 0.0, 0.0, float(changed))

    def solve(self, s: NDArray[np.float64], theta: NDArray[Any] | None, data: Chunks) -> tuple[NDArray[Any], float]:
        dtype = next(data.source.blocks()).columns[0].dtype if theta is None else theta.dtype
        old = np.zeros((self.n_states, s.shape[1] - 2), dtype=dtype) if theta is None else theta
        if self.relocate and theta is not None and (s[:, 0] <= 0).any():
            s = relocate_empty(s, theta, data)
        return centres_of(s, old, on_sphere=self.on_sphere)

    def penalty(self, theta: NDArray[Any]) -> float:
        return 0.0

    def still(self, old: NDArray[Any], new: NDArray[Any]) -> bool:
        """Return whether the centres have moved no more than the tolerance."""
        return bool(np.sum((new.astype(np.float64) - old) ** 2) <= self.tolerance)

    def settled(self, old: NDArray[Any], new: NDArray[Any], seen: Bound) -> bool:
        if self.relocate and (seen.statistics[:, 0] <= 0).any():
            return np.array_equal(old, new)  # a row may still be moved to an empty cluster
        return self.still(old, new) or seen.distance == 0
