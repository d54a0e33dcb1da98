"""Where a latent support vector machine begins, and its way from there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant.data.chunks import Block
from majorant.engine.loop import Solution, minimize
from majorant.engine.policies import BoundPolicy, GibbsLimit
from majorant.engine.problem import Family, FirstLatent
from majorant.models.latent_svm.family import LatentSVMFamily
from majorant.models.margin import Found, Weights
from majorant.solvers.nearest import row_squares
from majorant.solvers.structural_svm import SOLVERS
from majorant.solvers.structural_svm.bags import BagProblem, BagSet
from majorant.starts.annealed_pooling import annealed_pooling
from majorant.starts.restarts import Start, best_of

NAMED = ("annealed", "first", "center", "random")
"""What `latent_init` may be."""

ANNEALED = "annealed pooling"
ONLY = "the only regions"
"""Sources of starts after which tightest bounds are the default."""


@dataclass(frozen=True)
class LatentSVMSearch:
    """How `LatentSVC` finds its weights; the attributes are its parameters."""

    alpha: float
    latent_init: Any
    bounds: BoundPolicy | None
    solver: str
    n_init: int
    max_iter: int
    tol: float
    verbose: int
    n_jobs: int | None

    def find(
        self, problem: BagProblem, shares: NDArray[np.float64], given: NDArray[np.int32] | None, seed: int
    ) -> Found:
        """Weights of least objective over the starts.

        Parameters
        ----------
        problem : BagProblem
        shares : ndarray of shape (n_samples,)
            Weights of the samples; they sum to one.
        given : ndarray of shape (n_samples,), optional
            Latent values to begin with, where `latent_init` is an array.
        seed : int
        """
        bags = problem.bags
        size = mean_square(bags, shares)
        largest = float(problem.cost.max())
        # The largest score that weights below the objective at zero can give; rounding is a share of it.
        reach = np.sqrt(2 * largest / self.alpha * max(_largest_square(bags), 1e-300))
        eps = float(np.finfo(bags.rows.dtype).eps)
        slack = 16 * eps * (reach + largest)
        family: Family[Weights] = LatentSVMFamily(
            problem, shares, self.alpha, SOLVERS[self.solver], 0.5 * self.tol, seed, slack
        )
        data = bags.chunks(shares, self.n_jobs)
        firsts: list[NDArray[np.int32]] = []
        extra = 0

        def starts() -> Iterator[Start]:
            nonlocal extra
            for source, latent, passes in self._latents(problem, shares, given, seed, size, largest):
                firsts.append(latent)
                extra += passes
                yield Start(source, latent=_by_block(latent), seed=seed + len(firsts) - 1)

        n_passes: list[int] = []

        def descend(start: Start) -> Solution[Weights]:
            policy = self.bounds
            if policy is None and start.source not in (ANNEALED, ONLY):
                policy = GibbsLimit()
            found: Solution[Weights] = minimize(
                family, data, policy, latent=start.latent, tol=self.tol, max_iter=self.max_iter, seed=start.seed
            )
            n_passes.append(found.n_passes)
            return found

        solution, records = best_of(starts(), descend, verbose=self.verbose)
        best = int(np.argmin([r.objective for r in records]))
        return Found(solution, records, firsts[best], sum(n_passes) + extra)

    def _latents(
        self,
        problem: BagProblem,
        shares: NDArray[np.float64],
        given: NDArray[np.int32] | None,
        seed: int,
        size: float,
        unit: float,
    ) -> Iterator[tuple[str, NDArray[np.int32], int]]:
        """Latent values to begin with, what they are called, and the passes that they took."""
        counts = problem.bags.counts
        random = np.random.default_rng(seed)
        drawn = ((random.random(len(counts)) * counts).astype(np.int32) for _ in range(self.n_init))
        if problem.bags.width == 1:  # nothing is latent, and the problem is convex
            yield ONLY, np.zeros(len(counts), dtype=np.int32), 0
            return
        if given is not None:
            yield "given regions", given, 0
        elif self.latent_init == "annealed":
            w, passes = annealed_pooling(
                lambda w, beta, tau: problem.pooled(w, shares, beta, tau),
                problem.dim,
                alpha=self.alpha,
                mean_square=size,
                unit=unit,
            )
            yield ANNEALED, own_regions(problem.bags, w, self.n_jobs), passes + 1
        elif self.latent_init == "first":
            yield "first regions", np.zeros(len(counts), dtype=np.int32), 0
        elif self.latent_init == "center":
            yield "middle regions", (counts // 2).astype(np.int32), 0
        else:
            yield "random regions", next(drawn), 0
        for _ in range(self.n_init - 1):
            yield "random regions", next(drawn), 0


def _by_block(latent: NDArray[np.int32]) -> FirstLatent:
    return lambda block: latent[block.at]


def own_regions(bags: BagSet, w: NDArray[np.float64], n_jobs: int | None) -> NDArray[np.int32]:
    """The best region of every sample for its own class: one pass."""

    def visit(block: Block) -> NDArray[np.int32]:
        where = bags.scores(block.at, w)[1]
        return np.asarray(where[np.arange(len(block)), block.columns[0]])

    return bags.chunks(n_jobs=n_jobs).map_rows(visit, (), np.int32)


def mean_square(bags: BagSet, shares: NDArray[np.float64]) -> float:
    """Mean of the squared length of a region, with its constant column."""
    squares = _squares(bags)
    means = [float(squares[a : a + m].mean()) for a, m in zip(bags.starts.tolist(), bags.counts.tolist(), strict=True)]
    return float(np.sum(shares * np.array(means))) + bags.bias**2


def _largest_square(bags: BagSet) -> float:
    return float(_squares(bags).max(initial=0.0)) + bags.bias**2


def _squares(bags: BagSet) -> NDArray[np.float64]:
    """Squared length of every row; NaN, which is padding, counts as nothing."""
    rows = bags.rows
    if sparse.issparse(rows):
        return np.asarray(row_squares(rows), dtype=np.float64)
    return np.asarray(np.nan_to_num(np.einsum("ij,ij->i", rows, rows, dtype=np.float64)))
