"""Rows so far out that the log densities of components, squares of distances, do not tell which is the largest.

Squares have no digits left for their differences from 1e15 on, and are no numbers from 1e308 on. Nearer by on the same
line through the centre, components are in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.engine.mixture import Array, Table

FAR = 1e15
"""Log density, without its sign, from which on a difference of one is lost in rounding."""
NEAR = 1e8
"""Units from the centre at which squares have half their digits left for what is linear in the row."""
LEAST_LOG_DENSITY = -float(np.finfo(np.float64).max) / 2
"""The log density of the nearest component where its square is no number."""


def told_apart(
    table: Table, x: NDArray[Any], centre: Array, unit: Array, log_density: Callable[[Array], Table]
) -> Table:
    """Return log densities that are numbers and in order, however far rows are.

    Parameters
    ----------
    table : ndarray of shape (runs, components, rows)
        Log densities, which may be changed in place.
    x : ndarray of shape (rows, d)
        NaN where a cell is missing.
    centre, unit : ndarray of shape (d,)
    log_density : callable
        Given rows in these units, less the centre, returns such a table.

    Returns
    -------
    ndarray
        Of a far row the largest is kept, and the others keep their ratio to it nearer by, up to two.
    """
    if table.min(initial=0.0) >= -FAR:
        return table
    top = table.max(axis=1, keepdims=True)
    far = np.flatnonzero(~(top >= -FAR).all(axis=(0, 1)))
    if not len(far):
        return table
    rows, top = x[far].astype(np.float64, copy=False), top[:, :, far]
    size = np.nanmax(np.abs(rows), axis=1, keepdims=True)
    away = rows / size / unit - centre / unit / size
    near = log_density(NEAR * away / np.nanmax(np.abs(away), axis=1, keepdims=True))
    ratio = np.minimum(np.round(near / near.max(axis=1, keepdims=True), 13), 2.0)
    table[:, :, far] = np.where(top >= -FAR, table[:, :, far], np.fmax(top, LEAST_LOG_DENSITY) * ratio)
    return table
