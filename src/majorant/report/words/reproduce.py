"""Sentences about how to reproduce the page."""

from __future__ import annotations

import numbers as number_types
from collections.abc import Mapping
from typing import Any


def headline(params: Mapping[str, Any]) -> str:
    """State whether the run can be repeated, in one sentence."""
    if "random_state" not in params:
        return "The settings of this run."
    if isinstance(params["random_state"], number_types.Integral):
        return "The same table, settings and seed give this page again."
    if params["random_state"] is None:
        return "No seed was set, so another run may take other starts."
    return "A generator of random numbers was passed, so another run may take other starts."


def notes(command: str, params: Mapping[str, Any]) -> list[str]:
    """Explain the files beside the page, and what to change for an exact repetition."""
    texts = []
    if command:
        texts.append(
            "Next to this file: <code>model.majorant</code>, <code>assignments.csv</code>, <code>summary.json</code> "
            "and, in <code>tables</code>, the tables of this page."
        )
    if params.get("random_state", 0) is None:
        texts.append("Set <code>random_state</code> to a number to get the same starts again.")
    return texts
