"""The search for the poses of each class: swaps at zero temperature, then EM from several starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._order import ordered
from majorant.data.chunks import Chunks
from majorant.data.measure import Measure, safe_scale
from majorant.data.rows import Rows, rows_in_memory
from majorant.engine.loop import Solution, minimize
from majorant.engine.trace import Trace
from majorant.models.kmeans import KMeans
from majorant.models.kmeans.search import Search
from majorant.models.prototypes.family import PoseFamily
from majorant.search.record import StartRecord
from majorant.solvers.nearest import squared_distances
from majorant.starts.restarts import Best, Start, best_of
from majorant.starts.seeding import plus_plus

N_STARTS = 4
"""Number of starts of EM in each class: the result of the swap search, then k-means++ seeds."""

MOST_PRODUCTS = 2e9
"""Largest number of multiplications for the unit of temperature; of more rows every second, third, ... is used."""

HOT = 1e-6
"""Inverse temperature, in multiples of one over per class's scatter, at which all its poses are at its mean."""


@dataclass(frozen=True)
class LabelledRows:
    """The rows of each class as a weighted measure, in units that all classes share."""

    classes: tuple[Rows, ...]  # each class has its own origin; every row's deviation from it is in the shared units
    scale: float  # power of two that converts rows to the shared units
    codes: NDArray[np.intp]  # (n_rows,): class of each row, by number; -1 where the class has no weight

    @property
    def total_weight(self) -> float:
        return sum(rows.data.total_weight for rows in self.classes)

    @property
    def shares(self) -> list[NDArray[np.float64]]:
        """Weights of the rows of each class, as shares of the weight of all rows."""
        total = self.total_weight
        return [part.measure.weights / total for part in self.classes]

    def deviations(self, poses: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """Return, for each class, its rows minus their nearest pose (about its origin)."""
        nearest = [
            squared_distances(c.measure.points, p).argmin(axis=1) for c, p in zip(self.classes, poses, strict=True)
        ]
        return [c.measure.points - p[z] for c, p, z in zip(self.classes, poses, nearest, strict=True)]


def labelled_rows(
    X: NDArray[np.float64], y: NDArray[Any], weights: NDArray[np.float64] | None, n_jobs: int | None
) -> tuple[LabelledRows, NDArray[Any]]:
    """Return the rows of each class with weight, and the classes in sorted order."""
    counts = slice(None) if weights is None else weights > 0
    names = np.unique(y[counts])
    codes = np.searchsorted(names, y)
    codes = np.where(names[np.minimum(codes, len(names) - 1)] == y, codes, -1)
    low, high = X[counts].min(axis=0), X[counts].max(axis=0)
    scale = safe_scale(float(np.max(high / 2 - low / 2, initial=0.0)), X.dtype)
    shared = X if scale == 1.0 else X * scale
    classes = []
    for c in range(len(names)):
        of_class = codes == c
        rows = rows_in_memory(shared[of_class], None if weights is None else weights[of_class], n_jobs)
        classes.append(_without_scale(rows, n_jobs))
    return LabelledRows(tuple(classes), scale, codes), names


def _without_scale(rows: Rows, n_jobs: int | None) -> Rows:
    """Return the rows of a class in the shared units; classes of nearly equal rows have units of their own."""
    m = rows.measure
    if m.scale == 1.0:
        return rows
    shared = Measure(m.points / m.scale, m.weights, m.positions, m.origin, 1.0)
    data = Chunks(shared.points, weights=m.weights, n_jobs=n_jobs)
    return replace(rows, data=data, measure=shared, variances=shared.variances(), scatter=float(shared.squares().sum()))


def effective_variance(deviations: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
    r"""Return the effective variance :math:`\mathrm{tr}(S^2) / \mathrm{tr}(S)` of a covariance S.

    `S` is the covariance of the deviations, and the result is the mean of its eigenvalues weighted by themselves. It
    does not change with rotations or constant columns.

    Parameters
    ----------
    deviations : ndarray of shape (n_rows, n_features)
    shares : ndarray of shape (n_rows,)
        Positive weights.
    """
    largest = float(np.abs(deviations).max(initial=0.0))
    if largest == 0:
        return 0.0
    n, d = deviations.shape
    step = max(int(np.ceil(n * d * min(n, d) / MOST_PRODUCTS)), 1)
    shares = shares[::step] / shares[::step].sum()
    table = deviations[::step] / largest * np.sqrt(shares)[:, None]
    if len(table) > d:
        table = np.ascontiguousarray(table.T)
    # Not a matrix product: the sums of one depend on the number of threads that BLAS may use.
    products = np.einsum("ij,kj->ik", table, table)
    total = float(np.trace(products))
    return largest**2 * float(np.sum(products**2)) / total if total > 0 else 0.0


@dataclass(frozen=True)
class PoseSearch:
    """The search for the poses of each class, with the parameters of `LatentPrototypeClassifier`."""

    n_poses: int
    beta: float  # inverse temperature, in units of the estimator's parameter
    n_init: str | int
    max_iter: int
    tol: float
    verbose: int
    unit: float  # factor from squared distances of the rows to squared units of X, for reports

    def find(self, rows: LabelledRows, random: np.random.RandomState) -> tuple[list[Best], float]:
        """Find the best poses of every class, and the temperature in squared units of the rows."""
        hard = np.isinf(self.beta)
        found = [self._by_swaps(part, random, alone=hard) for part in rows.classes]
        if hard:
            return found, 0.0
        deviations = np.concatenate(rows.deviations([f.solution.theta for f in found]))
        temperature = 2 * effective_variance(deviations, np.concatenate(rows.shares)) / self.beta
        if temperature > 0:
            found = [self._by_em(*each, temperature, random) for each in zip(rows.classes, found, strict=True)]
        return found, temperature

    def family(self, rows: Rows, temperature: float) -> PoseFamily:
        """Return the family of a class, which cannot have more poses than distinct rows."""
        beta = max(1 / temperature, _hot(rows)) if temperature > 0 else np.inf
        family = PoseFamily(min(self.n_poses, rows.measure.n_points), beta)
        # Squares about the old poses, and entropies, are large numbers whose difference the objective is.
        sizes = rows.scatter + rows.data.total_weight * family.surprise
        return replace(family, slack=32 * float(np.finfo(rows.dtype).eps) * sizes)

    def _by_swaps(self, rows: Rows, random: np.random.RandomState, *, alone: bool) -> Best:
        """Find the best poses at zero temperature by swaps: the result if `alone`, otherwise the start of EM."""
        k_means = KMeans(
            min(self.n_poses, rows.measure.n_points),
            n_init=self.n_init if alone else 1,
            max_iter=self.max_iter,
            verbose=self.verbose if alone else 0,
        )
        k_means.n_features_in_ = len(rows.measure.origin)
        return Search(k_means, self.unit).find(rows, None, random)[0]

    def _by_em(self, rows: Rows, swaps: Best, temperature: float, random: np.random.RandomState) -> Best:
        family = self.family(rows, temperature)
        starts = [Start("swap search", theta=swaps.solution.theta)]
        n_init = N_STARTS if self.n_init == "auto" else int(self.n_init)
        for seed in random.randint(2**31, size=n_init - 1).tolist():
            seeds = plus_plus(rows.measure, family.n_states, np.random.default_rng(seed))
            starts.append(Start("k-means++", theta=seeds))

        def descend(start: Start) -> Solution[NDArray[Any]]:
            return minimize(family, rows.data, theta=start.theta, tol=self.tol, max_iter=self.max_iter)

        return best_of(starts, descend, verbose=self.verbose, unit=self.unit)


def _hot(rows: Rows) -> float:
    """Return an inverse temperature below which poses and objective change by rounding only."""
    scatter = float(rows.variances.sum())
    return HOT / scatter if scatter > 0 else 0.0


def in_order(family: PoseFamily, rows: Rows, poses: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the poses, the one of largest weight first, and their shares of the class."""
    weights = family.pose_weights(poses, rows.data)
    order = ordered(-weights, poses)
    return poses[order], weights[order] / rows.data.total_weight


def together(found: list[Best]) -> tuple[tuple[StartRecord, ...], Trace, float]:
    """Combine starts, history and objective of classes that were fitted independently.

    A start is one of a single class, with every other class at its best; an iteration is one of every class that has
    not converged.
    """
    objectives = [f.solution.objective for f in found]
    total = float(sum(objectives))
    records = tuple(
        replace(record, objective=total - best + record.objective)
        for f, best in zip(found, objectives, strict=True)
        for record in f.records
    )
    length = max(len(f.solution.trace) for f in found)
    objective, bound = np.zeros(length), np.zeros(length)
    for f in found:
        trace = f.solution.trace
        rest = np.full(length - len(trace), trace["objective"][-1])  # at rest the bound touches
        objective += np.concatenate([trace["objective"], rest])
        bound += np.concatenate([trace["bound"], rest])
    rows = [
        {"objective": float(f), "bound": float(b), "gap": float(b - f), "exploring": 0.0}
        for f, b in zip(objective, bound, strict=True)
    ]
    return records, Trace(rows), total
