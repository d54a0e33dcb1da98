"""Decomposition of symmetric tensors: whitening by a second moment, and the robust power method with deflation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Whitening:
    """Linear maps between coordinates and those in which a second moment is the identity.

    Attributes
    ----------
    whiten : ndarray of shape (d, k)
        W with ``W.T @ M2 @ W`` the identity.
    unwhiten : ndarray of shape (d, k)
        U with ``U.T @ W`` the identity and ``U @ U.T`` the best approximation of M2 of rank k.
    eigenvalues : ndarray of shape (d,)
        Eigenvalues of M2, largest first, before any was raised to the floor.
    """

    whiten: Array
    unwhiten: Array
    eigenvalues: Array


def whitening(M2: Array, k: int, *, floor: float = 0.0) -> Whitening:
    r"""Whiten a symmetric second moment along its k leading eigenvectors.

    With :math:`M_2 = \sum_h \pi_h b_h b_h^\top` the vectors :math:`\sqrt{\pi_h}\, W^\top b_h` are orthonormal.

    Parameters
    ----------
    M2 : ndarray of shape (d, d)
        Symmetric.
    k : int
        At most d.
    floor : float, default=0
        Leading eigenvalues below this share of the largest are raised to it.

    Returns
    -------
    Whitening

    Raises
    ------
    ValueError
        If k exceeds d, or one of the k leading eigenvalues is not positive after raising.

    Examples
    --------
    >>> import numpy as np
    >>> from majorant.solvers import whitening
    >>> w = whitening(np.diag([4.0, 9.0, 0.0]), 2)
    >>> np.round(w.whiten.T @ np.diag([4.0, 9.0, 0.0]) @ w.whiten, 12).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    M2 = np.asarray(M2, dtype=np.float64)
    if M2.ndim != 2 or M2.shape[0] != M2.shape[1] or not np.isfinite(M2).all():
        raise ValueError(f"M2 must be a square matrix of finite numbers; got shape {M2.shape}")
    if not 1 <= k <= len(M2):
        raise ValueError(f"k must be between 1 and the {len(M2)} rows of M2; got {k}")
    values, vectors = np.linalg.eigh((M2 + M2.T) / 2)
    values, vectors = values[::-1], vectors[:, ::-1]
    leading = np.maximum(values[:k], floor * max(values[0], 0.0))
    if leading[-1] <= 0 or leading[-1] < 4 * np.finfo(float).eps * values[0]:
        raise ValueError(
            f"M2 has only {int(np.count_nonzero(values > 0))} positive eigenvalues (the {k}th is {values[k - 1]:.3g}): "
            f"whitening needs {k}; lower k, or raise floor above 0"
        )
    root = np.sqrt(leading)
    return Whitening(vectors[:, :k] / root, vectors[:, :k] * root, values)


@dataclass(frozen=True)
class TensorDecomposition:
    """A symmetric tensor as a sum of weighted third powers.

    Attributes
    ----------
    eigenvalues : ndarray of shape (k,)
        Nonnegative, in the order found: each the largest of what deflation had left.
    vectors : ndarray of shape (k, d)
        Unit vectors, one per row.
    residual : float
        Frobenius norm of what deflation left, as a share of the tensor's.
    """

    eigenvalues: Array
    vectors: Array
    residual: float


def symmetric_tensor_power(
    T: Array, k: int, *, n_starts: int = 20, max_iter: int = 200, tol: float = 1e-14
) -> TensorDecomposition:
    r"""Run the robust tensor power method with deflation.

    Fits :math:`T \approx \sum_{h=1}^k \lambda_h v_h^{\otimes 3}`. Each round iterates :math:`v \leftarrow T(I, v, v) /
    |T(I, v, v)|` from several starts, keeps the one with the largest :math:`\lambda = T(v, v, v)`, iterates it to
    convergence, and subtracts :math:`\lambda v^{\otimes 3}`. Exact where the :math:`v_h` are orthonormal and
    :math:`\lambda_h > 0`; convergence is then quadratic.

    Parameters
    ----------
    T : ndarray of shape (d, d, d)
        Symmetric.
    k : int
        Number of terms, at most d.
    n_starts : int, default=20
        Random starting vectors per round besides the coordinate axes. They have a fixed seed, so the result is a
        function of T.
    max_iter : int, default=200
        Iterations from each start.
    tol : float, default=1e-14
        Change of a unit vector below which it has converged.

    Returns
    -------
    TensorDecomposition

    Raises
    ------
    ValueError
        If T is not a cube of finite numbers, is not symmetric, or k is not between 1 and d.

    References
    ----------
    .. [1] A. Anandkumar, R. Ge, D. Hsu, S. M. Kakade, M. Telgarsky, "Tensor decompositions for learning latent variable
       models", JMLR 15, 2014, algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from majorant.solvers import symmetric_tensor_power
    >>> T = np.zeros((2, 2, 2))
    >>> T[0, 0, 0], T[1, 1, 1] = 3.0, 2.0
    >>> symmetric_tensor_power(T, 2).eigenvalues.round(12).tolist()
    [3.0, 2.0]
    """
    T = np.array(T, dtype=np.float64)
    if T.ndim != 3 or len(set(T.shape)) != 1 or not np.isfinite(T).all():
        raise ValueError(f"T must be a cube of finite numbers, shape (d, d, d); got shape {T.shape}")
    d = len(T)
    if not 1 <= k <= d:
        raise ValueError(f"k must be between 1 and {d}, the side of T: orthogonal terms are at most that many; got {k}")
    largest = np.abs(T).max(initial=0.0)
    if max(np.abs(T - T.transpose(1, 0, 2)).max(), np.abs(T - T.transpose(0, 2, 1)).max()) > 1e-8 * largest:
        raise ValueError("T must be symmetric in its three indices: average it over their permutations")
    whole = float(np.linalg.norm(T))
    starts = _starts(d, n_starts)
    values, vectors = np.empty(k), np.empty((k, d))
    for h in range(k):
        v = _iterate(T, starts, min(max_iter, 30), tol)
        best = int(np.argmax(_cubes(T, v)))
        v = _iterate(T, v[best : best + 1], max_iter, tol)
        vectors[h], values[h] = v[0], _cubes(T, v)[0]
        if values[h] < 0:
            vectors[h], values[h] = -vectors[h], -values[h]
        T -= values[h] * np.einsum("a,b,c->abc", vectors[h], vectors[h], vectors[h])
    return TensorDecomposition(values, vectors, float(np.linalg.norm(T)) / whole if whole > 0 else 0.0)


def _starts(d: int, n_starts: int) -> Array:
    random = np.random.default_rng(0).standard_normal((n_starts, d))
    return np.vstack([np.eye(d), random / np.linalg.norm(random, axis=1, keepdims=True)])


def _iterate(T: Array, v: Array, max_iter: int, tol: float) -> Array:
    for _ in range(max_iter):
        image = _images(T, v)
        length = np.linalg.norm(image, axis=1, keepdims=True)
        new = np.where(length > 0, image / np.where(length > 0, length, 1.0), v)
        moved = np.sum((new - v) ** 2, axis=1)
        v = new
        if (moved <= tol**2).all():
            break
    return v


def _images(T: Array, v: Array) -> Array:
    """Return ``T(I, v, v)`` for every row v."""
    d = len(T)
    slices = (v @ T.reshape(d, -1)).reshape(-1, d, d)
    return np.asarray((slices @ v[:, :, None])[:, :, 0])


def _cubes(T: Array, v: Array) -> Array:
    return np.asarray(np.sum(v * _images(T, v), axis=1))
