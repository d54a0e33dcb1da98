"""Free energies and posteriors of latent values at any temperature, and sums over them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.energy import entropy, gibbs, row_minimum
from majorant.energy import expected as expected_by_shares

Latent = NDArray[Any]
"""Latent values of some units: hard, (rows,) integers, or soft, (rows, n_states) rows that sum to one.

Both are valid at any temperature."""


def tightest(
    energies: NDArray[Any],  # (rows, n_states): infinite where a state is absent; every row needs a finite one
    beta: float,  # inverse temperature, positive or infinite
) -> tuple[NDArray[Any], Latent]:
    r"""Return free energies and the tightest latent values.

    .. math:: f_i = -\frac1\beta \log\sum_z e^{-\beta E_i(z)}, \qquad q_i(z) \propto e^{-\beta E_i(z)}

    and at :math:`\beta=\infty` the smallest energy and its first position.

    Latent values are labels (rows,) of int32 if `beta` is infinite, otherwise probabilities (rows, n_states).
    """
    return row_minimum(energies) if np.isinf(beta) else gibbs(energies, beta)


def entropies(q: Latent) -> NDArray[np.float64]:
    """Return the entropy of every unit's latent distribution (natural logarithm)."""
    if q.ndim == 1:
        return np.zeros(len(q))
    return np.asarray(entropy(q))


def as_soft(q: Latent, n_states: int) -> Latent:
    """Return latent values as rows that sum to one."""
    return np.eye(n_states)[q] if q.ndim == 1 else q


def expected(q: Latent, table: NDArray[Any]) -> NDArray[Any]:
    """Return the expectation of a table (rows, n_states) under the latent values, one number per unit."""
    if q.ndim == 1:
        return np.asarray(table.take(np.arange(0, table.size, table.shape[1]) + q))
    return np.asarray(expected_by_shares(q, table))


def collect(
    q: Latent, features: NDArray[Any], n_states: int, weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return sums of feature rows by state, ``sum_i w_i q_i(z) features_i``.

    Parameters
    ----------
    q : latent values of the rows
    features : ndarray of shape (rows, n_features)
    weights : ndarray of shape (rows,), optional

    Returns
    -------
    ndarray of shape (n_states, n_features)
    """
    if q.ndim == 2:
        weighted = (q if weights is None else q * weights[:, None]).astype(np.float64, copy=False)
        # Not a matrix product: the sums of one depend on the number of threads that BLAS may use.
        return np.asarray(np.einsum("il,ip->lp", weighted, features))
    out = np.empty((n_states, features.shape[1]))
    _kernels.collect(np.ascontiguousarray(features), weights, q.astype(np.int32, copy=False), out)
    return out
