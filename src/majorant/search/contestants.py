"""Interfaces of a race: its runs, the contest that steps and compares them, and its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from majorant.registry import value_class
from majorant.search.effort import Plan
from majorant.search.record import StartRecord

Theta = TypeVar("Theta")

STEADIEST = 0.95
"""Largest rate of decrease of gains, where it is estimated from few steps."""


@value_class
@dataclass(frozen=True)
class Run(Generic[Theta]):
    """The state of one start."""

    source: str  # kind of start, in words
    # initial and current parameters: batches of one run
    start: Theta
    theta: Theta
    objective: float = np.inf  # minus the log-likelihood, in the units of the fit
    n_iter: int = 0
    converged: bool = False
    degenerate: str = ""  # why the solution is degenerate; empty if it is not
    met: tuple[tuple[str, int], ...] = ()  # runs that reached the same solution and were not continued
    is_whole: bool = True  # whether every step was made on all rows
    path: tuple[float, ...] = ()  # objectives after the steps on all rows, if kept
    number: int = 0  # number of the start in its round

    @property
    def is_regular(self) -> bool:
        return not self.degenerate

    @property
    def rank(self) -> tuple[bool, float]:
        """Sort key, smaller is better: regular solutions first, then by objective."""
        return not self.is_regular, self.objective

    @property
    def heading(self) -> float:
        """Predicted limit of the objective if gains keep decreasing at their rate; without a path the objective."""
        if len(self.path) < 3:
            return self.objective
        before, last = self.path[-3] - self.path[-2], self.path[-2] - self.path[-1]
        rate = min(last / before, STEADIEST) if last > 0 and before > 0 else 0.0
        return self.objective - last * rate / (1 - rate)


NamedStart = tuple[str, Theta]


def entrants(starts: Sequence[NamedStart[Theta]]) -> list[Run[Theta]]:
    """Make runs from starts."""
    return [Run(source, theta, theta, number=number) for number, (source, theta) in enumerate(starts)]


class Contest(Protocol[Theta]):
    """The problem of a race: starts, how runs are stepped, and which solutions are admissible.

    Attributes
    ----------
    tol : float
        Remaining gain of log-likelihood, per unit of weight, at which a run has converged.
    constant : float
        Difference between minus the log-likelihood in the units of the data and an objective.
    whole : rows
        All rows in memory.
    is_sampled : bool
        Whether starts are compared on samples of the rows.
    note : str
        Information for the user about the samples.
    has_rule : bool
        Whether a rule may exclude maxima of the likelihood as degenerate.
    """

    tol: float
    max_iter: int

    @property
    def plan(self) -> Plan: ...

    @property
    def constant(self) -> float: ...

    @property
    def whole(self) -> Any: ...

    @property
    def is_sampled(self) -> bool: ...

    @property
    def note(self) -> str: ...

    @property
    def has_rule(self) -> bool: ...

    def sample(self, draws: np.random.Generator) -> Any:
        """Draw the rows for the starts of one round."""
        ...

    def starts(self, rows: Any, is_first: bool, draws: np.random.Generator) -> list[NamedStart[Theta]]:
        """Make starts of every kind."""
        ...

    def perturbed(
        self, rows: Any, bases: Sequence[Theta], size: int, draws: np.random.Generator
    ) -> list[NamedStart[Theta]]:
        """Make perturbations of some of the best solutions so far, best first."""
        ...

    def run(
        self, rows: Any, runs: list[Run[Theta]], max_iter: int, tol: float, *, free: bool = False
    ) -> list[Run[Theta]]:
        """Run EM on some rows from the current parameters; `free` ignores the rule against degenerate solutions."""
        ...

    def held_back(self, run: Run[Theta]) -> str:
        """Return why a solution is degenerate, such as that it would leave the admissible range; "" if it counts."""
        ...

    def is_admissible(self, run: Run[Theta]) -> bool:
        """Return whether a degenerate solution would be a regular maximum under other settings of the rule."""
        ...

    def features(self, thetas: Sequence[Theta]) -> NDArray[np.float64]:
        """Return a row of numbers of order one for each solution, which agree if two solutions are the same.

        They do not depend on the order of components.
        """
        ...

    def shown(self, objective: float) -> float:
        """Convert an objective to that shown to the user."""
        ...


@runtime_checkable
class Finishing(Protocol):
    """A contest with its own method to run the best starts to convergence."""

    def finished(self, rows: Any, runs: list[Run[Any]]) -> list[Run[Any]]: ...


@runtime_checkable
class Leaving(Protocol):
    """A contest that may go on as another one, in which more solutions count."""

    def leaves(self, best: Run[Any]) -> bool:
        """Return whether it does, given the best solution so far."""
        ...


@dataclass(frozen=True)
class Found(Generic[Theta]):
    """The result of a race, in the units of the fit."""

    best: Run[Theta]
    records: tuple[StartRecord, ...]
    optima: tuple[Run[Theta], ...]  # distinct regular optima, best first; degenerate ones if there are no others
    excluded: Run[Theta] | None = None  # a better solution that the rule excludes as degenerate
    note: str = ""
    n_degenerate: int = 0  # number of runs that ended at degenerate solutions, if there are regular ones
    raced: tuple[int, int] = (0, 0)  # numbers of starts and perturbations that began

    @property
    def told(self) -> str:
        """The note, and how many runs were left out as degenerate."""
        n_runs = self.n_degenerate + len(self.records)
        left_out = f"{self.n_degenerate} of {n_runs} runs ended at degenerate solutions and are excluded."
        return f"{self.note} {left_out}".strip() if self.n_degenerate else self.note


def found_of(runs: Sequence[Run[Theta]]) -> Found[Theta]:
    """Return the result of runs without a race: the best, and the ends of others as regular as it."""
    best = min(runs, key=lambda run: run.rank)
    kept = [run for run in runs if run.is_regular == best.is_regular]
    records = tuple(StartRecord(run.source, run.objective, run.n_iter, run.converged) for run in kept)
    return Found(best, records, (best,), n_degenerate=len(runs) - len(kept))


def best_of(found: Sequence[Found[Theta]]) -> Found[Theta]:
    """Return the best of several searches, with the records of all."""
    best = min(found, key=lambda one: one.best.rank)
    if len(found) == 1:
        return best
    records: list[StartRecord] = []
    n_degenerate = 0
    for one in found:
        is_like = one.best.is_regular == best.best.is_regular
        records += one.records if is_like else ()
        n_degenerate += one.n_degenerate + (0 if is_like else len(one.records))
    n_starts, n_perturbed = (sum(n) for n in zip(*(one.raced for one in found), strict=True))
    note = raced_note(n_starts, n_perturbed)
    return replace(best, records=tuple(records), note=note, n_degenerate=n_degenerate, raced=(n_starts, n_perturbed))


def raced_note(n_starts: int, n_perturbed: int, where: str = "") -> str:
    """State how many runs were compared, and what became of them."""
    made = f"{n_starts} starts" + (f" and {n_perturbed} perturbations" if n_perturbed else "")
    return f"{made} were compared; the leading ones were run to convergence, or until they joined another one{where}."
