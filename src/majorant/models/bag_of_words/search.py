"""The way of a reconfigurable bag of words from its starts to its weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.engine.loop import Solution, minimize
from majorant.engine.policies import BoundPolicy, GibbsLimit
from majorant.models.bag_of_words.starts import ANNEALED, ONLY, RANDOM, FirstParts, first_parts, nearest_means
from majorant.models.margin import Found, MarginFamily, Weights, vanishes
from majorant.solvers.structural_svm import SOLVERS
from majorant.solvers.structural_svm.grids import GridProblem
from majorant.starts.restarts import Start, best_of

LOST = 1e3
"""Rounding of a score, in costs of a mistake, beyond which no bound can be told from its objective."""


@dataclass(frozen=True)
class BagOfWordsSearch:
    """How `ReconfigurableBagOfWords` finds its weights; the attributes are its parameters."""

    alpha: float
    latent_init: Any
    coherence: float
    bounds: BoundPolicy | None
    n_init: int
    max_iter: int
    tol: float
    verbose: int
    n_jobs: int | None

    def find(
        self,
        problem: GridProblem,
        shares: NDArray[np.float64],
        given: NDArray[np.int32] | None,
        shape: tuple[int, ...],
        seed: int,
    ) -> Found:
        """Weights of least objective over the starts.

        Parameters
        ----------
        problem : GridProblem
        shares : ndarray of shape (n_images,)
            Weights of the images; they sum to one.
        given : ndarray of shape (n_images, n_regions), optional
            Parts to begin with, where `latent_init` is an array.
        shape : tuple of int
            (rows, columns) of the grid.
        seed : int
        """
        grids = problem.samples
        family = MarginFamily(problem, shares, self.alpha, SOLVERS["dcd"], 0.5 * self.tol, seed, self._slack(problem))
        data = grids.units(shares, self.n_jobs)
        starts: list[FirstParts] = []

        def begun() -> Iterator[Start]:
            for first in first_parts(
                problem,
                shares,
                self.latent_init,
                given,
                shape=shape,
                coherence=self.coherence,
                alpha=self.alpha,
                n_init=self.n_init,
                seed=seed,
                n_jobs=self.n_jobs,
            ):
                starts.append(first)
                yield Start(first.source, seed=seed + len(starts) - 1)

        n_passes = 0

        def run(parts: NDArray[np.int32], policy: BoundPolicy | None, seed: int) -> Solution[Weights]:
            nonlocal n_passes
            flat = parts.ravel()
            found: Solution[Weights] = minimize(
                family,
                data,
                policy,
                latent=lambda block: flat[block.at],
                tol=self.tol,
                max_iter=self.max_iter,
                seed=seed,
            )
            n_passes += found.n_passes
            return found

        def descend(start: Start) -> Solution[Weights]:
            first = starts[-1]
            policy = self.bounds
            if policy is None and first.source not in (ANNEALED, ONLY):
                policy = GibbsLimit()
            found = run(first.parts, policy, start.seed)
            if first.source == RANDOM and vanishes(self.alpha, found.theta.w, found.objective):
                starts[-1] = replace(first, parts=nearest_means(grids, shares, first.parts))
                found = run(starts[-1].parts, policy, start.seed)
            return found

        solution, records = best_of(begun(), descend, verbose=self.verbose)
        best = int(np.argmin([r.objective for r in records]))
        return Found(solution, records, starts[best].parts, n_passes + sum(first.n_passes for first in starts))

    def _slack(self, problem: GridProblem) -> float:
        """Rounding error of the objective."""
        rows, largest, reach = problem.samples.rows, float(problem.cost.max()), problem.reach(self.alpha)
        if reach * np.finfo(np.float64).eps > LOST * largest:
            raise ValueError(
                f"X holds {np.abs(rows).max():.0e}: beside alpha={self.alpha:g} the rounding of a score outweighs "
                "what a mistake costs. Scale X to about 1"
            )
        return float(16 * np.finfo(rows.dtype).eps * (reach + largest))
