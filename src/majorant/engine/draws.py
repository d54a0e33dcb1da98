"""Weighted draws of points that depend on the weighted empirical measure only, not on the order of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def drawn(mass: NDArray[np.float64], uniforms: NDArray[np.float64] | float) -> NDArray[np.intp]:
    """Return points drawn with probability proportional to their mass, by inverse CDF.

    Parameters
    ----------
    mass : ndarray of shape (n_points,)
        Nonnegative, not all zero.
    uniforms : float or ndarray of any shape
        In [0, 1]. A point without mass is never drawn, at one neither.

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
    """Return points met at equal steps of weight from a random one on, and how often: a heavy one more than once.

    Along the canonical order these are rows spread evenly over the first column.

    Parameters
    ----------
    weights : ndarray of shape (n_points,)
        Nonnegative, not all zero.
    size : int
        Number of steps.
    random : numpy.random.Generator

    Returns
    -------
    rows : ndarray of int of shape (n_met,)
        Ascending.
    times : ndarray of int of shape (n_met,)
        They sum to `size`.
    """
    return np.unique(drawn(weights, (random.random() + np.arange(size)) / size), return_counts=True)
