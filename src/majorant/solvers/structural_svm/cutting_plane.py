"""One-slack cutting planes: one cut a pass, which sums the highest planes of all samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from majorant.solvers.simplex_qp import simplex_qp
from majorant.solvers.structural_svm.problem import BoundSolution, Primal, StructuralProblem, Vector, exact_pass

IDLE = 50
"""Rounds after which a cut without a share is dropped."""


@dataclass
class Cuts:
    """Cuts so far, their inner products, and their weights in the solution; they hold for these shares alone."""

    shares: Vector
    features: NDArray[np.float64]
    losses: Vector
    products: NDArray[np.float64]
    mu: Vector
    idle: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    @classmethod
    def none(cls, dim: int, shares: Vector) -> Cuts:
        return cls(shares.copy(), np.zeros((0, dim)), np.zeros(0), np.zeros((0, 0)), np.zeros(0))

    def add(self, features: Vector, loss: float) -> None:
        row = np.einsum("kj,j->k", self.features, features)
        k = len(row)
        grown = np.empty((k + 1, k + 1))
        grown[:k, :k] = self.products
        grown[k, :k] = grown[:k, k] = row
        grown[k, k] = float(np.sum(features * features))
        self.features, self.products = np.vstack([self.features, features]), grown
        self.losses, self.mu = np.append(self.losses, loss), np.append(self.mu, 0.0 if k else 1.0)
        self.idle = np.append(self.idle, 0)

    def drop_idle(self) -> None:
        self.idle = np.where(self.mu > 0, 0, self.idle + 1)
        kept = np.flatnonzero(self.idle < IDLE)
        if len(kept) < len(self.mu):
            self.features, self.losses, self.mu = self.features[kept], self.losses[kept], self.mu[kept]
            self.products, self.idle = self.products[np.ix_(kept, kept)], self.idle[kept]

    def solve(self, linear: Vector, alpha: float, tol: float) -> tuple[Vector, float]:
        """The best mixture of the cuts, in value to within `tol`: its point and its loss."""
        gains = self.losses + np.einsum("kj,j->k", self.features, linear) / alpha
        self.mu = simplex_qp(self.products / alpha, gains, self.mu, tol=tol)
        w = (linear - np.einsum("k,kj->j", self.mu, self.features)) / alpha
        return w, float(np.sum(self.mu * self.losses))


def cutting_plane(
    problem: StructuralProblem,
    linear: Vector,
    shares: Vector,
    *,
    alpha: float,
    tol: float = 1e-3,
    max_passes: int = 1000,
    state: Any = None,
    seed: int = 0,
) -> BoundSolution:
    """Minimise the bound of a structural SVM by one-slack cutting planes.

    It asks nothing of a problem but exact passes. Parameters and result are those of `dual_coordinate_descent`; nothing
    is random.

    References
    ----------
    .. [1] T. Joachims, T. Finley, C.-N. J. Yu, "Cutting-plane training of structural SVMs", 2009, algorithm 3.
    """
    cuts: Cuts | None = state
    if cuts is None or not np.array_equal(cuts.shares, shares):
        cuts = Cuts.none(problem.dim, shares)
    best = Primal(linear, alpha, tol, np.zeros(problem.dim))
    w = best.w
    n_passes = 0
    # One thread: the sums of BLAS over long vectors depend on how many it may use.
    with threadpool_limits(limits=1, user_api="blas"):
        while True:
            if len(cuts.mu):
                w, loss = cuts.solve(linear, alpha, 0.1 * best.allowed)
                best.see_dual(w, loss)
            cut = exact_pass(problem, w, shares)
            n_passes += 1
            best.see(w, cut.value)
            if best.is_done or n_passes >= max_passes:
                return best.solution(n_passes, cuts)
            cuts.drop_idle()
            cuts.add(cut.features, cut.loss)
