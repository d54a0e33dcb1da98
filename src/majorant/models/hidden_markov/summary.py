"""The summary of a fitted hidden Markov model."""

from __future__ import annotations

from typing import Any

import numpy as np

from majorant.laws.chain import lasting
from majorant.models.mixture_summary import components_block, mixture_summary
from majorant.summary import Block as Section
from majorant.summary import Column, Fact, Summary, Table, counted

NEVER_LEFT = "never left"
MOST_SHOWN = 20
"""States up to which the transitions are shown."""


def markov_summary(model: Any) -> Summary:
    """Summarise the search, the fit, the states and their transitions."""
    states = [
        transitions_section(model),
        components_block(model, "state", left_out=("weights", "start_probabilities", "transitions")),
    ]
    if not hasattr(model, "search_"):
        title = f"hidden Markov model, {counted(len(model.weights_), 'state')}, not fitted"
        return Summary(title, counted(model.n_features_in_, "feature"), states, [])
    return mixture_summary(model, [Fact("steps of staying added", model.sticky)] * (model.sticky > 0), states)


def transitions_section(model: Any) -> Section:
    """Return initial probabilities, transitions and durations of the states."""
    k = len(model.weights_)
    if k > MOST_SHOWN:
        return Section("CHAIN", "", (f"The probabilities of {counted(k, 'state')} are in transitions_.",))
    lasts = [rows if np.isfinite(rows) else None for rows in lasting(model.transitions_)]
    columns = [
        Column("from state", range(1, k + 1)),
        *(Column(f"to {j}", own, 3, min_width=7) for j, own in enumerate(model.transitions_.T, 1)),
        Column("first", model.start_probabilities_, 3, min_width=7),
        Column("lasts", lasts, 1, min_width=8, empty=NEVER_LEFT),
    ]
    closed = np.argwhere(model.transitions_ < 1e-6)
    said = [] if not len(closed) else ["Never: " + ", ".join(f"{i + 1} to {j + 1}" for i, j in closed.tolist()) + "."]
    if hasattr(model, "gating_center_"):
        said.append("Where covariates are at their mean.")
    table = Table("transitions", columns)
    return Section("CHAIN", "probabilities of the next state", (table, *said))
