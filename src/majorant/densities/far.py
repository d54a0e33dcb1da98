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
LEAST_LOG_DENSITY = -float(np.finfo(np.float64).max) / 2
"""The log density of the nearest component where its square is no number."""


def told_apart(
    table: Table,  # (runs, components, rows): log densities, which may be changed in place
    x: NDArray[Any],  # (rows, d): NaN where a cell is missing
    centre: Array,  # (d,)
    unit: Array,  # (d,)
    means: Array,  # (..., d): of the components, in these units, less the centre
    log_density: Callable[[Array], Table],  # given such rows, returns such a table
) -> Table:
    """Return log densities that are numbers and in order, however far rows are.

    Of a far row the largest is kept, and the others keep their ratio to it nearer by, up to two.
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
        is_far = (length * size > nearest).ravel()
    if not is_far.any():
        return table
    far, near = far[is_far], log_density(nearest * away[is_far] / length[is_far])
    top = top[:, :, far]
    ratio = np.minimum(np.round(near / near.max(axis=1, keepdims=True), 13), 2.0)
    table[:, :, far] = np.where(top >= -FAR, table[:, :, far], np.fmax(top, LEAST_LOG_DENSITY) * ratio)
    return table
