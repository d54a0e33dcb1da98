"""The ball relaxation: every row becomes a point in a ball, near the rows that it belongs with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from majorant.solvers.swap import swap_search
from majorant.starts.simplex_program import Operator

RANK = 12
SOFTNESS = 0.1
"""Share of the uniform assignment in a softened one, as EM cannot leave a vertex."""


def ball_relaxation(
    apply: Operator,
    n_rows: int,
    random: np.random.Generator,
    *,
    rank: int = RANK,
    max_iter: int = 150,
    tol: float = 1e-3,
) -> NDArray[np.float64]:
    r"""Minimise a quadratic form over points in the unit ball, one per row.

    .. math:: \min_Z \langle Z, Q Z \rangle_\omega \quad\text{with}\quad |z_n| \le 1, \quad Z \in R^{N \times r}.

    This is the low-rank form of the semidefinite relaxation in which T = Z Z' has no diagonal entry above one. It has
    no constraints on simplices or sizes of classes, and so fewer local optima. The method is accelerated projected
    gradient; the projection divides a row by its norm.

    Parameters
    ----------
    apply : callable
        ``Q v`` for columns (n_rows, n_columns), self-adjoint in the rows' weighted inner product, of eigenvalues in
        [-1, 1] (``QuadraticApproximation.apply``).
    n_rows : int
    random : numpy.random.Generator
        Generator of the initial points.
    rank : int, default=12
        Dimension of the ball.
    max_iter : int, default=150
    tol : float, default=1e-3
        Stop when no coordinate moves by more than this.

    Returns
    -------
    ndarray of shape (n_rows, rank)

    References
    ----------
    .. [1] S. Burer, R. D. C. Monteiro, "A nonlinear programming algorithm for solving semidefinite programs via
       low-rank factorization", Mathematical Programming, 2003.

    Examples
    --------
    >>> gram = np.kron(np.eye(2), np.ones((2, 2))) / 2 - 0.25
    >>> z = ball_relaxation(lambda v: -gram @ v, 4, np.random.default_rng(0))
    >>> (z @ z.T).round(2)[0].tolist()
    [1.0, 1.0, -1.0, -1.0]
    """
    z: NDArray[np.float64] = 0.1 * ndtri(np.maximum(random.random((n_rows, rank)), 1e-300))
    before = z
    for i in range(max_iter):
        ahead = z + i / (i + 3.0) * (z - before)
        new = ahead - apply(ahead)
        new /= np.maximum(np.sqrt(np.einsum("nr,nr->n", new, new)), 1.0)[:, None]
        z, before = new, z
        if np.abs(z - before).max() < tol:
            break
    return z


def nearest_groups(
    z: NDArray[np.float64], weights: NDArray[np.float64], n_groups: int, random: np.random.Generator
) -> NDArray[np.int32]:
    """Group the rows by k-means and return labels: the rounding of a relaxation whose rows are points."""
    if n_groups >= len(z):
        return np.arange(len(z), dtype=np.int32)
    rows = np.ascontiguousarray(z, dtype=np.float64)
    seed = int(random.integers(2**31))
    return swap_search(rows, weights, n_groups, seed=seed, effort="fast").labels


def softened(labels: NDArray[np.integer], n_classes: int) -> NDArray[np.float64]:
    """Return labels as assignments mixed with a tenth of the uniform one, so that EM can change them."""
    xi = np.full((len(labels), n_classes), SOFTNESS / n_classes)
    xi[np.arange(len(labels)), labels] += 1.0 - SOFTNESS
    return xi
