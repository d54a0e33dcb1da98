"""How is the answer found? Rounds of a race of mixed starts, until the best regular optimum keeps coming back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from majorant._progress import end_of_starts, report_start
from majorant.search.record import SAME_OPTIMUM, StartRecord

MOST_ROUNDS, LEAST_ROUNDS = 12, 4
MOST_STARTS, STARTS_ON_A_SAMPLE = 64, 32
"""Starts of a round at most, and where they race on a sample of the rows."""


def starts_a_round(n_components: int, is_sampled: bool) -> int:
    """Starts of a round of a race between mixtures of so many components."""
    return STARTS_ON_A_SAMPLE if is_sampled else min(4 * n_components * (n_components + 1), MOST_STARTS)


def kinds_of_starts(size: int) -> tuple[int, int, int]:
    """How many of a pool are trimmed greedily, elemental, and pooled: no single kind finds every optimum."""
    n_trimmed, n_elemental = round(0.55 * size), round(0.35 * size)
    return n_trimmed, n_elemental, size - n_trimmed - n_elemental


class Mixture(Protocol):
    """Parameters, as the race compares them."""

    @property
    def weights(self) -> NDArray[np.float64]: ...

    @property
    def sigma_ratio(self) -> float:
        """Largest over smallest standard deviation of the noise."""
        ...

    def distance(self, other: Self) -> float:
        """How far two mixtures are apart, in units of their noise."""
        ...

    def features(self) -> NDArray[np.float64]:
        """Numbers that agree, whatever the order of the components, where two mixtures are the same."""
        ...


Theta = TypeVar("Theta", bound=Mixture)


@dataclass(frozen=True)
class Run(Generic[Theta]):
    """Where EM from one start has come to.

    Attributes
    ----------
    source : str
    start, theta : parameters
        Where it began and where it is.
    objective : float
        Minus the log-likelihood, in the units of the fit.
    n_iter : int
    converged : bool
    degenerate : str
        Why the solution does not count; empty where it does.
    met : tuple of (source, n_iter)
        Runs that came to the same place and were not continued.
    is_whole : bool
        Whether every step was made on all rows.
    path : tuple of float
        Objectives after the steps on all rows, where they are kept.
    """

    source: str
    start: Theta
    theta: Theta
    objective: float = np.inf
    n_iter: int = 0
    converged: bool = False
    degenerate: str = ""
    met: tuple[tuple[str, int], ...] = ()
    is_whole: bool = True
    path: tuple[float, ...] = ()

    @property
    def is_regular(self) -> bool:
        return not self.degenerate


def entrants(starts: Sequence[tuple[str, Theta]]) -> list[Run[Theta]]:
    """Runs that have not begun."""
    return [Run(source, theta, theta) for source, theta in starts]


class Contest(Protocol[Theta]):
    """What a race needs to know of a problem: where to start, how to run, what counts.

    Attributes
    ----------
    tol : float
        What is left to gain in log-likelihood, per unit of weight, at convergence.
    max_iter : int
    n_starts : int
        Of a round.
    constant : float
        By what minus the log-likelihood in the units of y is larger than an objective.
    whole : rows
    is_sampled : bool
        Whether starts race on samples of the rows.
    note : str
        What a reader must know of the samples.
    """

    tol: float
    max_iter: int

    @property
    def n_starts(self) -> int: ...

    @property
    def constant(self) -> float: ...

    @property
    def whole(self) -> Any: ...

    @property
    def is_sampled(self) -> bool: ...

    @property
    def note(self) -> str: ...

    @property
    def has_ratio(self) -> bool:
        """Whether a largest ratio of variances may leave a maximum out."""
        ...

    def sample(self, draws: np.random.Generator) -> Any:
        """Rows for the starts of one round."""
        ...

    def pool(self, rows: Any, is_first: bool, draws: np.random.Generator) -> list[tuple[str, Theta]]:
        """Starts of every kind."""
        ...

    def replaced(
        self, rows: Any, bases: Sequence[Theta], size: int, draws: np.random.Generator
    ) -> list[tuple[str, Theta]]:
        """Starts that keep all but one component of one of the best optima so far."""
        ...

    def run(
        self, rows: Any, runs: list[Run[Theta]], max_iter: int, tol: float, *, free: bool = False
    ) -> list[Run[Theta]]:
        """EM on some rows, on from where the runs are; `free` of the largest ratio of variances."""
        ...

    def held_back(self, run: Run[Theta]) -> str:
        """Why a solution within the rule does not count: it would go on beyond it; empty where it would not."""
        ...

    def is_admissible(self, run: Run[Theta]) -> bool:
        """Whether a solution that does not count is a maximum nevertheless, if other rules were asked for."""
        ...


@dataclass(frozen=True)
class Found(Generic[Theta]):
    """What a race found, in the units of the fit.

    Attributes
    ----------
    best : Run
    records : tuple of StartRecord
    optima : tuple of Run
        The distinct regular ones, best first; degenerate ones where there are no others.
    excluded : Run or None
        A better solution that the regularity rule leaves out.
    note : str
    """

    best: Run[Theta]
    records: tuple[StartRecord, ...]
    optima: tuple[Run[Theta], ...]
    excluded: Run[Theta] | None = None
    note: str = ""


@dataclass
class Race(Generic[Theta]):
    """Rounds of races of one contest.

    Attributes
    ----------
    contest : Contest
    verbose : int
    """

    contest: Contest[Theta]
    verbose: int = 0
    _finals: list[Run[Theta]] = field(default_factory=list)
    _degenerate: list[Run[Theta]] = field(default_factory=list)
    _bank: list[Run[Theta]] = field(default_factory=list)
    _free: list[Run[Theta]] = field(default_factory=list)

    def find(self, draws: np.random.Generator) -> Found[Theta]:
        """Race until the best regular optimum has come back often enough."""
        contest = self.contest
        best, improved, n_started = np.inf, 0, 0
        for number in range(MOST_ROUNDS):
            rows = contest.sample(draws) if contest.is_sampled else contest.whole
            if number % 2 == 0 or not self._bank:
                starts = contest.pool(rows, number == 0, draws)
            else:
                starts = contest.replaced(rows, [run.theta for run in self._bank], contest.n_starts, draws)
            n_started += len(starts)
            self._keep(self._race(rows, entrants(starts)))
            if number == 0 and self._bank and contest.has_ratio:
                self._left_out(rows, draws)
            if self._bank and self._bank[0].objective < best - self._same(best):
                best, improved = self._bank[0].objective, number
            if self._is_enough(number, improved):
                break
        end_of_starts(self.verbose)
        return self._found(n_started)

    def _same(self, objective: float) -> float:
        return same_optimum(objective, self.contest.constant)

    def _race(self, rows: Any, runs: list[Run[Theta]]) -> list[Run[Theta]]:
        """Successive halving: a few steps for all, more for the best, to the end for a quarter."""
        contest, size = self.contest, len(runs)
        runs = contest.run(rows, runs, 15, 1e-7)
        runs = contest.run(rows, _leading(_merged(runs), size // 3), 40, 1e-8)
        runs = _leading(_merged(runs), size // 8)
        if not contest.is_sampled:
            return self._finished(rows, runs)
        runs = contest.run(rows, runs, contest.max_iter, 1e-7)
        return contest.run(contest.whole, self._distinct(_leading(runs, len(runs)), 3), contest.max_iter, contest.tol)

    def _finished(self, rows: Any, runs: list[Run[Theta]]) -> list[Run[Theta]]:
        """Runs at their end, but for those that fall behind: a run gains less in future than it did of late."""
        contest = self.contest
        ends = contest.run(rows, runs, 100, contest.tol)
        best = min((end.objective for end in ends if end.is_regular), default=np.inf)
        unfinished = [
            end
            for run, end in zip(runs, ends, strict=True)
            if not end.converged and end.objective - (run.objective - end.objective) < best
        ]
        finished = contest.run(rows, unfinished, contest.max_iter, contest.tol)
        return [end for end in ends if end.converged] + finished

    def _distinct(self, runs: list[Run[Theta]], most: int) -> list[Run[Theta]]:
        return distinct(runs, most, self.contest.constant)

    def _keep(self, ends: list[Run[Theta]]) -> None:
        for run in ends:
            run = replace(run, degenerate=run.degenerate or self.contest.held_back(run))
            (self._finals if run.is_regular else self._degenerate).append(run)
            result = "tolerance reached" if run.converged else "iteration limit reached"
            shown = -run.objective - self.contest.constant
            report_start(
                len(self._finals) + len(self._degenerate),
                run.source,
                shown,
                result if run.is_regular else f"{result}, left out as degenerate",
                self.verbose,
            )
        self._bank = self._distinct(sorted(self._finals, key=lambda run: run.objective), 4)

    def _is_enough(self, number: int, improved: int) -> bool:
        if not self._bank:
            return False
        best = self._bank[0].objective
        n_finals = sum(1 + len(run.met) for run in self._finals)
        hits = sum(1 + len(run.met) for run in self._finals if run.objective <= best + self._same(best))
        if number >= 1 and improved == 0 and hits >= 0.75 * n_finals:
            return True
        return number >= LEAST_ROUNDS - 1 and hits >= 3 and number - improved >= LEAST_ROUNDS - 1

    def _found(self, n_started: int) -> Found[Theta]:
        is_regular = bool(self._bank)
        candidates = (
            self._bank if is_regular else self._distinct(sorted(self._degenerate, key=lambda r: r.objective), 4)
        )
        finals = self._finals if is_regular else self._degenerate
        records = tuple(
            StartRecord(source, run.objective, n_iter, run.converged)
            for run in finals
            for source, n_iter in ((run.source, run.n_iter), *run.met)
        )
        note = f"{n_started} starts raced; those that led went on to the end, or until they met another one"
        note += self.contest.note + "."
        best = candidates[0]
        return Found(best, records, tuple(candidates), self._excluded(best), note)

    def _left_out(self, rows: Any, draws: np.random.Generator) -> None:
        """What components replaced by narrow ones reach where no ratio of variances is imposed: there may be a
        maximum."""
        contest, bases = self.contest, [run.theta for run in self._bank]
        size = min(16 * len(bases[0].weights), MOST_STARTS)
        runs = contest.run(rows, entrants(contest.replaced(rows, bases, size, draws)), 15, 1e-7, free=True)
        runs = contest.run(rows, self._admissible(runs)[:8], 40, 1e-8, free=True)
        ends = contest.run(rows, self._distinct(self._admissible(runs), 4), contest.max_iter, contest.tol, free=True)
        self._free += self._admissible(ends)

    def _admissible(self, runs: list[Run[Theta]]) -> list[Run[Theta]]:
        """Runs that the rule leaves out, best first, but for those where the likelihood has no maximum."""
        kept = [run for run in runs if not run.is_regular and self.contest.is_admissible(run)]
        return sorted(kept, key=lambda run: run.objective)

    def _excluded(self, best: Run[Theta]) -> Run[Theta] | None:
        """The best solution that the rule leaves out, if it is better than the best one.

        Those that the bound on the variances held back are let go first: their maximum, if any, lies beyond it.
        """
        contest = self.contest
        held = self._distinct(sorted(self._degenerate, key=lambda run: run.objective), 2)
        ends = contest.run(contest.whole, [*self._free, *held], contest.max_iter, contest.tol, free=True)
        better = (end for end in self._admissible(ends) if end.objective < best.objective - self._same(best.objective))
        return next(better, None)


def of_all_rows(found: Found[Theta], share: float, n_sampled: int, n_all: int, noun: str) -> Found[Theta]:
    """What a race found on a sample, in the weight of all rows, of which the sample has a share."""

    def told(run: Run[Theta]) -> Run[Theta]:
        return replace(run, objective=run.objective / share, is_whole=False, path=())

    note = found.note
    if n_sampled < n_all:
        note += (
            f" All of it on a sample of {n_sampled} of {n_all} {noun}, told in the weight of all; the optima went on "
        )
        note += "on all."
    records = tuple(replace(record, objective=record.objective / share) for record in found.records)
    excluded = None if found.excluded is None else told(found.excluded)
    optima = tuple(map(told, found.optima))
    return Found(optima[0], records, optima, excluded, note)


def is_held_by_ratio(contest: Contest[Theta], run: Run[Theta], max_sigma_ratio: float) -> bool:
    """Whether a solution near the largest ratio of noises would go beyond it if it could."""
    if not contest.has_ratio or run.theta.sigma_ratio < 0.95 * max_sigma_ratio:
        return False
    end = contest.run(contest.whole, [run], 200, 0.0, free=True)[0]  # the way out may be flat: no tolerance
    return end.theta.sigma_ratio > max_sigma_ratio


def same_optimum(objective: float, constant: float) -> float:
    """Objectives closer than this are the same optimum."""
    shown = abs(objective + constant) if np.isfinite(objective) else 1.0
    return SAME_OPTIMUM * max(shown, 1.0)


def followed(found: Found[Theta], ends: Sequence[Run[Theta]], constant: float) -> Found[Theta]:
    """What was found, its optima followed to `ends`: one that was none, on a plateau, may leave for where it does not
    count. Starts that met it there did so too."""
    left = [(run, end) for run, end in zip(found.optima, ends, strict=True) if run.is_regular and not end.is_regular]
    order = sorted(ends, key=lambda end: (not end.is_regular, end.objective))
    best, excluded = order[0], found.excluded
    if excluded is not None and excluded.objective >= best.objective - same_optimum(best.objective, constant):
        excluded = None
    records = []
    for record in found.records:
        near = (
            end for run, end in left if abs(record.objective - run.objective) <= same_optimum(run.objective, constant)
        )
        end = next(near, None)
        if end is None:
            records.append(record)
        elif not best.is_regular:
            records.append(replace(record, objective=end.objective))
    optima = distinct([end for end in order if end.is_regular == best.is_regular], 4, constant)
    return replace(found, best=best, records=tuple(records), optima=tuple(optima), excluded=excluded)


def distinct(runs: list[Run[Theta]], most: int, constant: float) -> list[Run[Theta]]:
    """The first of each optimum, in the order given; `constant` is that of a contest."""
    kept: list[Run[Theta]] = []
    for run in runs:
        if len(kept) < most and all(
            abs(run.objective - other.objective) > same_optimum(run.objective, constant)
            or run.theta.distance(other.theta) > 0.1
            for other in kept
        ):
            kept.append(run)
    return kept


def _leading(runs: list[Run[Theta]], size: int) -> list[Run[Theta]]:
    """The best runs, regular ones first."""
    order = sorted(range(len(runs)), key=lambda i: (not runs[i].is_regular, runs[i].objective, i))
    return [runs[i] for i in order[: max(size, 4)]]


def _merged(runs: list[Run[Theta]]) -> list[Run[Theta]]:
    """Runs that have come to the same place become one, the best of them: its end is theirs."""
    order = sorted(range(len(runs)), key=lambda i: runs[i].objective)
    shapes = [run.theta.features() for run in runs]
    kept: list[int] = []
    met: dict[int, list[tuple[str, int]]] = {}
    for i in order:
        near = [
            j
            for j in kept[-4:]
            if runs[i].objective - runs[j].objective <= 1e-3 and np.abs(shapes[i] - shapes[j]).max() <= 1e-2
        ]
        if near:
            met[near[0]] += [(runs[i].source, runs[i].n_iter), *runs[i].met]
        else:
            kept.append(i)
            met[i] = list(runs[i].met)
    return [replace(runs[i], met=tuple(met[i])) for i in kept]
