"""Where does a clustering begin, and how is it led out of poor optima?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._progress import end_of_starts, report_start
from majorant.engine.draws import thinned
from majorant.models.discriminative_clustering.em import Problem, Run
from majorant.search.record import StartRecord
from majorant.starts.ball import SOFTNESS, ball_relaxation, nearest_groups, softened
from majorant.starts.quadratic import PrincipalAxes, QuadraticApproximation
from majorant.starts.simplex_program import low_rank_simplex_program, random_assignments
from majorant.starts.two_sided import two_sided_direction

Array = NDArray[np.float64]

MOST_FOR_STARTS = 5_000
"""Rows up to which starts are made on all of them."""
N_SHORT = 8
"""Iterations after which candidates are compared."""
N_KEPT = 3
HEATS, N_HOT, N_COOL = (30.0, 10.0, 3.0), 10, 30
"""Penalties of the anneal in units of the own one, iterations at each, and at the own one."""
N_ROUNDS, N_REGROUPED = 3, 2
BETTER = 1e-5
"""Nats by which a run must be better to count."""
AGREE = 1e-3
"""Nats within which annealed starts count as agreeing: nothing is regrouped then."""
HOT_TOL = 1e-5
N_RANDOM = 3
N_AXES = 4
"""Widest axes along each of which rows are grouped, and from which directions with two sides are looked for."""
N_MOVED = 8
"""Rows of least margin that are tried in another cluster."""
MOST_FOR_MOVES = 1_000
"""Rows up to which single ones are moved: of more, none alone weighs on the cost."""


@dataclass
class Search:
    """The starts of a clustering and their descents.

    Attributes
    ----------
    problem : Problem
    axes : PrincipalAxes
        Those of the problem's coordinates.
    init : str or ndarray of shape (n_rows, n_clusters)
    n_init : "auto" or int
        Number of random starts, or of columns of the relaxation.
    max_iter : int
    tol : float
    verbose : int
    random : numpy.random.Generator
    """

    problem: Problem
    axes: PrincipalAxes
    init: Any
    n_init: Any
    max_iter: int
    tol: float
    verbose: int
    random: np.random.Generator
    ends: list[tuple[str, Run]] = field(default_factory=list)
    note: str = ""

    @property
    def records(self) -> tuple[StartRecord, ...]:
        """Every start and where it ended."""
        return tuple(StartRecord(source, run.loss, len(run.path), run.converged) for source, run in self.ends)

    def find(self) -> Run:
        """The best run; `ends` then names every start. Of many rows a sample has the starts."""
        given = not isinstance(self.init, str)
        if given or self.problem.n_clusters == 1 or len(self.problem.shares) <= MOST_FOR_STARTS:
            return self._find()
        rows = self._sample()
        scores = np.ascontiguousarray(self.axes.scores[:, rows])
        shares = np.full(len(rows), 1 / len(rows))
        problem = replace(self.problem, coordinates=self.problem.coordinates[rows], shares=shares)
        return self._on_all(replace(self, problem=problem, axes=replace(self.axes, scores=scores), ends=[]))

    def _sample(self) -> NDArray[np.intp]:
        """Rows at equal steps of weight from a random one on; heavy ones more than once."""
        return np.repeat(*thinned(self.problem.shares, MOST_FOR_STARTS, self.random))

    def _on_all(self, search: Search) -> Run:
        """Every end of a search on a sample, seen on all rows, and the best followed to its end there."""
        search._find()
        seen = [(source, self.problem.resumed(run.theta)) for source, run in search.ends]
        _, best = min(seen, key=lambda end: end[1].loss)
        found = self.problem.em(best, max_iter=self.max_iter, tol=self.tol)
        self.ends += [(source, found) if run is best else (source, run) for source, run in seen]
        self.note = (
            f"{search.note} Starts were made on {MOST_FOR_STARTS} of {len(self.problem.shares)} rows; "
            "the best went on on all."
        ).strip()
        return found

    def _find(self) -> Run:
        if self.problem.n_clusters == 1:
            return self._of_all([("one cluster", np.ones((len(self.problem.shares), 1)))])
        if not isinstance(self.init, str):
            return self._of_all([("given assignments", self.init)])
        if self.init == "ball":
            return self._of_all([("ball relaxation", self._ball(self.problem))])
        if self.init == "relaxation":
            return self._of_all(self._relaxation())
        if self.init == "random":
            return self._of_all(self._random_starts(10))
        return self._auto()

    def _of_all(self, starts: Any) -> Run:
        """Every start, a source and where it begins, to its end: the best."""
        best: Run | None = None
        for source, begin in starts:
            run = self.problem.em(begin, max_iter=self.max_iter, tol=self.tol)
            self._record(source, run)
            if best is None or run.loss < best.loss:
                best = run
        end_of_starts(self.verbose)
        assert best is not None
        return best

    def _auto(self) -> Run:
        """Short descents from starts of all kinds; the best are annealed, regrouped and followed to their end."""
        short = [(source, self.problem.em(xi, max_iter=N_SHORT)) for source, xi in self._candidates()]
        short.sort(key=lambda pair: pair[1].loss)
        for source, run in short[N_KEPT:]:
            self._record(source, run)
        kept = [(source, self._annealed(run)) for source, run in short[:N_KEPT]]
        kept.sort(key=lambda pair: pair[1].loss)
        if kept[-1][1].loss - kept[0][1].loss > AGREE:
            kept = [*(self._regrouped(*pair) for pair in kept[:N_REGROUPED]), *kept[N_REGROUPED:]]
        n_dropped = len(short) - len(kept)
        self.note = f"{n_dropped} starts were dropped after {N_SHORT} iterations; the others were annealed."
        return self._moved(self._of_all(kept))

    def _moved(self, best: Run) -> Run:
        """Rows of least margin go to the next best cluster, one at a time, while that lowers the cost.

        Each try ends at an optimum of its own, which is why a row that EM would never move alone can lead to a better
        one: it takes others along.
        """
        problem, n = self.problem, len(self.problem.shares)
        n_moves = 0
        while n <= MOST_FOR_MOVES and n_moves < n:
            ranked = np.argsort(-best.log_p, axis=1, kind="stable")[:, :2]
            own, other = np.take_along_axis(best.log_p, ranked, axis=1).T
            for row in np.argsort(own - other, kind="stable")[:N_MOVED]:
                labels = best.labels
                labels[row] = ranked[row, 1]
                moved = problem.em(softened(labels, problem.n_clusters), max_iter=self.max_iter, tol=self.tol)
                if moved.loss < best.loss - BETTER:
                    best, n_moves = moved, n_moves + 1
                    break
            else:
                break
        if n_moves:
            self._record("single rows moved", best)
            end_of_starts(self.verbose)
            self.note += f" From the best, single rows moved {n_moves} times to a better optimum."
        return best

    def _candidates(self) -> Iterator[tuple[str, Array]]:
        problem, k = self.problem, self.problem.n_clusters
        yield "ball relaxation", self._ball(problem)
        approximation = self._approximation(problem)
        whitened = (self.axes.scores * np.sqrt(approximation.shrinkage)[:, None]).T
        yield "k-means, whitened", self._grouped(whitened, k)
        yield "k-means", self._grouped(problem.coordinates, k)
        for axis in range(min(N_AXES, len(self.axes.scores))):
            yield "one axis", self._grouped(self.axes.scores[axis][:, None], k)
            two_sided = two_sided_direction(self.axes.scores, problem.shares, axis)
            yield "direction of two sides", self._grouped(two_sided[:, None], k)
        yield from self._random_starts(N_RANDOM)
        if k > 2:
            two = problem.with_clusters(2)
            run = two.em(self._ball(two), max_iter=15)
            yield "discriminant of two clusters", self._along(run, 1)

    def _random_starts(self, default: int) -> Iterator[tuple[str, Array]]:
        n_init = default if self.n_init == "auto" else int(self.n_init)
        for _ in range(n_init):
            drawn = random_assignments(1, len(self.problem.shares), self.problem.n_clusters, self.random)[0]
            yield "random", np.maximum(drawn, 1e-12)

    def _relaxation(self) -> Iterator[tuple[str, Array]]:
        """Both roundings of the program over simplices, as in the paper; see `low_rank_simplex_program`."""
        n_columns = 10 if self.n_init == "auto" else int(self.n_init)
        k, shares = self.problem.n_clusters, self.problem.shares
        start = random_assignments(n_columns, len(shares), k, self.random)
        found = low_rank_simplex_program(self._approximation(self.problem).apply, start, shares=shares)
        for source, xi in (("best column", found.best()), ("average", found.average())):
            yield f"relaxation, {source}", (1 - SOFTNESS) * xi + SOFTNESS / k

    def _approximation(self, problem: Problem) -> QuadraticApproximation:
        return QuadraticApproximation.of(self.axes, problem.alpha, problem.shares)

    def _ball(self, problem: Problem) -> Array:
        z = ball_relaxation(self._approximation(problem).apply, len(problem.shares), self.random)
        return self._grouped(z, problem.n_clusters)

    def _grouped(self, z: Array, k: int) -> Array:
        return softened(nearest_groups(z, self.problem.shares, k, self.random), k)

    def _annealed(self, run: Run) -> Run:
        """Under larger penalties first, from softened labels each time: they smooth over small optima."""
        k = self.problem.n_clusters
        for heat in HEATS:
            hot = self.problem.with_penalty(heat * self.problem.alpha)
            run = hot.em(softened(run.labels, k), max_iter=N_HOT, tol=HOT_TOL)
        return self.problem.em(softened(run.labels, k), max_iter=N_COOL)

    def _regrouped(self, source: str, run: Run) -> tuple[str, Run]:
        """k-means along the one or two directions in which the clusters differ most, while that helps."""
        for _ in range(N_ROUNDS):
            better = run
            for n_directions in (1, 2):
                if n_directions < self.problem.n_clusters:
                    again = self._annealed(self.problem.em(self._along(run, n_directions), max_iter=N_SHORT))
                    better = min(better, again, key=lambda r: r.loss)
            if better.loss > run.loss - BETTER:
                return source, run
            run = better
        return source, run

    def _along(self, run: Run, n_directions: int) -> Array:
        """Groups by the leading directions of a classifier's scores."""
        scores = np.einsum("nr,rk->nk", self.problem.coordinates, run.theta[:-1])
        spread = np.einsum("n,nk,nl->kl", self.problem.shares, scores, scores)  # coordinates have mean zero
        _, vectors = np.linalg.eigh(spread)
        along = np.einsum("nk,kd->nd", scores, vectors[:, ::-1][:, :n_directions])
        size = np.sqrt(np.einsum("n,nd,nd->d", self.problem.shares, along, along))
        return self._grouped(along / np.where(size > 0, size, 1.0), self.problem.n_clusters)

    def _record(self, source: str, run: Run) -> None:
        report_start(len(self.ends) + 1, source, run.loss, f"{len(run.path)} iterations", self.verbose)
        self.ends.append((source, run))
