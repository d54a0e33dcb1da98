"""One-slack cutting planes: each pass adds one cut, the sum of the highest planes of all samples."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from majorant.solvers.simplex_qp import simplex_qp
from majorant.solvers.structural_svm.problem import BoundRequest, BoundSolution, Primal, Vector, bordered, exact_pass

IDLE = 50
"""Rounds after which a cut of weight zero is dropped."""


@dataclass
class Cuts:
    """Cuts so far, with inner products and weights in the solution; valid for these shares only."""

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
        self.products = bordered(self.products, row, float(np.sum(features * features)))
        self.features = np.vstack([self.features, features])
        self.losses, self.mu = np.append(self.losses, loss), np.append(self.mu, 0.0 if len(row) else 1.0)
        self.idle = np.append(self.idle, 0)

    def drop_idle(self) -> None:
        self.idle = np.where(self.mu > 0, 0, self.idle + 1)
        kept = np.flatnonzero(self.idle < IDLE)
        if len(kept) < len(self.mu):
            self.features, self.losses, self.mu = self.features[kept], self.losses[kept], self.mu[kept]
            self.products, self.idle = self.products[np.ix_(kept, kept)], self.idle[kept]

    def solve(self, request: BoundRequest, tol: float) -> tuple[Vector, float]:
        """Find the best mixture of the cuts, to `tol` in value; return its minimiser and its loss."""
        alpha = request.alpha
        gains = self.losses + np.einsum("kj,j->k", self.features, request.linear) / alpha
        self.mu = simplex_qp(self.products / alpha, gains, self.mu, tol=tol)
        w = request.minimiser(np.einsum("k,kj->j", self.mu, self.features))
        return w, float(np.sum(self.mu * self.losses))


def cutting_plane(request: BoundRequest) -> BoundSolution:
    """Minimise the bound of a structural SVM by one-slack cutting planes.

    It needs exact passes only, and is not random.

    References
    ----------
    .. [1] T. Joachims, T. Finley, C.-N. J. Yu, "Cutting-plane training of structural SVMs", 2009, algorithm 3.
    """
    problem, shares = request.problem, request.shares
    cuts: Cuts | None = request.state
    if cuts is None or not np.array_equal(cuts.shares, shares):
        cuts = Cuts.none(problem.dim, shares)
    best = Primal(request, np.zeros(problem.dim))
    w = best.w
    n_passes = 0
    # One thread: the sums of BLAS over long vectors depend on how many it may use.
    with threadpool_limits(limits=1, user_api="blas"):
        while True:
            if len(cuts.mu):
                w, loss = cuts.solve(request, 0.1 * best.allowed)
                best.see_dual(w, loss)
            cut = exact_pass(problem, w, shares)
            n_passes += 1
            best.see(w, cut.value)
            if best.is_done or n_passes >= request.max_passes:
                return best.solution(n_passes, cuts)
            cuts.drop_idle()
            cuts.add(cut.features, cut.loss)
