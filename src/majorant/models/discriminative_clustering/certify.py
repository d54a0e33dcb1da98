r"""Certificates: a proved bound on the information of any clustering by a linear classifier.

Let the rows have shares :math:`\omega_n`, and let L be the cost of `em.Problem`. With the best tables of assignments
:math:`\xi` of sizes :math:`c_k = \sum_n \omega_n \xi_{nk}` and scores :math:`u_n = W^T x_n + b` of the classifier,

.. math:: -L = \max_\xi \sum_n \omega_n \Big[\sum_k \xi_{nk} u_{nk} - \log\sum_k e^{u_{nk}}\Big] + H(c)
          - \tfrac{\lambda}{2K} |W|^2.

For every distribution q, :math:`\log\sum_k e^{u_k} \ge q^T u + H(q)`. Take :math:`q_n = (1 - t)\,\xi_n + t c` with t in
(0, 1]. The intercepts cancel, the maximum over W is known, and what remains is

.. math:: -L \le I_t + \frac{K t^2}{2 \lambda} S, \qquad
          S = \max_\xi \sum_k \Big| \sum_n \omega_n \xi_{nk} (x_n - \bar x) \Big|^2,

where :math:`H(c) - \sum_n \omega_n H(q_n)`, the information that is left by a channel which shows the cluster of a row
with probability 1 - t and otherwise one drawn by size, is largest for hard clusters. It is :math:`\sum_k f_t(c_k)` with

.. math:: f_t(c) = c\,[a \log(a / c) + (1 - c)\, t \log t], \quad a = 1 - t + t c.

With :math:`u = a / (t c) \ge 1`, :math:`f_t'' = t (2 \log u - u + 1/u) \le 0`: f is concave, so that
:math:`I_t = K f_t(1/K)`. There are three bounds of S, the last one by sizes; the best of them and of all t is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant.starts.quadratic import PrincipalAxes

Array = NDArray[np.float64]

SAFETY = 1 + 1e-9
"""Eigenvalues are known to rounding only."""
RANK, MOST_STEPS = 12, 400
N_TRIED, N_HALVINGS = 24, 28


@dataclass(frozen=True)
class InformationBound:
    """An upper bound on minus the cost (natural log), and how it was proved."""

    bound: float
    method: str


def information_bound(
    axes: PrincipalAxes,  # of the rows
    shares: Array,  # (n_rows,): positive, of sum one
    n_clusters: int,
    alpha: float,  # weight :math:`\lambda` of the penalty :math:`\frac{\lambda}{2K} |w|^2`
) -> InformationBound:
    r"""Return an upper bound on information less penalty over all clusterings by a penalised linear classifier."""
    k = n_clusters
    if k == 1:
        return InformationBound(0.0, "one cluster carries no information")
    variances = axes.deviations**2 * SAFETY
    scatter = {
        "leading variances": spectral_bound(variances, k),
        "dual of the ball relaxation": ball_dual(axes, shares, k),
    }
    leading = np.zeros(k)
    leading[: len(variances)] = variances[:k]
    best = InformationBound(float(np.log(k)), "number of clusters")
    t = np.geomspace(1e-6, 1.0, N_TRIED)
    for _ in range(2):
        price = k * t**2 / (2 * alpha)
        of_channel = k * channel(np.full(len(t), 1 / k), t)
        tried = {name: of_channel + price * s for name, s in scatter.items()}
        tried["variances by size"] = sized_bound(price[:, None] * leading, t[:, None])
        name, bounds = min(tried.items(), key=lambda pair: float(pair[1].min()))
        at = int(bounds.argmin())
        if bounds[at] < best.bound:
            best = InformationBound(float(bounds[at]), name)
        t = np.geomspace(t[max(at - 1, 0)], t[min(at + 1, N_TRIED - 1)], N_TRIED)
    return best


def channel(c: Array, t: Array) -> Array:
    """Return ``f_t(c)``, which is concave on [0, 1]."""
    a = 1 - t + t * c
    inside = np.where(c > 0, c, 1.0)
    return np.asarray(c * (a * np.log(a / inside) + (1 - c) * t * np.log(t)))


def channel_slope(c: Array, t: Array) -> Array:
    """Return the derivative of `channel`, at sizes above zero."""
    a = 1 - t + t * c
    return np.asarray((1 - t + 2 * t * c) * np.log(a / c) - (1 - t) + (1 - 2 * c) * t * np.log(t))


def spectral_bound(variances: Array, n_clusters: int) -> float:
    """Return S by variances: the first m of ``diag(c) - c c'`` sum to at most ``1 - 1/(m + 1)`` for any sizes."""
    m = np.arange(1, n_clusters)
    kept = variances[: n_clusters - 1]
    return float(np.sum(kept / (m * (m + 1))[: len(kept)]))


def sized_bound(slopes: Array, t: Array) -> Array:
    """Return the largest ``sum_k f_t(c_k) + s_k c_k`` over sizes, for slopes (n, n_clusters) and t of shape (n, 1).

    S at given sizes is at most the sum of the largest variances times the sizes, as the second moments of assignments
    are at most a diagonal matrix of sizes. The program is concave, so that the slopes at any sizes give a bound.
    """
    n, k = slopes.shape
    low, high = np.full((n, 1), -60.0), slopes.max(axis=1, keepdims=True) + 60.0
    sizes = np.full((n, k), 1 / k)
    for _ in range(N_HALVINGS):  # the multiplier of the constraint
        price = (low + high) / 2
        sizes = _sizes_at(price - slopes, t)
        above = sizes.sum(axis=1, keepdims=True) > 1
        low, high = np.where(above, price, low), np.where(above, high, price)
    sizes = np.maximum(sizes, 1e-12)
    sizes /= sizes.sum(axis=1, keepdims=True)
    slope = channel_slope(sizes, t) + slopes
    room = slope.max(axis=1) - np.sum(slope * sizes, axis=1)
    return np.asarray(np.sum(channel(sizes, t) + slopes * sizes, axis=1) + np.maximum(room, 0.0))


def _sizes_at(slope: Array, t: Array) -> Array:
    """Return the points of [0, 1] where the derivative of f_t has these values."""
    low, high = np.full(slope.shape, 1e-12), np.ones(slope.shape)
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2
        above = channel_slope(middle, t) > slope
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return low


def ball_dual(axes: PrincipalAxes, shares: Array, n_clusters: int) -> float:
    r"""Return S from a dual feasible point of :math:`\max \langle T, G\rangle`, T psd with diagonal at most 1 - 1/K.

    That is the largest square of a row of assignments less 1/K, and G is the Gram matrix of weighted rows. y is dual
    feasible where diag(y) - G is semidefinite: norms of the rows of G Z at the end of a low-rank ascent, scaled until
    it is.
    """
    rows = (axes.scores * axes.deviations[:, None] * shares).T
    if rows.shape[1] == 0:
        return 0.0
    z = np.random.default_rng(0).standard_normal((len(rows), RANK))
    z /= np.sqrt(np.einsum("nr,nr->n", z, z))[:, None]
    y = np.zeros(len(rows))
    for _ in range(MOST_STEPS):
        image = np.einsum("np,pr->nr", rows, np.einsum("np,nr->pr", rows, z))
        y = np.sqrt(np.einsum("nr,nr->n", image, image))
        new = image / np.maximum(y, 1e-300)[:, None]
        moved, z = float(np.abs(new - z).max()), new
        if moved < 1e-7:
            break
    y = np.maximum(y, 1e-9 * y.max(initial=1e-300))
    scaled = rows / np.sqrt(y)[:, None]
    largest = float(np.linalg.eigvalsh(np.einsum("np,nq->pq", scaled, scaled))[-1])
    return (1 - 1 / n_clusters) * largest * SAFETY * float(y.sum())
