"""k-means with clusters of limited size: what was asked, the search, and the cluster of each row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from majorant._order import ordered
from majorant._validation import check_real
from majorant.data.rows import Rows
from majorant.engine.draws import drawn
from majorant.engine.loop import Solution
from majorant.engine.trace import Trace
from majorant.models.kmeans.search import Search
from majorant.search.record import PERTURBATION, SAME_OPTIMUM
from majorant.solvers.sizes import SizedResult, Sizes, assign_within, sized_kmeans, square_costs
from majorant.starts.restarts import Best, Start, best_of
from majorant.starts.seeding import plus_plus, rows_at

if TYPE_CHECKING:
    from majorant.models.kmeans.estimator import KMeans

Array = NDArray[np.float64]

STARTS = {"fast": 3, "default": 3, "best": 10}
"""Largest number of starts, the end of a search without sizes being the first."""
PERTURBATIONS = {"fast": 0, "default": 20, "best": 200}
"""Largest number of perturbations of the best solution, which put one centre elsewhere and two in turn."""
AGREE = {"fast": 3, "default": 4, "best": 20}
"""Number of starts and perturbations that end at the best after which there are no more."""


def check_sizes(low: Any, high: Any, total: float, k: int) -> Sizes | None:
    """Return the sizes that were asked for, None if none were."""
    if low is None and high is None:
        return None
    for name, value in (("size_min", low), ("size_max", high)):
        if value is not None:
            check_real(name, value, low=0)
    least, most = 0.0 if low is None else float(low), np.inf if high is None else float(high)
    if least > most:
        raise ValueError(f"size_min={low} is larger than size_max={high}")
    if k * least > total:
        raise ValueError(
            f"{k} clusters of at least {least:g} need rows of weight {k * least:g}; X has {total:g}: "
            f"ask for size_min of at most {total / k:g}, or for fewer clusters"
        )
    if k * most < total:
        raise ValueError(
            f"{k} clusters of at most {most:g} hold rows of weight {k * most:g}; X has {total:g}: "
            f"ask for size_max of at least {total / k:g}, or for more clusters"
        )
    return Sizes(least, min(most, total))


def sized_search(
    model: KMeans, rows: Rows, X: Any, sizes: Sizes, search: Search, random: np.random.RandomState
) -> tuple[Best, Array]:
    """Return the best of some descents within sizes, and the mass of each distinct row in each cluster.

    Descents begin at starts, then at perturbations of the best. The heaviest cluster comes first, unless centres were
    given.
    """
    measure, effort, is_auto, reached = rows.measure, model.effort, model.n_init == "auto", list[float]()
    tolerance = float(model.tol) * float(rows.variances.mean())
    best: SizedResult | None = None

    def descend(start: Start) -> Solution[Array]:
        nonlocal best
        end = sized_kmeans(
            measure.points,
            measure.weights,
            start.theta,
            sizes,
            max_iter=model.max_iter,
            tolerance=tolerance,
            on_sphere=model.metric == "cosine",
            prices=best.assigned.prices if best and start.source == PERTURBATION else None,
            beat=min(reached, default=np.inf) if is_auto else np.inf,
        )
        reached.append(end.objectives[-1])
        if best is None or reached[-1] < best.objectives[-1]:
            best = end
        trace = Trace([{"objective": f, "bound": f, "gap": 0.0, "exploring": 0.0} for f in end.objectives])
        how = "assignments and centres stand still" if end.converged else "ended before it stood still"
        return Solution(end.centres, reached[-1], len(trace), len(trace), end.converged, how, trace)

    def starts() -> Iterator[Start]:
        if not isinstance(model.init, str):
            yield from search.starts(rows, X, random)
            return
        most, more = (STARTS[effort], PERTURBATIONS[effort]) if is_auto else (int(model.n_init), 0)
        if is_auto:
            yield Start("without sizes", theta=search.find(rows, X, random)[0].solution.theta)
        for count, seed in enumerate(random.randint(2**31, size=most - is_auto + more).tolist(), int(is_auto)):
            if is_auto and sum(f <= min(reached) * (1 + SAME_OPTIMUM) for f in reached) >= AGREE[effort]:
                return
            draws = np.random.default_rng(seed)
            if count < most:
                yield Start("k-means++", theta=plus_plus(measure, model.n_clusters, draws))
            else:
                assert best is not None
                yield Start(PERTURBATION, theta=perturbed(measure.points, best, 1 + count % 2, draws))

    solution, records = best_of(starts(), descend, verbose=model.verbose, unit=search.unit)
    mass = assign_within(square_costs(measure.points, solution.theta), measure.weights, sizes).mass
    order = np.arange(len(mass)) if search.keeps_order else ordered(-mass.sum(axis=1), solution.theta)
    return Best(replace(solution, theta=solution.theta[order]), records), mass[order]


def perturbed(points: Any, end: SizedResult, moves: int, draws: np.random.Generator) -> Array:
    """Put some centres at rows that are drawn by their shares of the objective."""
    centres = end.centres.copy()
    share = np.einsum("jn,nj->n", end.assigned.mass, square_costs(points, centres))
    if share.any():
        places = draws.permutation(len(centres))[:moves]
        centres[places] = rows_at(points, drawn(share, draws.random(len(places))))
    return centres


def assigned_within(X: Any, weights: Array | None, centres: NDArray[Any], low: Any, high: Any) -> NDArray[np.int32]:
    """Return the clusters of rows in memory within sizes, -1 of rows without weight."""
    w = np.ones(X.shape[0]) if weights is None else weights
    total = float(w.sum())
    sizes = check_sizes(low, high, total, len(centres)) or Sizes(0.0, total)
    mass = assign_within(square_costs(X, centres), w, sizes).mass
    return rows_within(mass, np.where(w > 0, np.arange(len(w)), -1), weights)


def rows_within(mass: Array, positions: NDArray[np.intp], weights: Array | None) -> NDArray[np.int32]:
    """Return the cluster of each row; the rows of a point that is divided fill its clusters in turn. -1: no weight."""
    of_point = np.append(mass.argmax(axis=0), -1).astype(np.int32)
    labels = of_point[positions]
    for point in np.flatnonzero(np.count_nonzero(mass, axis=0) > 1).tolist():
        own = np.flatnonzero(positions == point)
        clusters = np.flatnonzero(mass[:, point])
        edges = np.cumsum(mass[clusters, point])
        w = np.ones(len(own)) if weights is None else weights[own]
        middle = np.cumsum(w) - w / 2
        labels[own] = clusters[np.minimum(np.searchsorted(edges, middle), len(clusters) - 1)]
    return labels
