"""Search for the highest regular maximum: a race of mixed starts, then perturbations of the best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant.models.gaussian_mixture.coordinates import Coordinates
from majorant.models.gaussian_mixture.descent import predicted
from majorant.models.gaussian_mixture.perturbations import perturbed
from majorant.models.gaussian_mixture.problem import Candidate, Degenerate, Ledger, Problem
from majorant.models.gaussian_mixture.regularity import Fault
from majorant.models.gaussian_mixture.starts import KINDS, OWN, Labels, partitions
from majorant.search.record import PERTURBATION
from majorant.solvers.gaussian import Array, Mixture, log_likelihood, moments
from majorant.solvers.gaussian_em import EmRun

N_STARTS = 24
RACE = ((5, 8), (15, 3), (30, 2))
"""Steps of EM, and how many runs go on after them."""

N_PERTURBATIONS = 48
PERTURBATION_RACE = ((3, 16), (8, 5), (15, 3))
MOST_ROUNDS = 30
ROUGH, SOON = 1e-2, 100
"""Gain in log-likelihood that does not count while solutions are compared, and steps to come that near."""

SAME_LABELS = 0.99


@dataclass
class Search:
    """The search of a problem; what it finds is in the ledger."""

    problem: Problem
    ledger: Ledger

    def find(self, random: np.random.Generator) -> None:
        """Search in the coordinates of the total covariance, and, where a floor relative to it would decide, in those
        of the pooled within-component covariance."""
        self._explore(self.problem.own, random, None)
        if self.problem.covariance_floor is None and self.problem.n_components > 1:
            released = self._released()
            if released is not None:
                self._explore(released.coordinates, random, released)

    def _explore(self, coordinates: Coordinates, random: np.random.Generator, known: Candidate | None) -> None:
        """A race of starts and perturbations out of the best solution, in some coordinates."""
        problem, u = self.problem, coordinates.of(self.problem.points)
        k = problem.n_components
        if k == 1:
            self._climb_from_all(u, coordinates)
            return
        # Where the coordinates of the type are among the other two, they are none of their own.
        has_own = problem.covariance_type == "spherical" or known is not None
        kinds = KINDS if has_own else tuple(kind for kind in KINDS if kind is not OWN)
        named = list(partitions(problem.views(u), k, N_STARTS, random, kinds))
        self.ledger.n_raced += len(named)
        here = known
        for i, run in self._race(u, coordinates, [[one_hot(labels, k) for _, labels in named]], RACE):
            if here is not None and self._is_behind(run, here, 0.0):
                continue
            candidate = self._candidate(u, coordinates, run, here)
            self.ledger.offer(candidate, named[i][0])
            if here is None or candidate.rank < here.rank:
                here = candidate
        assert here is not None
        if problem.is_hopeless:  # there is no answer to look for
            return
        self._perturb(u, coordinates, here, random)

    def _climb_from_all(self, u: Array, coordinates: Coordinates) -> None:
        """One component has all rows."""
        problem = self.problem
        run = problem.run_em(u, coordinates, [np.ones((len(u), 1))], 1)[0]
        self.ledger.offer(problem.climbed(u, coordinates, run.mixture), "all rows")
        self.ledger.n_raced += 1

    def _is_behind(self, run: EmRun, here: Candidate, margin: float) -> bool:
        """Whether a run cannot be better than a solution: degenerate where that is regular, or of lower likelihood."""
        is_regular, was_regular = (fault is Fault.NONE for fault in (self.problem.fault(run), here.regularity.fault))
        if is_regular != was_regular:
            return was_regular
        return predicted(run) < here.end.log_likelihood + margin

    def _perturb(self, u: Array, coordinates: Coordinates, here: Candidate, random: np.random.Generator) -> None:
        k, n = self.problem.n_components, self.problem.total
        patience = max(2, min(k, 6)) if n >= 5 * here.end.mixture.n_parameters else 2 * k
        idle = 0
        # Solutions on the floor are no answers: it is only worth some rounds to look for others beside them.
        most = patience if here.regularity.fault is Fault.FLOORED else MOST_ROUNDS
        for _ in range(most):
            self.ledger.n_perturbed += N_PERTURBATIONS
            starts = perturbed(here.end.mixture, u, self.problem.weights, N_PERTURBATIONS, random)
            seen = [self._labels(u, here.end.mixture)]
            moved = False
            for _, run in self._race(u, coordinates, starts, PERTURBATION_RACE):
                if self._is_behind(run, here, ROUGH):
                    continue
                labels = self._labels(u, run.mixture)
                lower = run.log_likelihood < here.end.log_likelihood
                if lower and any(_same(labels, other, k) for other in seen):
                    continue
                seen.append(labels)
                candidate = self._candidate(u, coordinates, run, here)
                self.ledger.offer(candidate, PERTURBATION)
                if candidate.rank < (here.rank[0], here.rank[1] - ROUGH):
                    here, moved = candidate, True
            idle = 0 if moved else idle + 1
            if idle >= patience:
                return

    def _race(
        self, u: Array, coordinates: Coordinates, starts: Iterable[Iterable[Array]], rounds: Sequence[tuple[int, int]]
    ) -> list[tuple[int, EmRun]]:
        """The winners of batches of starts, best first, with their number among the starts."""
        problem = self.problem

        def run(entered: Sequence[Array] | Sequence[Mixture], n_steps: int) -> list[EmRun]:
            return problem.run_em(u, coordinates, entered, n_steps)

        def ranked(runs: Sequence[tuple[int, EmRun]]) -> list[tuple[int, EmRun]]:
            entries = []
            for i, end in runs:
                fault = problem.fault(end)
                if fault:
                    self.ledger.saw(Degenerate(end.mixture, coordinates, problem.in_points(coordinates, end), fault))
                entries.append((fault > 0, -predicted(end), i, end))
            entries.sort(key=lambda entry: entry[:3])
            return [(i, end) for *_, i, end in entries]

        (n_steps, n_kept), *later = rounds
        going = ranked(list(enumerate(end for batch in starts for end in run(list(batch), n_steps))))[:n_kept]
        for n_steps, n_kept in later:
            ends = run([end.mixture for _, end in going], n_steps)
            going = ranked([(i, end) for (i, _), end in zip(going, ends, strict=True)])[:n_kept]
        return going

    def _candidate(self, u: Array, coordinates: Coordinates, run: EmRun, here: Candidate | None) -> Candidate:
        """A run followed until it is seen to be worse than the best so far, or to its end."""
        rough = self._followed(u, coordinates, run.mixture, rough=True)
        if self.problem.is_hopeless or (here is not None and rough.rank > here.rank and rough.end.converged):
            return rough
        return self._followed(u, coordinates, rough.end.mixture, rough=False)

    def _followed(self, u: Array, coordinates: Coordinates, start: Mixture, *, rough: bool) -> Candidate:
        limits = (ROUGH / self.problem.total, SOON) if rough else ()
        return self.problem.climbed(u, coordinates, start, *limits)

    def _released(self) -> Candidate | None:
        """A solution on the floor that is regular once the floor is relative to the variance within components.

        Groups that lie far apart are narrow beside the total covariance without being degenerate.
        """
        seen, best = self.ledger.best_degenerate, self.ledger.winner
        if seen is None or seen.fault is not Fault.FLOORED:
            return None
        if best.regularity.fault is Fault.NONE and seen.log_likelihood <= best.log_likelihood:
            return None
        u = seen.coordinates.of(self.problem.points)
        within = self._within(u, seen.mixture)
        variances = within if within.ndim < 2 else np.linalg.eigvalsh(within)
        rounding = 0.0 if within.ndim < 2 else 1e-13 * variances.max()
        if not variances.min() > max(self.problem.noise, rounding):
            return None
        coordinates = seen.coordinates.rescaled(within)
        start = _in_scale(seen.mixture, within)
        free = self._followed(coordinates.of(self.problem.points), coordinates, start, rough=self.problem.is_hopeless)
        return free if free.regularity.fault is not Fault.FLOORED and free.rank < best.rank else None

    def _within(self, u: Array, mixture: Mixture) -> Array:
        """The pooled within-component covariance, from the rows and not from the mixture's covariances."""
        weights = self.problem.weights
        _, q = log_likelihood(mixture, u, weights)
        mass = np.einsum("i,ik->k", weights, q)
        means = np.einsum("i,ik,ij->kj", weights, q, u) / np.maximum(mass, 1e-300)[:, None]
        kind, d = mixture.covariance, u.shape[1]
        second = moments(u, weights, q, means, kind.pooled_type.name)[:, 1 + d :]
        return kind.pooled(second, float(mass.sum()), d)

    def _labels(self, u: Array, mixture: Mixture) -> Labels:
        return np.asarray(mixture.energies(u).argmin(axis=1))


def _in_scale(mixture: Mixture, covariance: Array) -> Mixture:
    """A mixture in coordinates in which a covariance is the identity."""
    if covariance.ndim < 2:
        return mixture.mapped(1.0 / np.sqrt(covariance))
    values, vectors = np.linalg.eigh(covariance)
    return mixture.mapped(vectors / np.sqrt(values))


def one_hot(labels: NDArray[np.integer], k: int) -> Array:
    """Responsibilities of a hard partition."""
    return np.asarray(labels[:, None] == np.arange(k), dtype=np.float64)


def _same(a: Labels, b: Labels, k: int) -> bool:
    """Whether two partitions are nearly the same, whatever their parts are called."""
    table = np.bincount(a * k + b, minlength=k * k).reshape(k, k)
    enough = SAME_LABELS * len(a)
    return bool(table.max(axis=0).sum() >= enough and table.max(axis=1).sum() >= enough)
