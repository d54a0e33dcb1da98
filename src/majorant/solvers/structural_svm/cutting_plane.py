"""One-slack cutting planes: each pass adds one cut, the sum of the highest planes of all samples."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from majorant.engine.threads import one_thread
from majorant.solvers.simplex_qp import simplex_qp
from majorant.solvers.structural_svm.joint_planes import LARGEST, interior_point
from majorant.solvers.structural_svm.problem import BoundRequest, BoundSolution, Primal, Vector, bordered, exact_pass

IDLE = 50
"""Rounds after which a cut of weight zero is dropped."""
WEIGHTLESS = 1e-7
"""Largest weight of a cut that counts as zero."""
FEW = 1000
"""Weights that dense algebra solves for in little time."""


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

    def solve(self, request: BoundRequest, best: Primal, tol: float) -> Vector:
        """Find the best mixture of the cuts, to `tol` in value; return its minimiser.

        Few weights are solved for by an interior-point method, which scales them: inner products of badly scaled
        features have too few digits.
        """
        alpha = request.alpha
        if self.features.shape[1] <= FEW and np.abs(self.features).max() < LARGEST:
            one = np.zeros(len(self.losses), dtype=np.intp), np.ones(1)
            mu, w = interior_point(self.features, self.losses, *one, request.linear, alpha, 0.1 * request.tol)
            best.see_dual(request.minimiser(np.einsum("k,kj->j", mu, self.features)), float(np.sum(mu * self.losses)))
            self.mu = np.where(mu > WEIGHTLESS, mu, 0.0)
            return w
        gains = self.losses + np.einsum("kj,j->k", self.features, request.linear) / alpha
        self.mu = simplex_qp(self.products / alpha, gains, self.mu / self.mu.sum(), tol=tol)
        w = request.minimiser(np.einsum("k,kj->j", self.mu, self.features))
        best.see_dual(w, float(np.sum(self.mu * self.losses)))
        return w


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
    with one_thread():
        while True:
            if len(cuts.mu):
                w = cuts.solve(request, best, 0.1 * best.allowed)
            cut = exact_pass(problem, w, shares)
            n_passes += 1
            best.see(w, cut.value)
            # A cut that is known already: rounding allows no more.
            is_known = bool(np.any(np.all(cuts.features == cut.features, axis=1) & (cuts.losses == cut.loss)))
            if best.is_done or is_known or n_passes >= request.max_passes:
                return best.solution(n_passes, cuts)
            cuts.drop_idle()
            cuts.add(cut.features, cut.loss)
