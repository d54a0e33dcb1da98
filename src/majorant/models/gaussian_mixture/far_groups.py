"""Groups so far apart that the covariance of all rows, as it is rounded, does not tell the covariance within them."""

from __future__ import annotations

import numpy as np

from majorant.engine.triangles import symmetric
from majorant.solvers.gaussian import Array, moments

FAR = 1e4
"""Gap between groups in a column, as a multiple of all that their values extend, from which on they lie far apart."""
TOO_FAR = 1e14
"""Variance of a column as a multiple of that within groups, from which on rounding decides about covariances."""


def within_far_groups(points: Array, weights: Array, k: int, precision: float) -> tuple[Array, Array, float] | None:
    """Return mean and covariance of rows about the centres of groups that lie far apart; None if there are none.

    Columns are cut at their widest gaps. Rows are centred at the mean of their group before they are squared, so that
    no digits are lost.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
        NaN where an entry is missing.
    weights : ndarray of shape (n_points,)
    k : int
        Largest number of groups.
    precision : float
        Rounding of a column as a share of its spread.

    Returns
    -------
    centre, covariance : ndarray
    precision : float
        Rounding of a column as a share of its spread within groups.

    Raises
    ------
    ValueError
        If groups lie so far apart that covariances cannot be told, or lie far apart beside missing entries.
    """
    labels = _labels(points, k, precision)
    n_groups = int(labels.max(initial=0)) + 1
    if not 1 < n_groups <= k or np.bincount(labels[labels >= 0]).min() < 2:  # a row alone has no covariance
        return None
    if np.isnan(points).any():
        raise ValueError(
            f"{n_groups} groups of rows lie more than {FAR:g} times as far apart as their rows do, too far for "
            "covariances beside missing entries: fit the groups apart, use covariance_type='diag', or leave out rows "
            "that are wrong"
        )
    share = weights / weights.sum()
    centre = np.einsum("i,ij->j", share, points)
    x = points - centre
    q = np.asarray(labels[:, None] == np.arange(n_groups), dtype=np.float64)
    means = np.einsum("i,ik,ij->kj", share, q, x) / np.einsum("i,ik->k", share, q)[:, None]
    about = moments(x, share, q, means, "full")[:, 1 + x.shape[1] :]
    covariance = symmetric(about.sum(axis=0), x.shape[1])
    total, within = np.einsum("i,ij,ij->j", share, x, x), np.diagonal(covariance)
    if (within <= 4 * precision**2 * total).any():  # rows of a group are equal in a column
        return None
    if (total > TOO_FAR * within).any():
        worst = int(np.argmax(total / within))
        raise ValueError(
            f"in column {worst} groups of rows lie {np.sqrt(total[worst] / within[worst]):.0e} of their standard "
            "deviations apart, too far for covariances in double precision: fit the groups apart, or leave out rows "
            "that are wrong"
        )
    return centre, covariance, precision * float(np.sqrt((total / within).max()))


def _labels(points: Array, k: int, precision: float) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return the groups into which columns with wide gaps cut the rows; -1 where an entry of these is missing."""
    ordered = np.sort(points, axis=0)  # missing entries last
    low, high = ordered[0], np.fmax.reduce(points, axis=0)
    gaps = np.nan_to_num(np.diff(ordered, axis=0))
    widest = np.sort(gaps, axis=0)[::-1][: k - 1]
    span = high - low - widest.sum(axis=0)
    cut = np.flatnonzero((widest.max(axis=0, initial=0.0) > FAR * span) & (span > 4 * precision * (high - low)))
    known = ~np.isnan(points[:, cut]).any(axis=1)
    parts = np.zeros((int(known.sum()), 1 + len(cut)), dtype=np.intp)
    for number, j in enumerate(cut):
        edges = ordered[1:][gaps[:, j] > FAR * span[j], j]
        parts[:, 1 + number] = np.searchsorted(edges, points[known, j], side="right")
    labels = np.full(len(points), -1, dtype=np.intp)
    labels[known] = np.unique(parts, axis=0, return_inverse=True)[1].reshape(-1)
    return labels
