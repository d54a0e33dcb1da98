"""The single regression of all rows: the unit of the noise, and whether one line fits every row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.data.chunks import Block, Chunks
from majorant.engine.triangles import symmetric

Array = NDArray[np.float64]
EXACT = 1e-10
"""A single line whose noise is below this share of the target's size is taken to fit exactly."""
ROUNDING = 8 * float(np.finfo(np.float64).eps)
"""Rounding error of a target, as a share of its size."""


def unit_of_noise(noise: float, spread: float, height: float) -> tuple[float, bool]:
    """Return the unit of residuals, and whether one line fits every row up to rounding.

    The unit is then a floor, `EXACT` of the target's standard deviation; of its height where it is constant; of one
    where it is zero.

    Given are root mean squares of what the line leaves, of the target about its mean (about zero without an intercept),
    and the size of that mean.
    """
    exact = noise <= EXACT * spread
    return (EXACT * (spread or height or 1.0) if exact else noise), exact


def single_line(
    rows: Chunks, design: Callable[[Block], Array], target: Callable[[Block], Array], p: int, *, fit_intercept: bool
) -> tuple[Array, float, bool]:
    """Return the least-squares line, the unit of its residuals, and whether it fits every row.

    `design` and `target` are functions of a block; the design is orthonormal, of `p` columns.
    """
    pooled = np.zeros(p)
    for _ in range(3):  # later steps take what rounding left of the first

        def residuals(block: Block, b: Array = pooled) -> tuple[Array, Array]:
            z = design(block)
            return z, target(block) - np.einsum("ip,p->i", z, b)

        _, slope, variance = moments(rows, residuals)
        pooled = pooled + slope
    _, mean, _ = moments(rows, lambda block: (np.ones((len(block), 1)), target(block)))
    level = float(mean[0])
    about = level if fit_intercept else 0.0
    _, _, square = moments(rows, lambda block: (np.ones((len(block), 1)), target(block) - about))
    noise, spread = (float(np.sqrt(value)) if value > (ROUNDING * level) ** 2 else 0.0 for value in (variance, square))
    sigma, exact = unit_of_noise(noise, spread, abs(level))
    return pooled, sigma, exact


def moments(rows: Chunks, columns: Callable[[Block], tuple[Any, Any]]) -> tuple[Array, Array, float]:
    """Return the weighted means of ``z z'``, of ``z r`` and of ``r r``, where `columns` gives z and r of a block."""

    def visit(block: Block) -> Array:
        z, r = (np.ascontiguousarray(c, dtype=np.float64) for c in columns(block))
        p, one = z.shape[1], np.ones(1)
        out = np.empty((1, 2 + p + p * (p + 1) // 2))
        _kernels.regression_pass(z, r, block.weights, one, np.zeros((1, p)), one, 1.0, out)
        return out

    s = rows.map_sum(visit)[0] / rows.total_weight
    p = int((np.sqrt(8 * len(s) - 7) - 3) // 2)
    return symmetric(s[2 + p :], p), s[2 : 2 + p], float(s[1])
