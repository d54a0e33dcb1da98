"""Regression on a symmetric matrix or 3-tensor of low rank: least squares with a nuclear norm, with a duality gap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from majorant._numbers import briefly
from majorant.solvers.symmetric_tensors import expand, index_tuples, multiplicities, positions

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NuclearNormFit:
    """Result of a regression with a nuclear norm.

    Attributes
    ----------
    coefficients : ndarray of shape (n_entries,)
        Collapsed entries of the tensor.
    tensor : ndarray of shape (d,) * order
        The symmetric tensor with these entries.
    objective : float
    gap : float
        Bound on the difference between the objective and its minimum.
    n_iter : int
    converged : bool
        Whether the gap is below the tolerance.
    history : ndarray of shape (n_iter,)
        Smoothed objective after every step; it never rises.
    """

    coefficients: Array
    tensor: Array
    objective: float
    gap: float
    n_iter: int
    converged: bool
    history: Array


def nuclear_norm_regression(
    gram: Array,
    target: Array,
    d: int,
    order: int,
    penalty: float,
    *,
    max_iter: int = 500,
    tol: float = 1e-7,
) -> NuclearNormFit:
    r"""Fit symmetric low-rank regression from its normal equations.

    Minimises over symmetric tensors :math:`T` of the given order, with collapsed entries :math:`v`,

    .. math:: F(v) = \tfrac12 v^\top G v - c^\top v + \lambda\, \|T_{(1)}\|_*

    where :math:`T_{(1)}`, of shape (d, d^(order-1)), is an unfolding (all are equal by symmetry) and
    :math:`\|\cdot\|_*` is the sum of its singular values :math:`s_i`. The norm is smoothed to
    :math:`\sum_i (s_i^2 + \varepsilon^2)^{1/2}`, which Newton steps with a line search minimise, and
    :math:`\varepsilon` falls until the duality gap of the problem itself is small. The smoothed objective never rises,
    a singular Gram matrix is allowed, and there is no step size or weight to choose.

    Parameters
    ----------
    gram : ndarray of shape (n_entries, n_entries)
        G, the mean of :math:`\phi \phi^\top` with :math:`\phi` multiplicities times products of features: positive
        semi-definite. `n_entries` is ``comb(d + order - 1, order)``.
    target : ndarray of shape (n_entries,)
        c, the mean of :math:`\phi` times the response. Only its part in the range of G is used (the rest is
        rounding error if both come from data).
    d : int
        Number of features.
    order : {2, 3}
        2 for symmetric matrices, 3 for symmetric 3-tensors.
    penalty : float
        :math:`\lambda`, nonnegative. Zero gives least squares, of smallest norm among equals.
    max_iter : int, default=500
    tol : float, default=1e-7
        Relative gap at which to stop, as a share of half the explained sum of squares.

    Returns
    -------
    NuclearNormFit

    Raises
    ------
    ValueError
        If the shapes do not fit, a number is not finite, or the penalty is negative.

    References
    ----------
    .. [1] R. Tomioka, T. Suzuki, K. Hayashi, H. Kashima, "Statistical performance of convex tensor decomposition",
       2011.

    Examples
    --------
    >>> import numpy as np
    >>> from majorant.solvers import nuclear_norm_regression
    >>> gram = np.diag([1.0, 2.0, 1.0])  # orthonormal design: entries (0, 0), (0, 1) and (1, 1), the second one twice
    >>> fit = nuclear_norm_regression(gram, gram @ [2.0, 0.0, 0.1], 2, 2, penalty=0.5)
    >>> fit.tensor.round(4).tolist()  # eigenvalues 2 and 0.1 shrunk by 0.5
    [[1.5, 0.0], [0.0, 0.0]]
    """
    gram, target = np.asarray(gram, dtype=np.float64), np.asarray(target, dtype=np.float64)
    _check(gram, target, d, order, penalty)
    least_squares = pseudo_solve(gram, target)
    explained = float(target @ least_squares)
    if penalty == 0 or explained <= 0:
        v = least_squares
        return NuclearNormFit(v, expand(v, d, order), -explained / 2, 0.0, 0, True, np.empty(0))
    consistent = gram @ least_squares
    enough, rounding = tol * explained / 2, 4 * np.finfo(float).eps * explained
    norm = float(np.linalg.norm(_unfolded(least_squares, d, order), 2))

    def smoothed(v: Array, epsilon: float) -> float:
        spectrum = np.linalg.svd(_unfolded(v, d, order), compute_uv=False)
        return float(v @ (gram @ v) / 2 - consistent @ v + penalty * np.hypot(spectrum, epsilon).sum())

    v, epsilon, gap, objective, bound = least_squares, norm, np.inf, np.inf, -np.inf
    history: list[float] = []
    while gap > enough and len(history) < max_iter:
        parts = _SmoothedNorm(v, d, order, epsilon)
        slope = gram @ v - consistent + penalty * parts.slope
        curvature = gram + penalty * parts.curvature()
        curvature[np.diag_indices_from(curvature)] *= 1 + 1e-14  # nearly singular where gram is
        step: Array = -np.linalg.solve(curvature, slope).astype(np.float64)
        decrement = -float(slope @ step)
        v, after = _line_search(partial(smoothed, epsilon=epsilon), v, step, decrement, rounding)
        history.append(after)
        objective = smoothed(v, 0.0)
        bound = max(
            bound, _dual_bound(gram, consistent, least_squares, v, penalty, _SmoothedNorm(v, d, order, epsilon))
        )
        gap = max(objective - bound, 0.0)
        if decrement < 0.1 * gap:
            epsilon = max(epsilon / 8, 1e-14 * norm)
    return NuclearNormFit(v, expand(v, d, order), objective, gap, len(history), gap <= enough, np.array(history))


def _line_search(
    f: Callable[[Array], float], v: Array, step: Array, decrement: float, rounding: float
) -> tuple[Array, float]:
    before = f(v)
    for halvings in range(40):
        share = 0.5**halvings
        after = f(v + share * step)
        if after <= before - 0.1 * share * decrement + rounding:
            return v + share * step, after
    return v, before


def _dual_bound(
    gram: Array, consistent: Array, least_squares: Array, v: Array, penalty: float, at: _SmoothedNorm
) -> float:
    """Return a lower bound on the objective: the dual objective at the multipliers of v.

    They are moved so that v is stationary with them, then shrunk to norm one, which makes them feasible.
    """
    excess = (gram @ v - consistent) / penalty + at.slope
    multipliers = at.multipliers - _unfolded(excess / at.counts, at.d, at.order)
    share = min(1.0, 1.0 / float(np.linalg.norm(multipliers, 2)))
    u = (1 - share) * least_squares + share * v
    return -float(u @ (gram @ u)) / 2


class _SmoothedNorm:
    """The smoothed nuclear norm of an unfolded symmetric tensor, and its derivatives by the collapsed entries.

    With singular values s and ``r = (s^2 + epsilon^2)^(1/2)`` the norm is the sum of r. Its second derivatives are
    diagonal in the basis of singular vectors, in the symmetric and skew parts of each pair [1]_.

    References
    ----------
    .. [1] A. S. Lewis, H. S. Sendov, "Nonsmooth analysis of singular values", Set-Valued Analysis 13, 2005.
    """

    def __init__(self, v: Array, d: int, order: int, epsilon: float) -> None:
        self.d, self.order, self.epsilon = d, order, epsilon
        self.counts = multiplicities(d, order)
        self._left, spectrum, self._right = np.linalg.svd(_unfolded(v, d, order))
        self._s = np.maximum(spectrum, 1e-200)  # for quotients of them
        self._r = np.hypot(self._s, epsilon)
        self.multipliers = (self._left * (self._s / self._r)) @ self._right[:d]
        self.slope = np.bincount(positions(d, order).ravel(), self.multipliers.ravel(), len(v))

    def curvature(self) -> Array:
        """Return the matrix of second derivatives."""
        s, r, d = self._s, self._r, self.d
        crossed = np.outer(s, r) + np.outer(r, s)
        total = np.add.outer(s, s)
        symmetric = self.epsilon**2 / np.outer(r, r) * (total / crossed)
        skew = crossed / total / np.outer(r, r)
        turned = self._left.T @ _units(d, self.order) @ self._right.T
        square, rest = turned[:, :, :d], turned[:, :, d:]
        flipped = square.transpose(0, 2, 1)
        rows = [
            np.sqrt(symmetric) * (square + flipped) / 2,
            np.sqrt(skew) * (square - flipped) / 2,
            rest / np.sqrt(r)[:, None],
        ]
        flat = np.concatenate([block.reshape(len(turned), -1) for block in rows], axis=1)
        return np.asarray(flat @ flat.T)


@cache
def _units(d: int, order: int) -> Array:
    """Return the unfolded unit tensor of each collapsed entry."""
    size = len(index_tuples(d, order))
    return np.asarray(positions(d, order).reshape(d, -1) == np.arange(size)[:, None, None], dtype=np.float64)


def pseudo_solve(gram: Array, target: Array) -> Array:
    """Solve normal equations by least squares where the Gram matrix may be singular.

    Columns are first scaled to unit length, so that the rank does not depend on units. Directions within the rounding
    error are left out.
    """
    roots = gram_roots(gram)
    return np.asarray(roots.inverse.T @ (roots.inverse @ target))


@dataclass(frozen=True)
class GramRoots:
    """Square roots of a Gram matrix G within its range."""

    root: Array  # (rank, n): R with ``R.T @ R`` equal to G, up to the directions left out
    inverse: Array  # (rank, n): S with ``S @ R.T`` the identity
    eigenvalues: Array  # (n,): eigenvalues of G scaled to unit diagonal, ascending

    @property
    def rank(self) -> int:
        return len(self.root)


def gram_roots(gram: Array, rcond: float | None = None) -> GramRoots:
    """Compute square roots of a Gram matrix, without directions of less than `rcond` of its largest eigenvalue."""
    diagonal = np.diag(gram)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    cutoff = 10 * len(gram) * np.finfo(float).eps if rcond is None else rcond
    kept = values > cutoff * max(values[-1], 0.0)
    length = np.sqrt(values[kept])
    return GramRoots((vectors[:, kept] * length).T * scale, (vectors[:, kept] / length).T / scale, values)


def _unfolded(v: Array, d: int, order: int) -> Array:
    return expand(v, d, order).reshape(d, -1)


def _check(gram: Array, target: Array, d: int, order: int, penalty: float) -> None:
    if order not in (2, 3):
        raise ValueError(f"order must be 2 (symmetric matrices) or 3 (symmetric tensors); got {briefly(order)}")
    n = len(index_tuples(d, order))
    if gram.shape != (n, n) or target.shape != (n,):
        raise ValueError(
            f"{d} features have {n} products of order {order}: gram must have shape ({n}, {n}) and target ({n},); "
            f"got {gram.shape} and {target.shape}"
        )
    if not (np.isfinite(gram).all() and np.isfinite(target).all()):
        raise ValueError("gram and target must hold finite numbers")
    if not 0 <= penalty < np.inf:
        raise ValueError(f"penalty must be a finite number of at least 0; got {briefly(penalty)}")
