"""The search report: where every start of a fit ended, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from majorant._frames import data_frame
from majorant._numbers import counted

SAME_OPTIMUM = 1e-6

PERTURBATION = "perturbation"
"""Source of a run that started from a perturbed best solution, and so is not an independent start."""

FEW_PERTURBATIONS = 5
"""Number of perturbations after the best was found below which they are little evidence."""


def named(n_descents: int, n_perturbations: int) -> list[tuple[int, str]]:
    """Count starts and perturbations separately, each with its noun, leaving out zero counts."""
    return [(n, noun) for n, noun in ((n_descents - n_perturbations, "start"), (n_perturbations, PERTURBATION)) if n]


def cut_short(max_iter: int) -> str:
    """Say that the solution of a fit is of a run that ended at the limit of steps."""
    steps = counted(max_iter, "step")
    return f"The fit did not converge within {steps}: allow more, as max_iter={10 * max_iter}, or raise tol."


def in_words(n_descents: int, n_perturbations: int) -> str:
    """Write the numbers of starts and of perturbations in words."""
    return " and ".join(counted(n, noun) for n, noun in named(n_descents, n_perturbations))


@dataclass(frozen=True)
class StartRecord:
    """One start and where it ended.

    Attributes
    ----------
    source : str
        Kind of start, in words ("k-means++", "random rows").
    objective : float
        The objective that it reached.
    n_iter : int
        Iterations that it took.
    converged : bool
        Whether it ended within the tolerance (not at the iteration limit).
    """

    source: str
    objective: float
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class Optimum:
    """Starts that ended at the same objective."""

    objective: float
    n_hits: int
    distance: float
    """Distance from the best objective, zero for the best."""
    n_perturbations: int = 0
    """Number of the starts that are perturbations."""


@dataclass(frozen=True)
class SearchReport:
    """Every start of a fit, and statistics of where they ended.

    Two starts reached the same optimum when their objectives differ by at most 1e-6 of the best one's size.

    Attributes
    ----------
    starts : tuple of StartRecord
        In the order in which they were made.
    objective_name : str
        "SSE", "log-likelihood", ...
    sense : {"min", "max"}
        Whether the objective is better when lower or when higher.
    proved_bound : float or None
        A proved bound on the objective of any solution, if one was computed.
    bound_on : str
        What the bound is about, if not every solution of this size.
    note : str
        Further information ("starts were made on a sample of 20000 rows").
    raced : tuple of (int, int)
        Numbers of starts and perturbations that began, if only the best of them were run to convergence.
    why_no_bound : str
        Why there is no bound where one was asked for, as the end of a sentence ("none was found in time.").
    certain : str
        Why no other start can end better, as a sentence, where that needs no search ("The mean is the best centre.").
    is_stopped : bool
        Whether the user stopped the search before its end.
    effort : str
        Effort of the search, for models that have several.
    n_degenerate : int
        Number of further runs that ended at degenerate solutions, if there are regular ones.
    """

    starts: tuple[StartRecord, ...]
    objective_name: str
    sense: Literal["min", "max"] = "min"
    proved_bound: float | None = None
    note: str = ""
    bound_on: str = "solution"
    raced: tuple[int, int] = (0, 0)
    why_no_bound: str = ""
    certain: str = ""
    is_stopped: bool = False
    effort: str = ""
    n_degenerate: int = 0

    @property
    def n_starts(self) -> int:
        """Number of starts."""
        return len(self.starts)

    @property
    def n_perturbations(self) -> int:
        """Number of the starts that are perturbations of the best solution so far."""
        return sum(s.source == PERTURBATION for s in self.starts)

    @property
    def n_perturbations_after_best(self) -> int:
        """Number of perturbations after the best optimum was found, in the searches that found it."""
        n, has_best, was_perturbation = 0, False, False
        for start, is_best in zip(self.starts, (self.distances <= self.tolerance).tolist(), strict=True):
            is_perturbation = start.source == PERTURBATION
            if was_perturbation and not is_perturbation and not any(self.raced):
                has_best = False  # a start after perturbations begins another search, unless it is of the next round
            n += has_best and is_perturbation
            has_best, was_perturbation = has_best or is_best, is_perturbation
        return n

    @property
    def is_chance_find(self) -> bool:
        """Whether a search found its best only once, by a perturbation or with few perturbations after it."""
        if self.n_perturbations == 0:
            return False
        best = self.optima[0]
        return best.n_hits == 1 and (best.n_perturbations == 1 or self.n_perturbations_after_best < FEW_PERTURBATIONS)

    @property
    def is_cut_short(self) -> bool:
        """Whether a search with perturbations ran only its best to convergence."""
        done = [s.converged for s in self.starts]
        return self.n_perturbations > 0 and not all(done) and done[int(self.distances.argmin())]

    @property
    def raced_in_words(self) -> str:
        """Numbers of starts and perturbations that began, in words; empty if all were run to convergence."""
        return in_words(sum(self.raced), self.raced[1])

    @property
    def ends(self) -> tuple[str, str]:
        """Words for distinct final objectives, singular and plural."""
        return ("end", "ends") if self.is_cut_short else ("optimum", "optima")

    @property
    def noun(self) -> str:
        """Word for a start: "run" if there are perturbations, which are not independent starts."""
        return "run" if self.n_perturbations else "start"

    @property
    def is_logarithm(self) -> bool:
        """Whether the objective is a logarithm, whose differences are meaningful but ratios are not."""
        return self.objective_name.startswith("log")

    @property
    def best(self) -> float:
        """The best objective that a start reached."""
        values = [s.objective for s in self.starts]
        return min(values) if self.sense == "min" else max(values)

    @property
    def distances(self) -> NDArray[np.float64]:
        """Distance of each start's objective from the best, at least zero."""
        values = np.array([s.objective for s in self.starts], dtype=np.float64)
        return np.abs(values - self.best)

    @property
    def tolerance(self) -> float:
        """Difference below which objectives are the same optimum; for logarithms near zero an absolute one."""
        return SAME_OPTIMUM * max(abs(self.best), 1.0 if self.is_logarithm else 0.0)

    @property
    def optima(self) -> tuple[Optimum, ...]:
        """Distinct optima, best first."""
        found: list[list[int]] = []
        distances = self.distances
        for i in np.argsort(distances, kind="stable"):
            if found and distances[i] - distances[found[-1][0]] <= self.tolerance:
                found[-1].append(int(i))
            else:
                found.append([int(i)])
        return tuple(
            Optimum(
                self.starts[m[0]].objective,
                len(m),
                float(distances[m[0]]),
                sum(self.starts[i].source == PERTURBATION for i in m),
            )
            for m in found
        )

    @property
    def can_be_longer(self) -> bool:
        """Whether the model can search longer than it did."""
        return self.effort not in ("", "best")

    @property
    def n_distinct(self) -> int:
        """Number of distinct optima."""
        return len(self.optima)

    @property
    def n_hits(self) -> int:
        """Number of starts that reached the best optimum."""
        return self.optima[0].n_hits

    @property
    def gap_to_second(self) -> float | None:
        """Distance of the second-best optimum; None if every start reached the best."""
        optima = self.optima
        return optima[1].distance if len(optima) > 1 else None

    def with_bound(self, bound: float, bound_on: str = "solution") -> SearchReport:
        """Return the report with this bound, unless it has a better one of the same kind."""
        if self.proved_bound is not None and self.bound_on == bound_on:
            bound = (max if self.sense == "min" else min)(bound, self.proved_bound)
        return replace(self, proved_bound=bound, bound_on=bound_on)

    def scaled(self, unit: float) -> SearchReport:
        """Return the report with all objectives multiplied by `unit`."""
        bound = None if self.proved_bound is None else self.proved_bound * unit
        starts = tuple(replace(s, objective=s.objective * unit) for s in self.starts)
        return replace(self, starts=starts, proved_bound=bound)

    def __repr__(self) -> str:
        gap = "" if self.gap_to_second is None else f", second {self.gap_to_second:.6g} worse"
        distinct = counted(self.n_distinct, *(f"distinct {end}" for end in self.ends))
        return (
            f"SearchReport({in_words(self.n_starts, self.n_perturbations)}, {distinct}, "
            f"best {self.objective_name} {self.best:.8g} found {counted(self.n_hits, 'time')}{gap})"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>"

    def to_frame(self) -> Any:
        """Return a data frame with one row per start (pandas if installed, otherwise polars)."""
        rows = [asdict(s) for s in self.starts]
        columns: dict[str, Sequence[Any]] = {name: [r[name] for r in rows] for name in rows[0]}
        return data_frame({**columns, "distance": self.distances})

    def to_state(self) -> dict[str, Any]:
        """Return the report as plain values, for saving."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> SearchReport:
        """Build a report from the values of `to_state`."""
        starts = tuple(
            StartRecord(str(s["source"]), float(s["objective"]), int(s["n_iter"]), bool(s["converged"]))
            for s in state["starts"]
        )
        if state["sense"] not in ("min", "max"):
            raise ValueError(f"sense must be 'min' or 'max'; got {state['sense']!r}")
        bound = state["proved_bound"]
        bound = None if bound is None else float(bound)
        on = str(state.get("bound_on", "solution"))  # older files have none
        n_starts, n_perturbations = state.get("raced", (0, 0))
        return cls(
            starts,
            str(state["objective_name"]),
            state["sense"],
            bound,
            str(state["note"]),
            on,
            (int(n_starts), int(n_perturbations)),
            str(state.get("why_no_bound", "")),
            str(state.get("certain", "")),
            bool(state.get("is_stopped", False)),
            str(state.get("effort", "")),
            int(state.get("n_degenerate", 0)),
        )
