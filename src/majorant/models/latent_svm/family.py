"""The latent support vector machine as the engine sees it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.engine.chunks import Block, Chunks
from majorant.engine.latents import Latent
from majorant.engine.problem import Bound
from majorant.solvers.structural_svm import BoundSolver
from majorant.solvers.structural_svm.bags import BagProblem

ROUGH = 1e-2
"""Relative duality gap of a fit to a part of the samples."""


@dataclass(frozen=True)
class Weights:
    """Parameters, and what the solver wants to remember.

    Attributes
    ----------
    w : ndarray of shape (n_classes * (n_features + 1),)
    augmented : float
        The sum of the loss-augmented maxima at `w`.
    gap : float
        How far the bound that `w` minimises may be above its minimum.
    state : object
        Where the solver of the next bound begins.
    """

    w: NDArray[np.float64]
    augmented: float
    gap: float
    state: Any = None


@dataclass
class LatentSVMFamily:
    r"""A sample's latent value is the region on which its own class is scored.

    .. math:: E_i(z; w) = \max_{y, z'} \bigl[\langle w_y, x_{iz'} \rangle + \Delta(y_i, y)\bigr] -
              \langle w_{y_i}, x_{iz} \rangle

    Statistics are the sum of joint features, and the bound is the convex programme of a structural SVM.

    Parameters
    ----------
    problem : BagProblem
    shares : ndarray of shape (n_samples,)
        Weights of the samples in the objective; they sum to one.
    alpha : float
    solver : BoundSolver
    tol : float
        Relative duality gap of each bound.
    seed : int
    max_passes : int
        Passes that the solver may take on one bound.
    """

    problem: BagProblem
    shares: NDArray[np.float64]
    alpha: float
    solver: BoundSolver
    tol: float
    seed: int
    slack: float = 0.0
    max_passes: int = 1000
    beta: float = np.inf

    def __post_init__(self) -> None:
        self.n_states = self.problem.bags.width

    def restricted(self, mask: NDArray[np.bool_]) -> LatentSVMFamily:
        """The same for the samples of a mask, to a rough gap: such a fit is only to judge the others."""
        return replace(self, shares=np.where(mask, self.shares, 0.0), tol=max(self.tol, ROUGH))

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

    def solve(self, s: NDArray[np.float64], theta: Weights | None, data: Chunks) -> tuple[Weights, float]:
        found = self.solver(
            self.problem,
            s,
            self.shares,
            alpha=self.alpha,
            tol=self.tol,
            max_passes=self.max_passes,
            state=None if theta is None else theta.state,
            seed=self.seed,
        )
        data.n_passes += found.n_passes
        lowest = found.objective - found.gap
        if theta is not None:
            # Within the solver's tolerance the old weights may be the better ones.
            before = self.penalty(theta) + theta.augmented - float(np.sum(theta.w * s))
            if before <= found.objective:
                return Weights(theta.w, theta.augmented, max(before - lowest, 0.0), found.state), before
        augmented = found.objective - self.alpha / 2 * float(np.sum(found.w**2)) + float(np.sum(found.w * s))
        return Weights(found.w, augmented, found.gap, found.state), found.objective

    def penalty(self, theta: Weights) -> float:
        return self.alpha / 2 * float(np.sum(theta.w**2))

    def tight_pass(self, theta: Weights, block: Block) -> tuple[float, Bound]:
        found = self.problem.highest(block, theta.w)
        free = found.height - found.own_height
        return block.total(free), Bound(self.statistics(block, found.own_row, theta), 0.0, 0.0)
