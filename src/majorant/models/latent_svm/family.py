"""The latent support vector machine as the engine sees it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.engine.latents import Latent
from majorant.engine.problem import Bound
from majorant.models.margin import MarginFamily, Weights
from majorant.solvers.structural_svm.bags import BagProblem


@dataclass
class LatentSVMFamily(MarginFamily):
    r"""A sample's latent value is the region on which its own class is scored.

    .. math:: E_i(z; w) = \max_{y, z'} \bigl[\langle w_y, x_{iz'} \rangle + \Delta(y_i, y)\bigr] -
              \langle w_{y_i}, x_{iz} \rangle

    Statistics are the sum of joint features; `MarginFamily` has the parameters and the solver.
    """

    problem: BagProblem

    def __post_init__(self) -> None:
        self.n_states = self.problem.bags.width

    def energies(self, theta: Weights, block: Block) -> NDArray[np.float64]:
        found = self.problem.highest(block, theta.w, own=True)
        assert found.own is not None
        return np.asarray(found.height[:, None] - found.own)

    def statistics(self, block: Block, q: Latent, theta: Weights | None) -> NDArray[np.float64]:
        bags, codes = self.problem.bags, block.columns[0]
        shares = self.shares[block.at]
        if q.ndim == 1:
            return bags.sums(block.at, shares, codes, q.astype(np.int32, copy=False))
        n_rows = bags.counts[block.at, None]
        rows = np.minimum(np.arange(q.shape[1]), n_rows - 1).astype(np.int32)
        labels = np.broadcast_to(codes[:, None], q.shape)
        return bags.sums(block.at, shares, labels, rows, q.astype(np.float64, copy=False))

    def tight_pass(self, theta: Weights, block: Block) -> tuple[float, Bound]:
        found = self.problem.highest(block, theta.w)
        free = found.height - found.own_height
        return block.total(free), Bound(self.statistics(block, found.own_row, theta), 0.0, 0.0)
