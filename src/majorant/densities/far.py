"""Rows so far out that the log densities of components, squares of distances, do not tell which is the largest.

Differences of squares are lost in rounding from 1e15 on, and squares are no numbers from 1e308 on. Nearer by on the
same line through the centre, components are in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.engine.mixture import Array, Table

FAR = 1e15
"""Log density, without its sign, beyond which differences between components are lost in rounding."""
NEAR = 1e8
"""Distance from the centre, in that of the farthest mean, from which on components are in the same order; squares have
half their digits left there for what is linear in the row."""
ROUNDING = 1e-12
"""Differences of log densities, as a share of them, that are rounding; what is less likely differs by as much."""
SURE = 40.0
"""Difference of log densities from which on the less likely component has no share in a row."""
FARTHEST = 1e200
"""Multiple of a step at which a difference that is linear is looked at, at most."""
LEAST_LOG_DENSITY = -float(np.finfo(np.float64).max) / 2
"""The log density of the nearest component where its square is no number."""


def told_apart(
    table: Table,  # (runs, components, rows): log densities, which may be changed in place
    x: NDArray[Any],  # (rows, d): NaN where a cell is missing
    centre: Array,  # (d,)
    unit: Array,  # (d,)
    means: Array,  # (..., d): of the components, in these units, less the centre
    log_density: Callable[[Array], Table],  # given such rows, returns such a table
    *,
    is_shared: bool = False,  # whether components share their covariance
) -> Table:
    """Return log densities that are numbers and in order, however far rows are.

    Of a far row the largest is kept, and the others keep their ratio to it nearer by, up to two. With one
    covariance they differ by what is linear in the row, which tells means apart that are near each other beside others.
    """
    if table.min(initial=0.0) >= -FAR:
        return table
    top = table.max(axis=1, keepdims=True)
    far = np.flatnonzero(~(top >= -FAR).all(axis=(0, 1)))
    if not len(far):
        return table
    rows = x[far].astype(np.float64, copy=False)
    size = np.fmax(np.nanmax(np.abs(rows), axis=1, keepdims=True), np.abs(centre).max())
    away = rows / size / unit - centre / size / unit
    length = np.nanmax(np.abs(away), axis=1, keepdims=True)
    nearest = NEAR * max(1.0, float(np.abs(means).max()))
    with np.errstate(over="ignore"):
        distance = (length * size).ravel()
    is_far = distance > nearest
    if not is_far.any():
        return table
    far, line = far[is_far], away[is_far] / length[is_far]
    top, near = top[:, :, far], log_density(nearest * line)
    ratio = np.minimum(np.round(near / near.max(axis=1, keepdims=True), 13), 2.0)
    if is_shared:
        step = nearest / NEAR
        here, there = log_density(0 * line), log_density(step * line)
        slope = there - here
        slope -= slope.max(axis=1, keepdims=True)
        slope[slope > -ROUNDING * np.abs(there).max(axis=1, keepdims=True)] = 0.0
        score = slope * np.minimum(distance[is_far] / step, FARTHEST) + here
        ratio = np.where(score > score.max(axis=1, keepdims=True) - SURE, 1.0, np.maximum(ratio, 1 + ROUNDING))
    table[:, :, far] = np.where(top >= -FAR, table[:, :, far], np.fmax(top, LEAST_LOG_DENSITY) * ratio)
    return table
