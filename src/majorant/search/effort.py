"""The effort of a search: one scale for every model."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

BULK = 2e6
"""Rows times parameters above which a search has fewer runs: a step of EM takes about as many multiplications."""
FEWEST = 8
"""Starts, and perturbations of a round, that there are at least."""
Heats = tuple[tuple[int, int], ...]
Effort = Literal["fast", "default", "best"]
EFFORTS: tuple[Effort, ...] = ("fast", "default", "best")


@dataclass(frozen=True)
class Plan:
    """The settings of a search.

    A round compares starts, or perturbations of the best solutions, by successive halving: all take a few steps of EM,
    the best take more, and the best of these are run to convergence. Rounds continue until the best solution is found
    repeatedly.
    """

    n_starts: int = 24  # of a round
    n_made: int = 0  # starts that are made, if more: where a model tells cheaply, the most likely ones are run
    n_perturbations: int = 24  # of a round
    race: Heats = ((6, 8), (20, 4))  # number of steps of EM before runs are compared, and number of runs that continue
    perturbation_race: Heats = ()  # the same for rounds of perturbations; empty to use `race`
    least_rounds: int = 3  # smallest number of rounds after the last improvement
    most_rounds: int = 12
    least_barren: int = 60  # smallest number of rounds after the last improvement while all solutions are degenerate
    # whether a race drops no regular run while all solutions are degenerate: the likeliest may be about to collapse
    keeps_barren: bool = False
    # number of rounds after which the search ends if the first one found the best, and at least such a share of all
    # runs, such a number of starts and such a share of the finished ones reached it
    sure_rounds: int = 1
    sure_share: float = 0.75
    sure_starts: tuple[int, float] = (1, 0.0)
    least_hits: int = 3  # number of times that the best must have been reached
    # share of all runs, or number of them, at the best from which on so many rounds without improvement are enough
    agreed_share: float = np.inf
    agreed_hits: float = np.inf
    agreed_rounds: int = 1
    starts_every: int = 2  # rounds between two with new starts instead of perturbations; 0: only the first has starts
    n_kept: int = 4  # number of distinct optima that perturbations start from
    # perturbations without the rule against degenerate solutions: does it exclude a better one? 0: not asked
    n_beyond: int = 24
    tells_all: bool = False  # whether every start is recorded, in the order of making; for searches with few starts

    def within(self, cost: float) -> Plan:
        """Return the plan where a step of EM costs rows times parameters.

        Above `BULK` starts and perturbations become fewer in proportion, and once they are few the rounds.
        """
        if cost <= BULK:
            return self
        share = BULK / cost
        n_starts, n_perturbations = (
            max(min(n, FEWEST), math.ceil(share * n)) for n in (self.n_starts, self.n_perturbations)
        )
        least = int(self.least_rounds * min(1.0, share * self.n_perturbations / n_perturbations))

        def thinned(heats: Heats, part: float) -> Heats:
            return tuple((n_steps, math.ceil(n_kept * part)) for n_steps, n_kept in heats)

        return replace(
            self,
            n_starts=n_starts,
            n_made=self.n_starts,
            n_perturbations=n_perturbations,
            race=thinned(self.race, n_starts / self.n_starts),
            perturbation_race=thinned(self.perturbation_race, n_perturbations / self.n_perturbations),
            least_rounds=least,
            most_rounds=max(least + 1, math.ceil(share * self.most_rounds)),
            n_kept=self.n_kept if least else 1,
        )

    def of_starts(self, n_init: str | int) -> Plan:
        """Return the plan of so many starts, each run to convergence, without perturbations; "auto" changes nothing."""
        if isinstance(n_init, str):
            return self
        one_round = replace(self, least_rounds=1, most_rounds=1, n_beyond=0, keeps_barren=False)
        return replace(one_round, n_starts=n_init, n_made=0, race=(), tells_all=True)

    def at(self, effort: Effort) -> Plan:
        """Return the plan at an effort: "fast" is a single round of starts, "best" has five times the patience."""
        if effort == "fast":
            return replace(self, most_rounds=1)
        if effort == "best":
            patient = replace(self, least_rounds=5 * max(self.least_rounds, 1), most_rounds=5 * self.most_rounds)
            return replace(patient, agreed_hits=5 * self.agreed_hits, agreed_rounds=5 * self.agreed_rounds)
        return self
