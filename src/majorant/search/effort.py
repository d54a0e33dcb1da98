"""The effort of a search: one scale for every model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Effort = Literal["fast", "default", "best"]
EFFORTS: tuple[Effort, ...] = ("fast", "default", "best")


@dataclass(frozen=True)
class Plan:
    """The numbers of a search.

    A round races starts, or perturbations of the best solutions, by successive halving: all take a few steps of EM, the
    best take more, and the best of these are followed to their end. Rounds go on until the best solution keeps coming
    back.

    Attributes
    ----------
    n_starts, n_perturbations : int
        Of a round.
    race : tuple of (int, int)
        Steps of EM, and how many runs go on after them.
    perturbation_race : tuple of (int, int)
        The same for rounds of perturbations; empty: as for starts.
    least_rounds, most_rounds : int
        Rounds after the last gain at least, and all rounds at most.
    least_barren : int
        Rounds after the last gain at least while no solution counts.
    sure_rounds : int
        Rounds after which it is enough that nearly all runs end at the best.
    least_hits : int
        How often the best must have been reached.
    starts_every : int
        Rounds between two that begin with new starts instead of perturbations; 0: only the first does.
    n_kept : int
        Distinct optima that perturbations begin from.
    n_beyond : int
        Perturbations that look for a maximum beyond a rule that may leave one out.
    tells_all : bool
        Whether each start is followed or dropped on its own and told, in the order in which they were made: for few
        starts.
    """

    n_starts: int = 24
    n_perturbations: int = 24
    race: tuple[tuple[int, int], ...] = ((6, 8), (20, 4))
    perturbation_race: tuple[tuple[int, int], ...] = ()
    least_rounds: int = 3
    most_rounds: int = 12
    least_barren: int = 60
    sure_rounds: int = 1
    least_hits: int = 3
    starts_every: int = 2
    n_kept: int = 4
    n_beyond: int = 24
    tells_all: bool = False

    def at(self, effort: Effort) -> Plan:
        """Return the plan for less, or for more: a single round of starts, or five times the patience."""
        if effort == "fast":
            return replace(self, most_rounds=1)
        if effort == "best":
            return replace(self, least_rounds=5 * self.least_rounds, most_rounds=5 * self.most_rounds)
        return self
