"""Dual coordinate descent on the dual variables of one sample at a time, over its cached planes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from majorant.solvers.structural_svm.cutting_plane import Cuts, cutting_plane
from majorant.solvers.structural_svm.joint_planes import JointPlanes, is_small, joint_planes
from majorant.solvers.structural_svm.problem import (
    BoundRequest,
    BoundSolution,
    BoundSolver,
    Plane,
    Primal,
    StructuralProblem,
    Vector,
    bordered,
    exact_pass,
)

CACHED_PASSES = 100
"""Largest number of passes over cached planes after an online pass; they need no inference."""

PATIENCE = 20
"""Number of passes after which joint planes take over where they are few, or cutting planes where there are no more
weights than passes: both need few passes where features are badly scaled."""

MOST_STEPS = 20
"""Largest number of pairwise steps on one sample at a time."""


class DualPlanes(Protocol):
    """Planes of every sample with a convex combination of them, the dual variables.

    `PlaneCache` works for any problem; a problem may offer a faster one by ``dual_planes()``.
    """

    def collect(self, w: Vector, shares: Vector) -> float:
        """Run an exact pass and add the planes found to those of the samples; return the sum of their heights."""
        ...

    def covers(self, shares: Vector) -> bool:
        """Return whether every sample of positive share has a plane."""
        ...

    def mixture(self, shares: Vector) -> tuple[Vector, float]:
        """Return the features and loss of the combinations, summed over samples with their shares."""
        ...

    def sweep(self, w: Vector, shares: Vector, order: NDArray[np.intp], alpha: float, *, online: bool) -> float:
        """Take coordinate steps on the samples in `order`, updating `w`; online: first add the highest plane of each.

        Returns the weighted sum over samples of the difference between the highest plane and the lowest one in use.
        """
        ...


@dataclass
class DualState:
    """Planes at the end of dual coordinate descent, and those of the solver that took over."""

    planes: DualPlanes
    cuts: Cuts | None = None
    joint: JointPlanes = field(default_factory=JointPlanes)


class PlaneCache:
    """Cached planes of any problem, with their inner products."""

    def __init__(self, problem: StructuralProblem) -> None:
        self._problem = problem
        self._planes: list[list[Plane]] = [[] for _ in range(problem.n_samples)]
        self._shares: list[Vector] = [np.zeros(0) for _ in range(problem.n_samples)]
        self._products: list[NDArray[np.float64]] = [np.zeros((0, 0)) for _ in range(problem.n_samples)]
        # features of the planes, where they have all columns
        self._rows: list[NDArray[np.float64] | None] = [None] * problem.n_samples

    def collect(self, w: Vector, shares: Vector) -> float:
        return exact_pass(self._problem, w, shares, self._add).value

    def covers(self, shares: Vector) -> bool:
        return all(self._planes[i] for i in np.flatnonzero(shares).tolist())

    def mixture(self, shares: Vector) -> tuple[Vector, float]:
        features, loss = np.zeros(self._problem.dim), 0.0
        for i in np.flatnonzero(shares).tolist():
            for plane, mu in zip(self._planes[i], self._shares[i].tolist(), strict=True):
                plane.add_to(features, float(shares[i]) * mu)
                loss += float(shares[i]) * mu * plane.loss
        return features, loss

    def sweep(self, w: Vector, shares: Vector, order: NDArray[np.intp], alpha: float, *, online: bool) -> float:
        total = 0.0
        for i in order.tolist():
            if online:
                self._add(i, self._problem.augmented(i, w))
            total += float(shares[i]) * self._step(i, w, float(shares[i]) / alpha)
        return total

    def _add(self, i: int, plane: Plane) -> None:
        planes, mu = self._planes[i], self._shares[i]
        if any(plane.key == known.key for known in planes):
            return
        if len(planes) > 2 * (np.count_nonzero(mu) + 4):  # planes of weight zero are dropped
            used = np.flatnonzero(mu)
            planes[:] = [planes[j] for j in used.tolist()]
            mu, self._products[i] = mu[used], self._products[i][np.ix_(used, used)]
        row = np.array([plane.inner(known) for known in planes])
        planes.append(plane)
        self._shares[i] = np.append(mu, 0.0 if len(mu) else 1.0)
        self._products[i] = bordered(self._products[i], row, plane.inner(plane))
        self._rows[i] = np.array([p.features for p in planes]) if all(p.indices is None for p in planes) else None

    def _step(self, i: int, w: Vector, step: float) -> float:
        """Take pairwise steps on sample `i`: from the lowest plane in use to the highest one."""
        planes, rows = self._planes[i], self._rows[i]
        scores = [plane.score(w) for plane in planes] if rows is None else self._scores(rows, planes, w)
        # Plain lists: there are few planes, and access to arrays is slower.
        mu, products, positions = self._shares[i].tolist(), self._products[i].tolist(), range(len(planes))
        first = 0.0
        for t in range(MOST_STEPS):
            p = max(positions, key=scores.__getitem__)
            q = min((j for j in positions if mu[j] > 0), key=scores.__getitem__)
            rise = scores[p] - scores[q]
            if t == 0:
                first = rise
            if rise <= 0.01 * first or p == q:
                break
            to, fro = products[p], products[q]
            curvature = step * (to[p] - 2 * to[q] + fro[q])
            moved = mu[q] if rise >= curvature * mu[q] else rise / curvature
            mu[p] += moved
            mu[q] = 0.0 if moved == mu[q] else mu[q] - moved
            scores = [s - step * moved * (a - b) for s, a, b in zip(scores, to, fro, strict=True)]
        change = np.array(mu) - self._shares[i]
        if change.any():
            self._shares[i] = np.array(mu)
            if rows is None:
                for plane, of_plane in zip(planes, change.tolist(), strict=True):
                    plane.add_to(w, -step * of_plane)
            else:
                w -= step * np.einsum("k,kj->j", change, rows)
        return first

    @staticmethod
    def _scores(rows: NDArray[np.float64], planes: list[Plane], w: Vector) -> list[float]:
        dots: list[float] = np.einsum("kj,j->k", rows, w).tolist()
        return [dot + plane.loss for dot, plane in zip(dots, planes, strict=True)]


def dual_coordinate_descent(request: BoundRequest) -> BoundSolution:
    r"""Minimise the bound of a structural SVM by coordinate ascent in its dual.

    .. math:: \max_{\mu}\; \sum_i c_i \sum_p \mu_{ip} \Delta_{ip} - \frac{\alpha}{2} |w|^2, \qquad
              w = \frac1\alpha \Bigl(g - \sum_i c_i \sum_p \mu_{ip} \phi_{ip}\Bigr),

    the :math:`\mu_i` in a simplex. An epoch is an exact pass, which gives the bound at `w` and with it the gap, an
    online pass, which finds the highest plane of each sample at the current `w` before stepping on it, and passes over
    the planes found so far, which need no inference. After 20 passes the planes of all samples are solved for jointly
    where there are few; otherwise, after as many passes as there are weights, cutting planes take over, the mixture of
    all planes being the first cut.

    References
    ----------
    .. [1] S. Lacoste-Julien, M. Jaggi, M. Schmidt, P. Pletscher, "Block-coordinate Frank-Wolfe optimization for
       structural SVMs", 2013.
    .. [2] A. Osokin, J.-B. Alayrac, I. Lukasewitz, P. Dokania, S. Lacoste-Julien, "Minding the gaps for block
       Frank-Wolfe optimization of structured SVMs", 2016: cached planes, pairwise steps.
    """
    problem, shares = request.problem, request.shares
    random = np.random.default_rng(request.seed)
    units = np.flatnonzero(shares)
    state: DualState = DualState(_new_planes(problem)) if request.state is None else request.state
    planes = state.planes
    w = np.zeros(problem.dim)
    best = Primal(request, w)
    n_passes = 0
    while True:
        covered = planes.covers(shares)
        if covered:
            features, loss = planes.mixture(shares)
            w = request.minimiser(features)
            best.see_dual(w, loss)
        best.see(w, planes.collect(w, shares))
        n_passes += 1
        if best.is_done or n_passes >= request.max_passes:
            return best.solution(n_passes, state)
        if n_passes >= PATIENCE and not state.joint.were_many and is_small(request):
            solution = _taken_over(best, joint_planes, state.joint, state, n_passes)
            n_passes = solution.n_passes
            if best.is_done or n_passes >= request.max_passes or not state.joint.were_many:
                return solution
        if n_passes >= max(PATIENCE, problem.dim):
            return _cut(best, state, n_passes)
        if not covered:
            w = request.minimiser(planes.mixture(shares)[0])
        _epoch(planes, w, units, best, random)
        n_passes += 1


def _cut(best: Primal, state: DualState, n_passes: int) -> BoundSolution:
    """Continue with cutting planes, from the mixture of all planes."""
    request = best.request
    if state.cuts is None or not np.array_equal(state.cuts.shares, request.shares):
        state.cuts = Cuts.none(request.problem.dim, request.shares)
    state.cuts.add(*state.planes.mixture(request.shares))
    return _taken_over(best, cutting_plane, state.cuts, state, n_passes)


def _taken_over(best: Primal, solver: BoundSolver, own: Any, state: DualState, n_passes: int) -> BoundSolution:
    """Return the solution of a solver that goes on with the passes that are left, if it is the better one."""
    left = max(best.request.max_passes - n_passes, 1)
    found = solver(replace(best.request, max_passes=left, state=own))
    best.objectives += [min(value, best.objective) for value in found.objectives]
    best.dual = max(best.dual, found.objective - found.gap)
    if found.objective < best.objective:
        best.objective, best.w = found.objective, found.w
    return best.solution(n_passes + found.n_passes, state)


def _new_planes(problem: StructuralProblem) -> DualPlanes:
    own = getattr(problem, "dual_planes", None)
    planes: DualPlanes = PlaneCache(problem) if own is None else own()
    return planes


def _epoch(planes: DualPlanes, w: Vector, units: NDArray[np.intp], best: Primal, random: np.random.Generator) -> None:
    """Run an online pass, then passes over the cached planes until they promise little against the remaining gap."""
    shares, alpha = best.request.shares, best.request.alpha
    planes.sweep(w, shares, random.permutation(units), alpha, online=True)
    enough = max(0.1 * best.allowed, 0.5 * best.gap if np.isfinite(best.gap) else 0.0)
    for _ in range(CACHED_PASSES):
        left = planes.sweep(w, shares, random.permutation(units), alpha, online=False)
        if left <= enough:
            return
