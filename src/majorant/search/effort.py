"""The effort of a search: one scale for every model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

Effort = Literal["fast", "default", "best"]
EFFORTS: tuple[Effort, ...] = ("fast", "default", "best")


@dataclass(frozen=True)
class Plan:
    """The settings of a search.

    A round compares starts, or perturbations of the best solutions, by successive halving: all take a few steps of EM,
    the best take more, and the best of these are run to convergence. Rounds continue until the best solution is found
    repeatedly.

    Attributes
    ----------
    n_starts, n_perturbations : int
        Numbers of starts and perturbations of a round.
    race : tuple of (int, int)
        Number of steps of EM before runs are compared, and number of runs that continue.
    perturbation_race : tuple of (int, int)
        The same for rounds of perturbations; empty to use `race`.
    least_rounds, most_rounds : int
        Smallest number of rounds after the last improvement, and largest number of rounds.
    least_barren : int
        Smallest number of rounds after the last improvement while all solutions are degenerate.
    sure_rounds, sure_share, sure_starts : int, float, (int, float)
        Number of rounds after which the search ends if the first one found the best, and at least such a share of all
        runs, such a number of starts and such a share of the finished ones reached it.
    least_hits : int
        Number of times that the best must have been reached.
    agreed_share : float
        Share of all runs at the best from which on one round without improvement is enough.
    starts_every : int
        Number of rounds between two with new starts instead of perturbations; 0: only the first has starts.
    n_kept : int
        Number of distinct optima that perturbations start from.
    n_beyond : int
        Number of perturbations without the rule against degenerate solutions, to see whether it excludes a better one.
    tells_all : bool
        Whether every start is recorded, in the order in which they were made; for searches with few starts.
    """

    n_starts: int = 24
    n_perturbations: int = 24
    race: tuple[tuple[int, int], ...] = ((6, 8), (20, 4))
    perturbation_race: tuple[tuple[int, int], ...] = ()
    least_rounds: int = 3
    most_rounds: int = 12
    least_barren: int = 60
    sure_rounds: int = 1
    sure_share: float = 0.75
    sure_starts: tuple[int, float] = (1, 0.0)
    least_hits: int = 3
    agreed_share: float = np.inf
    starts_every: int = 2
    n_kept: int = 4
    n_beyond: int = 24
    tells_all: bool = False

    def at(self, effort: Effort) -> Plan:
        """Return the plan at an effort: "fast" is a single round of starts, "best" has five times the patience."""
        if effort == "fast":
            return replace(self, most_rounds=1)
        if effort == "best":
            return replace(self, least_rounds=5 * self.least_rounds, most_rounds=5 * self.most_rounds)
        return self
