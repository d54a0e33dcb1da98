"""The search for hidden Markov models: starts and perturbations in time, and reopening of closed transitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.densities.regression import EXACT_SHARE
from majorant.engine.descent import Ends, descend
from majorant.engine.mixture import Array, Mixture, OnData, Parameters, Sums
from majorant.engine.runs import put, taken
from majorant.laws import Chain, GatedChain, Independent
from majorant.laws.independent import Weights
from majorant.laws.tuples import TupleChain
from majorant.models.hidden_markov.lines import SwitchingLines, unseen_of
from majorant.models.hidden_markov.starts import Times
from majorant.models.mixture import standardised
from majorant.models.mixture_rows import Rows
from majorant.search.contest import MixtureContest
from majorant.search.contestants import NamedStart, Run
from majorant.search.effort import Plan
from majorant.search.perturbations import perturbed
from majorant.search.record import PERTURBATION

PLAN = Plan(
    n_starts=20,
    n_perturbations=10,
    race=((10, 8), (30, 2)),
    least_rounds=5,
    most_rounds=30,
    sure_rounds=3,
    least_hits=1,
    least_barren=2,
    starts_every=0,
    n_kept=1,
)
KINDS = ("rows by density", "stretches of time", "random cuts of time", "smoothed levels", "random partition")
STEPS_WITHOUT_TIME = 5
"""Steps of EM of a mixture without a chain, from a few rows for each state."""
MOST_OPENINGS = 3
SAME_STEPS = 1e-3
"""Mean difference of the probabilities of steps into rows below which states of the same density are the same."""
STEPS_WITHOUT_RULE = 200
"""Steps of EM that show whether a state that the largest ratio of noises holds back fits its rows exactly."""


def times_of(rows: Rows, mixture: Mixture) -> Times:
    """Return sequences as starts see them: numbers of like spread, in the order of time."""
    groups, k = rows.groups, mixture.n_components
    assert groups is not None
    offsets = np.append(np.flatnonzero(np.append(True, groups[1:] != groups[:-1])), len(groups)).astype(np.int64)
    points = np.column_stack([standardised(c, rows.weights) for c in rows.columns[: mixture.density.n_columns]])
    least = max(3, mixture.density.n_parameters(k) // k + 2)
    return Times(points, rows.weights, offsets, min(least, len(groups)))


@dataclass
class SequenceContest(MixtureContest):
    """Hidden Markov models on rows in memory."""

    times: Times = field(kw_only=True)  # the rows in their order
    chain: Chain | GatedChain = field(kw_only=True)  # the innermost law

    def starts(self, rows: Any, is_first: bool, draws: np.random.Generator) -> list[NamedStart[Parameters[Any, Any]]]:
        """Return the starts of all kinds in turn."""
        k, on = self.mixture.n_components, self.on(rows)
        times, kinds = self.times, [KINDS[i % len(KINDS)] for i in range(self.plan.n_starts)]
        makers = dict(zip(KINDS, (times.seeds, times.windows, times.blocks, times.levels, times.rows), strict=True))
        tables = [makers[kind](k, draws) for kind in kinds]
        self._complete(on, tables, [i for i, kind in enumerate(kinds) if kind == KINDS[0]], STEPS_WITHOUT_TIME)
        self._complete(on, tables, [i for i, kind in enumerate(kinds) if kind == KINDS[1]], 0)
        return self._begun(on, kinds, tables)

    def _complete(self, on: OnData, tables: list[Array], at: list[int], steps: int) -> None:
        """Replace incomplete tables by responsibilities of an independent mixture after some EM steps."""
        if at:
            for i, table in zip(at, self._by_density(on, np.stack([tables[i] for i in at]), steps), strict=True):
                tables[i] = table

    def _by_density(self, on: OnData, q: Array, steps: int) -> list[Array]:
        """Return responsibilities of an independent mixture after some EM steps from a few rows of each state."""
        density, k = getattr(self.mixture.density, "alone", self.mixture.density), self.mixture.n_components
        alone = OnData(Mixture(density, Independent(), k), on.data)

        def visit(block: Block) -> Sums:
            given = q[:, :, block.at] if block.weights is None else q[:, :, block.at] * block.weights
            return Sums(density.statistics(None, alone.mixture.parts(block)[0], given), given.sum(axis=2))

        sums, one = on.data.map_sum(visit), np.ones(len(q))
        theta = Parameters(density.solve(sums.density, None, one), Weights(np.full(q.shape[:2], 1 / k)))
        theta = descend(alone, theta, tol=0.0, max_iter=steps, accelerate=False).theta
        runs = [taken(theta, [run]) for run in range(len(q))]
        return [
            on.data.map_rows(lambda block, one=one: alone.mixture.responsibilities(one, block)[0][0].T, (k,)).T  # type: ignore[misc]
            for one in runs
        ]

    def perturbed(
        self, rows: Any, bases: Sequence[Parameters[Any, Any]], size: int, draws: np.random.Generator
    ) -> list[NamedStart[Parameters[Any, Any]]]:
        """Return the perturbations of rows and, in turn, of stretches of time."""
        on = self.on(rows)
        seen = [self._table(on, theta) for theta in bases]
        tables = []
        for i in range(size):
            q, log_density = seen[(i // 2) % len(seen)]
            by_rows = i % 2 == 0
            tables.append(perturbed(q, log_density, self.weights, draws) if by_rows else self.times.moved(q, draws))
        return self._begun(on, [PERTURBATION] * size, tables)

    def _table(self, on: OnData, theta: Parameters[Any, Any]) -> tuple[Array, Array]:
        """Return responsibilities and log densities of states; of tuples of states their sums, and their means."""
        if not isinstance(self.chain, TupleChain):
            return super()._table(on, theta)
        k, mixture = self.mixture.n_components, self.mixture

        def visit(block: Block) -> Array:
            q, log_density = (table[0].reshape(k, -1, len(block)) for table in mixture.responsibilities(theta, block))
            return np.concatenate([q.sum(axis=1), log_density.mean(axis=1)]).T

        both = on.data.map_rows(visit, (2 * k,)).T
        return both[:k], both[k:]

    @cached_property
    def unseen(self) -> Array:
        """Directions of the coefficients of lines in which no row has a part."""
        return unseen_of(self.columns[0])

    @property
    def lines(self) -> SwitchingLines | None:
        """The density, if rows are on lines."""
        return self.mixture.density if isinstance(self.mixture.density, SwitchingLines) else None

    def freed(self, on: OnData) -> OnData:
        """Return the mixture without a largest ratio of the noises of lines."""
        return on if self.lines is None else replace(on, mixture=replace(self.mixture, density=self.lines.freed()))

    def is_admissible(self, run: Run[Parameters[Any, Any]]) -> bool:
        """Return whether a solution that does not count is told of: lines that fit many rows exactly."""
        if self.lines is None or not np.isfinite(run.objective):
            return False
        exact = self.lines.inner.on_floor(run.theta.density.dispersion.T)
        statistics = self.on(self.whole).seen(run.theta).statistics
        fitted = self.mixture.law.shares(run.theta.law, statistics.law)[0][exact].sum()
        return bool(fitted >= EXACT_SHARE)

    def judged(self, ends: Ends[Any]) -> str:
        """Return why a run's end does not count: where the ratio of noises is bounded, what it would be without."""
        said = super().judged(ends)
        if said and self.lines is not None and self.lines.inner.response.has_dispersion:
            free = descend(self.freed(self.on(self.whole)), ends.theta, tol=0.0, max_iter=STEPS_WITHOUT_RULE).theta
            said = self.lines.exact_line(free.density) or said
        return said

    def same_densities(self, theta: Parameters[Any, Any]) -> NDArray[np.intp]:
        """Return the pairs of states that are the same: in rows, and in where they lead to if another one differs."""
        pairs, k = super().same_densities(theta), self.mixture.n_components
        if len(pairs) == k * (k - 1) // 2:
            return pairs
        if isinstance(self.chain, GatedChain):
            steps = np.exp(self.chain.log_steps(theta.law, self.columns[-2][self.looked_at])[0])
        else:
            steps = self.chain.describe(theta.law)["transitions"]
        apart = [np.abs(np.delete(steps[:, i] - steps[:, j], [i, j], axis=1)).mean(axis=0) for i, j in pairs]
        return pairs[[bool(of_each.max(initial=0.0) < SAME_STEPS) for of_each in apart]]

    def _descended(self, on: OnData, theta: Any, max_iter: int, tol: float) -> Ends[Any]:
        """Descend, and reopen transitions that were set to zero too early where that helps."""
        return climbed(on, theta, self.chain, tol=tol, max_iter=max_iter)


def climbed(on: OnData, theta: Any, chain: Chain | GatedChain, *, tol: float, max_iter: int) -> Ends[Any]:
    """Descend as `descend` does; continue a converged run where an exact M-step would raise its likelihood."""
    ends = descend(on, theta, tol=tol, max_iter=max_iter)
    for _ in range(MOST_OPENINGS):
        opened, changed = chain.reopened(ends.theta.law, ends.seen.statistics.law)
        runs = np.flatnonzero(changed & ends.converged)
        if not len(runs):
            break
        tried = Parameters(taken(ends.theta.density, runs), taken(opened, runs))
        new = descend(on, tried, tol=tol, max_iter=max_iter)
        better = np.flatnonzero(new.objective < ends.objective[runs] - tol * on.total_weight)
        if not len(better):
            break
        ends = _replaced(ends, runs[better], new, better)
    return ends


def _replaced(ends: Ends[Any], runs: Any, new: Ends[Any], taken_runs: Any) -> Ends[Any]:
    """Return runs, updated with where they continued to."""
    paths = [list(path) for path in ends.paths]
    n_iter, converged = ends.n_iter.copy(), ends.converged.copy()
    for run, i in zip(runs.tolist(), taken_runs.tolist(), strict=True):
        paths[run] += new.paths[i]
    n_iter[runs] += new.n_iter[taken_runs]
    converged[runs] = new.converged[taken_runs]
    theta, seen = put(ends.theta, runs, taken(new.theta, taken_runs)), put(ends.seen, runs, taken(new.seen, taken_runs))
    return replace(ends, theta=theta, seen=seen, n_iter=n_iter, converged=converged, paths=paths)
