"""Errors of probabilities at the edge of their range, and of lines without noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from majorant.densities.regression import NO_MAXIMUM
from majorant.engine.mixture import Array
from majorant.laws.chain import TOLD
from majorant.models.hidden_markov.lines import EXACT_STATE


def errors_of(model: Any, errors: Mapping[str, Array]) -> dict[str, Array]:
    """Return errors that are NaN for free probabilities of practically zero or one, and zero for forbidden ones.

    They are NaN for lines without noise too, where they would be those of its floor, or of the largest ratio of noises.
    """
    estimates, chain = model._estimates(), model._chain()
    k = len(estimates["transitions"])
    free = {"transitions": np.ones((k, k), dtype=bool) if chain.allowed is None else chain.allowed}
    if isinstance(chain.start, str) and chain.start == "free":
        free["start_probabilities"] = np.ones(k, dtype=bool)
    out = dict(errors)
    why = getattr(model, "degeneracy_", "")
    if NO_MAXIMUM in why or EXACT_STATE in why:
        v = estimates["variances"]
        exact = np.full(len(v), NO_MAXIMUM in why) | (v <= v.min() * (1 + 1e-6))
        for name in out.keys() & {"intercept", "means", "coef", "variances"}:
            out[name] = out[name].copy()
            out[name][exact] = np.nan
    for name, may in free.items():
        p = estimates[name]
        at_edge = may & (may.sum(axis=-1, keepdims=True) > 1) & ((p <= TOLD) | (p >= 1 - TOLD))
        out[name] = np.where(at_edge, np.nan, np.where(may, errors[name], 0.0))
    return out
