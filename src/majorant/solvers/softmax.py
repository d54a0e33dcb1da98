"""Softmax regression on soft targets: damped Newton for few coefficients, L-BFGS for many."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from majorant._validation import check_csr, check_integer, check_real, check_sample_weight
from majorant.data.chunks import Block, Chunks
from majorant.engine.threads import one_thread
from majorant.solvers.logits import LogitSums, logit_sums, soft_moments
from majorant.solvers.rotation import rotation
from majorant.solvers.smooth import lbfgs

Array = NDArray[np.float64]

MOST_FOR_NEWTON = 500
"""Largest number of coefficients for which the Hessian is formed."""


@dataclass(frozen=True)
class SoftmaxProblem:
    r"""Softmax regression in terms of sums over rows.

    .. math:: L(\theta) = \sum_i w_i \log\sum_z e^{[x_i, 1]\,\theta_z} - \langle T, \theta\rangle
              + \tfrac{\lambda}{2} \|\theta_{1:p}\|^2

    where :math:`T = \sum_i w_i [x_i, 1]^\top t_i` are the moments of the targets.
    """

    data: Chunks  # rows in the first column, with weights that are the sums of the rows of the targets
    target: Array  # (n_features + 1, n_states): T
    l2: float  # :math:`\lambda`; intercepts are not penalised

    @property
    def is_small(self) -> bool:
        """Whether Newton steps are cheap."""
        return self.target.size <= MOST_FOR_NEWTON

    def sums(self, theta: Array, *, blocks: bool = False) -> LogitSums:
        """Return value, gradient and curvature summed over the rows, in one pass."""

        def visit(block: Block) -> LogitSums:
            return logit_sums(block.columns[0], block.weights, theta, blocks=blocks)

        return self.data.map_sum(visit)

    def value(self, theta: Array, sums: LogitSums) -> float:
        return sums.value - float(np.sum(self.target * theta)) + self.penalty(theta)

    def penalty(self, theta: Array) -> float:
        return self.l2 / 2 * float(np.sum(theta[:-1] ** 2)) if self.l2 > 0 else 0.0

    def gradient(self, theta: Array, sums: LogitSums) -> Array:
        gradient = sums.moments - self.target
        gradient[:-1] += self.l2 * theta[:-1]
        return gradient

    def minimise(self, theta: Array, *, tol: float, max_iter: int) -> tuple[Array, float, int, bool]:
        """Minimise; return parameters, value, number of iterations and whether the tolerance was reached.

        The value never rises. `tol` is the gain of one more iteration, per unit of weight, at which to stop.
        """
        if self.is_small:
            return self._newton(theta, tol, max_iter)
        units = self.units()
        scale = 1 / self.data.total_weight

        def f(flat: Array) -> tuple[float, Array]:
            at = units.outward(flat.reshape(theta.shape))
            sums = self.sums(at)
            return self.value(at, sums) * scale, units.gradient(self.gradient(at, sums)).ravel() * scale

        found = lbfgs(f, units.inward(theta).ravel(), tol=tol, max_iter=max_iter)
        return units.outward(found.x.reshape(theta.shape)), found.value / scale, found.n_iter, found.converged

    def units(self) -> Units:
        """Return the units in which the curvature at equal probabilities is about one in every direction."""

        def visit(block: Block) -> Array:
            x = block.columns[0]
            w = np.ones((len(block), 1)) if block.weights is None else block.weights[:, None]
            squares = x.multiply(x).tocsr() if sparse.issparse(x) else x * x
            return np.concatenate([soft_moments(x, None, w)[:-1], soft_moments(squares, None, w)[:-1]], axis=1)

        sums = self.data.map_sum(visit)
        total, k = self.data.total_weight, self.target.shape[1]
        mean = sums[:, 0] / total
        variances = np.maximum(sums[:, 1] / total - mean**2, 0.0)
        curvature = np.append(variances * total / k + self.l2, total / k)
        return Units(mean, 1 / np.sqrt(np.where(curvature > 0, curvature, 1.0))[:, None])

    def _newton(self, theta: Array, tol: float, max_iter: int) -> tuple[Array, float, int, bool]:
        enough = tol * self.data.total_weight
        sums = self.sums(theta, blocks=True)
        value = self.value(theta, sums)
        for t in range(max_iter):
            gradient = self.gradient(theta, sums)
            direction = -_newton_direction(sums, gradient, self.l2)
            slope = float(np.sum(gradient * direction))
            if -slope <= 2 * enough:  # half of it is the gain of the quadratic model
                return theta, value, t, True
            last = t == max_iter - 1
            moved = self._along(theta, direction, value, slope, blocks=not last)
            if moved is None:
                return theta, value, t, True  # the rest is below rounding error
            theta, value, sums = moved
        return theta, value, max_iter, False

    def _along(
        self, theta: Array, direction: Array, value: float, slope: float, *, blocks: bool
    ) -> tuple[Array, float, LogitSums] | None:
        """Backtrack to the first of the steps 1, 1/2, 1/4, ... with sufficient decrease; None if there is none."""
        step = 1.0
        for _ in range(40):
            new = theta + step * direction
            sums = self.sums(new, blocks=blocks)
            reached = self.value(new, sums)
            if reached <= value + 1e-4 * step * slope:
                return new, reached, sums
            step /= 2
        return None


@dataclass(frozen=True)
class Units:
    """Map between parameters and those of centred and scaled features, which are not formed."""

    mean: Array
    scales: Array

    def outward(self, theta: Array) -> Array:
        moved = self.scales * theta
        moved[-1] -= self.mean @ moved[:-1]
        return np.asarray(moved)

    def inward(self, theta: Array) -> Array:
        moved = theta.copy()
        moved[-1] += self.mean @ theta[:-1]
        return np.asarray(moved / self.scales)

    def gradient(self, gradient: Array) -> Array:
        moved = gradient.copy()
        moved[:-1] -= np.outer(self.mean, gradient[-1])
        return np.asarray(self.scales * moved)


def _newton_direction(sums: LogitSums, gradient: Array, l2: float) -> Array:
    """Return ``H^-1 gradient``, shape (n_features + 1, n_states)."""
    d, k = gradient.shape
    assert sums.blocks is not None
    hessian = np.zeros((k, d, k, d))
    first, second = np.triu_indices(k, 1)
    for a, b, block in zip(first.tolist(), second.tolist(), sums.blocks, strict=True):
        hessian[a, :, b, :] = hessian[b, :, a, :] = -block
        hessian[a, :, a, :] += block
        hessian[b, :, b, :] += block
    sizes = np.einsum("aiai->i", hessian) / k
    sizes = np.maximum(sizes, 1e-8 * max(float(sizes.max(initial=0.0)), 1e-300))
    diagonal = np.arange(d)
    for a in range(k):
        hessian[a, diagonal[:-1], a, diagonal[:-1]] += l2
        # Without a penalty, adding a constant to all states' coefficients of a feature changes nothing.
        free = diagonal if l2 == 0 else diagonal[-1:]
        for b in range(k):
            hessian[a, free, b, free] += sizes[free] / k
    matrix = hessian.reshape(k * d, k * d)
    return _solve_positive(matrix, gradient.T.ravel()).reshape(k, d).T


def _solve_positive(matrix: Array, right: Array) -> Array:
    """Solve a positive semi-definite system, adding the smallest ridge that makes it definite."""
    diagonal = matrix.diagonal().copy()
    jitter = 0.0
    while True:
        np.fill_diagonal(matrix, diagonal * (1 + jitter) + jitter * 1e-300)
        try:
            factor = linalg.cho_factor(matrix, lower=True, check_finite=False)
        except linalg.LinAlgError:
            jitter = max(100 * jitter, 1e-14)
            continue
        return np.asarray(linalg.cho_solve(factor, right, check_finite=False))


@dataclass(frozen=True)
class SoftmaxFit:
    """A softmax regression.

    Attributes
    ----------
    coef : ndarray of shape (n_states, n_features)
    intercept : ndarray of shape (n_states,)
        Sums to zero over the states.
    objective : float
    n_iter : int
    converged : bool
    """

    coef: Array
    intercept: Array
    objective: float
    n_iter: int
    converged: bool

    def relative_to(self, reference: int) -> SoftmaxFit:
        """Return an equivalent fit in which all coefficients of one state are zero.

        Parameters
        ----------
        reference : int
            Number of the state.
        """
        return replace(
            self, coef=self.coef - self.coef[reference], intercept=self.intercept - self.intercept[reference]
        )


def softmax_regression(
    x: Any,
    targets: NDArray[Any],
    *,
    weights: Any = None,
    l2: float = 0.0,
    coef: tuple[Array, Array] | None = None,
    tol: float = 1e-10,
    max_iter: int = 500,
    n_jobs: int | None = None,
) -> SoftmaxFit:
    r"""Fit multinomial logistic regression to soft targets.

    Minimises over coefficients :math:`w_k` and intercepts :math:`b_k`

    .. math:: L(w, b) = -\sum_i \omega_i \sum_k t_{ik} \log \mathrm{softmax}_k(x_i^\top w_k + b_k)
              + \frac{\lambda}{2} \sum_k \|w_k\|^2 ,

    by damped Newton steps for at most 500 parameters, otherwise by L-BFGS; within the span of the rows if there are
    fewer rows than features. Intercepts are not penalised.

    Parameters
    ----------
    x : ndarray or CSR matrix of shape (n_samples, n_features)
        float32 or float64; anything else is converted to float64. Sparse rows stay sparse.
    targets : ndarray of shape (n_samples, n_states)
        Nonnegative. The sum of a row is a factor of its weight.
    weights : array-like of shape (n_samples,), optional
        :math:`\omega`; one each by default.
    l2 : float, default=0
        :math:`\lambda`. At zero the minimum may lie at infinity (separable rows): then `converged` is False, or the
        coefficients are as large as `tol` asks. Only differences between states are determined then, and those
        returned sum to zero over the states.
    coef : tuple of ndarray (n_states, n_features) and ndarray (n_states,), optional
        Coefficients and intercepts to start from; zero by default.
    tol : float, default=1e-10
        Expected gain of another iteration, per unit of weight, at which to stop.
    max_iter : int, default=500
    n_jobs : int, optional
        Number of threads; the result does not depend on it.

    Returns
    -------
    SoftmaxFit

    Raises
    ------
    ValueError, TypeError
        If shapes do not fit, or a number is not finite or out of range.

    References
    ----------
    .. [1] D. Böhning, "Multinomial logistic regression algorithm", Annals of the Institute of Statistical Mathematics,
       1992.

    Examples
    --------
    >>> import numpy as np
    >>> from majorant.solvers import softmax_regression
    >>> x = np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> targets = np.array([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.2, 0.8]])
    >>> fit = softmax_regression(x, targets).relative_to(0)
    >>> np.round(1 / (1 + np.exp(-(x @ fit.coef[1] + fit.intercept[1]))), 4).tolist()
    [0.1, 0.1, 0.8, 0.8]
    """
    x, targets, omega = _checked(x, targets, weights)
    check_real("l2", l2, low=0.0, high=1e300)
    check_real("tol", tol, low=0.0)
    check_integer("max_iter", max_iter, low=1)
    p, k = x.shape[1], targets.shape[1]
    with one_thread():  # its sums depend on how many threads it may use
        rows = rotation(x, omega)
        theta = np.zeros((rows.z.shape[1] + 1, k))
        if coef is not None:
            theta = rows.inward(_checked_start(coef, p, k))
        of_row = targets.sum(axis=1) if omega is None else omega * targets.sum(axis=1)
        target = Chunks(rows.z, targets, weights=omega, n_jobs=n_jobs).map_sum(
            lambda block: soft_moments(block.columns[0], block.weights, block.columns[1])
        )
        problem = SoftmaxProblem(Chunks(rows.z, weights=of_row, n_jobs=n_jobs), target, float(l2))
        theta, value, n_iter, converged = problem.minimise(theta, tol=tol, max_iter=max_iter)
        out = rows.outward(theta)
    intercept = out[-1] - out[-1].mean()
    weights_out = out[:-1] - out[:-1].mean(axis=1, keepdims=True) if l2 == 0 else out[:-1]
    return SoftmaxFit(np.ascontiguousarray(weights_out.T), intercept, value, n_iter, converged)


def _checked(x: Any, targets: Any, weights: Any) -> tuple[Any, Array, Array | None]:
    if sparse.issparse(x):
        x = sparse.csr_matrix(x)
        check_csr(x)
    else:
        x = np.ascontiguousarray(x)
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    targets = np.ascontiguousarray(targets, dtype=np.float64)
    if x.ndim != 2 or targets.ndim != 2 or len(targets) != x.shape[0] or not targets.size:
        raise ValueError(
            f"x must be (n_samples, n_features) and targets (n_samples, n_states), of at least one row and one state; "
            f"got shapes {x.shape} and {targets.shape}"
        )
    size = float(np.abs(x.data if sparse.issparse(x) else x).max(initial=0.0))
    if not size < 1e150:  # NaN too
        raise ValueError(
            f"entries of x must be finite and can be squared; the largest is {size}: drop rows, or rescale"
        )
    if not np.isfinite(targets).all() or (targets < 0).any():
        raise ValueError("targets must be finite and not negative")
    omega = check_sample_weight(weights, x.shape[0])
    if not (targets if omega is None else targets * omega[:, None]).any():
        raise ValueError("targets are zero in every row with weight: at least one must be positive")
    return x, targets, omega


def _checked_start(coef: tuple[Array, Array], p: int, k: int) -> Array:
    w, b = (np.asarray(part, dtype=np.float64) for part in coef)
    if w.shape != (k, p) or b.shape != (k,):
        raise ValueError(f"coef must be arrays of shape ({k}, {p}) and ({k},); got {w.shape} and {b.shape}")
    if not (np.isfinite(w).all() and np.isfinite(b).all()):
        raise ValueError("coef must be finite")
    return np.ascontiguousarray(np.vstack([w.T, b]))
