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
    """Latent values with which a fit begins.

    Attributes
    ----------
    source : str
        Kind of start, for the search report.
    latent : ndarray of shape (n_samples, ...) of int32
    n_passes : int, default=0
        Passes over the samples that the start took.
    is_trusted : bool, default=False
        Whether the tightest bounds are the default after this start, in place of random ones.
    otherwise : callable, optional
        Called with the solution; returns latent values for a second fit that replaces it, or None to keep it.
    """

    source: str
    latent: NDArray[np.int32]
    n_passes: int = 0
    is_trusted: bool = False
    otherwise: Callable[[Solution[Any]], NDArray[np.int32] | None] | None = None


@dataclass(frozen=True)
class StartRequest(Generic[Problem]):
    """Starts that a fit asks for.

    Attributes
    ----------
    shares : ndarray of shape (n_samples,)
        Weights of the samples; they sum to one.
    alpha : float
        Strength of the penalty.
    init : str, optional
        Kind of the starts; None where latent values are given.
    given : ndarray of shape (n_samples, ...) of int32, optional
        Latent values of the first start.
    n_init : int
        Number of starts.
    """

    problem: Problem
    shares: NDArray[np.float64]
    alpha: float
    init: str | None
    given: NDArray[np.int32] | None
    n_init: int
    seed: int

    def annealed(
        self, *, mean_square: float = 0.0, n_units: int = 1, nudge: NDArray[np.float64] | None = None
    ) -> First:
        """Make the annealed start, at temperatures for scores that are sums over so many units."""
        w, n_passes = annealed_pooling(
            lambda w, beta, tau: self.problem.pooled(w, self.shares, beta * n_units, tau),
            self.problem.dim,
            alpha=self.alpha,
            mean_square=mean_square,
            unit=float(self.problem.cost.max()),
            nudge=nudge,
        )
        return First("annealed pooling", self.problem.own_latent(w), n_passes + 1, is_trusted=True)


@dataclass(frozen=True)
class Found:
    """Result of a search.

    Attributes
    ----------
    records : tuple of StartRecord
    family : Family
        The family of the best start.
    first : ndarray of shape (n_samples, ...)
        Latent values with which the best start began.
    n_passes : int
        Passes over the samples of all starts and fits.
    is_unsolved : bool
        Whether the last bound was not minimised to the gap that was asked for.
    """

    solution: Solution[Any]
    records: tuple[StartRecord, ...]
    family: Any
    first: NDArray[np.int32]
    n_passes: int
    is_unsolved: bool


@dataclass
class Descents:
    """Fits from several starts, of which the best is kept.

    Parameters
    ----------
    data : Chunks
        Latent values as units.
    bounds : BoundPolicy, optional
        By default the tightest bounds after a trusted start, `GibbsLimit` after others.
    n_polish : int, default=3
        Candidates of the exploration that are descended from.
    """

    data: Chunks
    bounds: BoundPolicy | None
    tol: float
    max_iter: int
    verbose: int
    n_polish: int = 3

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
