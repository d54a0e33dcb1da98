"""Smooth densities of a few numbers, for the edges of a scatter plot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def density(values: NDArray[np.float64], low: float, high: float, n_points: int = 70) -> NDArray[np.float64]:
    """Estimate a Gaussian kernel density at `n_points` equal steps from `low` to `high`, as (position, density).

    The bandwidth is Silverman's, but at least a fiftieth of the range, so that a single value is visible.
    """
    at = np.linspace(low, high, n_points)
    deviation = float(values.std()) if len(values) else 0.0
    bandwidth = max(1.06 * deviation * max(len(values), 1) ** -0.2, (high - low) / 50)
    if not len(values) or not bandwidth > 0:
        return np.column_stack([at, np.zeros_like(at)])
    scaled = (at[:, None] - values[None, :]) / bandwidth
    heights = np.exp(-0.5 * scaled**2).mean(axis=1) / (bandwidth * np.sqrt(2 * np.pi))
    return np.column_stack([at, heights])
