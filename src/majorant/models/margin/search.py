"""Descents of a latent structural SVM from several starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Chunks
from majorant.engine.loop import Solution, minimize
from majorant.engine.policies import BoundPolicy, GibbsLimit
from majorant.engine.problem import Family
from majorant.search.record import StartRecord
from majorant.solvers.structural_svm.planes import NativeProblem
from majorant.starts.annealed_pooling import annealed_pooling
from majorant.starts.restarts import Start, best_of

Problem = TypeVar("Problem", bound=NativeProblem[Any])

STUCK = 1e-9
"""Weights are zero if the penalty is below this share of the objective."""


def vanishes(alpha: float, w: NDArray[np.float64], objective: float) -> bool:
    """Return whether weights are zero; a latent SVM cannot leave them, as all latent values then have equal scores."""
    return alpha / 2 * float(np.sum(w**2)) <= STUCK * objective


@dataclass(frozen=True)
class First:
    """Latent values with which a fit begins."""

    source: str  # kind of start, for the search report
    latent: NDArray[np.int32]  # (n_samples, ...)
    n_passes: int = 0  # passes over the samples that the start took
    is_trusted: bool = False  # whether the tightest bounds are the default after this start, in place of random ones
    # called with the solution; returns latent values for a second fit that replaces it, or None to keep it
    otherwise: Callable[[Solution[Any]], NDArray[np.int32] | None] | None = None


@dataclass(frozen=True)
class StartRequest(Generic[Problem]):
    """Starts that a fit asks for."""

    problem: Problem
    shares: NDArray[np.float64]  # (n_samples,): weights of the samples; they sum to one
    alpha: float  # strength of the penalty
    init: str | None  # kind of the starts; None where latent values are given
    given: NDArray[np.int32] | None  # (n_samples, ...): latent values of the first start
    n_init: int  # number of starts
    seed: int

    def annealed(
        self,
        *,
        mean_square: float = 0.0,
        n_units: int = 1,
        nudge: NDArray[np.float64] | None = None,
        sizes: NDArray[np.float64] | float = 1.0,
    ) -> First:
        """Make the annealed start, at temperatures for scores that are sums over so many units."""
        w, n_passes = annealed_pooling(
            lambda w, beta, tau: self.problem.pooled(w, self.shares, beta * n_units, tau),
            self.problem.dim,
            alpha=self.alpha,
            mean_square=mean_square,
            unit=float(self.problem.cost.max()),
            nudge=nudge,
            sizes=sizes,
        )
        return First("annealed pooling", self.problem.own_latent(w), n_passes + 1, is_trusted=True)


@dataclass(frozen=True)
class Found:
    """Result of a search."""

    solution: Solution[Any]
    records: tuple[StartRecord, ...]
    family: Any  # the family of the best start
    first: NDArray[np.int32]  # (n_samples, ...): latent values with which the best start began
    n_passes: int  # passes over the samples of all starts and fits
    is_unsolved: bool  # whether the last bound was not minimised to the gap that was asked for


@dataclass
class Descents:
    """Fits from several starts, of which the best is kept."""

    data: Chunks  # latent values as units
    bounds: BoundPolicy | None  # by default the tightest bounds after a trusted start, `GibbsLimit` after others
    tol: float
    max_iter: int
    verbose: int
    n_polish: int = 3  # candidates of the exploration that are descended from

    def best(self, starts: Iterable[tuple[Family[Any], First]], seeds: Iterable[int]) -> Found:
        """Fit from every start in turn, each with a seed of its own."""
        begun: list[tuple[Family[Any], First]] = []
        n_passes = 0

        def told() -> Iterator[Start]:
            nonlocal n_passes
            for (family, first), seed in zip(starts, seeds, strict=False):
                begun.append((family, first))
                n_passes += first.n_passes
                yield Start(first.source, seed=seed)

        def descend(start: Start) -> Solution[Any]:
            nonlocal n_passes
            family, first = begun[-1]
            solution = self._descend(family, first, start.seed)
            n_passes += solution.n_passes
            again = None if first.otherwise is None else first.otherwise(solution)
            if again is not None:
                first = replace(first, latent=again)
                begun[-1] = family, first
                solution = self._descend(family, first, start.seed)
                n_passes += solution.n_passes
            return solution

        solution, records = best_of(told(), descend, verbose=self.verbose)
        family, first = begun[int(np.argmin([r.objective for r in records]))]
        return Found(solution, records, family, first.latent, n_passes, not solution.theta.is_solved)

    def _descend(self, family: Family[Any], first: First, seed: int) -> Solution[Any]:
        policy = GibbsLimit() if self.bounds is None and not first.is_trusted else self.bounds
        latent = first.latent.ravel()
        solution = minimize(
            family,
            self.data,
            policy,
            latent=lambda block: latent[block.at],
            tol=self.tol,
            max_iter=self.max_iter,
            n_polish=self.n_polish,
            seed=seed,
        )
        if solution.theta.is_solved:
            return solution
        gap = f"duality gap {solution.theta.gap:.2g} at an objective of {solution.objective:.2g}"
        return replace(solution, converged=False, result=f"its bound was not solved ({gap})")
