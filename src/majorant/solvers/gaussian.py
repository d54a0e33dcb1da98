"""Gaussian mixtures as numbers: their parameters, densities, and the exact M-step with a floor under every covariance.

The shapes are scikit-learn's: ``covariances`` is (K, d, d) where "full", (d, d) where "tied", (K, d) where "diag" and
(K,) where "spherical". Moments of the rows of a component are taken about its current mean, so that a tight component
far from the origin loses no digits: ``[n, sum (x - m), second moments]``, where the second moments are the lower
triangle of ``sum (x - m)(x - m)'`` row by row ("full", "tied"), its diagonal ("diag") or its trace ("spherical").
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
CovarianceType = Literal["full", "tied", "diag", "spherical"]
COVARIANCE_TYPES: tuple[CovarianceType, ...] = ("full", "tied", "diag", "spherical")
LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class Mixture:
    r"""Parameters of a Gaussian mixture, :math:`p(x) = \sum_k \pi_k N(x; \mu_k, \Sigma_k)`.

    Attributes
    ----------
    weights : ndarray of shape (n_components,)
        Shares; a component whose share is zero is absent.
    means : ndarray of shape (n_components, n_features)
    covariances : ndarray
        In scikit-learn's shape for the covariance type.
    covariance_type : {"full", "tied", "diag", "spherical"}

    Examples
    --------
    >>> import numpy as np
    >>> one = Mixture(np.ones(1), np.zeros((1, 2)), np.ones(1), "spherical")
    >>> float(one.log_densities(np.zeros((1, 2)))[0, 0] + np.log(2 * np.pi))
    0.0
    >>> one.mapped(2.0, np.array([1.0, 0.0])).covariances
    array([4.])
    """

    weights: Array
    means: Array
    covariances: Array
    covariance_type: CovarianceType

    @property
    def n_components(self) -> int:
        return int(self.means.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.means.shape[1])

    @property
    def n_parameters(self) -> int:
        """Free parameters, as criteria count them."""
        k, d = self.means.shape
        triangle = d * (d + 1) // 2
        free = {"full": k * triangle, "tied": triangle, "diag": k * d, "spherical": k}[self.covariance_type]
        return int(k * d + k - 1 + free)

    def precision_factors(self) -> tuple[Array, Array]:
        """Factors of the precisions, and the logarithms of the covariances' determinants.

        Returns
        -------
        factors : ndarray
            scikit-learn's ``precisions_cholesky_``: upper triangular ``U`` with ``U U' = covariance^-1`` where "full"
            or "tied", one over the standard deviation where "diag" or "spherical".
        log_determinants : ndarray of shape (n_components,)

        Raises
        ------
        ValueError
            If a covariance is not positive definite.
        """
        return self._factored

    @cached_property
    def _factored(self) -> tuple[Array, Array]:
        factors, determinants = _factor(self.covariances, self.covariance_type, self.n_features)
        return factors, np.broadcast_to(determinants, (self.n_components,))

    def log_densities(self, x: NDArray[Any]) -> Array:
        """``log N(x_i; m_k, S_k)``, shape (n_rows, n_components)."""
        factors, log_determinants = self.precision_factors()
        out = np.empty((len(x), self.n_components))
        for k, mean in enumerate(self.means):
            factor = factors if self.covariance_type == "tied" else factors[k]
            difference = x - mean
            scaled = difference * factor if factor.ndim < 2 else np.einsum("il,lm->im", difference, factor)
            out[:, k] = np.sum(scaled**2, axis=1)
        return -0.5 * (out + log_determinants + self.n_features * LOG_2PI)

    def mapped(self, matrix: float | NDArray[Any], shift: float | NDArray[Any] = 0.0) -> Self:
        """The mixture of ``x * matrix + shift``, or of ``x @ matrix + shift`` where `matrix` has two dimensions.

        Parameters
        ----------
        matrix : float, ndarray of shape (n_features,) or (n_features, n_features)
            Spherical components take a number alone, diagonal ones no matrix.
        shift : float or ndarray of shape (n_features,)

        Raises
        ------
        ValueError
            If the result has another covariance type.
        """
        a = np.asarray(matrix, dtype=np.float64)
        allowed = {"full": 2, "tied": 2, "diag": 1, "spherical": 0}[self.covariance_type]
        if a.ndim > allowed:
            kinds = ["one factor for all columns", "a factor for each column"][allowed]
            raise ValueError(f"components of type {self.covariance_type!r} can be mapped by {kinds} at most")
        if a.ndim == 2:
            means = np.einsum("kl,lm->km", self.means, a)
            covariances = np.einsum("la,...lm,mb->...ab", a, self.covariances, a)
            covariances = (covariances + np.swapaxes(covariances, -1, -2)) / 2
        else:
            means = self.means * a
            squares = np.outer(a, a) if a.ndim and allowed == 2 else a**2
            covariances = self.covariances * squares
        return type(self)(self.weights, means + shift, covariances, self.covariance_type)


def n_second_moments(n_features: int, covariance_type: CovarianceType) -> int:
    """How many second moments a component of this type needs."""
    triangle = n_features * (n_features + 1) // 2
    return {"full": triangle, "tied": triangle, "diag": n_features, "spherical": 1}[covariance_type]


def triangle_to_matrix(triangle: Array, n_features: int) -> Array:
    """Symmetric matrices (..., d, d) from their lower triangles, row by row."""
    out = np.empty((*triangle.shape[:-1], n_features, n_features))
    row, column = np.tril_indices(n_features)
    out[..., row, column] = triangle
    out[..., column, row] = triangle
    return out


def moments(
    x: NDArray[Any], weights: Array | None, q: NDArray[Any], means: Array, covariance_type: CovarianceType
) -> Array:
    """Weighted moments about each component's mean of the rows that `q`, (n_rows, K), gives it; (K, 1 + d + second)."""
    d = means.shape[1]
    out = np.empty((len(means), 1 + d + n_second_moments(d, covariance_type)))
    row, column = np.tril_indices(d)
    for k, mean in enumerate(means):
        share = q[:, k] if weights is None else q[:, k] * weights
        difference = x - mean
        out[k, 0] = share.sum(dtype=np.float64)
        out[k, 1 : 1 + d] = np.einsum("i,il->l", share, difference)
        if covariance_type in ("full", "tied"):
            out[k, 1 + d :] = np.einsum("i,il,im->lm", share, difference, difference)[row, column]
        else:
            squares = np.einsum("i,il->l", share, difference**2)
            out[k, 1 + d :] = squares if covariance_type == "diag" else squares.sum()
    return out


@dataclass(frozen=True)
class MStep:
    """The parameters that minimise the expected energy of given moments, its value, and where the floor decided."""

    mixture: Mixture
    value: float
    floored: NDArray[np.bool_]
    travel: Array
    """Squared moves of the means in units of the new covariances, by component: what moments lose to rounding."""


def m_step(
    moments: Array, old: Mixture | None, reference: Array, covariance_type: CovarianceType, floor: float
) -> MStep:
    r"""Exact minimiser of ``<moments, energies>`` among covariances whose eigenvalues are at least `floor`.

    Each scatter matrix has its eigenvalues clipped at the floor: the minimiser of
    :math:`\log|\Sigma| + \mathrm{tr}(\Sigma^{-1} S)` under that constraint. A component without mass keeps its mean and
    its covariance; without `old` it gets the `reference` and the largest of the floor and one.

    Parameters
    ----------
    moments : ndarray of shape (n_components, 1 + d + second)
        About `reference`.
    old : Mixture or None
    reference : ndarray of shape (n_components, d)
    covariance_type : {"full", "tied", "diag", "spherical"}
    floor : float
        Smallest eigenvalue of any covariance.

    Raises
    ------
    ValueError
        If a covariance is singular, which only a positive floor prevents.
    """
    d = reference.shape[1]
    mass = moments[:, 0]
    total = mass.sum()
    present = mass > 0
    safe = np.where(present, mass, 1.0)[:, None]
    shift = np.where(present[:, None], moments[:, 1 : 1 + d] / safe, 0.0)
    scatter = moments[:, 1 + d :] / safe
    row, column = np.tril_indices(d)
    if covariance_type in ("full", "tied"):
        scatter = scatter - shift[:, row] * shift[:, column]
    elif covariance_type == "diag":
        scatter = scatter - shift**2
    else:
        scatter = (scatter - np.sum(shift**2, axis=1, keepdims=True)) / d
    scatter[~present] = 0.0
    covariances, log_determinants, spreads, floored = _covariances(scatter, mass, covariance_type, d, floor)
    weights = mass / total
    if not present.all() and covariance_type != "tied":
        if old is not None:
            covariances[~present] = old.covariances[~present]
        else:
            one = max(floor, 1.0)
            covariances[~present] = one * np.eye(d) if covariance_type == "full" else one
        log_determinants[~present] = 0.0
        floored[~present] = False
    mixture = Mixture(weights, reference + shift, covariances, covariance_type)
    log_shares = np.log(np.where(present, weights, 1.0))
    energy = np.where(present, 0.5 * (d * LOG_2PI + log_determinants + spreads) - log_shares, 0.0)
    factors, _ = mixture.precision_factors()
    if covariance_type in ("full", "tied"):
        scaled = np.einsum("kl,...lm->km" if covariance_type == "tied" else "kl,klm->km", shift, factors)
    else:
        scaled = shift * (factors if covariance_type == "diag" else factors[:, None])
    return MStep(mixture, float(np.sum(mass * energy)), floored, np.sum(scaled**2, axis=1))


def _covariances(
    scatter: Array, mass: Array, covariance_type: CovarianceType, d: int, floor: float
) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
    """Covariances, log determinants, ``tr(covariance^-1 scatter)`` and whether the floor was reached, by component."""
    k = len(mass)
    if covariance_type == "tied":
        pooled = np.sum(mass[:, None] * scatter, axis=0, keepdims=True) / mass.sum()
        covariances, log_determinants, spreads, floored = _covariances(pooled, np.ones(1), "full", d, floor)
        return covariances[0], np.repeat(log_determinants, k), np.repeat(spreads, k), np.repeat(floored, k)
    if covariance_type == "full":
        values, vectors = np.linalg.eigh(triangle_to_matrix(scatter, d))
        clipped = np.maximum(values, floor)
        covariances = np.einsum("kal,kl,kbl->kab", vectors, clipped, vectors)
        kept = (values >= floor).all(axis=1)
        covariances[kept] = triangle_to_matrix(scatter[kept], d)
    else:
        values = scatter
        covariances = clipped = np.maximum(values, floor)
    with np.errstate(divide="ignore", invalid="ignore"):  # a singular covariance is refused when it is factored
        repeat = d if covariance_type == "spherical" else 1
        log_determinants = repeat * np.log(clipped).sum(axis=1)
        spreads = repeat * (values / clipped).sum(axis=1)
    if covariance_type == "spherical":
        covariances = covariances[:, 0]
    return covariances, log_determinants, spreads, np.asarray((values < floor).any(axis=1))


def _factor(covariances: Array, covariance_type: CovarianceType, d: int) -> tuple[Array, Array]:
    """Precision factors and log determinants; see `Mixture.precision_factors`."""
    if covariance_type in ("diag", "spherical"):
        if not (covariances > 0).all():
            k = int(np.argwhere(~(covariances > 0))[0][0])
            raise ValueError(_singular(f"the variance of component {k} is {np.min(covariances[k]):g}"))
        logs = np.log(covariances)
        return 1.0 / np.sqrt(covariances), logs.sum(axis=1) if covariance_type == "diag" else d * logs
    stacked = covariances.reshape(-1, d, d)
    factors, log_determinants = np.empty_like(stacked), np.empty(len(stacked))
    for k, covariance in enumerate(stacked):
        try:
            root = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError as error:
            which = "the tied covariance" if covariance_type == "tied" else f"the covariance of component {k}"
            raise ValueError(_singular(f"{which} is not positive definite")) from error
        factors[k] = np.linalg.solve(root, np.eye(d)).T
        log_determinants[k] = 2 * np.log(np.diag(root)).sum()
    if covariance_type == "tied":
        return factors[0], log_determinants[0]
    return factors, log_determinants


def _singular(what: str) -> str:
    return f"{what}: use a positive floor, fewer components, or columns that are not functions of each other"


def log_likelihood(mixture: Mixture, x: NDArray[Any], weights: Array | None) -> tuple[float, Array]:
    """Weighted log-likelihood of rows, and their responsibilities (n_rows, n_components)."""
    with np.errstate(divide="ignore"):
        table = mixture.log_densities(x) + np.log(mixture.weights)
    most = table.max(axis=1, keepdims=True)
    q = np.exp(table - most)
    total = q.sum(axis=1, keepdims=True)
    each = (most + np.log(total))[:, 0]
    return float(each.sum() if weights is None else np.sum(weights * each)), q / total
