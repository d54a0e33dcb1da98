"""The lower bound on the k-means objective: the kinds of bound that are tried, their order, and their work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant._numbers import briefly
from majorant.solvers.intervals import best_intervals, only_column
from majorant.solvers.kmeans_bounds.multipliers import Work
from majorant.solvers.kmeans_bounds.partition import partition_bound
from majorant.solvers.kmeans_bounds.parts import blocks_bound, leading_columns_bound
from majorant.solvers.kmeans_bounds.pengwei import MOST_POINTS, peng_wei_bound
from majorant.solvers.kmeans_bounds.problem import EPSILON, BoundProblem, make_problem

Effort = Literal["quick", "fast", "default", "tight"]

LARGEST = 1e152
LOOKS_A_SECOND = 1e8
MOST_COLUMNS_TO_SPLIT = 12
FEW_CLUSTERS = 4


@dataclass(frozen=True)
class _Plan:
    fixed: float
    """Work in distances of eight columns; about a hundred million per second."""
    for_each_distance: float
    """Additional work for each of the n k distances of points to centres."""
    rounds: int
    iterations: int
    most_points: int = MOST_POINTS
    """Largest number of points for which Peng-Wei is tried."""
    parts: bool = True
    """Whether sums over columns and over blocks of points are tried."""
    few_clusters: float = 0.0
    """Additional work for up to `FEW_CLUSTERS` clusters, where a proof is usually close."""

    def allowed(self, n: int, k: int) -> float:
        """Return the work for `n` points and `k` centres."""
        more = self.few_clusters if k <= FEW_CLUSTERS else 0.0
        return self.fixed + self.for_each_distance * n * k + more


_PLANS: dict[str, _Plan] = {
    "quick": _Plan(1e5, 8.0, 10, 0, most_points=0, parts=False, few_clusters=1e6),
    "fast": _Plan(8e6, 10.0, 20, 0),
    "default": _Plan(5e7, 20.0, 60, 15),
    "tight": _Plan(6e8, 400.0, 200, 60),
}


@dataclass(frozen=True)
class LowerBound:
    """A lower bound on the sum of squares of any k centres."""

    bound: float  # the bound in the units of the points, at least zero
    method: str  # kind of bound, in words
    work: float = 0.0  # work that it took, in distances of eight columns
    tried: dict[str, float] = field(default_factory=dict)  # best bound of each kind


def kmeans_lower_bound(
    points: NDArray[Any],  # (n, d): finite; float32 points are taken as they are
    weights: NDArray[np.float64] | None,  # (n,): positive
    centres: NDArray[Any],  # (k, d): the centres of a fit
    *,
    # how much work may be done; "quick" takes some hundredths of a second and leaves out expensive kinds
    effort: Effort = "default",
    # Work in distances of eight columns, in place of `effort`; about a hundred million take a second. The result
    # depends on it, never on the clock.
    budget: float | None = None,
) -> LowerBound:
    r"""Return a lower bound on :math:`\min_C \sum_i w_i \min_j |x_i - c_j|^2` over all sets of k centres.

    It is valid for any centres; better centres give a better bound. Three kinds of bound are tried:
    set partition (one multiplier per point, the largest cover by branch and bound), Peng-Wei (up to 1500 points, any
    number of columns), and sums over columns or over blocks of points where neither closes. Where the points differ in
    one column only, the bound is the optimum, by dynamic programming. What rounding may have
    added is subtracted, by bounds on the error of sums and factorisations in float64 (not by interval arithmetic).

    Raises ValueError if the arrays do not fit together or `effort` is not known.
    """
    x = np.ascontiguousarray(points, dtype=np.float64)
    c = np.ascontiguousarray(centres, dtype=np.float64)
    w = np.ones(len(x)) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    if effort not in _PLANS:
        raise ValueError(f"effort must be one of {', '.join(map(repr, _PLANS))}; got {briefly(effort)}")
    if x.ndim != 2 or c.ndim != 2 or x.shape[1] != c.shape[1] or len(c) == 0 or w.shape != (len(x),):
        raise ValueError(
            f"points must be (n, d), weights (n,) and centres (k, d) with k > 0; got {x.shape}, {w.shape} and {c.shape}"
        )
    if len(x) == 0:
        return LowerBound(0.0, "no points")
    if not (np.isfinite(x).all() and np.isfinite(c).all() and np.isfinite(w).all() and (w > 0).all()):
        raise ValueError("points and centres must be finite, weights finite and positive")
    with np.errstate(over="ignore"):
        span = float(np.max(x.max(axis=0) - x.min(axis=0), initial=0.0))
    if span > LARGEST or 0 < span < 1 / LARGEST:
        return LowerBound(0.0, "none: the squares of these numbers leave the range of float64, rescale them")
    x, w = _distinct(x, w)
    if len(x) <= len(c):
        return LowerBound(0.0, "no more distinct points than centres")
    column = only_column(x, len(c))
    if column is not None and effort != "quick":
        lost = len(x) * EPSILON**2 * float(np.sum(w * x[:, column] ** 2))  # sums have twice the digits of a float64
        found = best_intervals(x[:, column], w, len(c))[1] * (1 - 8 * (len(c) + 8) * EPSILON) - 16 * lost
        return LowerBound(max(found, 0.0), "exact: dynamic programming over one column", float(len(x) * len(c)))
    problem = make_problem(x, w, c)
    if len(c) == 1:
        found = (problem.scatter * (1 - 4 * (len(x) + 8) * EPSILON) - problem.coordinate_error) * problem.unit
        return LowerBound(max(found, 0.0), "exact: one centre")
    plan = _PLANS[effort]
    allowed = plan.allowed(len(x), len(c)) if budget is None else float(budget)
    return _best_of(problem, Work(allowed), plan)


def effort_within(seconds: float, n: int, d: int, k: int) -> Effort | None:
    """Choose the greatest effort, up to "default", whose work takes about `seconds` of CPU time at most.

    Returns
    -------
    {"quick", "fast", "default"} or None
        None if even "quick" takes longer.
    """
    reading = 3e-3 + 1e-7 * n * d  # sorting the rows and bringing them to standard units
    efforts: tuple[Effort, ...] = ("default", "fast", "quick")
    for effort in efforts:
        if reading + 1.5 * _PLANS[effort].allowed(n, k) / LOOKS_A_SECOND <= seconds:
            return effort
    return None


def _best_of(problem: BoundProblem, work: Work, plan: _Plan) -> LowerBound:
    allowed, n, d = work.left, *problem.points.shape
    tried: dict[str, float] = {}

    def best() -> float:
        return max(tried.values(), default=0.0)

    def note(kind: str, value: float) -> None:
        scaled = float((value - problem.coordinate_error) * problem.unit * (1 - 4 * EPSILON))
        if np.isfinite(scaled):
            tried[kind] = max(scaled, 0.0)

    def short(gap: float) -> bool:
        return best() < problem.objective * problem.unit * (1 - gap)

    share = Work(0.7 * work.left if d > 2 else work.left)
    before = share.left
    note("set partition", partition_bound(problem, share, plan.rounds).bound)
    work.spend(before - share.left)
    if short(1e-3) and n <= plan.most_points:
        note("Peng-Wei", peng_wei_bound(problem, work, plan.iterations))
    if short(0.02) and n > plan.most_points and plan.parts:
        if 2 < d <= MOST_COLUMNS_TO_SPLIT:
            share = Work(work.left / 3)
            work.spend(share.left)
            note("leading columns", leading_columns_bound(problem, share, plan.rounds))
        note("blocks of points", blocks_bound(problem, work, plan.iterations))
    if best() == 0.0:
        return LowerBound(0.0, "none found", allowed - work.left, tried)
    method = max(tried, key=lambda kind: tried[kind])
    return LowerBound(tried[method], method, allowed - work.left, tried)


def _distinct(x: NDArray[np.float64], w: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the points in lexicographic order, equal ones merged, so that the given order does not matter."""
    order, is_new = np.empty(len(x), dtype=np.int64), np.empty(len(x), dtype=np.uint8)
    x = x + 0.0  # -0.0 becomes 0.0
    _kernels.sort_rows(x, order, is_new)
    starts = np.flatnonzero(is_new)
    return x[order[starts]], np.add.reduceat(w[order], starts)
