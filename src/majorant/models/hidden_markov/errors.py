"""Errors of probabilities at the edge of their range."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from majorant.engine.mixture import Array
from majorant.laws import Chain, GatedChain
from majorant.laws.chain import TOLD


def errors_of(
    estimates: Mapping[str, Array], errors: Mapping[str, Array], chain: Chain | GatedChain
) -> dict[str, Array]:
    """Return errors that are NaN for free probabilities of practically zero or one, and zero for forbidden ones."""
    k = len(estimates["transitions"])
    free = {"transitions": np.ones((k, k), dtype=bool) if chain.allowed is None else chain.allowed}
    if isinstance(chain.start, str) and chain.start == "free":
        free["start_probabilities"] = np.ones(k, dtype=bool)
    out = dict(errors)
    for name, may in free.items():
        p = estimates[name]
        at_edge = may & (may.sum(axis=-1, keepdims=True) > 1) & ((p <= TOLD) | (p >= 1 - TOLD))
        out[name] = np.where(at_edge, np.nan, np.where(may, errors[name], 0.0))
    return out
