r"""Sums over rows of a multinomial logit, :math:`p(z \mid x) = \mathrm{softmax}_z([x, 1]\,\theta)`.

Parameters are one array of shape (n_features + 1, n_states) whose last row holds the intercepts. Rows are dense, or
CSR, which stay sparse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant import _kernels
from majorant.energy import gibbs

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LogitSums:
    r"""Value and derivatives of :math:`A(\theta) = \sum_i w_i \log\sum_z e^{u_i(z)}`, u the scores."""

    value: float  # A
    moments: Array  # (n_features + 1, n_states): its gradient
    # (n_pairs, n_features + 1, n_features + 1): :math:`\sum_i w_i p_i(a) p_i(b) [x, 1]^\top [x, 1]` of each pair of
    # states a < b, a block of minus H
    blocks: Array | None = None

    def __add__(self, other: LogitSums) -> LogitSums:
        blocks = None if self.blocks is None or other.blocks is None else self.blocks + other.blocks
        return LogitSums(self.value + other.value, self.moments + other.moments, blocks)


def logit_sums(
    x: Any,  # CSR or dense (n, n_features)
    weights: Array | None,  # (n,)
    theta: Array,  # (n_features + 1, n_states)
    offsets: Array | None = None,  # (n, n_states): added to the scores
    *,
    blocks: bool = False,  # whether to compute the blocks of the Hessian
    probabilities: Array | None = None,  # (n, n_states): filled with the softmax of the scores
) -> LogitSums:
    """Compute the sums over some rows."""
    d, k = theta.shape
    theta = np.ascontiguousarray(theta)
    if sparse.issparse(x) and not blocks:
        return _sparse_sums(x, weights, theta, offsets, probabilities)
    moments = np.empty((d, k))
    hessian = np.empty((k * (k - 1) // 2, d * d)) if blocks else None
    value = _kernels.softmax_pass(_dense(x), weights, theta, offsets, moments, hessian, probabilities)
    return LogitSums(value, moments, None if hessian is None else hessian.reshape(-1, d, d))


def log_probabilities(x: Any, theta: Array) -> Array:
    """Return ``log p(z | x)``, shape (n, n_states)."""
    if sparse.issparse(x):
        scores = x @ theta[:-1] + theta[-1]
        return np.asarray(scores + gibbs(-scores, 1.0)[0][:, None])
    out = np.empty((len(x), theta.shape[1]))
    _kernels.softmax_pass(_dense(x), None, np.ascontiguousarray(theta), None, logs=out)
    return out


def soft_moments(x: Any, weights: Array | None, q: Array) -> Array:
    """Return ``sum_i w_i [x_i, 1]' q_i``, shape (n_features + 1, n_states)."""
    if sparse.issparse(x):
        return _sparse_moments(x, weights, q)
    out = np.empty((x.shape[1] + 1, q.shape[1]))
    _kernels.soft_moments(_dense(x), weights, np.ascontiguousarray(q, dtype=np.float64), out)
    return out


def _dense(x: Any) -> NDArray[Any]:
    """Return dense rows for the kernels; used for CSR matrices only where they are few and narrow."""
    return np.ascontiguousarray(x.toarray() if sparse.issparse(x) else x)


def _sparse_moments(x: Any, weights: Array | None, q: Array) -> Array:
    weighted = q if weights is None else q * weights[:, None]
    return np.vstack([x.T @ weighted, weighted.sum(axis=0)])


def _sparse_sums(
    x: Any, weights: Array | None, theta: Array, offsets: Array | None, probabilities: Array | None
) -> LogitSums:
    scores = x @ theta[:-1] + theta[-1]
    if offsets is not None:
        scores += offsets
    free, q = gibbs(-scores, 1.0)
    if probabilities is not None:
        probabilities[:] = q
    value = -float(free.sum() if weights is None else np.sum(weights * free))
    return LogitSums(value, _sparse_moments(x, weights, q))
