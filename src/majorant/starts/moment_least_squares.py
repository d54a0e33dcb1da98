"""Moment least squares: the mixture of regressions whose first three conditional moments fit those of the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from majorant._validation import check_integer, check_real
from majorant.solvers.symmetric_tensors import expand, index_tuples, powers
from majorant.starts.regression_moments import ORDERS, RegressionMoments

Array = NDArray[np.float64]

NOISE_FLOOR = 0.02
"""Smallest reported noise, as a share of the residual variance of one linear regression, so that EM can move."""

START_NOISE = (0.1, 0.4, 0.02, 0.7)
"""Initial noise variances as shares of that residual variance, used in turn."""

ENOUGH_HITS = 3
"""Number of starts that must reach the best misfit so far before no more are made."""


@dataclass(frozen=True)
class MomentFit:
    """A mixture of regressions found from moments, as a start of EM."""

    proportions: Array  # (k,): sum to one, largest first
    coefficients: Array  # (k, d): one row per component
    # noise variance of all components, at least a small share of the residual variance of one linear regression
    noise_variance: float
    misfit: float  # half the weighted sum of squares of the moment equations
    # number of starts, and of those that reached this misfit
    n_starts: int = 1
    n_hits: int = 1
    # other local minima, by misfit: where moments are uninformative, one of them may be a better start
    others: tuple[MomentFit, ...] = ()


class MomentEquations:
    r"""Weighted moment equations of a mixture of k linear regressions with noise of one variance.

    The mixture has moments :math:`M_p = \sum_h \pi_h b_h^{\otimes p}`, and :math:`E[y^p \mid x]` is
    :math:`\langle M_p, x^{\otimes p}\rangle` plus a contribution of the noise: zero, :math:`\sigma^2` and
    :math:`3 \sigma^2 \langle M_1, x\rangle` for p = 1, 2, 3. With :math:`m_p` the collapsed entries of :math:`M_p` and
    :math:`G_p`, :math:`c_p` the Gram matrix and target of `RegressionMoments`, the residuals are

    .. math:: r_p = \omega_p \left( G_p^{1/2} m_p - G_p^{-1/2} (c_p - \text{noise}_p) \right)

    in the directions that are identified, with :math:`\omega_p^{-2}` the variance of ``y**p`` about its regression. No
    Gram matrix is inverted and nothing is whitened, so directions that are not identified, or nearly not, do no harm.
    Where moments hardly determine the proportions, final residuals with the weight of one row shrink them together: the
    logarithms of the proportions minus their mean, divided by the square root of the total weight.

    Parameters
    ----------
    k : int
        Number of components.

    Attributes
    ----------
    noise_range : tuple of float
        Range of the noise variance: from zero to the residual variance of one linear regression.

    Raises
    ------
    ValueError
        If the response is zero throughout.
    """

    def __init__(self, moments: RegressionMoments, k: int) -> None:
        if moments.response_moments[2] == 0:
            raise ValueError("the response is zero throughout: check y")
        self.k, self.d = k, moments.n_features
        self._omega = [1 / np.sqrt(moments.unexplained(p)) for p in ORDERS]
        self._root = [w * moments.roots(p).root for w, p in zip(self._omega, ORDERS, strict=True)]
        inverse = [w * moments.roots(p).inverse for w, p in zip(self._omega, ORDERS, strict=True)]
        self._target = [a @ moments.target(p) for a, p in zip(inverse, ORDERS, strict=True)]
        self._of_squares = inverse[1] @ moments.of_squares()
        self._of_features = 3 * inverse[2] @ moments.of_features()
        self._prior = 1 / np.sqrt(moments.total_weight)
        self.n_residuals = sum(len(t) for t in self._target) + k
        self.noise_range = (0.0, moments.unexplained(1))

    def residuals(self, proportions: Array, coefficients: Array, noise: float) -> Array:
        """Return all residuals, those of first order first."""
        first, second, third = (
            root @ (proportions @ powers(coefficients, p)) - target
            for p, root, target in zip(ORDERS, self._root, self._target, strict=True)
        )
        mean, logs = proportions @ coefficients, np.log(np.maximum(proportions, 1e-300))
        of_noise = noise * self._of_squares, noise * (self._of_features @ mean)
        return np.concatenate([first, second + of_noise[0], third + of_noise[1], self._prior * (logs - logs.mean())])

    def misfit(self, proportions: Array, coefficients: Array, noise: float) -> float:
        """Return half the sum of squared residuals."""
        return float(np.sum(self.residuals(proportions, coefficients, noise) ** 2) / 2)

    # Parameters as one vector: logits of the proportions against the last, coefficients, noise variance.

    def pack(self, proportions: Array, coefficients: Array, noise: float) -> Array:
        """Return the parameters as one vector."""
        logits = np.log(proportions[:-1] / proportions[-1])
        return np.concatenate([logits, coefficients.ravel(), [noise]])

    def unpack(self, theta: Array) -> tuple[Array, Array, float]:
        """Return the proportions, coefficients and noise variance of a vector of parameters."""
        logits = np.append(theta[: self.k - 1], 0.0)
        odds = np.exp(logits - logits.max())
        return odds / odds.sum(), theta[self.k - 1 : -1].reshape(self.k, self.d), float(theta[-1])

    def value(self, theta: Array) -> Array:
        """Return the residuals at a vector of parameters."""
        return self.residuals(*self.unpack(theta))

    def jacobian(self, theta: Array) -> Array:
        """Return the derivatives of the residuals, shape (n_residuals, n_parameters)."""
        proportions, coefficients, noise = self.unpack(theta)
        k, d = self.k, self.d
        mean = proportions @ coefficients
        out = np.zeros((self.n_residuals, len(theta)))
        first = 0
        for p, root in zip(ORDERS, self._root, strict=True):
            block = out[first : first + len(root)]
            products = powers(coefficients, p)
            slopes = proportions[:, None, None] * power_derivatives(coefficients, p)
            block[:, : k - 1] = root @ (proportions[:-1, None] * (products[:-1] - proportions @ products)).T
            block[:, k - 1 : -1] = root @ slopes.transpose(1, 0, 2).reshape(-1, k * d)
            if p == 2:
                block[:, -1] = self._of_squares
            elif p == 3:
                block[:, -1] = self._of_features @ mean
                of_mean = noise * self._of_features
                block[:, : k - 1] += of_mean @ (proportions[:-1, None] * (coefficients[:-1] - mean)).T
                block[:, k - 1 : -1] += (of_mean[:, None, :] * proportions[:, None]).reshape(-1, k * d)
            first += len(root)
        out[first:, : k - 1] = self._prior * (np.eye(k)[:, :-1] - 1 / k)
        return out


def power_derivatives(vectors: Array, order: int) -> Array:
    """Return the derivatives of `powers(vectors, order)` in the entries of the vectors, shape (..., n_entries, d)."""
    d = vectors.shape[-1]
    tuples = index_tuples(d, order)
    out = np.zeros((*vectors.shape[:-1], len(tuples), d))
    rows = np.arange(len(tuples))
    for slot in range(order):
        others = [vectors[..., tuples[:, other]] for other in range(order) if other != slot]
        out[..., rows, tuples[:, slot]] += prod(others)  # each row occurs once in a slot
    return out


def moment_least_squares(
    moments: RegressionMoments,
    k: int,  # number of components; it may exceed the number of features
    *,
    noise_variance: float | None = None,  # The noise variance, if it is known. By default it is fitted.
    # largest number of starts; half of them suffice if three reach the same misfit and none a lower one
    n_starts: int = 12,
    max_iter: int = 100,  # largest number of evaluations of the equations from each start
    seed: int = 0,  # seed of the rotations
) -> MomentFit:
    r"""Fit proportions, coefficients and noise variance of a mixture of regressions to moments of the data.

    Minimises the sum of squares of `MomentEquations` by Levenberg-Marquardt steps from several starts. Its cost
    does not depend on the number of rows. The starts share the mean and, as far as possible with k components, the
    covariance of the coefficients as estimated from second-order moments; the rotation is random.

    Other local minima are the `others` of the best fit.

    Examples
    --------
    >>> import numpy as np
    >>> from majorant import Chunks
    >>> from majorant.starts.moment_least_squares import moment_least_squares
    >>> from majorant.starts.regression_moments import regression_moments
    >>> random = np.random.default_rng(0)
    >>> x = np.column_stack([np.ones(20000), random.normal(size=(20000, 2))])
    >>> lines = np.array([[1.0, 2.0, 0.0], [-1.0, 0.0, 2.0]])
    >>> y = np.sum(x * lines[random.integers(0, 2, 20000)], axis=1) + 0.3 * random.normal(size=20000)
    >>> fit = moment_least_squares(regression_moments(Chunks(x, y)), 2)
    >>> bool(np.abs(fit.coefficients[np.argsort(-fit.coefficients[:, 0])] - lines).max() < 0.1)
    True
    """
    check_integer("k", k, low=1)
    check_integer("n_starts", n_starts, low=1)
    if noise_variance is not None:
        check_real("noise_variance", noise_variance, low=0.0)
    equations = MomentEquations(moments, k)
    found: list[tuple[float, Array]] = []
    for i, start in enumerate(_starts(moments, k, noise_variance, n_starts, seed), 1):
        found.append(_descend(equations, equations.pack(*start), noise_variance, max_iter, tol=1e-9))
        if 2 * i >= n_starts and _hits([misfit for misfit, _ in found]) >= ENOUGH_HITS:
            break
    found.sort(key=lambda one: one[0])
    distinct = [one for i, one in enumerate(found) if i == 0 or not _same(one[0], found[i - 1][0])]
    best = _descend(equations, distinct[0][1], noise_variance, max_iter, tol=1e-15)
    others = tuple(_fit(equations, *one, noise_variance is None) for one in distinct[1:])
    fit = _fit(equations, *best, noise_variance is None)
    return replace(fit, n_starts=len(found), n_hits=_hits([misfit for misfit, _ in found]), others=others)


def _fit(equations: MomentEquations, misfit: float, theta: Array, floor_noise: bool) -> MomentFit:
    proportions, coefficients, noise = equations.unpack(theta)
    order = np.argsort(-proportions, kind="stable")
    if floor_noise:
        noise = max(noise, NOISE_FLOOR * equations.noise_range[1])
    return MomentFit(proportions[order], coefficients[order], noise, misfit)


def _same(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-6 * abs(b) + 1e-14


def _hits(misfits: list[float]) -> int:
    return sum(_same(m, min(misfits)) for m in misfits)


def _descend(
    equations: MomentEquations, theta: Array, noise_variance: float | None, max_iter: int, tol: float
) -> tuple[float, Array]:
    """Solve least squares from a start, refitting with the noise variance clipped if it leaves its range."""
    theta, inside = _least_squares(equations, theta, noise_variance is None, max_iter, tol), equations.noise_range
    if noise_variance is None and not inside[0] <= theta[-1] <= inside[1]:
        theta[-1] = np.clip(theta[-1], *inside)
        theta = _least_squares(equations, theta, False, max_iter, tol)
    return float(np.sum(equations.value(theta) ** 2) / 2), theta


def _least_squares(equations: MomentEquations, theta: Array, free_noise: bool, max_iter: int, tol: float) -> Array:
    from scipy.optimize import least_squares

    n = len(theta) if free_noise else len(theta) - 1
    held = theta[n:]
    padding = np.zeros((max(n - equations.n_residuals, 0), n))  # the method needs as many equations as unknowns
    found = least_squares(
        lambda free: np.append(equations.value(np.append(free, held)), padding[:, 0]),
        theta[:n],
        lambda free: np.vstack([equations.jacobian(np.append(free, held))[:, :n], padding]),
        method="lm",
        x_scale="jac",
        ftol=tol,
        xtol=tol,
        gtol=tol,
        max_nfev=max_iter,
    )
    return np.append(found.x, held)


def _starts(
    moments: RegressionMoments, k: int, noise_variance: float | None, n_starts: int, seed: int
) -> Iterator[tuple[Array, Array, float]]:
    """Yield starts: equal proportions, and coefficients of the estimated mean and covariance, rotated at random."""
    random = np.random.default_rng(seed)
    d, first, second = moments.n_features, moments.roots(1), moments.roots(2)
    mean = first.inverse.T @ moments.explained(1)
    for i in range(n_starts):
        noise = START_NOISE[i % len(START_NOISE)] * moments.unexplained(1) if noise_variance is None else noise_variance
        M2 = expand(second.inverse.T @ (second.inverse @ (moments.target(2) - noise * moments.of_squares())), d, 2)
        # In coordinates in which the features are uncorrelated, so that their units do not matter.
        spread, axes = np.linalg.eigh(first.root @ (M2 - np.outer(mean, mean)) @ first.root.T)
        r = min(k - 1, len(spread))
        spread, axes = spread[::-1][:r], axes[:, ::-1][:, :r]
        shape = np.sqrt(np.maximum(spread, 1e-3 * max(spread.max(initial=0.0), noise)))
        draws = random.standard_normal((k, r))
        turned = np.linalg.qr(draws - draws.mean(axis=0))[0] * np.sqrt(k)
        yield np.full(k, 1 / k), mean + (turned * shape) @ axes.T @ first.inverse, noise
