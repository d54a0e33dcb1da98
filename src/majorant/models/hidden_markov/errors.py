"""Errors of probabilities at the edge of their range, and of lines without noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from majorant.densities.regression import NO_MAXIMUM
from majorant.engine.mixture import Array
from majorant.laws.chain import TOLD


def errors_of(model: Any, errors: Mapping[str, Array]) -> dict[str, Array]:
    """Return errors that are NaN for free probabilities of practically zero or one, and zero for forbidden ones.

    They are NaN for lines without noise too, where they would be those of its floor.
    """
    estimates, chain = model._estimates(), model._chain()
    k = len(estimates["transitions"])
    free = {"transitions": np.ones((k, k), dtype=bool) if chain.allowed is None else chain.allowed}
    if isinstance(chain.start, str) and chain.start == "free":
        free["start_probabilities"] = np.ones(k, dtype=bool)
    out = dict(errors)
    if NO_MAXIMUM in getattr(model, "degeneracy_", ""):
        of_lines = out.keys() & {"intercept", "means", "coef", "variances"}
        out |= {name: np.full_like(out[name], np.nan) for name in of_lines}
    for name, may in free.items():
        p = estimates[name]
        at_edge = may & (may.sum(axis=-1, keepdims=True) > 1) & ((p <= TOLD) | (p >= 1 - TOLD))
        out[name] = np.where(at_edge, np.nan, np.where(may, errors[name], 0.0))
    return out
