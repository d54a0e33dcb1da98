"""Parameters and densities of Gaussian mixtures, and the exact M-step with a floor under every covariance.

The shapes are scikit-learn's: ``covariances`` is (K, d, d) where "full", (d, d) where "tied", (K, d) where "diag" and
(K,) where "spherical". Moments of a component are about its current mean, so that a tight component
far from the origin loses no digits: ``[n, sum (x - m), second moments]``, where the second moments are the lower
triangle of ``sum (x - m)(x - m)'`` row by row ("full", "tied"), its diagonal ("diag") or its trace ("spherical").
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.solvers.covariance_types import COVARIANCES, Covariance, CovarianceType

Array = NDArray[np.float64]
LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class Mixture:
    r"""Parameters of a Gaussian mixture, :math:`p(x) = \sum_k \pi_k N(x; \mu_k, \Sigma_k)`.

    Examples
    --------
    >>> import numpy as np
    >>> one = Mixture(np.ones(1), np.zeros((1, 2)), np.ones(1), "spherical")
    >>> one.log_densities(np.zeros((1, 2))).round(6)
    array([[-1.837877]])
    >>> one.mapped(2.0, np.array([1.0, 0.0])).covariances
    array([4.])
    """

    weights: Array  # (n_components,): Shares; a component whose share is zero is absent
    means: Array  # (n_components, n_features)
    covariances: Array  # in scikit-learn's shape for the covariance type
    covariance_type: CovarianceType
    # of the precisions, see `precision_factors`: where they are known better than rounded covariances tell
    factors: Array | None = None

    @property
    def covariance(self) -> Covariance:
        """The type of the covariances."""
        return COVARIANCES[self.covariance_type]

    @property
    def n_components(self) -> int:
        return int(self.means.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.means.shape[1])

    @property
    def n_parameters(self) -> int:
        """Number of free parameters, as counted by information criteria."""
        k, d = self.means.shape
        return int(k * d + k - 1 + self.covariance.n_parameters(k, d))

    def precision_factors(self) -> tuple[Array, Array]:
        """Return the factors of the precisions, and the logarithms of the covariances' determinants.

        Returns
        -------
        factors : ndarray
            scikit-learn's ``precisions_cholesky_``: upper triangular ``U`` with ``U U' = covariance^-1`` where "full"
            or "tied", one over the standard deviation where "diag" or "spherical".
        log_determinants : ndarray of shape (n_components,)
        """
        factors, constants = self._factored
        return factors, 2 * constants - self.n_features * LOG_2PI

    @cached_property
    def _factored(self) -> tuple[Array, Array]:
        """Factors, and what the negative logarithm of each density is at its mean."""
        if self.factors is not None:
            roots = self.covariance.variances(self.factors, *self.means.shape)
            return self.factors, 0.5 * self.n_features * LOG_2PI - np.log(roots).sum(axis=1)
        covariances = np.ascontiguousarray(self.covariances)
        factors, constants = np.empty_like(covariances), np.empty(self.n_components)
        singular = _kernels.gauss_factor(
            covariances.ravel(), self.n_features, self.covariance.code, factors.ravel(), constants
        )
        if singular >= 0:
            raise ValueError(singular_message(self.covariance_type, singular))
        return factors, constants

    def log_densities(self, x: NDArray[Any], less: float = 0.0) -> NDArray[Any]:
        """Return ``log N(x_i; m_k, S_k) - less``, shape (n_rows, n_components), in the precision of the rows."""
        out = self._energies(x, self._factored[1] + less)
        return np.asarray(np.negative(out, out=out))

    def energies(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return ``-log(share_k) - log N(x_i; m_k, S_k)``, infinite where a component is absent."""
        return self._energies(x, self._offsets)

    def posteriors(self, x: NDArray[Any], beta: float = 1.0) -> tuple[Array, NDArray[Any]]:
        """Return free energies (n_rows,), at ``beta = 1`` minus log densities, and responsibilities (n_rows, K).

        At an infinite `beta` each row belongs to one component.
        """
        x = _rows(x)
        free, q = np.empty(len(x)), np.empty((len(x), self.n_components), dtype=x.dtype)
        _kernels.gauss_pass(x, None, *self._components, beta, None, free, q)
        return free, q

    def tight_moments(self, x: NDArray[Any], weights: Array | None, beta: float = 1.0) -> tuple[float, float, Array]:
        """Sum free energies, entropies over `beta`, and moments under the responsibilities, weighted, in one pass."""
        k, d = self.means.shape
        out = np.empty((k, 1 + d + self.covariance.n_second(d)))
        free, entropy = _kernels.gauss_pass(_rows(x), weights, *self._components, beta, out)
        return free, entropy, out

    def _energies(self, x: NDArray[Any], offsets: Array) -> NDArray[Any]:
        x = _rows(x)
        out = np.empty((len(x), self.n_components), dtype=x.dtype)
        means, factors, _, code = self._components
        _kernels.gauss_energies(x, means, factors, offsets, code, out)
        return out

    @cached_property
    def _offsets(self) -> Array:
        with np.errstate(divide="ignore"):  # an absent component has infinite energy
            return self._factored[1] - np.log(self.weights)

    @property
    def _components(self) -> tuple[Array, Array, Array, int]:
        """The mixture in the form that kernels take."""
        return np.ascontiguousarray(self.means), self._factored[0].ravel(), self._offsets, self.covariance.code

    def mapped(self, matrix: float | NDArray[Any], shift: float | NDArray[Any] = 0.0) -> Self:
        """Return the mixture of ``x * matrix + shift``, or of ``x @ matrix + shift`` where `matrix` has two dimensions.

        Parameters
        ----------
        matrix : float, ndarray of shape (n_features,) or (n_features, n_features)
            Spherical components allow a number only, diagonal ones no matrix.
        shift : float or ndarray of shape (n_features,)
        """
        a = np.asarray(matrix, dtype=np.float64)
        allowed = self.covariance.most_axes
        if a.ndim > allowed:
            kinds = ["one factor for all columns", "a factor for each column"][allowed]
            raise ValueError(f"components of type {self.covariance_type!r} can be mapped by {kinds} at most")
        if a.ndim == 2:
            means, covariances = np.einsum("kl,lm->km", self.means, a), self.covariance.mapped(self.covariances, a)
        else:
            means, covariances = self.means * a, self.covariance.scaled(self.covariances, a)
        return type(self)(self.weights, means + shift, covariances, self.covariance_type)


def moments(
    x: NDArray[Any],
    weights: Array | None,
    q: NDArray[Any],
    means: Array,
    covariance_type: CovarianceType,
    out: Array | None = None,
) -> Array:
    """Return moments (K, 1 + d + second) about the means, under weighted responsibilities `q` (n_rows, K)."""
    k, d = means.shape
    kind = COVARIANCES[covariance_type]
    out = np.empty((k, 1 + d + kind.n_second(d))) if out is None else out
    given = np.ascontiguousarray(q, dtype=np.float64)
    _kernels.gauss_moments(_rows(x), weights, np.ascontiguousarray(means), given, kind.code, out)
    return out


def solve_in_place(
    moments: Array,  # (n_components, 1 + d + second): about `reference`
    reference: Array,  # (n_components, d)
    kind: Covariance,
    floor: float,
    # `means`, `covariances`, `floored`: where the solution is written, and which floors raised an eigenvalue;
    # `covariances` holds the old ones
    means: Array,
    covariances: Array,
    floored: NDArray[np.bool_],
    *,
    # whether to round means to single precision, for rows of single precision: their differences are then exact
    single: bool,
) -> tuple[Array, float, float]:
    r"""Minimise ``<moments, energies>`` exactly among covariances whose eigenvalues are at least `floor`, in place.

    Each scatter matrix has its eigenvalues clipped at the floor: the minimiser of
    :math:`\log|\Sigma| + \mathrm{tr}(\Sigma^{-1} S)` under that constraint. A component without mass keeps its mean and
    its covariance.

    Returns the weights, the expected energy at the minimum, and the travel: the weighted sum of squared moves of the
    means, in units of the new covariances, a factor of the rounding error of moments about the old means.
    """
    k = len(reference)
    weights, offsets, factors = np.empty(k), np.empty(k), np.empty(covariances.size)
    value, travel, singular = _kernels.gauss_step(
        moments,
        np.ascontiguousarray(reference),
        kind.code,
        floor,
        single,
        weights,
        means,
        covariances.reshape(-1),
        factors,
        offsets,
        floored.view(np.uint8),
    )
    if singular >= 0:
        raise ValueError(singular_message(kind.name, singular))
    return weights, value, travel


def log_likelihood(mixture: Mixture, x: NDArray[Any], weights: Array | None) -> tuple[float, NDArray[Any]]:
    """Return the weighted log-likelihood of rows, and their responsibilities (n_rows, n_components)."""
    free, q = mixture.posteriors(x)
    return -float(free.sum() if weights is None else np.sum(weights * free)), q


def singular_message(covariance_type: CovarianceType, component: int | None = None) -> str:
    """Return the error message for a singular covariance."""
    of = "a component" if component is None else f"component {component}"
    which = "the tied covariance" if covariance_type == "tied" else f"the covariance of {of}"
    return (
        f"{which} is not positive definite: use a positive floor, fewer components, or columns that are not functions "
        "of each other"
    )


def _rows(x: NDArray[Any]) -> NDArray[Any]:
    """Return the rows in the form that kernels take."""
    return np.ascontiguousarray(x, dtype=x.dtype if x.dtype in (np.float64, np.float32) else np.float64)
