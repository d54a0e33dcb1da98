"""The reconfigurable bag of words as the engine sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.engine.latents import Latent
from majorant.engine.problem import Bound
from majorant.models.margin import MarginFamily, Weights
from majorant.solvers.structural_svm.grids import GridProblem


@dataclass
class BagOfWordsFamily(MarginFamily):
    r"""A region's latent value is the part that scores it for its image's own class.

    .. math:: E_{ir}(p; A, B) = \frac1R \max_y \Bigl[\sum_{r'} \max_{p'} \bigl(\langle A_{p'}, x_{ir'} \rangle +
              B_{yr'p'}\bigr) + \Delta(y_i, y)\Bigr] - \langle A_p, x_{ir} \rangle - B_{y_i r p}

    Regions are units, those of an image together, each with the weight of its image: the bounds are those of whole
    images, and preferences may name regions. `MarginFamily` has the parameters and the solver.
    """

    problem: GridProblem

    def __post_init__(self) -> None:
        self.n_states = self.problem.grids.n_parts
        self.together = self.problem.grids.n_regions

    def restricted(self, mask: NDArray[np.bool_]) -> Self:
        return super().restricted(mask.reshape(len(self.shares), -1)[:, 0])

    def _images(self, block: Block) -> slice:
        return slice(block.at.start // self.together, block.at.stop // self.together)

    def energies(self, theta: Weights, block: Block) -> NDArray[np.float64]:
        at, m = self._images(block), self.together
        best, label, _, own = self.problem.grids.infer(at, theta.w, self.problem.cost, own=True)
        assert own is not None
        rows, codes = np.arange(len(label)), self.problem.grids.codes[at]
        height = best[rows, label] + self.problem.cost[codes, label]
        return np.asarray(np.repeat(height / m, m)[:, None] - own)

    def statistics(self, block: Block, q: Latent, theta: Weights | None) -> NDArray[np.float64]:
        grids, at, m = self.problem.grids, self._images(block), self.together
        codes, shares = grids.codes[at], self.shares[at]
        if q.ndim == 1:
            return grids.sums(at, shares, codes, q.astype(np.int32, copy=False).reshape(-1, m))
        out = np.zeros(grids.dim)
        filters, table = grids.split(out)
        weighted = (np.repeat(shares, m)[:, None] * q).reshape(len(codes), m, -1)
        for i, start in enumerate(grids.starts[at].tolist()):
            # Not a matrix product: the sums of one depend on the number of threads that BLAS may use.
            filters += np.einsum("rp,rd->pd", weighted[i], grids.rows[start : start + m])
            table[codes[i]] += grids.scale * weighted[i]
        return out

    def tight_pass(self, theta: Weights, block: Block) -> tuple[float, Bound]:
        grids, at = self.problem.grids, self._images(block)
        codes, shares = grids.codes[at], self.shares[at]
        best, _, parts, _ = grids.infer(at, theta.w, self.problem.cost, codes)
        rows = np.arange(len(codes))
        free = (best + self.problem.cost[codes]).max(axis=1) - best[rows, codes]
        return float(np.sum(shares * free)), Bound(grids.sums(at, shares, codes, parts), 0.0, 0.0)
