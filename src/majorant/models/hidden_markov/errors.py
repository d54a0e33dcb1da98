"""Errors of probabilities at the edge of their range, and intervals of all estimates of a hidden Markov model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from majorant.engine.mixture import Array, Limits
from majorant.laws import Chain
from majorant.laws.chain import TOLD
from majorant.results.information import interval


def errors_of(estimates: Mapping[str, Array], errors: Mapping[str, Array], chain: Chain) -> dict[str, Array]:
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


def intervals_of(
    estimates: Mapping[str, Array], errors: Mapping[str, Array], z: float, limits: Mapping[str, Limits]
) -> dict[str, tuple[Array, Array]]:
    """Return z errors on both sides, on the scale of each estimate's range; variances in matrices are positive."""
    out = {}
    for name, error in errors.items():
        own = estimates[name]
        low, high = interval(own, error, z, limits.get(name, (-np.inf, np.inf)))
        if name.endswith("covariances") and own.ndim == 3:
            at = np.arange(own.shape[1])
            low[:, at, at], high[:, at, at] = interval(own[:, at, at], error[:, at, at], z, (0.0, np.inf))
        out[name] = low, high
    return out
