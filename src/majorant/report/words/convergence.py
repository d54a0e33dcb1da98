"""Sentences about the history of a fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant.engine.trace import Trace
from majorant.report.words.grammar import capital, counted, in_prose

SLACK = 1e-9


@dataclass(frozen=True)
class History:
    """The iterations of a fit that have an objective.

    Attributes
    ----------
    iterations : array of int
        Counted from 1.
    objective, bound : array
        The bound is NaN where an iteration has none.
    exploring : array of bool
        Where a bound policy drew the bound.
    name : str
        Name of the objective.
    sense : {"min", "max"}
        Whether the objective is minimised or maximised; a trace holds its negative where it is maximised.
    """

    iterations: NDArray[np.int64]
    objective: NDArray[np.float64]
    bound: NDArray[np.float64]
    exploring: NDArray[np.bool_]
    name: str = "objective"
    sense: str = "min"

    @classmethod
    def of(cls, trace: Trace, name: str = "objective", sense: str = "min") -> History:
        objective = trace["objective"]
        kept = np.isfinite(objective)
        return cls(
            np.flatnonzero(kept) + 1,
            objective[kept],
            trace["bound"][kept],
            np.nan_to_num(trace["exploring"][kept]) == 1,
            name,
            sense,
        )

    @property
    def subject(self) -> str:
        """The word for the objective: "objective", or its name where it is maximised."""
        return "objective" if self.sense == "min" else self.name

    @property
    def worsened(self) -> str:
        return "rose" if self.sense == "min" else "fell"

    @property
    def beyond(self) -> str:
        """Words for the position of all other values: above the lowest or below the highest."""
        return "above the lowest" if self.sense == "min" else "below the highest"

    def shown(self, value: float) -> float:
        """Return a value of the trace with the sign of the objective."""
        return value if self.sense == "min" else -value

    @property
    def explored(self) -> bool:
        return bool(self.exploring.any())

    @property
    def has_bound(self) -> bool:
        """Whether any bound differs from the objective."""
        known = np.isfinite(self.bound)
        return bool(np.any(self.bound[known] - self.objective[known] > SLACK * _scale(self.objective)))

    @property
    def objective_never_rose(self) -> bool:
        return _never_rises(self.objective)

    @property
    def bound_never_rose(self) -> bool:
        return _never_rises(self.bound[np.isfinite(self.bound)])

    @property
    def n_rises(self) -> int:
        """Number of iterations that ended with a worse objective."""
        return int(np.sum(np.diff(self.objective) > SLACK * _scale(self.objective)))


def headline(history: History, n_iter: int, converged: bool) -> str:
    """State how the fit converged, in one sentence."""
    iterations = counted(n_iter, "iteration")
    if not converged:
        return f"The fit was stopped after {iterations}, before it converged."
    if len(history.objective) < 2:
        return f"The fit converged after {iterations}."
    if history.objective_never_rose:
        return f"The fit converged after {iterations}; the {history.subject} never {history.worsened}."
    rises = {1: "once", 2: "twice"}.get(history.n_rises, f"{in_prose(history.n_rises)} times")
    if history.explored and history.has_bound and history.bound_never_rose:
        beside = "above" if history.sense == "min" else "below"
        rises += f", the bound {beside} it never"
    else:
        rises += " on the way"
    return f"The fit converged after {iterations}; the {history.subject} {history.worsened} {rises}."


def notes(history: History, converged: bool, *, drawn: bool) -> list[str]:
    """Explain the figure, and what deserves attention."""
    texts = []
    if drawn and history.has_bound:
        texts.append(
            "Each iteration minimises a bound <b>(open, dashed)</b> that lies above the objective <b>(filled)</b>. "
            "Both are shown by how far they are above the lowest objective of the fit; "
            "what is at the lowest is off the scale."
        )
    elif drawn:
        texts.append(
            f"The {history.subject} after each iteration, by how far it is {history.beyond}; "
            "what is there is off the scale."
        )
    else:
        texts.append("There are too few iterations to draw.")
    if history.explored:
        n = int(history.exploring.sum())
        texts.append(
            f"In {counted(n, 'iteration')} the fit explored: it minimised bounds that lie above the objective, "
            "so that it could leave the local optimum nearest to its start. The band is the gap between the two."
        )
    if not converged:
        texts.append("<b>Note:</b> the limit of iterations ended the fit. Raise max_iter to let it converge.")
    return texts


def figure_label(history: History) -> str:
    """State what the figure shows, as text."""
    what = capital(history.subject) + (" and bound" if history.has_bound else "")
    return f"{what} at each of {len(history.objective)} iterations, {history.beyond} {history.subject}, on a log scale"


def _scale(values: NDArray[np.float64]) -> float:
    return float(np.abs(values).max()) if len(values) else 0.0


def _never_rises(values: NDArray[np.float64]) -> bool:
    return bool(np.all(np.diff(values) <= SLACK * _scale(values)))
