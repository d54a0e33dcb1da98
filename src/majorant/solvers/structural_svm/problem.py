"""Convex bound of a structural SVM: problem, request and solution."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Plane:
    """Plane ``<w, features> + loss`` of one output of one sample, a piece of its loss-augmented maximum."""

    loss: float  # loss of this output for the label of the sample
    features: Vector  # joint features, of all `dim` columns or of those named by `indices`
    key: Hashable  # planes of one sample with equal keys are equal
    indices: NDArray[np.intp] | None = None  # columns of `features`, each at most once; None: all

    def dot(self, w: Vector) -> float:
        """Return ``<w, features>``."""
        # Not a matrix product: the sums of one depend on the number of threads that BLAS may use.
        return float(np.einsum("j,j->", w if self.indices is None else w[self.indices], self.features))

    def score(self, w: Vector) -> float:
        """Return ``<w, features> + loss``."""
        return self.dot(w) + self.loss

    def add_to(self, out: Vector, share: float) -> None:
        """Add ``share * features`` to `out`."""
        if self.indices is None:
            out += share * self.features
        else:
            out[self.indices] += share * self.features

    def inner(self, other: Plane) -> float:
        """Return the inner product of the features of two planes."""
        if other.indices is None:
            return self.dot(other.features)
        if self.indices is None:
            return other.dot(self.features)
        both, mine, others = np.intersect1d(self.indices, other.indices, assume_unique=True, return_indices=True)
        return float(np.einsum("j,j->", self.features[mine], other.features[others])) if len(both) else 0.0


def bordered(products: NDArray[np.float64], row: Vector, corner: float) -> NDArray[np.float64]:
    """Append a row and a column to a table of inner products."""
    k = len(row)
    grown = np.empty((k + 1, k + 1))
    grown[:k, :k] = products
    grown[k, :k] = grown[:k, k] = row
    grown[k, k] = corner
    return grown


class StructuralProblem(Protocol):
    r"""Samples with loss-augmented inference, which finds the highest plane of each.

    A solver minimises, for given shares :math:`c_i` and a given vector `g`,

    .. math:: b(w) = \frac{\alpha}{2} |w|^2 + \sum_i c_i \max_p \bigl[\langle w, \phi_{ip} \rangle + \Delta_{ip}\bigr]
              - \langle w, g \rangle,

    the bound of a latent structural SVM with :math:`g = \sum_i c_i \phi(x_i, y_i, z_i)`. Other latent values change `g`
    alone, so dual variables and cuts stay what they are from one bound to the next.

    A problem may also offer ``exact_pass(w, shares) -> Cut`` if that is faster than a loop over samples.
    """

    @property
    def n_samples(self) -> int: ...

    @property
    def dim(self) -> int:
        """Length of `w`."""
        ...

    def augmented(self, i: int, w: Vector) -> Plane:
        """Return the highest plane of sample `i` at `w`."""
        ...


@dataclass(frozen=True)
class Cut:
    """Sum over samples of the highest planes at `w`, weighted with the samples' shares."""

    value: float  # ``<w, features> + loss``
    features: Vector  # (dim,)
    loss: float


@dataclass(frozen=True)
class BoundRequest:
    """A bound to minimise, and how accurately."""

    problem: StructuralProblem
    linear: Vector  # (dim,): ``g``
    shares: Vector  # (n_samples,): ``c``, not negative; samples with share zero are skipped
    alpha: float  # strength of the penalty, positive
    tol: float = 1e-3  # relative duality gap at which to stop
    max_passes: int = 1000  # number of passes over the samples after which no round begins
    state: Any = None  # state of an earlier solution of the same solver on the same problem
    seed: int = 0  # seed of the order in which samples are visited

    def minimiser(self, features: Vector) -> Vector:
        r"""Return the minimiser of the bound whose maxima are replaced by one plane: :math:`(g - \phi) / \alpha`."""
        return (self.linear - features) / self.alpha


Visit = Callable[[int, Plane], None]


def exact_pass(
    problem: StructuralProblem,
    w: Vector,  # (dim,)
    shares: Vector,  # (n_samples,): samples with share zero are skipped
    visit: Visit | None = None,
) -> Cut:
    """Compute the cut at `w`; `visit` is called with the plane of every sample of positive share."""
    quicker = getattr(problem, "exact_pass", None)
    if quicker is not None and visit is None:
        cut: Cut = quicker(w, shares)
        return cut
    features, value, loss = np.zeros(problem.dim), 0.0, 0.0
    for i in np.flatnonzero(shares).tolist():
        plane = problem.augmented(i, w)
        share = float(shares[i])
        plane.add_to(features, share)
        value += share * plane.score(w)
        loss += share * plane.loss
        if visit is not None:
            visit(i, plane)
    return Cut(value, features, loss)


@dataclass(frozen=True)
class BoundSolution:
    """Solution of a bound."""

    w: Vector  # (dim,): the best point
    objective: float  # the bound there, by an exact pass
    gap: float  # `objective` is at most this far above the minimum: the difference to the best dual value
    n_passes: int  # exact and online passes over the samples: each finds the highest plane of every one
    converged: bool  # whether the gap is within the tolerance
    # Dual variables and planes, or cuts, from which the next call of the same solver begins, for any `linear` and
    # `shares`. The call changes it.
    state: Any
    objectives: list[float]  # the lowest objective after each exact pass


@dataclass
class Primal:
    """Best point of one run of a solver so far, with its duality gap."""

    request: BoundRequest
    w: Vector
    objective: float = np.inf
    dual: float = -np.inf
    rounding: float = 0.0
    objectives: list[float] = field(default_factory=list)

    def see(self, w: Vector, value: float) -> None:
        """Record a point and the sum of the loss-augmented maxima there."""
        alpha, linear = self.request.alpha, self.request.linear
        size, product = alpha / 2 * float(np.sum(w * w)), float(np.sum(w * linear))
        objective = size + value - product
        self.rounding = 64 * float(np.finfo(np.float64).eps) * (size + abs(value) + abs(product))
        if objective < self.objective:
            self.objective, self.w = objective, w.copy()
        self.objectives.append(self.objective)

    def see_dual(self, w: Vector, loss: float) -> None:
        """Record the dual value of a mixture of planes with this loss and the minimiser `w`."""
        self.dual = max(self.dual, loss - self.request.alpha / 2 * float(np.sum(w * w)))

    @property
    def gap(self) -> float:
        return max(self.objective - self.dual, 0.0)

    @property
    def allowed(self) -> float:
        """Gap at which to stop."""
        return max(self.request.tol * abs(self.objective), self.rounding) if self.objectives else 0.0

    @property
    def is_done(self) -> bool:
        return self.gap <= self.allowed

    def solution(self, n_passes: int, state: Any) -> BoundSolution:
        return BoundSolution(self.w, self.objective, self.gap, n_passes, self.is_done, state, self.objectives)


BoundSolver = Callable[[BoundRequest], BoundSolution]
"""Minimises a bound: `dual_coordinate_descent`, `cutting_plane` or `block_frank_wolfe`."""
