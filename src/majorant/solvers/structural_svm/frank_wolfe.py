"""Block-coordinate Frank-Wolfe: each step moves one sample towards its highest plane."""

from __future__ import annotations

import numpy as np

from majorant.solvers.structural_svm.problem import (
    BoundRequest,
    BoundSolution,
    Primal,
    StructuralProblem,
    Vector,
    exact_pass,
)


class _Mixtures:
    """Features and loss of the mixture of planes of each sample."""

    def __init__(self, n_samples: int, dim: int) -> None:
        self.features = np.zeros((n_samples, dim))
        self.losses = np.zeros(n_samples)
        self.is_begun = np.zeros(n_samples, dtype=bool)


def block_frank_wolfe(request: BoundRequest) -> BoundSolution:
    """Minimise the bound of a structural SVM by block-coordinate Frank-Wolfe steps with exact line search.

    Memory: one vector of length `dim` for each sample.

    References
    ----------
    .. [1] S. Lacoste-Julien, M. Jaggi, M. Schmidt, P. Pletscher, "Block-coordinate Frank-Wolfe optimization for
       structural SVMs", 2013, algorithm 4.
    """
    problem, shares = request.problem, request.shares
    random = np.random.default_rng(request.seed)
    state = request.state
    mixtures: _Mixtures = _Mixtures(problem.n_samples, problem.dim) if state is None else state
    best = Primal(request, np.zeros(problem.dim))
    units = np.flatnonzero(shares)
    w = best.w
    n_passes = 0
    while True:
        if mixtures.is_begun[units].all():
            # Not a matrix product: the sums of one depend on the number of threads that BLAS may use.
            w = request.minimiser(np.einsum("i,ij->j", shares, mixtures.features))
            best.see_dual(w, float(np.sum(shares * mixtures.losses)))
        best.see(w, exact_pass(problem, w, shares).value)
        n_passes += 1
        if best.is_done or n_passes >= request.max_passes:
            return best.solution(n_passes, mixtures)
        w = request.minimiser(np.einsum("i,ij->j", shares, mixtures.features))
        for i in random.permutation(units).tolist():
            _step(problem, mixtures, i, w, float(shares[i]) / request.alpha)
        n_passes += 1


def _step(problem: StructuralProblem, mixtures: _Mixtures, i: int, w: Vector, step: float) -> None:
    plane = problem.augmented(i, w)
    direction = -mixtures.features[i]
    plane.add_to(direction, 1.0)
    rise = plane.score(w) - float(np.sum(w * mixtures.features[i])) - mixtures.losses[i]
    curvature = step * float(np.sum(direction * direction))
    if not mixtures.is_begun[i]:
        moved = 1.0
    elif rise <= 0:  # rounding
        return
    else:
        moved = min(rise / curvature, 1.0) if curvature > 0 else 1.0
    mixtures.is_begun[i] = True
    mixtures.features[i] += moved * direction
    mixtures.losses[i] += moved * (plane.loss - mixtures.losses[i])
    w -= step * moved * direction
