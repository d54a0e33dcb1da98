"""Fits from many starts, and the record of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from majorant._progress import end_of_starts, is_stopped, kept_when_stopped, report_start
from majorant.engine.loop import Solution
from majorant.engine.problem import FirstLatent
from majorant.search.record import StartRecord


@dataclass(frozen=True)
class Start:
    """The start of a fit: parameters, or latent values."""

    source: str  # kind of start, in words
    theta: Any = None  # parameters
    latent: FirstLatent | None = None  # latent values, as a function of a block
    seed: int = 0  # seed of random draws during the fit


class Best(NamedTuple):
    """The best of many starts, and the records of all."""

    solution: Solution[Any]
    records: tuple[StartRecord, ...]


def best_of(
    starts: Iterable[Start], fit: Callable[[Start], Solution[Any]], *, verbose: int = 0, unit: float = 1.0
) -> Best:
    """Fit from every start in turn; of equal objectives the first is kept.

    Objectives are shown and logged times `unit`, to convert the units of the fit to those of the data.
    """
    best: Solution[Any] | None = None
    records: list[StartRecord] = []
    with kept_when_stopped(lambda: best is not None):
        for start in starts:
            solution = fit(start)
            records.append(StartRecord(start.source, solution.objective, solution.n_iter, solution.converged))
            if best is None or solution.objective < best.objective:
                best = solution
            shown = solution.objective * unit
            report_start(len(records), start.source, shown, solution.result, verbose, best.objective * unit)
            if is_stopped():
                break
    end_of_starts(verbose)
    if best is None:
        raise ValueError("at least one start is needed")
    return Best(best, tuple(records))
