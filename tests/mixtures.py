"""Mixtures for tests of what is said and drawn of them: made from parameters, so that each is exactly what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture as Reference

COVARIANCE_TYPES = ("full", "tied", "diag", "spherical")


def rows(seed: int = 0, n: int = 120, d: int = 3) -> NDArray[np.float64]:
    """Two stretched groups of rows that overlap a little."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(n // 2, d)) @ np.diag([2.0, 0.5, *[1.0] * (d - 2)])
    second = rng.normal(size=(n - n // 2, d)) + 2.5
    return np.vstack([first, second])


def reference(covariance_type: str = "full", k: int = 2, seed: int = 0, **data: Any) -> Any:
    """scikit-learn's mixture, fitted to `rows`."""
    return Reference(k, covariance_type=covariance_type, random_state=seed).fit(rows(seed, **data))
