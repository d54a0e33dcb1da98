"""A mixture on rows in memory, with the interface that a race needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.engine.descent import Ends, Seen, descend
from majorant.engine.draws import thinned
from majorant.engine.mixture import Mixture, OnData, Parameters
from majorant.engine.runs import split, stacked
from majorant.search.contestants import NamedStart, Run
from majorant.search.effort import Plan
from majorant.search.perturbations import perturbed
from majorant.search.record import PERTURBATION
from majorant.search.starts import softened, tables

Array = NDArray[np.float64]
BATCH = 1 << 21
"""Approximate number of entries of a batch of runs; more runs are processed in several batches."""
SAMPLED = 10_000
"""Rows from which on starts race on a sample."""
SAMPLE = 3_000
TWINS = "two components are the same: fewer do as well"
SAME_DENSITY = 1e-3
"""Mean difference of the log densities of rows below which two components are the same: EM then sits on a saddle."""
LOOKED_AT = 1_000
"""Rows, evenly chosen, on which components are compared."""


@runtime_checkable
class FusedRuns(Protocol):
    """A density that steps a batch of runs in one kernel, where states are independent."""

    def fused_runs(self, mixture: Mixture, data: Chunks, theta: Any, *, tol: float, max_iter: int) -> Ends[Any]:
        """Run all starts as one batch, as `descend` does."""
        ...


@runtime_checkable
class Judged(Protocol):
    """A density with a rule that excludes solutions."""

    def degeneracy(self, theta: Any, sizes: Array, mixture: Mixture) -> str:
        """Return why the solution of one run is degenerate, in words; empty if it is regular. `sizes` are in rows."""
        ...


@runtime_checkable
class Started(Protocol):
    """A density with starts of its own kinds."""

    def starts(
        self, mixture: Mixture, data: Chunks, size: int, draws: np.random.Generator
    ) -> list[NamedStart[Parameters[Any, Any]]]: ...


@dataclass
class MixtureContest:
    """A mixture on rows in memory; see `race.Contest`."""

    mixture: Mixture
    columns: tuple[Any, ...]  # row-aligned arrays: columns of the density, then of the law
    points: Array  # (rows, numbers): rows for starts: standardised columns, missing cells filled in
    weights: Array  # (rows,): of units; one on average
    plan: Plan
    tol: float
    max_iter: int
    data: Callable[..., Chunks]  # chunks of columns and weights
    least_size: float = 0.0  # smallest number of rows of a component that counts
    row_weight: float = 1.0  # weight of one row
    constant: float = 0.0
    has_rule: bool = False
    batch: int = BATCH  # entries of a table of the runs that are stepped together, if only roughly
    _of_rows: dict[int, OnData] = field(default_factory=dict, repr=False)

    @cached_property
    def whole(self) -> NDArray[np.intp]:
        """Indices of all rows."""
        return np.arange(len(self.weights))

    @cached_property
    def total_weight(self) -> float:
        """Weight of all rows in memory."""
        return float(self.weights.sum())

    def is_of(self, data: Chunks) -> bool:
        """Return whether the contest is on all rows of some data, rather than on a sample."""
        return data.n_units == len(self.weights)

    @property
    def is_sampled(self) -> bool:
        return self.mixture.law.rows_are_units and len(self.weights) > SAMPLED

    @property
    def n_raced(self) -> int:
        """Rows, or units of them, over which the race goes."""
        return SAMPLE if self.is_sampled else len(self.weights)

    @property
    def note(self) -> str:
        return f", on {SAMPLE} of {len(self.weights)} rows first" if self.is_sampled else ""

    def sample(self, draws: np.random.Generator) -> tuple[NDArray[np.intp], Array]:
        """Return a systematic sample of rows by weight, each with the weight that it represents."""
        rows, times = thinned(self.weights, SAMPLE, draws)
        return rows, times * (self.weights.sum() / SAMPLE)

    def on(self, rows: Any) -> OnData:
        """Return the mixture on all rows, or on a sample."""
        if rows is self.whole:
            if 0 not in self._of_rows:
                self._of_rows[0] = OnData(self.mixture, self.data(*self.columns, weights=self.weights))
            return self._of_rows[0]
        chosen, weights = rows
        return OnData(self.mixture, self.data(*(c[chosen] for c in self.columns), weights=weights))

    def starts(self, rows: Any, is_first: bool, draws: np.random.Generator) -> list[NamedStart[Parameters[Any, Any]]]:
        density, k = self.mixture.density, self.mixture.n_components
        on = self.on(rows)
        if isinstance(density, Started):
            return density.starts(self.mixture, on.data, self.plan.n_starts, draws)
        chosen, weights = (rows, self.weights) if rows is self.whole else rows
        named = tables(self.points[chosen], weights, k, self.plan.n_starts, draws)
        return self._begun(on, [name for name, _ in named], [q for _, q in named])

    def perturbed(
        self, rows: Any, bases: Sequence[Parameters[Any, Any]], size: int, draws: np.random.Generator
    ) -> list[NamedStart[Parameters[Any, Any]]]:
        on = self.on(rows)
        weights = self.weights if rows is self.whole else rows[1]
        seen = [self._table(on, theta) for theta in bases]
        # The best solution is perturbed half the time, the others in turn.
        chosen = [seen[0 if i % 2 == 0 else (i // 2) % len(seen)] for i in range(size)]
        return self._begun(on, [PERTURBATION] * size, [perturbed(q, log, weights, draws) for q, log in chosen])

    def _table(self, on: OnData, theta: Parameters[Any, Any]) -> tuple[Array, Array]:
        """Return responsibilities and log densities of all rows, (components, rows) each."""
        k = self.mixture.n_components

        def visit(block: Block) -> Array:
            q, log_density = self.mixture.responsibilities(theta, block)
            return np.concatenate([q[0], log_density[0]]).T

        both = on.data.map_rows(visit, (2 * k,)).T
        return both[:k], both[k:]

    def _begun(
        self, on: OnData, names: list[str], responsibilities: list[Array]
    ) -> list[NamedStart[Parameters[Any, Any]]]:
        """Return parameters of responsibilities, by one M-step, in batches."""
        size = self._batch_size(responsibilities[0].shape[1])
        out: list[NamedStart[Parameters[Any, Any]]] = []
        for a in range(0, len(names), size):
            q = softened(np.stack(responsibilities[a : a + size]), on.total_weight / self.row_weight)
            theta = self.mixture.started(q, on.data)
            out += zip(names[a : a + size], split(theta), strict=True)
        return out

    def _batch_size(self, n_rows: int) -> int:
        return max(1, self.batch // (self.mixture.n_components * min(n_rows, 8192)))

    def run(
        self, rows: Any, runs: list[Run[Parameters[Any, Any]]], max_iter: int, tol: float, *, free: bool = False
    ) -> list[Run[Parameters[Any, Any]]]:
        on, is_whole = self.on(rows), rows is self.whole
        on = self.freed(on) if free else on
        size, out = self._batch_size(on.data.n_units), []
        for a in range(0, len(runs), size):
            batch = runs[a : a + size]
            ends = self._descended(on, stacked([run.theta for run in batch]), max_iter, tol)
            reasons = self._degeneracies(ends.theta, ends.seen)
            told = ends.objective.tolist(), ends.n_iter.tolist(), ends.converged.tolist(), ends.paths
            for run, theta, reason, objective, n_iter, converged, path in zip(
                batch, split(ends.theta), reasons, *told, strict=True
            ):
                out.append(
                    Run(
                        run.source,
                        run.start,
                        theta,
                        objective,
                        run.n_iter + n_iter,
                        converged,
                        reason,
                        run.met,
                        run.is_whole and is_whole,
                        (*run.path, *path) if is_whole else (),
                        run.number,
                    )
                )
        return out

    @cached_property
    def _has_fused_runs(self) -> bool:
        return isinstance(self.mixture.density, FusedRuns)

    def _descended(self, on: OnData, theta: Any, max_iter: int, tol: float) -> Ends[Any]:
        density = on.mixture.density
        if self._has_fused_runs and on.mixture.law.log_weights(theta.law) is not None:
            found: Ends[Any] = density.fused_runs(on.mixture, on.data, theta, tol=tol, max_iter=max_iter)  # type: ignore[attr-defined]
            return found
        return descend(on, theta, tol=tol, max_iter=max_iter)

    def freed(self, on: OnData) -> OnData:
        """Return the mixture without a rule of regularity; there is none here."""
        return on

    def _degeneracies(self, theta: Parameters[Any, Any], seen: Seen) -> list[str]:
        """Return why the solution of each run does not count; empty where it does."""
        density, runs = self.mixture.density, len(seen.objective)
        sizes = self.mixture.law.shares(theta.law, seen.statistics.law) * (self.weights.sum() / self.row_weight)
        reasons = [""] * runs
        if isinstance(density, Judged):
            judged = zip(split(theta.density), sizes, strict=True)
            reasons = [density.degeneracy(one, size, self.mixture) for one, size in judged]
        smallest = sizes.min(axis=1)
        if self.mixture.n_components > 1:
            for i in np.flatnonzero(smallest < self.least_size * (1 - 1e-9)):
                needed = f"(at least {self.least_size:g} are needed)"
                reasons[i] = reasons[i] or f"the smallest component has {smallest[i]:.1f} rows {needed}"
        for values in density.describe(theta.density).values():
            for i in np.flatnonzero(~np.isfinite(values.reshape(runs, -1)).all(axis=1)):
                reasons[i] = "its estimates are not finite"
        return reasons

    def judged(self, ends: Ends[Any]) -> str:
        """Return why a run's end on all rows does not count; empty if it counts."""
        return self._degeneracies(ends.theta, ends.seen)[0] or self._twins(ends.theta)

    def held_back(self, run: Run[Parameters[Any, Any]]) -> str:
        """Return why a solution that counts by its parameters does not by the densities of rows."""
        return self._twins(run.theta)

    def _twins(self, theta: Parameters[Any, Any]) -> str:
        return TWINS if len(self.same_densities(theta)) else ""

    def same_densities(self, theta: Parameters[Any, Any]) -> NDArray[np.intp]:
        """Return the pairs of components of one run in which rows have the same densities, (pairs, 2)."""
        rows = self.mixture.parts(Block(0, tuple(column[self.looked_at] for column in self.columns)))[0]
        density, weights = getattr(self.mixture.density, "alone", self.mixture.density), self.weights[self.looked_at]
        table = density.log_density(theta.density, rows)[0]
        # Means differ by no more than rows do in the mean, so that only components of like means are compared.
        means = np.average(np.nan_to_num(table, posinf=0.0, neginf=0.0), axis=1, weights=weights)
        order, pairs = np.argsort(means, kind="stable"), []
        ends = np.searchsorted(means[order], means[order] + SAME_DENSITY, side="right")
        for at in np.flatnonzero(ends > np.arange(1, len(ends) + 1)):
            one, others = order[at], order[at + 1 : ends[at]]
            first, second = np.broadcast_arrays(table[one], table[others])
            apart = np.subtract(first, second, where=first != second, out=np.zeros(second.shape))
            same = others[np.average(np.abs(apart), axis=1, weights=weights) < SAME_DENSITY]
            pairs += [(one, other) for other in same]
        return np.array(pairs, dtype=np.intp).reshape(-1, 2)

    @property
    def looked_at(self) -> slice:
        """The rows on which components are compared."""
        return slice(None, None, max(1, len(self.weights) // LOOKED_AT))

    def is_admissible(self, run: Run[Parameters[Any, Any]]) -> bool:
        """Return False: no rule leaves a maximum out."""
        return False

    def shown(self, objective: float) -> float:
        """Return the log-likelihood."""
        return -objective - self.constant

    def features(self, thetas: Sequence[Parameters[Any, Any]]) -> Array:
        """Return estimates of every kind, each sorted over components, on the scale of their spread."""
        parts = []
        for values in self.mixture.density.describe(stacked(thetas).density).values():
            table = np.sort(values.reshape(*values.shape[:2], -1), axis=1)
            parts.append((table / (1 + np.abs(table).max(axis=1, keepdims=True))).reshape(len(table), -1))
        return np.concatenate(parts, axis=1)
