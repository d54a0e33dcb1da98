"""Spectral Experts: a mixture of regressions by low-rank regression of y squared and cubed, and tensor power."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from majorant._validation import check_choice, check_integer, check_real
from majorant.solvers.nuclear_norm import nuclear_norm_regression
from majorant.solvers.symmetric_tensors import collapse, expand, index_tuples, powers
from majorant.solvers.tensor_power import symmetric_tensor_power, whitening
from majorant.starts.moment_least_squares import NOISE_FLOOR, MomentEquations
from majorant.starts.regression_moments import RegressionMoments

Array = NDArray[np.float64]

PENALTIES = {True: (1e-4, 1e-4), False: (1e-3, 1e-2)}
"""Penalties of the second and the third-order regression, by whether the data identify all third-order moments, in
units in which the response and the features have mean square one."""

NOISE_SHARES = (0.8, 0.6, 0.4, 0.25, 0.1, 0.03, 0.0)
"""Noise variances that are tried if it is unknown, as shares of the residual variance of one linear regression."""

PRINTED = (1e-5, 1e-3)
"""Penalties of the paper, times the square root of the number of rows."""

TOLERANCE = 1e-6
"""Largest relative duality gap of the regressions."""

WHITENING_FLOOR = 1e-3
"""Eigenvalues of the second moment below this share of the largest are raised to it."""

LEAST_PROPORTION = 0.02
"""Proportions are clipped to at least this, over the number of components."""


@dataclass(frozen=True)
class SpectralFit:
    """A mixture of regressions found by Spectral Experts, with measures of its reliability."""

    proportions: Array  # (k,): sum to one, largest first
    coefficients: Array  # (k, d): one row per component
    # the given or the chosen one, at least a small share of the residual variance of one linear regression
    noise_variance: float
    # half the weighted sum of squares of the moment equations (`MomentEquations`), comparable between fits
    misfit: float
    # (d,): eigenvalues of the second moment of the coefficients, largest first, with features scaled to unit mean
    # square
    eigenvalues: Array
    # Difference of the k-th and the next eigenvalue (in magnitude), relative to the first: near zero or negative, there
    # are no clear k components. The k-th eigenvalue itself if k is the number of features.
    eigen_gap: float
    # norm of the residual of k terms of the whitened third moment, as a share of its Frobenius norm
    deflation_residual: float
    # whether an eigenvalue, a proportion or the length of coefficients was out of range and was clipped
    is_clipped: bool
    others: tuple[SpectralFit, ...] = ()  # fits with other noise variances, if it is unknown, by misfit


def spectral_experts(
    moments: RegressionMoments,
    k: int,  # number of components, at most the number of features
    *,
    # The noise variance, if it is known. By default several shares of the residual variance of one linear regression
    # are tried, and the one whose result fits the moments best is chosen.
    noise_variance: float | None = None,
    # Penalties of the second and the third-order regression, in units in which response and features have mean square
    # one; zero gives least squares. By default 1e-4 and 1e-4 if the data identify all moments of third order, otherwise
    # 1e-3 and 1e-2. "paper": 1e-5 and 1e-3 divided by the square root of n, in the units of the data, as [1]_ prints
    # them; they are so small that hardly more than least squares is left.
    penalties: tuple[float, float] | Literal["paper"] | None = None,
    whiten_first: bool = True,  # false: the order of the paper, third-order regression before whitening
) -> SpectralFit:
    r"""Estimate by Spectral Experts, algorithm 1 of [1]_.

    With :math:`M_p = \sum_h \pi_h b_h^{\otimes p}`, ``y**p`` is linear in the p-th tensor power of x with coefficients
    :math:`M_p`, up to what the noise adds. :math:`M_1` is found by least squares, :math:`M_2` and :math:`M_3` by least
    squares with a nuclear norm, of :math:`y^2 - \sigma^2` and :math:`y^3 - 3 \sigma^2 \langle M_1, x\rangle` (noise
    without skewness). :math:`M_2` gives W with :math:`W^\top M_2 W = I`; in :math:`M_3(W, W, W)` the components are
    orthogonal, with eigenvalues :math:`\pi_h^{-1/2}`, and the tensor power method finds them. By default the regression
    of third order is in the whitened coordinates, so that it estimates :math:`M_3(W, W, W)` directly;
    `experiments/spectral_experts.py` measures the advantage.

    Features are scaled to unit mean square, so that their units do not matter (unless penalties are those of the
    paper).

    References
    ----------
    .. [1] A. T. Chaganty, P. Liang, "Spectral experts for estimating mixtures of linear regressions", ICML 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from majorant import Chunks
    >>> from majorant.starts.regression_moments import regression_moments
    >>> from majorant.starts.spectral import spectral_experts
    >>> random = np.random.default_rng(0)
    >>> x = np.column_stack([np.ones(20000), random.normal(size=(20000, 2))])
    >>> lines = np.array([[1.0, 2.0, 0.0], [-1.0, 0.0, 2.0]])
    >>> y = np.sum(x * lines[random.integers(0, 2, 20000)], axis=1) + 0.3 * random.normal(size=20000)
    >>> fit = spectral_experts(regression_moments(Chunks(x, y)), 2, noise_variance=0.09)
    >>> bool(np.abs(fit.coefficients[np.argsort(-fit.coefficients[:, 0])] - lines).max() < 0.2)
    True
    """
    check_integer("k", k, low=1)
    if k > moments.n_features:
        with_constant = ", the constant among them" if moments.has_constant else ""
        raise ValueError(
            f"spectral starts find at most as many components as there are features; got {k} components and "
            f"{moments.n_features} features{with_constant}: ask for fewer components, or use moment least squares, "
            "which has no such limit"
        )
    if moments.response_moments[2] == 0:
        raise ValueError("the response is zero throughout: check y")
    units = _Units.of(moments)
    if penalties is None:
        penalties = PENALTIES[all(i.rank == i.n_coefficients for i in moments.identifiability)]
    elif isinstance(penalties, str):
        check_choice("penalties", penalties, ["paper"], or_else=", or two numbers")
        root = np.sqrt(moments.total_weight)
        penalties, units = (PRINTED[0] / root, PRINTED[1] / root), _Units(1.0, np.ones(moments.n_features))
    for i, penalty in enumerate(penalties):
        check_real(f"penalties[{i}]", penalty, low=0.0)
    whole = moments.unexplained(1)
    if noise_variance is not None:
        noises = [check_real("noise_variance", noise_variance, low=0.0)]
    else:
        noises = [share * whole for share in NOISE_SHARES]
    fits = [fit for noise in noises if (fit := _fit(moments, units, k, noise, penalties, whiten_first)) is not None]
    if not fits:
        raise ValueError(
            f"with a noise variance of {min(noises):.3g} nothing of the response is left to decompose (its mean "
            f"square is {moments.response_moments[2]:.3g}): give a smaller noise_variance"
        )
    if noise_variance is not None:
        return fits[0]
    # Too much noise leaves negative eigenvalues.
    fits.sort(key=lambda fit: (fit.eigen_gap < WHITENING_FLOOR, fit.misfit))
    best, *others = (replace(fit, noise_variance=max(fit.noise_variance, NOISE_FLOOR * whole)) for fit in fits)
    return replace(best, others=tuple(others))


def _fit(
    moments: RegressionMoments,
    units: _Units,
    k: int,
    noise: float,
    penalties: tuple[float, float],
    whiten_first: bool,
) -> SpectralFit | None:
    """Run the algorithm with one noise variance; return None if that leaves no second moment."""
    d = moments.n_features
    mean = moments.roots(1).inverse.T @ moments.explained(1)
    gram, target = units.of_order(moments, 2, moments.target(2) - noise * moments.of_squares())
    second = _low_rank(gram, target, d, 2, penalties[0])
    if not np.linalg.eigvalsh(second)[-1] > 0:
        return None
    white = whitening(second, k, floor=WHITENING_FLOOR)
    gram, target = units.of_order(moments, 3, moments.target(3) - 3 * noise * (moments.of_features() @ mean))
    if whiten_first:
        basis = _basis(white.unwhiten)
        T = _low_rank(basis.T @ gram @ basis, basis.T @ target, k, 3, penalties[1])
    else:
        T = _turned(_low_rank(gram, target, d, 3, penalties[1]), white.whiten)
    parts = symmetric_tensor_power(T, k)

    roots = np.clip(parts.eigenvalues, 1.0, np.sqrt(k / LEAST_PROPORTION))  # inverse roots of proportions
    scaled = roots[:, None] * parts.vectors @ white.unwhiten.T
    # The mean square that a component adds to y is at most that of y.
    share = np.einsum("hi,ij,hj->h", scaled, units.gram(moments), scaled) / roots**2
    shrink = 1 / np.sqrt(np.maximum(share, 1.0))
    proportions = 1 / roots**2 / np.sum(1 / roots**2)
    coefficients = scaled * shrink[:, None] * units.y / units.x
    order = np.argsort(-proportions, kind="stable")
    proportions, coefficients = proportions[order], coefficients[order]
    values = white.eigenvalues
    return SpectralFit(
        proportions,
        coefficients,
        noise,
        MomentEquations(moments, k).misfit(proportions, coefficients, noise),
        values,
        float((values[k - 1] - np.abs(values[k:]).max(initial=0.0)) / values[0]),
        parts.residual,
        bool(
            values[k - 1] < WHITENING_FLOOR * values[0]
            or np.abs(roots - parts.eigenvalues).max() > 1e-6
            or shrink.min() < 1 - 1e-9
        ),
    )


def _low_rank(gram: Array, target: Array, d: int, order: int, penalty: float) -> Array:
    """Return the tensor of a regression with nuclear norm, to a duality gap well below the size of the penalty."""
    tol = float(np.clip(penalty / 100, 1e-11, TOLERANCE))
    return nuclear_norm_regression(gram, target, d, order, penalty, tol=tol).tensor


@dataclass(frozen=True)
class _Units:
    """Root mean squares of the response and of each feature, the units of the regressions."""

    y: float
    x: Array

    @classmethod
    def of(cls, moments: RegressionMoments) -> _Units:
        x = np.sqrt(np.diag(moments.gram(1)))
        return cls(float(np.sqrt(moments.response_moments[2])), np.where(x > 0, x, 1.0))

    def gram(self, moments: RegressionMoments) -> Array:
        """Return the Gram matrix of the features in these units."""
        return np.asarray(moments.gram(1) / np.outer(self.x, self.x))

    def of_order(self, moments: RegressionMoments, order: int, target: Array) -> tuple[Array, Array]:
        """Return the Gram matrix and target of a regression in these units."""
        unit = powers(self.x, order)
        return moments.gram(order) / np.outer(unit, unit), target / unit / self.y**order


def _turned(T: Array, maps: Array) -> Array:
    """Return ``T(maps, maps, maps)``: each index of T is contracted with the first index of the maps."""
    for _ in range(3):
        T = np.tensordot(T, maps, axes=(0, 0))  # the new index is the last one
    return T


def _basis(unwhiten: Array) -> Array:
    """Return the matrix of ``T -> T(U', U', U')`` on collapsed entries, shape (n_entries, n_entries_of_T)."""
    k = unwhiten.shape[1]
    units = np.eye(len(index_tuples(k, 3)))
    return np.column_stack([collapse(_turned(expand(e, k, 3), unwhiten.T)) for e in units])
