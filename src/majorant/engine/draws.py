"""Weighted draws of points that depend on the weighted empirical measure only, not on the order of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def drawn(mass: NDArray[np.float64], uniforms: NDArray[np.float64] | float) -> NDArray[np.intp]:
    """Draw points with probability proportional to their mass, by inverse CDF.

    Parameters
    ----------
    mass : ndarray of shape (n_points,)
        Nonnegative, not all zero.
    uniforms : float or ndarray of any shape
        Numbers in [0, 1]. A point without mass is never drawn, not even at one.

    Returns
    -------
    ndarray of int of the shape of `uniforms`

    Examples
    --------
    >>> import numpy as np
    >>> drawn(np.array([1.0, 0.0, 3.0, 0.0]), np.array([0.2, 0.25, 1.0]))
    array([0, 2, 2])
    """
    cumulative = np.cumsum(mass)
    at = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
    return np.asarray(np.minimum(at, np.searchsorted(cumulative, cumulative[-1])))


def thinned(
    weights: NDArray[np.float64], size: int, random: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Draw points at equal steps of cumulative weight from a random one on; return them and their counts.

    In canonical order the drawn rows are spread evenly over the first column.

    Parameters
    ----------
    weights : ndarray of shape (n_points,)
        Nonnegative, not all zero.
    size : int
        Number of steps.

    Returns
    -------
    rows : ndarray of int of shape (n_met,)
        Ascending.
    times : ndarray of int of shape (n_met,)
        Counts, which sum to `size`.
    """
    return np.unique(drawn(weights, (random.random() + np.arange(size)) / size), return_counts=True)
