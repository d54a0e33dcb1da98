"""The k-means search: swaps of centres, or descents from many starts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from majorant._cells import refuse_what_is_no_number
from majorant._progress import report_start
from majorant._validation import warn_of_one_start
from majorant.data.chunks import Block, Chunks
from majorant.data.directions import unit_rows
from majorant.data.measure import Measure
from majorant.data.rows import Rows
from majorant.engine.loop import Solution, minimize
from majorant.engine.policies import BoundPolicy
from majorant.engine.problem import FirstLatent
from majorant.engine.trace import Trace
from majorant.models.kmeans.family import KMeansFamily
from majorant.search.record import SAME_OPTIMUM, StartRecord
from majorant.solvers.intervals import interval_search
from majorant.solvers.nearest import assign
from majorant.solvers.swap import SwapResult, swap_search
from majorant.starts.restarts import Best, Start, best_of
from majorant.starts.seeding import plus_plus, random_partition, random_rows

if TYPE_CHECKING:
    from majorant.models.kmeans.estimator import KMeans

SEEDED = {"auto": "k-means++", "k-means++": "k-means++", "random": "random rows", "forgy": "random rows"}
"""Starts that are seeds, and what the search report calls them."""

MOST_ENTRIES = 1 << 23
"""Entries, zeros included, up to which sparse rows are searched by swaps, on a dense copy."""


@dataclass(frozen=True)
class Search:
    """How a `KMeans` searches, and the unit in which it reports."""

    model: KMeans
    unit: float

    @property
    def keeps_order(self) -> bool:
        """Whether the user gave centres, whose order is then kept."""
        return not isinstance(self.model.init, str)

    def find(self, rows: Rows, X: Any, random: np.random.RandomState) -> tuple[Best, str]:
        """Find the best of all starts, and what a reader must know of the search.

        For streamed rows, starts use a sample, and the best is continued on all rows.
        """
        measure = rows.measure
        sample = Chunks(measure.points, weights=measure.weights) if rows.is_stream else rows.data
        if self._swaps(measure):
            solution, records = self._by_swaps(rows, sample, random)
        else:
            starts = self.starts(rows, X, random)
            solution, records = best_of(
                starts, lambda start: self._descend(rows, sample, start), verbose=self.model.verbose, unit=self.unit
            )
        if not rows.is_stream:
            return Best(solution, records), ""
        solution = self._descend(rows, rows.data, Start("sample", theta=solution.theta))
        n, n_sampled = rows.data.n_units, len(measure.positions)
        note = f"Starts were made on {n_sampled} of {n} rows; the best was continued on all." if n_sampled < n else ""
        return Best(solution, records), note

    def _swaps(self, measure: Measure) -> bool:
        """Return whether the swap search runs: it does unless the user chose a start or bounds."""
        model = self.model
        by_seeds = isinstance(model.init, str) and SEEDED.get(model.init) == "k-means++"
        is_free = model.algorithm == "swap" and model.bounds is None and by_seeds
        return is_free and (not sparse.issparse(measure.points) or np.prod(measure.points.shape) <= MOST_ENTRIES)

    def _by_swaps(self, rows: Rows, data: Chunks, random: np.random.RandomState) -> Best:
        """Return the best of a swap search; records hold every descent, those after perturbations too."""
        measure, numbers = rows.measure, count(1)
        points = measure.points.toarray() if sparse.issparse(measure.points) else measure.points
        best = self._exact(points, measure.weights)
        if best is not None:
            return Best(self._after_swaps(rows, data, best), tuple(ends_of(best)))
        n_init = self.model.n_init

        def told(source: str, objective: float, lowest: float) -> None:
            shown, best_shown = objective * self.unit, lowest * self.unit
            report_start(next(numbers), source, shown, "no swap helps", self.model.verbose, best_shown)

        best = swap_search(
            points,
            measure.weights,
            self.model.n_clusters,
            seed=int(random.randint(2**31)),
            effort=self.model.effort,
            n_starts=None if n_init == "auto" else int(n_init),
            max_passes=self.model.max_iter,
            on_sphere=self.model.metric == "cosine",
            callback=told,
        )
        return Best(self._after_swaps(rows, data, best), tuple(ends_of(best)))

    def _exact(self, points: NDArray[Any], weights: NDArray[np.float64]) -> SwapResult | None:
        """Return the best of all solutions where the points lie on a line, and are not too many."""
        k = self.model.n_clusters
        return interval_search(points, weights, k) if k > 1 and self.model.metric == "euclidean" else None

    def _after_swaps(self, rows: Rows, data: Chunks, result: SwapResult) -> Solution[NDArray[Any]]:
        """Return the engine's solution from where the search ended, with every accepted step of the search before it.

        A step is a bound like any other: the rows' assignment to centres after a swap, minimised by their means.
        """
        rows_of_trace = [
            {"objective": f, "bound": f, "gap": 0.0, "exploring": 0.0}
            for f in (*(f for f in result.steps if f > result.objective), result.objective)
        ]
        sizes = np.bincount(result.labels, minlength=self.model.n_clusters)
        if result.is_settled and sizes.all() and rows.dtype == np.float64 and not rows.is_stream:
            # The centres are the means of the points nearest to them: there is nothing left to descend.
            trace = Trace(rows_of_trace)
            return Solution(result.centres, result.objective, len(trace), 0, True, "no swap helps", trace)
        end = self._descend(rows, data, Start("swaps", theta=result.centres.astype(rows.dtype)))
        trace = Trace([*rows_of_trace, *end.trace])
        return replace(end, n_iter=len(trace), converged=end.converged and result.converged, trace=trace)

    def starts(self, rows: Rows, X: Any, random: np.random.RandomState) -> Iterator[Start]:
        """Yield the starts one by one."""
        measure, k = rows.measure, self.model.n_clusters
        given = not isinstance(self.model.init, str) and not callable(self.model.init)
        n_init = (1 if given else 10) if self.model.n_init == "auto" else int(self.model.n_init)
        seeds = random.randint(2**31, size=1 if given else n_init)
        if given:
            warn_of_one_start(n_init)
            yield Start("given centres", theta=self._given_centres(self.model.init, measure), seed=int(seeds[0]))
            return
        for seed in seeds.tolist():
            draws = np.random.default_rng(seed)
            if callable(self.model.init):
                if rows.is_stream:
                    raise TypeError("init cannot be a callable for rows that are streamed: give an array of centres")
                centres = self.model.init(X, k, random_state=random)
                yield Start("callable", theta=self._given_centres(centres, measure), seed=seed)
            elif self.model.init == "random-partition":
                parts = random_partition(measure, k, draws)
                yield Start("random partition", latent=_rows_of(parts), seed=seed)
            else:
                source = SEEDED[str(self.model.init)]
                seeding = plus_plus if source == "k-means++" else random_rows
                yield Start(source, theta=seeding(measure, k, draws), seed=seed)

    def _given_centres(self, centres: Any, measure: Measure) -> NDArray[Any]:
        centres = given_centres(self.model, centres, len(measure.origin))
        with np.errstate(over="ignore"):
            points = (centres - measure.origin) * measure.scale
        if abs(points).max(initial=0.0) > (1e15 if measure.points.dtype == np.float32 else 1e140):
            raise ValueError(
                f"init is up to {abs(centres - measure.origin).max():.0e} from X, too far to be squared: "
                "give centres in the units of X"
            )
        return np.ascontiguousarray(points, dtype=measure.points.dtype)

    def _descend(self, rows: Rows, data: Chunks, start: Start) -> Solution[NDArray[Any]]:
        """Run one start to convergence. A bound policy keeps empty clusters; a last descent moves them."""
        spread = rows.scatter
        if start.theta is not None and self.keeps_order:  # digits that moments about far centres lose
            spread += data.total_weight * float(np.max(np.sum(start.theta.astype(np.float64) ** 2, axis=1)))
        slack = 32 * float(np.finfo(rows.dtype).eps) * spread
        tolerance = float(self.model.tol) * float(rows.variances.mean())
        policy = self.model.bounds
        if data is not rows.data:
            policy = None  # it may speak of rows that are not in the sample
        elif policy is not None:  # a copy: a bias keeps what it prepared, and a policy may serve two fits at once
            policy = deepcopy(policy) if rows.is_stream else policy.renumbered(rows.measure.positions)

        def go(policy: BoundPolicy | None, theta: Any, latent: Any) -> Solution[NDArray[Any]]:
            family = KMeansFamily(
                self.model.n_clusters,
                tolerance,
                slack,
                relocate=policy is None,
                on_sphere=self.model.metric == "cosine",
            )
            last = deque([theta], maxlen=2)
            solution = minimize(
                family,
                data,
                policy,
                theta=theta,
                latent=latent,
                max_iter=self.model.max_iter,
                seed=start.seed,
                callback=last.append,
            )
            if policy is not None or not solution.converged or family.still(*last):
                return solution
            # It ended as no label changed: scikit-learn counts the iteration that finds this.
            return replace(solution, n_iter=min(solution.n_iter + 1, self.model.max_iter))

        solution = go(policy, start.theta, start.latent)
        if policy is not None and (cluster_weights(data, solution.theta) <= 0).any():
            solution = go(None, solution.theta, None)
        return solution


def given_centres(model: KMeans, centres: Any, n_features: int) -> NDArray[np.float64]:
    """Return centres that a user gave, of length one where the metric is the cosine."""
    refuse_what_is_no_number(centres, "init")
    try:
        centres = check_array(centres, dtype=np.float64, ensure_min_samples=0)
    except (ValueError, TypeError) as error:
        reason = str(error).split("\n")[0].rstrip(":")
        raise type(error)(f"init must be finite centres, shape (n_clusters, n_features): {reason}") from error
    for got, expected, of in zip(
        centres.shape,
        (model.n_clusters, n_features),
        ("number of clusters", "number of features of the data"),
        strict=True,
    ):
        if got != expected:
            raise ValueError(
                f"The shape of the initial centers {centres.shape} does not match the {of}, {expected}: "
                "init must be (n_clusters, n_features)"
            )
    return np.asarray(unit_rows(centres, name="init") if model.metric == "cosine" else centres)


def ends_of(result: SwapResult) -> Iterator[StartRecord]:
    """Yield the end of every descent of a search; those at the best optimum take the value of its final polish.

    If it still went down by more than rounding, the other descents were cut short of their optima.
    """
    reached = min(objective for _, objective in result.optima)
    cut_short = reached - result.objective > SAME_OPTIMUM * result.objective
    for source, objective in result.optima:
        is_best = objective <= reached * (1 + SAME_OPTIMUM)
        converged = result.converged and (is_best or not cut_short)
        yield StartRecord(source, result.objective if is_best else objective, len(result.steps), converged)


def cluster_weights(data: Chunks, centres: NDArray[Any]) -> NDArray[np.float64]:
    """Return the weight of the rows nearest to each centre."""

    def visit(block: Block) -> NDArray[np.float64]:
        labels = np.full(len(block), -1, dtype=np.int32)
        moments, _ = assign(block.columns[0], block.weights, centres, labels)
        assert moments is not None
        return moments[:, 0]

    return data.map_sum(visit)


def _rows_of(labels: NDArray[np.int32]) -> FirstLatent:
    """Select the latent values of a block from those of all units."""
    return lambda block: labels[block.first : block.first + len(block)]
