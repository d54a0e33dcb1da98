r"""Lower bounds from a nonnegative matrix: the dual of the Peng-Wei relaxation, whatever the number of columns.

With :math:`G_{ij} = \sqrt{w_i w_j}\, x_i \cdot x_j` of centred points, :math:`u_i \propto \sqrt{w_i}` of length one and
:math:`P = I - u u^T`, for every elementwise nonnegative :math:`N`

.. math:: \mathrm{OPT}_k \ge \mathrm{tr}\, G - u^T N u - \sum_{j < k} \sigma_j^+, \quad
          \sigma_1 \ge \sigma_2 \ge \dots \text{ the eigenvalues of } P (G + N) P:

the clusters' normalised indicators span a projection :math:`Z = u u^T + Z'` with nonnegative entries and :math:`Z'` of
rank :math:`k - 1`, the sum of squares is :math:`\mathrm{tr}\, G - \mathrm{tr}\, G Z`, and
:math:`\mathrm{tr}\, N Z \ge 0`. With weights the points stand for repeated ones, on vectors that are constant on the
repeats.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh
from scipy.sparse.linalg import ArpackError, eigsh

from majorant.solvers.kmeans_bounds.multipliers import Work
from majorant.solvers.kmeans_bounds.problem import EPSILON, Array, BoundProblem
from majorant.solvers.nearest import squared_distances

MOST_POINTS = 1500
DENSE = 250
OVER_RELAXATION = 1.6
LOOK_EVERY = 5


@dataclass(frozen=True)
class PengWei:
    """The matrices of a problem."""

    problem: BoundProblem

    @cached_property
    def unit(self) -> Array:
        """The vector u."""
        root = np.sqrt(self.problem.weights)
        return np.asarray(root / np.linalg.norm(root))

    @cached_property
    def gram(self) -> Array:
        rooted = self.problem.points * np.sqrt(self.problem.weights)[:, None]
        return np.asarray(rooted @ rooted.T)

    @cached_property
    def largest_scatter(self) -> float:
        """The largest eigenvalue over the scatter matrices of the clusters."""
        p = self.problem
        rest = (p.points - p.centres[p.labels]) * np.sqrt(p.weights)[:, None]
        members = (rest[p.labels == a] for a in range(p.n_clusters))
        return max(float(np.linalg.norm(r, 2)) ** 2 if len(r) else 0.0 for r in members)

    def projected(self, nonnegative: Array) -> Array:
        """Return P (G + N) P."""
        u, total = self.unit, self.gram + nonnegative
        return project_out(total, u)

    def estimate(self, nonnegative: Array) -> float:
        """Return the bound that N gives by computed eigenvalues: an estimate, not a proof."""
        count = self.problem.n_clusters - 1
        values = _largest(self.projected(nonnegative), count)[0]
        return self.problem.scatter - self._mean(nonnegative) - float(np.maximum(values, 0.0).sum())

    def proved(self, nonnegative: Array) -> float:
        """Return the bound that N gives, its eigenvalues bounded by a Cholesky factorisation."""
        p = self.problem
        matrix = self.projected(nonnegative)
        above = sum_of_largest_at_most(matrix, p.n_clusters - 1)
        n = len(p.weights)
        rounding = 16 * n * EPSILON * p.n_clusters * (float(np.linalg.norm(matrix)) + p.scatter)
        return p.scatter - self._mean(nonnegative) - above - rounding

    def _mean(self, nonnegative: Array) -> float:
        return float(self.unit @ nonnegative @ self.unit)

    def repaired(self, z: float) -> Array:
        r"""Return a valid N in closed form: :math:`\max(D_{ij}/2 - y_i - y_j, 0)` between clusters, and 0 within.

        :math:`y_i = d_i / 2 + z / (2 n_a)` with :math:`d_i` the squared distance to the own centre and :math:`n_a` the
        weight of the cluster; every :math:`z` is valid.
        """
        p = self.problem
        mass = np.bincount(p.labels, p.weights, p.n_clusters)
        y = p.own / 2 + z / (2 * mass[p.labels])
        short = np.maximum(squared_distances(p.points, p.points) / 2 - y[:, None] - y, 0.0)
        short[p.labels[:, None] == p.labels] = 0.0
        root = np.sqrt(p.weights)
        return short * root[:, None] * root


def peng_wei_bound(problem: BoundProblem, work: Work, iterations: int) -> float:
    """Return the best bound that the work allows, in the units of the problem; minus infinity if it allows none.

    Parameters
    ----------
    problem : BoundProblem
        With at most `MOST_POINTS` points.
    iterations : int
        Largest number of steps that improve N; each computes all eigenvectors.

    References
    ----------
    .. [1] J. Peng, Y. Wei, "Approximating K-means-type clustering via semidefinite programming", SIAM J. Optim. 18,
       2007.
    .. [2] T. Iguchi, D. G. Mixon, J. Peterson, S. Villar, "Probably certifiably correct k-means clustering", Math.
       Programming 165, 2017.
    """
    n, k = len(problem.weights), problem.n_clusters
    one_look = look_cost(n)
    if k < 2 or n > MOST_POINTS or work.left < 2 * one_look:
        return -np.inf
    dual = PengWei(problem)
    best, matrix = _best_level(dual, work, one_look)
    if iterations and best < problem.objective * (1 - 1e-5):
        matrix = _alternate(dual, matrix, best, work, iterations, n**3 / 30)
    return dual.proved(matrix)


def look_cost(n: int) -> float:
    """Return the work of one bound from one matrix."""
    return n**3 / 30 if n <= DENSE else 8.0 * n * n


def _best_level(dual: PengWei, work: Work, one_look: float) -> tuple[float, Array]:
    """Climb over z by factors of 1.6 from the largest scatter."""
    level = max(dual.largest_scatter, EPSILON * dual.problem.scatter)
    matrix = dual.repaired(level)
    best, best_matrix = dual.estimate(matrix), matrix
    work.spend(one_look)
    for factor in (1.6, 1 / 1.6):
        z = level
        while work.left > 2 * one_look:
            z *= factor
            matrix = dual.repaired(z)
            value = dual.estimate(matrix)
            work.spend(one_look)
            if value <= best:
                break
            best, best_matrix, level = value, matrix, z
    return best, best_matrix


def _alternate(dual: PengWei, matrix: Array, best: float, work: Work, iterations: int, one_step: float) -> Array:
    """Run Douglas-Rachford splitting between projections of trace k - 1 and nonnegative matrices.

    It starts from the given partition and N in closed form, which are near the solution; the first ten steps bring most
    of the improvement.
    """
    p, u = dual.problem, dual.unit
    scale = max(dual.largest_scatter, EPSILON * p.scatter)
    gram = dual.gram / scale
    constant = np.outer(u, u)
    primal = np.zeros_like(gram)
    for a in np.unique(p.labels):
        member = np.where(p.labels == a, u, 0.0)
        primal += np.outer(member, member) / (member @ member)
    price, step = -matrix / scale, 1.0
    last = best
    for iteration in range(1, iterations + 1):
        if work.left < 2 * one_step:
            break
        work.spend(one_step)
        values, vectors = eigh(project_out(primal - price + gram / step, u), overwrite_a=True, driver="evd")
        share = capped_simplex(values, p.n_clusters - 1)
        some = share > 1e-12
        near = (vectors[:, some] * share[some]) @ vectors[:, some].T + constant
        relaxed = OVER_RELAXATION * near + (1 - OVER_RELAXATION) * primal + price
        before, primal = primal, np.maximum(relaxed, 0.0)
        price = relaxed - primal
        if iteration % LOOK_EVERY:
            continue
        tried = np.maximum(-(price + price.T) * (step * scale / 2), 0.0)
        value = dual.estimate(tried)
        if value > best:
            best, matrix = value, tried
        if best >= p.objective * (1 - 2e-6) or best - last < 1e-4 * p.objective:
            break
        last = best
        apart, moved = float(np.linalg.norm(near - primal)), step * float(np.linalg.norm(primal - before))
        if apart > 5 * moved:
            step, price = step * 1.8, price / 1.8
        elif moved > 5 * apart:
            step, price = step / 1.8, price * 1.8
    return matrix


def project_out(matrix: Array, u: Array) -> Array:
    """Return P M P with P = I - u u', for symmetric M and u of length one."""
    image = matrix @ u
    image -= (u @ image) / 2 * u
    across = np.outer(image, u)
    return np.asarray(matrix - across - across.T)


def capped_simplex(values: Array, total: float) -> Array:
    """Return the nearest vector with entries in [0, 1] that sum to `total`."""
    low, high = float(values.min()) - 1.0, float(values.max())
    for _ in range(60):
        middle = (low + high) / 2
        if np.clip(values - middle, 0.0, 1.0).sum() > total:
            low = middle
        else:
            high = middle
    return np.asarray(np.clip(values - high, 0.0, 1.0))


def _largest(matrix: Array, count: int, *, by_lanczos: bool = True) -> tuple[Array, Array]:
    """Return approximations of the largest eigenvalues, ascending, with eigenvectors."""
    n = len(matrix)
    if by_lanczos and _is_quick(n, count):
        try:
            start = np.random.default_rng(0).normal(size=n)
            return eigsh(matrix, k=count, which="LA", tol=1e-6, v0=start)  # type: ignore[no-any-return]
        except ArpackError:
            pass
    return eigh(matrix, subset_by_index=[n - count, n - 1], check_finite=False)  # type: ignore[no-any-return]


def _is_quick(n: int, count: int) -> bool:
    return n > DENSE and count < n / 8


def sum_of_largest_at_most(matrix: Array, count: int) -> float:
    r"""Return a number proved to be no less than the sum of the positive ones among the `count` largest eigenvalues.

    Computed eigenvalues may lie below the true ones, and Lanczos iterations miss some of a cluster. If
    :math:`t I + V L V^T - M` has a Cholesky factor, with :math:`t, L \ge 0`, then the sum is at most
    :math:`\mathrm{count}\, t + \mathrm{tr}\, V L V^T`. Infinity if none is found.
    """
    count = min(count, len(matrix))
    if count == 0 or not matrix.any():
        return 0.0
    if _is_quick(len(matrix), count):
        found = _factorised(matrix, *_largest(matrix, count), slacks=(1e-8, 1e-6))
        if np.isfinite(found):
            return found
    return _factorised(matrix, *_largest(matrix, count, by_lanczos=False), slacks=(1e-9, 1e-7, 1e-5, 1e-3))


def _factorised(matrix: Array, values: Array, vectors: Array, slacks: tuple[float, ...]) -> float:
    n, count = len(matrix), len(values)
    size = max(float(np.abs(values).max()), float(np.abs(matrix).max()))
    lengths = np.einsum("ij,ij->j", vectors, vectors)
    for slack in slacks:
        base = max(float(values.min()), 0.0) + slack * size
        excess = np.maximum(values - base, 0.0) + slack * size
        test = (vectors * excess) @ vectors.T - matrix
        test[np.diag_indices(n)] += base
        try:
            cholesky(test, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            continue
        rounding = 4 * (n + 2) * EPSILON * (float(np.trace(np.abs(matrix))) + n * base)
        return count * (base + rounding) + float(excess @ lengths)
    return np.inf
