"""The search for a clustering: starts, and escapes from poor optima."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._validation import warn_of_one_start
from majorant.engine.draws import thinned
from majorant.models.discriminative_clustering.cost import ClusteringCost, Clusterings
from majorant.search.contestants import NamedStart, Run
from majorant.search.few_starts import FewStarts
from majorant.starts.ball import SOFTNESS, ball_relaxation, nearest_groups, softened
from majorant.starts.quadratic import PrincipalAxes, QuadraticApproximation
from majorant.starts.simplex_program import RELAXATIONS, Coupling, low_rank_simplex_program, random_assignments
from majorant.starts.two_sided import two_sided_direction

Array = NDArray[np.float64]
Clustered = Run[Clusterings]

MOST_FOR_STARTS = 5_000
"""Rows up to which starts are made on all of them."""
N_SHORT = 7
"""Steps after which candidates are compared."""
N_KEPT = 3
HEATS, N_HOT, N_COOL = (30.0, 10.0, 3.0), 9, 29
"""Annealing: penalties as multiples of the final one, steps at each, and steps at the final one."""
N_ROUNDS, N_REGROUPED = 3, 2
BETTER = 1e-5
"""Smallest improvement of the cost (natural log units) that counts."""
AGREE = 1e-3
"""Difference of objectives (natural log) within which annealed starts agree, so that nothing is regrouped."""
SHORT_TOL, HOT_TOL = 1e-6, 1e-5
"""Tolerances of descents at the final penalty before the last one, and at larger penalties."""
N_RANDOM = 3
N_AXES = 4
"""Number of leading axes along which rows are grouped, and from which bimodal directions are searched."""
N_MOVED = 8
"""Rows of least margin that are tried in another cluster."""
MOST_FOR_MOVES = 1_000
"""Most rows for moves of single rows: with more, a single row hardly changes the cost."""
AFTER = 1 << 31
"""Number given to runs that are reported after all starts."""


@dataclass
class ClusteringContest(FewStarts[Clusterings]):
    """The starts of a clustering; where they are of all kinds, the best are annealed, regrouped, and moved by rows."""

    part: ClusteringCost
    axes: PrincipalAxes = field(kw_only=True)  # weights of the rows on which starts race
    init: Any = field(kw_only=True)  # (n_rows, n_clusters)
    n_init: Any = field(kw_only=True)  # number of random starts, or of columns of the relaxation
    random: np.random.Generator = field(kw_only=True)

    def starts(self, rows: Any, is_first: bool, draws: np.random.Generator) -> list[NamedStart[Clusterings]]:
        return [(name, self.part.started(xi)) for name, xi in self._assignments()]

    def stepped(self, on: Any, run: Clustered, max_iter: int, tol: float) -> Clustered:
        return super().stepped(on, replace(run, theta=on.adopted(run.theta)), max_iter, tol)

    def finished(self, rows: Any, runs: list[Clustered]) -> list[Clustered]:
        """Return the ends of the leading runs; of runs on a sample, continue the best on all rows."""
        leader = runs[0]
        if self.is_auto:
            runs = sorted(map(self._annealed, runs), key=lambda run: run.objective)
            if runs[-1].objective - runs[0].objective > AGREE:
                runs = [*map(self._regrouped, runs[:N_REGROUPED]), *runs[N_REGROUPED:]]
        runs = self.run(rows, runs, self.max_iter, self.tol)
        if self.is_auto:
            if leader.objective < min(run.objective for run in runs):  # the anneal has lost what was there
                end = self.stepped(rows, leader, self.max_iter, self.tol)
                runs = [end if run.number == leader.number else run for run in runs]
            runs += self._moved(min(runs, key=lambda run: run.objective))
        if not self.is_sampled:
            return runs
        first, *others = sorted(self.run(self.whole, runs, 0, self.tol), key=lambda run: run.objective)
        return [self.stepped(self.whole, replace(first, path=()), self.max_iter, self.tol), *others]

    @property
    def is_auto(self) -> bool:
        """Whether starts of all kinds compete."""
        return bool(self.race)

    # Where clusterings begin

    def _assignments(self) -> Iterable[tuple[str, Array]]:
        cost, k = self.part, self.part.n_clusters
        if k == 1:
            return [("one cluster", np.ones((len(cost.shares), 1)))]
        if not isinstance(self.init, str):
            warn_of_one_start(self.n_init)
            return [("given assignments", (1 - SOFTNESS) * self.init + SOFTNESS / k)]
        if self.init == "ball":
            return [("ball relaxation", self._ball(cost))]
        if self.init in RELAXATIONS:
            return self._relaxation(RELAXATIONS[self.init])
        return self._random_starts(10) if self.init == "random" else self._candidates()

    def _candidates(self) -> Iterator[tuple[str, Array]]:
        cost, k = self.part, self.part.n_clusters
        yield "ball relaxation", self._ball(cost)
        whitened = (self.axes.scores * np.sqrt(self._approximation(cost).shrinkage)[:, None]).T
        yield "k-means, whitened", self._grouped(whitened, k)
        yield "k-means", self._grouped(cost.coordinates, k)
        for axis in range(min(N_AXES, len(self.axes.scores))):
            yield "one axis", self._grouped(self.axes.scores[axis][:, None], k)
            two_sided = two_sided_direction(self.axes.scores, cost.shares, axis)
            yield "direction of two sides", self._grouped(two_sided[:, None], k)
        yield from self._random_starts(N_RANDOM)
        if k > 2:
            two = replace(cost, n_clusters=2)
            discriminant = self._from(self._ball(two), 15, SHORT_TOL, cost=two)
            yield "discriminant of two clusters", self._along(discriminant, 1)

    def _random_starts(self, default: int) -> Iterator[tuple[str, Array]]:
        n_init = default if self.n_init == "auto" else int(self.n_init)
        for _ in range(n_init):
            drawn = random_assignments(1, len(self.part.shares), self.part.n_clusters, self.random)[0]
            yield "random", np.maximum(drawn, 1e-12)

    def _relaxation(self, coupling: Coupling) -> Iterator[tuple[str, Array]]:
        """Yield both roundings of the program over simplices, as in the paper; see `low_rank_simplex_program`."""
        n_columns = 10 if self.n_init == "auto" else int(self.n_init)
        k, shares = self.part.n_clusters, self.part.shares
        start = random_assignments(n_columns, len(shares), k, self.random)
        near = self._approximation(self.part)
        found = low_rank_simplex_program(near.apply, start, shares=shares, coupling=coupling)
        kind = "relaxation" if coupling == "joint" else "independent relaxations"
        for source, xi in (("best column", found.best()), ("average", found.average())):
            yield f"{kind}, {source}", (1 - SOFTNESS) * xi + SOFTNESS / k

    def _approximation(self, cost: ClusteringCost) -> QuadraticApproximation:
        return QuadraticApproximation.of(self.axes, cost.alpha, cost.shares)

    def _ball(self, cost: ClusteringCost) -> Array:
        z = ball_relaxation(self._approximation(cost).apply, len(cost.shares), self.random)
        return self._grouped(z, cost.n_clusters)

    def _grouped(self, z: Array, k: int) -> Array:
        return softened(nearest_groups(z, self.part.shares, k, self.random), k)

    # Out of poor optima

    def _from(self, xi: Array, max_iter: int, tol: float, *, cost: ClusteringCost | None = None) -> Clustered:
        """Return a descent from assignments, at another cost than that of the race where one is given."""
        cost = self.part if cost is None else cost
        theta = cost.started(xi)
        return self.stepped(cost, Run("", theta, theta), max_iter, tol)

    def _log_p(self, run: Clustered) -> Array:
        return self.part.predicted(run.theta.theta[0])

    def _softened(self, run: Clustered) -> Array:
        """Return the most probable cluster of every row, as soft assignments."""
        return softened(self._log_p(run).argmax(axis=1), self.part.n_clusters)

    def _annealed(self, run: Clustered) -> Clustered:
        """Descend under decreasing penalties, from softened labels each time: large ones smooth out small optima."""
        at = run
        for heat in HEATS:
            hot = replace(self.part, alpha=heat * self.part.alpha)
            at = self._from(self._softened(at), N_HOT, HOT_TOL, cost=hot)
        at = self._from(self._softened(at), N_COOL, SHORT_TOL)
        return replace(at, source=run.source, number=run.number)

    def _regrouped(self, run: Clustered) -> Clustered:
        """Run k-means along the one or two directions in which clusters differ most, while that helps."""
        for _ in range(N_ROUNDS):
            better = run
            for n_directions in (1, 2):
                if n_directions < self.part.n_clusters:
                    again = self._annealed(self._from(self._along(run, n_directions), N_SHORT, SHORT_TOL))
                    better = min(better, again, key=lambda r: r.objective)
            if better.objective > run.objective - BETTER:
                break
            run = replace(better, source=run.source, number=run.number)
        return run

    def _along(self, run: Clustered, n_directions: int) -> Array:
        """Group rows by the leading directions of a classifier's scores."""
        scores = np.einsum("nr,rk->nk", self.part.coordinates, run.theta.theta[0, :-1])
        spread = np.einsum("n,nk,nl->kl", self.part.shares, scores, scores)  # coordinates have mean zero
        _, vectors = np.linalg.eigh(spread)
        along = np.einsum("nk,kd->nd", scores, vectors[:, ::-1][:, :n_directions])
        size = np.sqrt(np.einsum("n,nd,nd->d", self.part.shares, along, along))
        return self._grouped(along / np.where(size > 0, size, 1.0), self.part.n_clusters)

    def _moved(self, best: Clustered) -> list[Clustered]:
        """Move rows of least margin to their next best cluster, one at a time, while that lowers the cost.

        Each try ends at an optimum of its own, which is why a row that EM would never move alone can lead to a better
        one: it takes others along.
        """
        n, n_moves = len(self.part.shares), 0
        while n <= MOST_FOR_MOVES and n_moves < n:
            log_p = self._log_p(best)
            ranked = np.argsort(-log_p, axis=1, kind="stable")[:, :2]
            own, other = np.take_along_axis(log_p, ranked, axis=1).T
            for row in np.argsort(own - other, kind="stable")[:N_MOVED]:
                labels = log_p.argmax(axis=1)
                labels[row] = ranked[row, 1]
                moved = self._from(softened(labels, self.part.n_clusters), self.max_iter, self.tol)
                if moved.objective < best.objective - BETTER:
                    best, n_moves = moved, n_moves + 1
                    break
            else:
                break
        if not n_moves:
            return []
        self.note = f"{self.note} From the best, single rows moved {n_moves} times to a better optimum.".strip()
        return [replace(best, source="single rows moved", number=AFTER)]


def clustering_contest(
    cost: ClusteringCost,
    axes: PrincipalAxes,  # those of its coordinates
    # `init`, `n_init`, `tol`, `max_iter`: see `DiscriminativeClustering`; assignments that are given are those of
    # distinct rows
    init: Any,
    n_init: Any,
    *,
    tol: float,
    max_iter: int,
    random: np.random.Generator,
) -> ClusteringContest:
    """Return the search for a clustering; with many rows, starts are on a sample."""
    n, part, note = len(cost.shares), cost, ""
    is_given = cost.n_clusters == 1 or not isinstance(init, str)
    if not is_given and n > MOST_FOR_STARTS:
        rows = np.repeat(*thinned(cost.shares, MOST_FOR_STARTS, random))  # heavy ones more than once
        part = replace(cost, coordinates=cost.coordinates[rows], shares=np.full(len(rows), 1 / len(rows)))
        axes = replace(axes, scores=np.ascontiguousarray(axes.scores[:, rows]))
        note = f"Starts were made on {MOST_FOR_STARTS} of {n} rows; the best was continued on all."
    race = () if is_given or init != "auto" else ((N_SHORT, N_KEPT),)
    settings = {"axes": axes, "init": init, "n_init": n_init, "random": random}
    return ClusteringContest(cost, part, tol, max_iter, race, note, **settings)
