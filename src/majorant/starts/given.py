"""Starts given by the user: a part for each row, or probabilities of parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def given_assignments(
    init: Any,  # (n_rows,): the part of each row, from 0; or (n_rows, n_parts): nonnegative weights of its parts
    n_rows: int,
    n_parts: int,
    noun: str,  # the word for a part
    *,
    normalised: bool,  # whether rows of a table must sum to one
) -> Array:
    """Return probabilities of parts, (n_rows, n_parts), with rows of sum one."""
    table = np.asarray(init)
    if table.shape not in ((n_rows,), (n_rows, n_parts)) or table.dtype.kind not in "biuf":
        raise ValueError(
            f"init, as an array, must hold a {noun} for each row, shape ({n_rows},), or its probabilities, shape "
            f"({n_rows}, {n_parts}); got {table.dtype} of shape {table.shape}"
        )
    table = table.astype(np.float64)
    if table.ndim == 1:
        if not ((table >= 0) & (table < n_parts) & (table == np.floor(table))).all():
            raise ValueError(
                f"init, as an array with one {noun} per row, must be whole numbers from 0 to {n_parts - 1}"
            )
        return np.asarray(np.eye(n_parts)[table.astype(np.intp)])
    sums = table.sum(axis=1, keepdims=True)
    if not np.isfinite(table).all() or (table < 0).any() or (sums <= 0).any():
        raise ValueError("probabilities in init must be finite and not negative, and no row may be all zero")
    if normalised and not np.allclose(sums, 1, atol=1e-6):
        raise ValueError("init, as an array of probabilities, must hold rows that sum to one")
    return np.asarray(table / sums)


def pooled(assignments: Array, weights: Array, unit: NDArray[np.intp], n_units: int) -> Array:
    """Return the weighted mean of the assignments of the rows of each unit.

    Parameters
    ----------
    assignments : ndarray of shape (n_rows, n_parts)
    weights : ndarray of shape (n_rows,)
    unit : ndarray of shape (n_rows,)
        The unit of each row.
    """
    total = np.zeros((n_units, assignments.shape[1]))
    np.add.at(total, unit, assignments * weights[:, None])
    return np.asarray(total / total.sum(axis=1, keepdims=True))
