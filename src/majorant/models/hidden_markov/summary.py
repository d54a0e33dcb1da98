"""The summary of a fitted hidden Markov model."""

from __future__ import annotations

from typing import Any

import numpy as np

from majorant.models.mixture_summary import components_block
from majorant.models.undetermined_covariances import of_never_together
from majorant.summary import Block as Section
from majorant.summary import Column, Fact, Facts, Summary, Table, counted, search_block

MOST_SHOWN = 20
"""States up to which the transitions are shown."""


def markov_summary(model: Any) -> Summary:
    """Summarise the search, the fit, the states and their transitions."""
    k = len(model.weights_)
    title, features = f"hidden Markov model, {counted(k, 'state')}", counted(model.n_features_in_, "feature")
    states = [
        transitions_section(model),
        components_block(model, "state", left_out=("weights", "start_probabilities", "transitions")),
    ]
    if not hasattr(model, "search_"):
        return Summary(f"{title}, not fitted", features, states, [])
    left = [Fact("log-likelihood", model.log_likelihood_, 3), Fact("rows", model.n_rows_, 0)]
    right = [Fact("parameters", model.n_parameters_), Fact("solution", "regular" if model.regular_ else "degenerate")]
    if model.sticky:
        left.append(Fact("steps of staying added", model.sticky))
    fit = Section("FIT", f"reached in {counted(model.n_iter_, 'iteration')}", (Facts("fit", left, right),))
    said = filter(None, [model.degeneracy_, model.separated_, of_never_together(model.never_together_)])
    return Summary(title, features, [search_block(model.search_), fit, *states], [*said])


def transitions_section(model: Any) -> Section:
    """Return initial probabilities, transitions and durations of the states."""
    k = len(model.weights_)
    if k > MOST_SHOWN:
        return Section("CHAIN", "", (f"The probabilities of {counted(k, 'state')} are in transitions_.",))
    stays = np.diag(model.transitions_)
    with np.errstate(divide="ignore"):
        lasts = 1 / (1 - stays)
    columns = [
        Column("from state", range(1, k + 1)),
        *(Column(f"to {j}", own, 3, min_width=7) for j, own in enumerate(model.transitions_.T, 1)),
        Column("first", model.start_probabilities_, 3, min_width=7),
        Column("lasts", lasts, 1, min_width=8),
    ]
    closed = np.argwhere(model.transitions_ < 1e-6)
    said = [] if not len(closed) else ["Never: " + ", ".join(f"{i + 1} to {j + 1}" for i, j in closed.tolist()) + "."]
    if hasattr(model, "gating_center_"):
        said.append("Where covariates are at their mean.")
    table = Table("transitions", columns)
    return Section("CHAIN", "probabilities of the next state", (table, *said))
