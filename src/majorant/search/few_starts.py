"""A contest for any problem of the descent that has a few starts of its own kinds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from majorant._validation import levels_to_user
from majorant.engine.checkpoint import Entry
from majorant.engine.descent import Problem, descend
from majorant.search.contestants import Found, NamedStart, Run, Theta
from majorant.search.effort import Plan
from majorant.search.race import Race
from majorant.search.record import cut_short


@dataclass
class FewStarts(Generic[Theta]):
    """A contest with one round of starts, all of them recorded; see `race.Contest`.

    A model overrides `starts` and, if it has its own method to run the best to convergence, `finished`.
    """

    whole: Problem[Theta]  # the problem on all rows, which a race passes on as its rows
    part: Problem[Theta]  # the problem on the rows on which starts are compared; `whole` itself if these are all
    tol: float
    max_iter: int
    # number of steps before starts are compared, and number of starts that continue; empty if all do
    race: tuple[tuple[int, int], ...] = ()
    note: str = ""  # a sentence for the user about the rows on which starts are compared
    constant: float = 0.0
    has_rule: bool = False

    @property
    def plan(self) -> Plan:
        """The plan: one round of starts."""
        return Plan(race=self.race, most_rounds=1, tells_all=True)

    @property
    def is_sampled(self) -> bool:
        return self.part is not self.whole

    def sample(self, draws: np.random.Generator) -> Problem[Theta]:
        """Return the problem on which starts are compared, drawn beforehand."""
        return self.part

    def found(self, draws: np.random.Generator, verbose: int) -> Found[Theta]:
        """Run the race; warn if the best run did not converge."""
        found = Race(self, verbose).find(draws)
        if not found.best.converged:
            warnings.warn(
                cut_short(self.max_iter),
                ConvergenceWarning,
                stacklevel=levels_to_user(),
            )
        return found

    def starts(self, rows: Any, is_first: bool, draws: np.random.Generator) -> list[NamedStart[Theta]]:
        """Make the starts; a model overrides this."""
        raise NotImplementedError(f"{type(self).__name__} must say where it begins")

    def perturbed(
        self, rows: Any, bases: Sequence[Theta], size: int, draws: np.random.Generator
    ) -> list[NamedStart[Theta]]:
        """Return no starts: there is no second round."""
        return []

    def run(
        self, rows: Any, runs: list[Run[Theta]], max_iter: int, tol: float, *, free: bool = False
    ) -> list[Run[Theta]]:
        return [self.stepped(rows, run, max_iter, tol) for run in runs]

    def finished(self, rows: Any, runs: list[Run[Theta]]) -> list[Run[Theta]]:
        """Run the leading runs to convergence on all rows."""
        return self.run(self.whole, runs, self.max_iter, self.tol)

    def stepped(self, on: Problem[Theta], run: Run[Theta], max_iter: int, tol: float) -> Run[Theta]:
        """Continue a run for some steps."""
        entry = self.entry(on, run.theta, max_iter, tol)
        ends = descend(on, run.theta, tol=tol, max_iter=max_iter, entry=entry)
        return replace(
            run,
            theta=ends.theta,
            objective=float(ends.objective[0]),
            n_iter=run.n_iter + int(ends.n_iter[0]),
            converged=bool(ends.converged[0]),
            path=(*run.path, *ends.paths[0]),
        )

    def entry(self, on: Problem[Theta], theta: Theta, max_iter: int, tol: float) -> Entry | None:
        """Return where a checkpoint stores the progress of a run; None unless a model overrides it."""
        return None

    def held_back(self, run: Run[Theta]) -> str:
        """Return "": every solution counts."""
        return ""

    def is_admissible(self, run: Run[Theta]) -> bool:
        """Return False: there is no rule that excludes solutions."""
        return False

    def features(self, thetas: Sequence[Theta]) -> NDArray[np.float64]:
        """Return constants, so that solutions of equal objective are the same."""
        return np.zeros((len(thetas), 1))

    def shown(self, objective: float) -> float:
        """Return the objective unchanged."""
        return objective
