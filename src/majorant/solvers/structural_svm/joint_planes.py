"""Cutting planes of all samples at once: few passes where features are badly scaled, dense algebra in each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve, qr

from majorant.engine.threads import one_thread
from majorant.solvers.structural_svm.problem import BoundRequest, BoundSolution, Plane, Primal, Vector, exact_pass

EACH = 6
"""Planes of a sample that are counted on, for how much a solution will cost."""

MOST_NUMBERS, MOST_WORK = 2e7, 1e8
"""Largest table of planes, and most multiplications of a Newton step, for which this is the solver to take."""

LARGEST = 1e50
"""Largest entry of a plane."""

NEWTON_STEPS = 80
IDLE = 1e-7
"""Planes with less than this share of their sample are not kept for the next bound."""


def is_small(request: BoundRequest, found: int = 0) -> bool:
    """Return whether all planes of a bound, those found so far among them, fit into dense algebra."""
    planes, dim = max(EACH * int(np.count_nonzero(request.shares)), found), request.problem.dim
    return planes * dim <= MOST_NUMBERS and planes * min(planes, dim) ** 2 <= MOST_WORK


@dataclass
class JointPlanes:
    """Planes found so far, by sample, and whether they once were more, or larger, than dense algebra can take."""

    planes: list[Plane] = field(default_factory=list)
    samples: list[int] = field(default_factory=list)
    keys: set[object] = field(default_factory=set)
    were_many: bool = False

    def add(self, i: int, plane: Plane) -> None:
        key = i, plane.key
        if key not in self.keys:
            self.keys.add(key)
            self.planes.append(plane)
            self.samples.append(i)

    def keep(self, used: NDArray[np.bool_]) -> None:
        kept = [(i, plane) for i, plane, stays in zip(self.samples, self.planes, used.tolist(), strict=True) if stays]
        self.planes, self.samples, self.keys = [], [], set()
        for i, plane in kept:
            self.add(i, plane)

    def covers(self, shares: Vector) -> bool:
        return set(np.flatnonzero(shares).tolist()) <= set(self.samples)

    def solve(self, request: BoundRequest, best: Primal) -> tuple[Vector, Vector]:
        """Minimise the bound over these planes; return weights and each plane's share of its sample."""
        shares = request.shares
        counted = np.flatnonzero(shares[self.samples] > 0)
        units, of = np.unique(np.array(self.samples)[counted], return_inverse=True)
        features = np.zeros((len(counted), request.problem.dim))
        for row, at in zip(features, counted.tolist(), strict=True):
            self.planes[at].add_to(row, 1.0)
        if np.abs(features).max(initial=0.0) > LARGEST:
            raise OverflowError("features are too large to be squared and divided")
        losses = np.array([self.planes[at].loss for at in counted.tolist()])
        tol = 0.1 * request.tol
        multipliers, w = interior_point(features, losses, of, shares[units], request.linear, request.alpha, tol)
        share = np.ones(len(self.samples))
        share[counted] = multipliers / shares[units][of]
        # The weights of the last step: those of the multipliers lack digits where features are large.
        best.see_dual(
            request.minimiser(np.einsum("p,pj->j", multipliers, features)), float(np.sum(multipliers * losses))
        )
        return w, share


@dataclass
class _Newton:
    """A step of the interior-point method: planes by sample, their slacks and multipliers, and the factored matrix."""

    features: NDArray[np.float64]
    of: NDArray[Any]
    sums: Any
    multipliers: Vector
    slacks: Vector
    alpha: float

    def __post_init__(self) -> None:
        self.ratio = self.multipliers / self.slacks
        self.mass = self.sums @ self.ratio
        mean = (self.sums @ (self.ratio[:, None] * self.features)) / self.mass[:, None]
        centred = self.features - mean[self.of]
        matrix = (centred * self.ratio[:, None]).T @ centred
        matrix[np.diag_indices_from(matrix)] += self.alpha
        self.size = np.sqrt(np.diag(matrix))
        self.factor = cho_factor(matrix / self.size[:, None] / self.size)

    def towards(self, aim: Vector) -> tuple[Vector, Vector, Vector]:
        """Return the changes of multipliers, slacks and weights that bring the products of the first two to `aim`."""
        push = aim / self.slacks - self.multipliers
        pushed = (self.sums @ push) / self.mass
        slope = (self.ratio * pushed[self.of] - push) @ self.features
        move = cho_solve(self.factor, slope / self.size) / self.size
        change = self.features @ move
        rise = pushed + (self.sums @ (self.ratio * change)) / self.mass
        of_slacks = rise[self.of] - change
        return push - self.ratio * of_slacks, of_slacks, move

    def longest(self, of_multipliers: Vector, of_slacks: Vector) -> float:
        """Return the longest step, to 1 at most, that makes no multiplier and no slack negative."""
        values, change = np.append(self.multipliers, self.slacks), np.append(of_multipliers, of_slacks)
        falling = change < 0
        return float((-values[falling] / change[falling]).min(initial=1.0))


def interior_point(
    features: NDArray[np.float64],
    losses: Vector,
    of: NDArray[Any],
    shares: Vector,
    linear: Vector,
    alpha: float,
    tol: float,
) -> tuple[Vector, Vector]:
    r"""Return multipliers of the planes and weights in the minimum of the bound over them, by Mehrotra's method.

    .. math:: \min_{w, \xi}\; \frac{\alpha}{2} |w|^2 - \langle w, g \rangle + \sum_i c_i \xi_i \quad\text{with}\quad
              s_{ip} = \xi_i - \langle w, \phi_{ip} \rangle - \Delta_{ip} \ge 0

    All iterates are feasible, so that the sum of the products of slacks and multipliers is the duality gap; `tol` is
    relative to the bound. The matrix of a step is scaled to a diagonal of ones: features of very different size cost no
    digits.
    """
    basis = None
    if features.shape[1] > len(features) + 1:  # the solution lies in the span of the planes and of `linear`
        basis = qr(np.vstack([features, linear]).T, mode="economic")[0]
        features, linear = features @ basis, linear @ basis
    n, count = len(shares), len(of)
    sums = sparse.csr_array(
        (np.ones(count), (of, np.arange(count))), shape=(n, count)
    )  # over the planes of each sample
    multipliers = (shares / np.bincount(of, minlength=n))[of]
    w = (linear - multipliers @ features) / alpha
    heights = features @ w + losses
    top = np.full(n, -np.inf)
    np.maximum.at(top, of, heights)
    slacks = top[of] - heights
    slacks += max(float(slacks.mean()), 1e-8 * float(np.abs(heights).max()), 1e-300)
    for _ in range(NEWTON_STEPS):
        gap = float(slacks @ multipliers)
        dual = float(multipliers @ losses) - alpha / 2 * float(w @ w)
        if gap <= tol * abs(dual + gap):
            break
        try:
            newton = _Newton(features, of, sums, multipliers, slacks, alpha)
        except LinAlgError:  # rounding: this is as near as it gets
            break
        of_multipliers, of_slacks, _ = newton.towards(np.zeros(count))
        length = newton.longest(of_multipliers, of_slacks)
        left = float((slacks + length * of_slacks) @ (multipliers + length * of_multipliers))
        of_multipliers, of_slacks, move = newton.towards((left / gap) ** 3 * gap / count - of_multipliers * of_slacks)
        length = 0.995 * newton.longest(of_multipliers, of_slacks)
        multipliers = multipliers + length * of_multipliers
        slacks = slacks + length * of_slacks
        w = w + length * move
    return multipliers * (shares / (sums @ multipliers))[of], w if basis is None else basis @ w


def joint_planes(request: BoundRequest) -> BoundSolution:
    """Minimise the bound of a structural SVM by cutting planes of every sample, all of them at once.

    Each pass finds the highest plane of every sample, and the bound over all planes found so far is then minimised by
    an interior-point method. It takes some ten passes whatever the scale of the features, and is not random. It ends
    early where samples have more planes than dense algebra can take.

    References
    ----------
    .. [1] T. Joachims, T. Finley, C.-N. J. Yu, "Cutting-plane training of structural SVMs", 2009, algorithm 1.
    .. [2] J. Nocedal, S. J. Wright, "Numerical Optimization", 2006, section 16.6.
    """
    problem, shares = request.problem, request.shares
    known: JointPlanes = JointPlanes() if request.state is None else request.state
    best = Primal(request, np.zeros(problem.dim))
    w, n_passes = best.w, 0
    # One thread: the sums of BLAS over long vectors depend on how many it may use.
    with one_thread():
        while True:
            share = np.ones(len(known.planes))
            if known.covers(shares):
                try:
                    w, share = known.solve(request, best)
                except OverflowError:
                    known.were_many = True
                    return best.solution(n_passes, known)
            before = len(known.planes)
            best.see(w, exact_pass(problem, w, shares, known.add).value)
            n_passes += 1
            known.were_many = not is_small(request, len(known.planes))
            is_over = best.is_done or known.were_many or n_passes >= request.max_passes
            if is_over or (n_passes > 1 and len(known.planes) == before):
                known.keep(np.append(share > IDLE, np.ones(len(known.planes) - before, dtype=bool)))
                return best.solution(n_passes, known)
