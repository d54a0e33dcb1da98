"""k medoids by exact swaps on a matrix of distances, with perturbations of the best solution.

A descent tries every row in the place of every medoid and swaps as soon as that helps (FasterPAM), until no swap does.
Then perturbations put some medoids elsewhere and search among the rows around; what ends below the best solution is
searched among all rows again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant._progress import kept_when_stopped

SAME = 1e-9
"""Objectives with a smaller relative difference are the same optimum."""

LEAST = 1e-12
"""Least relative decrease of a swap: less may be rounding."""

PIECE = 1e7
"""Approximate number of distances read between two checks for KeyboardInterrupt."""


@dataclass(frozen=True)
class MedoidPlan:
    """When a search stops."""

    starts: int  # descents from seeds
    perturbations: int  # largest number of perturbations of the best solution
    # returns to the best objective after which there are no more perturbations, as a multiple of the number of medoids;
    # at least 10
    returns: float
    # Candidates that perturbations may try, as a multiple of those of the first descent. Seven perturbations are made
    # in any case, up to thirty on small tables.
    work: float


EFFORTS = {"fast": MedoidPlan(1, 0, 0, 0), "default": MedoidPlan(4, 1000, 1, 2), "best": MedoidPlan(4, 10000, 5, 200)}


@dataclass(frozen=True)
class MedoidResult:
    """Result of a search."""

    medoids: NDArray[np.int64]  # (k,): rows
    labels: NDArray[np.int32]  # (n,): position of the nearest medoid of each row
    objective: float  # weighted sum of distances to the nearest medoid
    steps: list[float]  # the objective from the first medoids to the last ones: it never rises
    # kind, final objective, number of objectives on its way, and whether no swap with any row helps, of descents from
    # seeds ("seeds") and of perturbations ("perturbation")
    optima: list[tuple[str, float, int, bool]]


def medoid_search(
    distances: NDArray[Any],  # (n, n): row c has the distances of a medoid c to all rows; finite, not negative
    weights: NDArray[np.float64],  # (n,): positive
    k: int,
    *,
    seed: int,  # seed of all random draws
    # "fast": one start, no perturbations. "default": four starts, and perturbations for twice the work of one, fewer
    # once as many as there are medoids have led back to the best. "best": as many starts, and perturbations for far
    # longer
    effort: Literal["fast", "default", "best"] | MedoidPlan = "default",
) -> MedoidResult:
    """Search for the k rows with the least weighted sum of distances of all rows to the nearest of them.

    The result is bitwise the same on every run.

    References
    ----------
    .. [1] E. Schubert, P. J. Rousseeuw, "Fast and eager k-medoids clustering: O(k) runtime improvement of the PAM,
       CLARA, and CLARANS algorithms", Information Systems, 2021.
    """
    n = len(distances)
    if k >= n:
        return _every_row(n, k)
    if k == 1:
        centre = int((distances @ weights).argmin())
        objective = float(weights @ distances[centre])
        one = np.zeros(n, dtype=np.int32)
        return MedoidResult(np.array([centre]), one, objective, [objective], [("all rows", objective, 1, True)])
    plan = EFFORTS[effort] if isinstance(effort, str) else effort
    draws = np.random.default_rng(seed)
    optima: list[tuple[str, float, int, bool]] = []
    steps: list[float] = []
    best, returns = _Places(distances, weights, seeds(distances, weights, k, draws)), 0
    with kept_when_stopped(lambda: True):
        for start in range(plan.starts):
            now = best if start == 0 else _Places(distances, weights, seeds(distances, weights, k, draws))
            path = [now.objective, *now.descend(draws.permutation(n))]
            optima.append(("seeds", path[-1], len(path), True))
            returns = _returns(returns, path[-1], best.objective)
            if start == 0 or path[-1] < best.objective:
                best, steps = now, path
        now, limit, few, made = best.copy(), plan.work * best.tried, max(7, min(30, 3000 // n)), 0
        for count in range(plan.perturbations):
            if returns >= max(10, plan.returns * k) or (made >= few and now.tried > limit) or not best.objective > 0:
                break
            now.perturb(draws, anywhere=count % 3 == 2)
            around = np.flatnonzero((now.nearest != best.nearest) | (now.first != best.first) | (now.next != best.next))
            if not len(around):  # the rows drawn were medoids already: nothing was tried
                now.take(best)
                continue
            made += 1
            path = [now.objective, *now.descend(draws.permutation(around))]
            better = now.objective < best.objective * (1 - SAME)
            if better:
                path += now.descend(draws.permutation(n))
            returns = _returns(returns, now.objective, best.objective)
            back = math.isclose(now.objective, best.objective, rel_tol=SAME, abs_tol=0.0)
            optima.append(("perturbation", now.objective, len(path), better or back))
            if better:
                steps += [f for f in path if f < steps[-1]]
                best = now.copy()
            else:
                now.take(best)
    if not optima:  # the user stopped the first descent
        steps, optima = [best.objective], [("seeds", best.objective, 1, False)]
    return MedoidResult(best.medoids, best.nearest, best.objective, steps, optima)


def seeds(
    distances: NDArray[Any], weights: NDArray[np.float64], k: int, draws: np.random.Generator
) -> NDArray[np.int64]:
    """Draw rows one by one, each with probability proportional to its share of the objective so far."""
    share, nearest = weights, np.full(len(weights), np.inf)
    chosen = np.empty(k, dtype=np.int64)
    for j in range(k):
        edges = np.cumsum(share)
        drawn = int(np.searchsorted(edges, draws.random() * edges[-1], side="right"))
        left = np.setdiff1d(np.arange(len(weights)), chosen[:j]) if not edges[-1] > 0 else None
        chosen[j] = min(drawn, len(weights) - 1) if left is None else left[0]
        nearest = np.minimum(nearest, distances[chosen[j]])
        nearest[chosen[: j + 1]] = 0.0
        share = weights * nearest
    return chosen


class _Places:
    """Where every row stands: its nearest two medoids and the distances to them."""

    def __init__(self, distances: NDArray[Any], weights: NDArray[np.float64], medoids: NDArray[np.int64]) -> None:
        n, k = len(distances), len(medoids)
        self.distances, self.weights, self.medoids = distances, weights, medoids
        self.nearest, self.second = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
        self.first, self.next = np.empty(n, dtype=distances.dtype), np.empty(n, dtype=distances.dtype)
        self._table = np.empty((n, k), dtype=distances.dtype)
        self.tried = 0  # candidates so far
        kernel = _kernels.MedoidsF32 if distances.dtype == np.float32 else _kernels.MedoidsF64
        self._kernel = kernel(distances, weights, *self._state)

    @property
    def _state(self) -> tuple[NDArray[Any], ...]:
        return self.medoids, self.nearest, self.second, self.first, self.next, self._table

    @property
    def objective(self) -> float:
        return float(self.weights @ self.first)

    def copy(self) -> _Places:
        return _Places(self.distances, self.weights, self.medoids.copy())

    def take(self, other: _Places) -> None:
        for own, its in zip(self._state, other._state, strict=True):
            own[...] = its

    def descend(self, candidates: NDArray[np.int64]) -> list[float]:
        """Swap medoids for candidates until no swap helps; return the objective after each piece of the search."""
        m, piece, at, quiet, path = len(candidates), max(1, int(PIECE / len(self.distances))), 0, 0, []
        last = self.objective
        while quiet < m:
            before = at
            tests = min(piece, m - at)  # no further than the last candidate, so that one can tell how many were tried
            at, quiet, swaps = self._kernel.swaps(candidates, at, quiet, tests, LEAST * self.objective)
            self.tried += (at or m) - before
            if swaps:
                if not self.objective < last:  # by rounding, swaps of very unequal weights may lead in a circle
                    break
                last = self.objective
                path.append(last)
        return path

    def perturb(self, draws: np.random.Generator, *, anywhere: bool) -> None:
        """Move two medoids, each the cheaper of two drawn ones, to rows drawn by their distance, or to any rows."""
        for _ in range(2):
            losses = np.bincount(self.nearest, self.weights * (self.next - self.first), minlength=len(self.medoids))
            one, other = draws.integers(len(self.medoids), size=2)
            share = np.cumsum(self.weights if anywhere else self.weights * self.first)
            row = int(np.searchsorted(share, draws.random() * share[-1], side="right"))
            row = min(row, len(share) - 1)
            if row not in self.medoids:
                self._kernel.replace(int(other if losses[other] < losses[one] else one), row)


def _returns(so_far: int, found: float, best: float) -> int:
    """Count the descents that ended at the best objective."""
    if math.isclose(found, best, rel_tol=SAME, abs_tol=0.0):
        return so_far + 1
    return 1 if found < best else so_far


def _every_row(n: int, k: int) -> MedoidResult:
    """Return each row as its own medoid; surplus medoids repeat the rows in turn."""
    return MedoidResult(np.arange(k) % n, np.arange(n, dtype=np.int32), 0.0, [0.0], [("all rows", 0.0, 1, True)])
