"""Projection of rows on simplices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def project_on_simplex(v: Any, total: Any = 1.0, *, weights: Any = None) -> NDArray[np.float64]:
    r"""Return the Euclidean projection of rows on simplices.

    For each row :math:`v` the minimiser of :math:`\sum_k \omega_k (u_k - v_k)^2` over :math:`u \ge 0` with
    :math:`\sum_k u_k = s`: it is :math:`u_k = \max(v_k - \tau / \omega_k, 0)`, and one sort of the
    :math:`\omega_k v_k` finds :math:`\tau`.

    Parameters
    ----------
    v : array-like of shape (..., n_states)
        Finite.
    total : float or array-like of shape (...), default=1
        s, nonnegative: one number, or one per row.
    weights : array-like that broadcasts against `v`, optional
        :math:`\omega`, positive; one each by default.

    Returns
    -------
    ndarray of shape (..., n_states)

    Raises
    ------
    ValueError
        If there are no states, a number is not finite, a weight is not positive or a total is negative.

    References
    ----------
    .. [1] J. Duchi, S. Shalev-Shwartz, Y. Singer, T. Chandra, "Efficient projections onto the l1-ball for learning in
       high dimensions", ICML 2008.

    Examples
    --------
    >>> from majorant.solvers import project_on_simplex
    >>> project_on_simplex([[0.5, 0.1], [3.0, -1.0]]).round(3).tolist()
    [[0.7, 0.3], [1.0, 0.0]]
    """
    v = np.asarray(v, dtype=np.float64)
    if v.ndim == 0 or v.shape[-1] == 0:
        raise ValueError(f"v must have at least one state along its last axis; got shape {v.shape}")
    s = np.broadcast_to(np.asarray(total, dtype=np.float64), v.shape[:-1])
    omega = np.broadcast_to(np.asarray(1.0 if weights is None else weights, dtype=np.float64), v.shape)
    if not (np.isfinite(v).all() and np.isfinite(s).all() and np.isfinite(omega).all()):
        raise ValueError("v, total and weights must be finite")
    if (s < 0).any() or (omega <= 0).any():
        raise ValueError("totals must not be negative, and weights must be positive")
    # Shifted first: the largest coordinate is then zero, and large numbers do not swallow the total.
    moved = v - v.max(axis=-1, keepdims=True) if weights is None else v
    order = np.argsort(-(omega * moved), axis=-1, kind="stable")
    sorted_v, inverse = np.take_along_axis(moved, order, -1), np.take_along_axis(1 / omega, order, -1)
    # tau for the first r states in the order; the right r is the last one whose own state stays positive.
    taus = (np.cumsum(sorted_v, axis=-1) - s[..., None]) / np.cumsum(inverse, axis=-1)
    inside = sorted_v > taus * inverse
    last = np.maximum(inside.sum(axis=-1) - 1, 0)
    tau = np.take_along_axis(taus, last[..., None], -1)
    return np.asarray(np.maximum(moved - tau / omega, 0.0))
