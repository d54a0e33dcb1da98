"""Words on the series of a hidden Markov model: how often the state changes, and what comes next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from majorant.report.numbers import fixed, integer
from majorant.summary import counted


def headline(path: NDArray[np.intp], begins: NDArray[np.bool_]) -> str:
    """Return how often the state changes along the most probable path."""
    changes = int(np.count_nonzero((path[1:] != path[:-1]) & ~begins[1:]))
    if changes == 0:
        return "The state never changes within a sequence."
    return f"The state changes {counted(changes, 'time')} in {counted(len(path), 'row')}."


def notes(column: str, shown: int, n_rows: int, durations: NDArray[np.float64], ahead: int) -> list[str]:
    """Return what is drawn, how long states last, and what the band is."""
    which = "" if shown == n_rows else f" Shown are the last {integer(shown)} of {integer(n_rows)} rows."
    lasts = ", ".join(f"{fixed(float(d), 1)} in state {k + 1}" for k, d in enumerate(durations) if np.isfinite(d))
    by_state = "each in the colour and shape of its state on the most probable path"
    said = [f"The rows of <b>{column}</b> in their order, {by_state}.{which}"]
    if lasts:
        said.append(f"By the transitions a visit lasts so many rows on average: {lasts}.")
    if ahead:
        said.append(f"The band holds 90 % of the forecast for the next {counted(ahead, 'row')}; the line is its mean.")
    return said
