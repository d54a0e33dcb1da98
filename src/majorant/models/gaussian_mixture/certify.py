"""Certificates of Gaussian mixtures: how far the likelihood can be from the best possible."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from majorant._numbers import briefly
from majorant.results.certificate import Certificate
from majorant.solvers.gaussian import Array, Mixture
from majorant.solvers.mixture_bounds import Effort, mixture_upper_bound

FITTED_SHARE = 0.5
"""Default floor, as a share of the largest lower bound on all fitted covariances."""
ROUNDING = 1e-9


def certificate(
    X: NDArray[Any],
    weights: Array | None,
    mixture: Mixture,
    covariance_at_least: Any = "fitted",
    effort: Effort = "default",
) -> Certificate:
    """Return the certificate of a mixture on rows in memory, both in the units of the rows.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Finite.
    weights : ndarray of shape (n_samples,), optional
    mixture : Mixture
    covariance_at_least : "fitted", float, or ndarray of shape (n_features,) or (n_features, n_features)
        See `floor_of`.
    effort : {"fast", "default", "tight"}

    Raises
    ------
    ValueError
        If `covariance_at_least` is none of these, singular, or above a covariance of the mixture, of which the bound
        would then not speak.
    """
    x = X.astype(np.float64, copy=False)
    shares, means = mixture.weights.astype(np.float64), mixture.means.astype(np.float64)
    mixture = Mixture(shares, means, mixture.covariances.astype(np.float64), mixture.covariance_type)
    present = mixture.weights > 0
    kind = mixture.covariance
    as_told = kind.matrices if kind.has_matrices else kind.variances
    covariances = as_told(mixture.covariances, *means.shape)[present]
    floor, words = floor_of(covariance_at_least, covariances, x, weights)
    share = min(_largest_share(floor, one) for one in covariances)
    if share < 1 - ROUNDING:
        raise ValueError(
            "covariance_at_least is above a covariance of this fit, so that the bound would not cover it; "
            f"{share:.2g} times as much is not"
        )
    logs = mixture.log_densities(x)[:, present] + np.log(mixture.weights[present])
    density = np.logaddexp.reduce(logs, axis=1)
    reached = float(density.sum() if weights is None else np.einsum("i,i->", weights, density))
    # Where the floor is one of the covariances, rounding must not lift it above.
    found = mixture_upper_bound(x, weights, floor * min(share, 1.0), reached=reached, effort=effort)
    return Certificate.of_likelihood(found, reached, f"Gaussian mixture of any size with covariances at least {words}")


def floor_of(covariance_at_least: Any, covariances: Array, x: Array, weights: Array | None) -> tuple[Array, str]:
    """Return the least covariance and its words: a matrix, or variances where all covariances are variances too.

    Parameters
    ----------
    covariance_at_least : "fitted", float, or ndarray of shape (n_features,) or (n_features, n_features)
        "fitted" is half of `common_part` of the covariances; a number is that many times the covariance of the rows;
        an array holds variances or a matrix, in the units of the rows.
    covariances : ndarray of shape (n_components, n_features, n_features) or (n_components, n_features)
    x : ndarray of shape (n_samples, n_features)
    weights : ndarray of shape (n_samples,), optional
    """
    d = x.shape[1]
    if isinstance(covariance_at_least, str):
        if covariance_at_least != "fitted":
            raise ValueError(
                f"covariance_at_least must be 'fitted', a number or an array; got {briefly(covariance_at_least)}"
            )
        return FITTED_SHARE * common_part(covariances), "half of the fitted ones"
    try:
        given = np.asarray(covariance_at_least, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"covariance_at_least must be 'fitted', a number or an array; got {briefly(covariance_at_least)}"
        ) from None
    singular = ValueError("covariance_at_least must be positive definite: no direction may have variance zero")
    if given.ndim == 0:
        if len(x) <= d:
            raise singular
        share = np.full(len(x), 1 / len(x)) if weights is None else weights / weights.sum()
        away = x - np.einsum("i,ij->j", share, x)
        floor, words = (
            float(given) * np.einsum("i,ij,ik->jk", share, away, away),
            f"{float(given):g} times that of the data",
        )
    elif given.shape == (d,):
        floor, words = given if covariances.ndim == 2 else np.diag(given), "the given variances"
    elif given.shape == (d, d) and np.allclose(given, given.T, rtol=1e-8, atol=0.0):
        floor, words = (given + given.T) / 2, "the given one"
    else:
        raise ValueError(
            f"covariance_at_least must be a number, ({d},) variances or a symmetric ({d}, {d}) matrix; "
            f"got shape {given.shape}{', not symmetric' if given.shape == (d, d) else ''}"
        )
    if not (np.isfinite(floor).all() and (floor if floor.ndim == 1 else np.linalg.eigvalsh(floor)).min() > 0):
        raise singular
    return floor, words


def common_part(covariances: Array) -> Array:
    """Return a matrix below all covariances in the Loewner order; of two covariances, a maximal one.

    Two matrices are made diagonal by one change of coordinates, in which the smaller entries are taken; more of them
    in the order of their determinants. The result moves with the coordinates.
    """
    if covariances.ndim == 2:
        return np.asarray(covariances.min(axis=0))
    order = np.argsort(np.linalg.slogdet(covariances)[1], kind="stable")
    least = covariances[order[0]]
    for covariance in covariances[order[1:]]:
        root = np.linalg.cholesky(least)
        ratios, axes = np.linalg.eigh(_relative(root, covariance))
        basis = root @ axes
        least = (basis * np.minimum(ratios, 1.0)) @ basis.T
        least = (least + least.T) / 2
    return np.asarray(least)


def _relative(root: NDArray[Any], covariance: Array) -> Array:
    """Return a covariance in coordinates in which ``root root'`` is the identity."""
    half = solve_triangular(root, covariance, lower=True)
    out = solve_triangular(root, half.T, lower=True)
    return np.asarray((out + out.T) / 2)


def _largest_share(floor: Array, covariance: Array) -> float:
    """Return the largest multiple of the floor that is still below the covariance."""
    if floor.ndim == 1:
        return float((covariance / floor).min())
    covariance = np.diag(covariance) if covariance.ndim == 1 else covariance
    return float(np.linalg.eigvalsh(_relative(np.linalg.cholesky(floor), covariance)).min())
