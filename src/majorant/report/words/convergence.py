"""What the history of a fit allows to be said."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant.engine.trace import Trace
from majorant.report.words.grammar import counted, in_prose

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
    """

    iterations: NDArray[np.int64]
    objective: NDArray[np.float64]
    bound: NDArray[np.float64]
    exploring: NDArray[np.bool_]

    @classmethod
    def of(cls, trace: Trace) -> History:
        objective = trace["objective"]
        kept = np.isfinite(objective)
        return cls(
            np.flatnonzero(kept) + 1,
            objective[kept],
            trace["bound"][kept],
            np.nan_to_num(trace["exploring"][kept]) == 1,
        )

    @property
    def explored(self) -> bool:
        return bool(self.exploring.any())

    @property
    def has_bound(self) -> bool:
        return bool(np.isfinite(self.bound).any())

    @property
    def objective_never_rose(self) -> bool:
        return _never_rises(self.objective)

    @property
    def bound_never_rose(self) -> bool:
        return _never_rises(self.bound[np.isfinite(self.bound)])

    @property
    def n_rises(self) -> int:
        """Iterations that ended with a worse objective."""
        return int(np.sum(np.diff(self.objective) > SLACK * _scale(self.objective)))


def headline(history: History, n_iter: int, converged: bool) -> str:
    """One sentence on how the fit came to rest."""
    iterations = counted(n_iter, "iteration")
    if not converged:
        return f"The fit was stopped after {iterations}, before it came to rest."
    if len(history.objective) < 2:
        return f"The fit came to rest after {iterations}."
    if history.objective_never_rose:
        return f"The fit came to rest after {iterations}; the objective never rose."
    rises = {1: "once", 2: "twice"}.get(history.n_rises, f"{in_prose(history.n_rises)} times")
    if history.explored and history.has_bound and history.bound_never_rose:
        return f"The fit came to rest after {iterations}; the objective rose {rises}, the bound above it never."
    return f"The fit came to rest after {iterations}; the objective rose {rises} on the way."


def notes(history: History, converged: bool, *, drawn: bool) -> list[str]:
    """How to read the figure and what to look out for."""
    texts = []
    if drawn and history.has_bound:
        texts.append(
            "Each iteration minimises a bound <b>(open, dashed)</b> that lies above the objective <b>(filled)</b>. "
            "Both are shown by how far they are above the lowest objective of the fit; "
            "what is at the lowest is off the scale."
        )
    elif drawn:
        texts.append(
            "The objective after each iteration, by how far it is above the lowest; "
            "what is at the lowest is off the scale."
        )
    else:
        texts.append("There are too few iterations to draw.")
    if history.explored:
        n = int(history.exploring.sum())
        texts.append(
            f"In {counted(n, 'iteration')} the fit explored: it took a bound that does not touch the objective, "
            "so that it could leave the optimum nearest to its start. The band is the gap between the two."
        )
    if not converged:
        texts.append("<b>Look out:</b> the limit of iterations ended the fit. Raise max_iter to let it come to rest.")
    return texts


def figure_label(history: History) -> str:
    """What the figure shows, as text."""
    what = "Objective and bound" if history.has_bound else "Objective"
    return f"{what} at each of {len(history.objective)} iterations, above the lowest objective, on a log scale"


def _scale(values: NDArray[np.float64]) -> float:
    return float(np.abs(values).max()) if len(values) else 0.0


def _never_rises(values: NDArray[np.float64]) -> bool:
    return bool(np.all(np.diff(values) <= SLACK * _scale(values)))
