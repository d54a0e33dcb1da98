"""Where a latent support vector machine begins, and its way from there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.engine.loop import Solution, minimize
from majorant.engine.policies import BoundPolicy, GibbsLimit
from majorant.engine.problem import Family, FirstLatent
from majorant.models.margin import Found, MarginFamily, Weights
from majorant.solvers.structural_svm import SOLVERS
from majorant.solvers.structural_svm.bags import BagProblem
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
        bags = problem.samples
        size = bags.mean_square(shares)
        largest = float(problem.cost.max())
        slack = 16 * float(np.finfo(bags.rows.dtype).eps) * (problem.reach(self.alpha) + largest)
        family: Family[Weights] = MarginFamily(
            problem, shares, self.alpha, SOLVERS[self.solver], 0.5 * self.tol, seed, slack
        )
        data = bags.units(shares, self.n_jobs)
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
        counts = problem.samples.counts
        random = np.random.default_rng(seed)
        drawn = ((random.random(len(counts)) * counts).astype(np.int32) for _ in range(self.n_init))
        if problem.samples.n_states == 1:  # nothing is latent, and the problem is convex
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
            yield ANNEALED, problem.own_latent(w), passes + 1
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
