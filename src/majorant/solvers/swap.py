"""k-means by swaps of centres, which finds better optima than restarts.

A descent from k-means++ first reaches a local optimum of Lloyd's algorithm. Then each round draws a few points with
probability proportional to their share of the objective, finds the best pair of a point that becomes a centre and a
centre that is removed, runs Lloyd steps on the centres around, and keeps the result if the objective is lower. Where
points win little as centres, as in many columns, a cluster is divided in two instead. When no round helps, single
points are moved if that lowers the objective with both means updated (Hartigan and Wong). Small data are searched from
several seeds. Then perturbations move two centres of the best solution so far. Where the clusters of a new solution and
of the best one part the same points, the better of the two is taken in every part.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant._numbers import briefly
from majorant._progress import is_stopped, kept_when_stopped

SAME = 1e-7
"""Objectives with a smaller relative difference are the same optimum."""

PIECE = 2e7
"""Approximate number of values read between two checks for KeyboardInterrupt."""


@dataclass(frozen=True)
class SwapPlan:
    """When a search stops."""

    perturbations: int  # largest number of perturbations of local optima
    returns: int  # number of starts and perturbations that reach the best objective after which the search stops
    starts: int = 1  # independent descents from seeds, before the perturbations
    patience: int = 10  # number of consecutive failed rounds that ends a descent
    # The same for a descent from a perturbation, which goes on with `patience` once it lies below the best. On tiny
    # data it is `patience`.
    brief: int = 2
    # smallest relative decrease of a round that is kept, and the one below which it counts as failed
    accepted: float = 1e-7
    progress: float = 1e-5
    settle: float = 1e-5  # relative decrease of a Lloyd step below which a descent ends
    sweeps: int = 5  # largest number of passes of single moves at the end of a descent
    least: float = 0.0  # relative decrease of twenty Lloyd steps below which the last polish ends


EFFORTS = {"fast": SwapPlan(0, 0, patience=6), "default": SwapPlan(50, 4, 3), "best": SwapPlan(600, 20, 3, brief=10)}

BULK = 3e5
"""Points times centres times columns above which there are fewer starts and perturbations."""
FIRST, EACH = 22, 0.5
"""Perturbations by default: these, and so many more for each centre; up to twice as many on fewer than 1000 points."""
FINE = 4_000_000
"""Points times centres above which rounds of tiny decrease count as failed."""


@dataclass(frozen=True)
class SwapResult:
    """Result of a search."""

    # (k, d): once settled means of the points nearest to them, or on the sphere the directions of their sums
    centres: NDArray[np.float64]
    labels: NDArray[np.int32]  # (n,): the nearest centre of every point
    objective: float  # weighted sum of squared distances of points to their centres
    n_rounds: int  # number of rounds of swaps, including failed ones
    converged: bool  # whether the search ended by itself
    steps: list[float]  # the objective from the first centres to the last ones: it never rises
    # kind and final objective of the descents from seeds ("k-means++") and of every perturbation ("perturbation"): also
    # where the descent from a seed gave parts to the best solution
    optima: list[tuple[str, float]]
    # Whether no Lloyd step and no move of a single point improves the solution. On large data the search ends sooner,
    # and centres may be near the means of their points only.
    is_settled: bool = True


def swap_search(
    points: NDArray[Any],  # (n, d): distinct points near the origin, such as those of a `majorant.data.measure.Measure`
    weights: NDArray[np.float64],  # (n,): positive
    k: int,
    *,
    seed: int,  # seed of all random draws
    # "fast": one start, no perturbations. "default": three starts and at most 50 perturbations, fewer with few centres
    # or once four (or k) descents reach the same optimum. "best": three starts and at most 600, fewer once twenty do.
    # Above 300,000 points x centres x columns, one start and fewer perturbations.
    effort: Literal["fast", "default", "best"] | SwapPlan = "default",
    n_starts: int | None = None,  # so many starts and no perturbations, if given
    # largest number of passes over the data in the final descent, in units of twenty Lloyd steps
    max_passes: int = 1000,
    # whether points and centres have length one: centres are then the directions of sums, in place of means
    on_sphere: bool = False,
    # called after every descent with its kind, its final objective and the best one
    callback: Callable[[str, float, float], None] | None = None,
) -> SwapResult:
    """Search for the k centres of least weighted sum of squared distances.

    The result is bitwise the same on every run.

    Notes
    -----
    The kernel runs in calls of some milliseconds, so that KeyboardInterrupt takes effect between them.

    References
    ----------
    .. [1] P. Fränti, "Efficiency of random swap clustering", Journal of Big Data, 2018.
    .. [2] J. A. Hartigan, M. A. Wong, "Algorithm AS 136: a k-means clustering algorithm", Applied Statistics, 1979.
    .. [3] S. Lattanzi, C. Sohler, "A better k-means++ algorithm via local search", ICML 2019.
    """
    n, d = points.shape
    if k < 1:
        raise ValueError(f"k must be at least 1; got {k}")
    if k >= n:
        return _every_point(points, k)
    if d == 0:
        points = np.zeros((n, 1), dtype=points.dtype)
    plan = _plan(effort, n, d, k)
    if n_starts is not None:
        plan = replace(plan, starts=n_starts, perturbations=0)
    search = _kernels.swap_search(points, weights, k, seed, on_sphere)
    search.configure(candidates=3, local_steps=4, still=1e-5, accepted=plan.accepted, progress=plan.progress)
    optima: list[tuple[str, float]] = []
    steps: list[float] = []
    best, returns = math.inf, 0
    starts, brief = plan.starts if k > 1 else 1, replace(plan, patience=min(plan.brief, plan.patience))
    with kept_when_stopped(lambda: bool(steps)):
        for count in range(starts + (plan.perturbations if k > 1 else 0)):
            is_start = count < starts
            if not is_start and (not best > 0 or returns >= plan.returns):
                break
            if is_start:
                search.seed()
            else:
                search.kick(2, anywhere=(count - starts) % 3 == 2)
            first = search.objective
            _descend(search, plan if is_start else brief, n * (d + 10), lloyd=is_start)
            if not is_start and plan.brief < plan.patience and search.objective < best * (1 - 1e-9):
                _descend(search, plan, n * (d + 10), lloyd=False)
            accepted, found = search.take_accepted(), search.objective
            before = steps if steps and not (is_start and found < best) else [first]
            if is_start:
                optima.append(("k-means++", found))
            if search.recombine():
                _descend(search, brief, n * (d + 10), lloyd=False)
                accepted, found = [*accepted, *search.take_accepted()], search.objective
                optima.append(("perturbation", found))
            elif not is_start:
                optima.append(("perturbation", found))
            if found < best * (1 - 1e-9):
                returns = returns + 1 if found > best * (1 - SAME) else 0
                best, steps = found, [*before, *_falling([*accepted, found], before[-1])]
                search.keep()
            else:
                returns += found < best * (1 + SAME)
                search.restore()
            if callback is not None:
                callback(*optima[-1], best)
    if is_stopped():
        search.restore()
    is_settled = False

    def is_polished() -> bool:
        nonlocal is_settled
        before = search.objective
        is_settled = search.polish(1)
        return is_settled or before - search.objective < plan.least * before

    converged = not is_stopped() and _repeat(is_polished, max_passes)
    centres = np.empty((k, points.shape[1]))
    labels = np.empty(n, dtype=np.int32)
    search.write_centres(centres)
    search.write_labels(labels)
    steps += _falling([search.objective], steps[-1])
    return SwapResult(
        centres[:, :d], labels, search.objective, search.n_rounds, converged, steps, optima, is_settled=is_settled
    )


def _plan(effort: str | SwapPlan, n: int, d: int, k: int) -> SwapPlan:
    if isinstance(effort, SwapPlan):
        return effort
    if effort not in EFFORTS:
        raise ValueError(f"effort must be one of {list(EFFORTS)} or a SwapPlan; got {briefly(effort)}")
    plan, share = EFFORTS[effort], min(1.0, math.sqrt(BULK / (n * k * max(d, 1))))
    made = float(plan.perturbations)
    if effort == "default":
        made = min(made, (FIRST + EACH * k) * min(max(1.0, math.sqrt(1000 / n)), 2.0))
    plan = replace(
        plan,
        perturbations=math.ceil(made * share),
        returns=math.ceil((min(plan.returns, k) if effort == "default" else plan.returns) * share),
        starts=plan.starts if share == 1 else 1,
        patience=min(max(plan.patience, k // 20), k + 2),  # with few centres there are few swaps
        brief=plan.patience if 20 * n * k * d < BULK else max(plan.brief, k // 10),
    )
    if share < 0.5:
        plan = replace(plan, patience=min(plan.patience, max(3, k // 8)), sweeps=1, least=1e-5)
    return plan if n * k < FINE else replace(plan, accepted=1e-6, progress=1e-4)


def _descend(search: _kernels.SwapSearch, plan: SwapPlan, size: int, *, lloyd: bool) -> None:
    """Improve the search's solution to a local optimum of swaps and single moves, in place."""
    limit = max(1, int(PIECE / size))
    steps = min(limit, 300)

    def settle(tolerance: float) -> None:
        _repeat(lambda: search.descend(steps, tolerance), -(-300 // steps))

    if lloyd:
        settle(1e-4)
    while not search.rounds(plan.patience, limit):
        pass
    settle(plan.settle)
    _repeat(lambda: search.single_moves(1) == 0, plan.sweeps)


def _repeat(piece: Callable[[], bool], most: int) -> bool:
    return any(piece() for _ in range(most))


def _falling(values: list[float], below: float) -> list[float]:
    """Return the running records: values below all before them."""
    out = []
    for value in values:
        if value < below:
            below = value
            out.append(value)
    return out


def _every_point(points: NDArray[Any], k: int) -> SwapResult:
    """Return each point as its own centre; surplus centres repeat the points in turn."""
    n = len(points)
    centres = points[np.arange(k) % n].astype(np.float64)
    return SwapResult(centres, np.arange(n, dtype=np.int32), 0.0, 0, True, [0.0], [("k-means++", 0.0)])
