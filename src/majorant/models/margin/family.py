"""Latent structural SVMs on kernels as a family of the engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.engine.latents import Latent
from majorant.engine.problem import Bound
from majorant.solvers.structural_svm import BoundRequest, BoundSolver
from majorant.solvers.structural_svm.planes import NativeProblem

ROUGH = 1e-2
"""Relative duality gap of a fit to a part of the samples."""


@dataclass(frozen=True)
class Weights:
    """Parameters of a family, with the state of its solver."""

    w: NDArray[np.float64]  # (dim,)
    augmented: float  # sum of the loss-augmented maxima at `w`
    gap: float  # duality gap of the bound that `w` minimises
    is_solved: bool = True  # whether the gap is within the tolerance
    state: Any = None  # state from which the solver of the next bound begins


@dataclass
class MarginFamily:
    r"""Latent structural SVM on kernels, at temperature zero; its bounds are convex.

    .. math:: F(w) = \frac{\alpha}{2} |w|^2 + \sum_i c_i \Bigl[ \max_{y, z} \bigl(\langle w, \phi(x_i, y, z) \rangle +
              \Delta(y_i, y)\bigr) - \max_z \langle w, \phi(x_i, y_i, z) \rangle \Bigr]

    Statistics are the sum of joint features of the latent values; the problem has the energies. Units are the latent
    values, those of a sample together: bounds are those of whole samples.
    """

    problem: NativeProblem[Any]
    shares: NDArray[np.float64]  # (n_samples,): weights of the samples in the objective; they sum to one
    alpha: float  # strength of the penalty
    solver: BoundSolver
    tol: float  # relative duality gap of each bound
    seed: int  # seed of the order in which the solver visits samples
    slack: float = 0.0  # rounding error of the objective
    max_passes: int = 1000  # largest number of passes of the solver on one bound
    beta: float = np.inf

    def __post_init__(self) -> None:
        self.n_states = self.problem.samples.n_states
        self.together = int(np.prod(self.problem.samples.latent_shape, dtype=int))

    def restricted(self, mask: NDArray[np.bool_]) -> Self:
        """Return the family restricted to the samples of a mask, with a coarser gap, as for cross-validation."""
        of_sample = mask.reshape(len(self.shares), -1)[:, 0]
        return replace(self, shares=np.where(of_sample, self.shares, 0.0), tol=max(self.tol, ROUGH))

    def _at(self, block: Block) -> slice:
        """Return the samples of a block of units."""
        return slice(block.at.start // self.together, block.at.stop // self.together)

    def energies(self, theta: Weights, block: Block) -> NDArray[np.float64]:
        return self.problem.energies(self._at(block), theta.w)

    def hinge_losses(self, theta: Weights, block: Block) -> NDArray[np.float64]:
        """Return the hinge loss of each sample's own class with each latent value, (rows, n_states)."""
        if self.together > 1:
            raise ValueError(
                "samples with several latent values have no hinge loss of one: use MultiFold(loss='energy')"
            )
        at, problem = self._at(block), self.problem
        scores, _ = problem.scored(at, theta.w, None)
        codes, rows = problem.samples.codes[at], np.arange(len(scores))
        own = scores[rows, codes]
        rivals = scores + problem.cost[codes]
        rivals[rows, codes] = -np.inf
        energies = self.energies(theta, block)
        regrets = energies - energies.min(axis=1, keepdims=True)
        return np.asarray(np.maximum((rivals.max(axis=1) - own)[:, None] + regrets, 0.0))

    def statistics(self, block: Block, q: Latent, theta: Weights | None) -> NDArray[np.float64]:
        samples, at = self.problem.samples, self._at(block)
        if q.ndim > 1:
            return np.asarray(samples.expected_sums(at, self.shares[at], q))
        latent = q.astype(np.int32, copy=False).reshape(-1, *samples.latent_shape)
        return np.asarray(samples.sums(at, self.shares[at], samples.codes[at], latent))

    def tight_pass(self, theta: Weights, block: Block) -> tuple[float, Bound]:
        samples, at = self.problem.samples, self._at(block)
        shares = self.shares[at]
        loss, latent = self.problem.tightest(at, theta.w, shares)
        return loss, Bound(samples.sums(at, shares, samples.codes[at], latent), 0.0, 0.0)

    def solve(self, s: NDArray[np.float64], theta: Weights | None, data: Chunks) -> tuple[Weights, float]:
        state = None if theta is None else theta.state
        found = self.solver(
            BoundRequest(self.problem, s, self.shares, self.alpha, self.tol, self.max_passes, state, self.seed)
        )
        data.n_passes += found.n_passes
        lowest = found.objective - found.gap
        if theta is not None:
            # Within the solver's tolerance the old weights may be the better ones.
            before = self.penalty(theta) + theta.augmented - float(np.sum(theta.w * s))
            if before <= found.objective:
                return Weights(
                    theta.w, theta.augmented, max(before - lowest, 0.0), found.converged, found.state
                ), before
        augmented = found.objective - self.alpha / 2 * float(np.sum(found.w**2)) + float(np.sum(found.w * s))
        return Weights(found.w, augmented, found.gap, found.converged, found.state), found.objective

    def penalty(self, theta: Weights) -> float:
        return self.alpha / 2 * float(np.sum(theta.w**2))
