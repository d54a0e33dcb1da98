"""Projection on a product of simplices of one common size: nonnegative rows whose sums are all equal."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_STEPS = 1000


def project_equal_simplices(
    z: NDArray[Any],  # (..., n_rows, n_classes): Finite. Leading axes are independent problems.
    shares: NDArray[np.float64] | None = None,  # (n_rows,): positive weight of each row; by default equal ones
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return the nearest arrays of nonnegative rows with one common row sum.

    .. math:: \min_{V \ge 0,\; a \ge 0} \sum_n \omega_n |v_n - z_n|^2 \quad\text{with}\quad \sum_k v_{nk} = a.

    For a given a every row is projected on a simplex, :math:`v_{nk} = \max(z_{nk} - \tau_n(a), 0)`. The slope of the
    minimum in a is minus :math:`h(a) = \sum_n \omega_n \tau_n(a)`, which is convex, decreasing and piecewise linear:
    Newton's method from zero reaches its root from below in a few steps, with one sort of each row before them. Where
    :math:`h(0) \le 0` the nearest array is zero.

    Returns v, and the common row sum a of each problem.

    References
    ----------
    .. [1] A. Joulin, F. Bach, J. Ponce, "Efficient optimization for discriminative latent class models",
       NIPS 2010, section 4.

    Examples
    --------
    >>> v, a = project_equal_simplices(np.array([[2.0, 0.0], [1.0, 1.5]]))
    >>> v
    array([[2.125, 0.125],
           [0.875, 1.375]])
    >>> float(a)
    2.25
    """
    z = np.asarray(z, dtype=np.float64)
    n, k = z.shape[-2:]
    omega = np.full(n, 1.0 / n) if shares is None else shares
    batch = z.reshape(-1, n, k)
    descending = -np.sort(-batch, axis=2)
    heads = np.cumsum(descending, axis=2)
    active = np.ones(batch.shape[:2], dtype=np.intp)  # entries of each row above its threshold
    sums = np.zeros(len(batch))
    counts = np.arange(1, k + 1)
    for _ in range(MAX_STEPS):
        level = (np.take_along_axis(heads, active[:, :, None] - 1, axis=2)[:, :, 0] - sums[:, None]) / active
        h = np.einsum("bn,n->b", level, omega)
        sums = np.maximum(sums + np.maximum(h, 0.0) / np.einsum("bn,n->b", 1.0 / active, omega), 0.0)
        more = np.count_nonzero(descending * counts - heads + sums[:, None, None] > 0, axis=2)
        more = np.maximum(more, active)
        if (more == active).all():
            break
        active = more
    threshold = (np.take_along_axis(heads, active[:, :, None] - 1, axis=2)[:, :, 0] - sums[:, None]) / active
    v = np.maximum(batch - threshold[:, :, None], 0.0)
    v[sums == 0.0] = 0.0
    return v.reshape(z.shape), sums.reshape(z.shape[:-2])
