"""Words on the series of a hidden Markov model: its states, how long they last, and what comes next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from majorant.report.measures.series import Series
from majorant.report.numbers import fixed, integer
from majorant.report.words.grammar import listed
from majorant.summary import counted

CLOSED = 1e-6


def headline(path: NDArray[np.int64], begins: NDArray[np.bool_]) -> str:
    """Return how often the state changes along the most probable path."""
    changes = int(np.count_nonzero((path[1:] != path[:-1]) & ~begins[1:]))
    if changes == 0:
        return "The state never changes within a sequence."
    return f"The state changes {counted(changes, 'time')} in {counted(len(path), 'row')}."


def notes(column: str, shown: int, n_rows: int, n_sequences: int, ahead: int, has_lanes: bool) -> list[str]:
    """Return what is drawn, and what the band is."""
    which = "" if shown == n_rows else f" Shown are the last {integer(shown)} of {integer(n_rows)} rows."
    path = "on the most probable path"
    by_state = (
        f"; the lanes below tell the state of each {path}"
        if has_lanes
        else (f", each in the colour and shape of its state {path}")
    )
    said = [f"The rows of <b>{column}</b> in their order{by_state}.{which}"]
    if n_sequences > 1:
        said.append(f"The {integer(n_sequences)} sequences are one after the other, with a line between them.")
    if ahead:
        after = "the next" if n_sequences == 1 else "the last sequence\u2019s next"
        said.append(f"The band holds 90 % of the forecast for {after} {counted(ahead, 'row')}; the line is its mean.")
        said.append("The table below gives the most probable state of the rows to come.")
    return said


def transitions_headline(series: Series) -> str:
    """Return which state lasts longest, or which is never left."""
    by_transitions = series.durations[0]
    absorbing = np.flatnonzero(series.model.transitions_.diagonal() >= 1 - CLOSED)
    if len(absorbing):
        return f"State {absorbing[0] + 1} is never left."
    longest = int(by_transitions.argmax())
    return f"State {longest + 1} lasts longest: {fixed(float(by_transitions[longest]), 1)} rows on average."


def transitions_notes(series: Series) -> list[str]:
    """Return what the squares and columns are, and which steps never happen."""
    steps = series.model.transitions_
    texts = [
        "<b>Each row</b> gives the probabilities of the next state; the area of a square is its probability.",
    ]
    if hasattr(series.model, "gating_center_"):
        texts.append("Covariates change them: these are where all covariates are at their mean.")
    texts += [
        "<b>Lasts</b> is the mean number of rows of a visit by these probabilities, <b>as met</b> the rows of a state "
        "over its visits in the table; <b>first</b> is the probability that a sequence begins there.",
    ]
    closed = np.argwhere(steps < CLOSED)
    if len(closed):
        never = listed([f"{i + 1} to {j + 1}" for i, j in closed[:8].tolist()])
        texts.append(f"<b>Never:</b> from state {never}{'' if len(closed) <= 8 else ' and others'}.")
    return texts


def probability(p: float) -> str:
    """Format a probability, with a sign where it is zero to the digits shown."""
    return "0" if p < CLOSED else "<.001" if p < 0.0005 else fixed(p, 3)
