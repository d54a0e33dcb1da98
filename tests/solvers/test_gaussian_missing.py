"""Densities of what is observed and expectations of what is not, against scipy and the formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from majorant.solvers.covariance_types import COVARIANCE_TYPES, CovarianceType
from majorant.solvers.gaussian import Mixture, moments
from majorant.solvers.gaussian_missing import Completion, impute, log_densities, marginal

each_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)


def mixture_of(covariance_type: CovarianceType, seed: int = 0, k: int = 3, d: int = 4) -> Mixture:
    random = np.random.default_rng(seed)
    roots = random.normal(size=(k, d, d))
    full = roots @ np.swapaxes(roots, 1, 2) + 0.3 * np.eye(d)
    covariances: dict[CovarianceType, NDArray[Any]] = {
        "full": full,
        "tied": full[0],
        "diag": random.uniform(0.5, 3.0, (k, d)),
        "spherical": random.uniform(0.5, 3.0, k),
    }
    return Mixture(
        random.dirichlet(np.ones(k)), random.normal(size=(k, d)), covariances[covariance_type], covariance_type
    )


def matrices(mixture: Mixture) -> NDArray[Any]:
    k, d = mixture.means.shape
    if mixture.covariance_type == "diag":
        return np.stack([np.diag(row) for row in mixture.covariances])
    if mixture.covariance_type == "spherical":
        return np.stack([v * np.eye(d) for v in mixture.covariances])
    return np.broadcast_to(mixture.covariances, (k, d, d))


def gappy(seed: int, n: int = 40, d: int = 4, share: float = 0.4, dtype: Any = np.float64) -> NDArray[Any]:
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, d)).astype(dtype)
    x[random.random(x.shape) < share] = np.nan
    x[0], x[1] = np.nan, 1.0
    return x


@each_type
def test_densities_are_those_of_scipy_in_the_observed_columns(covariance_type: CovarianceType) -> None:
    mixture, x = mixture_of(covariance_type), gappy(1)
    found = log_densities(mixture, x)
    for i, row in enumerate(x):
        o = ~np.isnan(row)
        for k, covariance in enumerate(matrices(mixture)):
            expected = 0.0
            if o.any():
                expected = multivariate_normal.logpdf(row[o], mixture.means[k, o], covariance[np.ix_(o, o)])
            assert found[i, k] == pytest.approx(expected, rel=1e-10, abs=1e-10)


@each_type
def test_imputed_entries_are_conditional_means_weighted_by_responsibilities(covariance_type: CovarianceType) -> None:
    mixture, x = mixture_of(covariance_type, 2), gappy(2)
    filled = impute(mixture, x)
    for row, full in zip(x, filled, strict=True):
        o, m = ~np.isnan(row), np.isnan(row)
        np.testing.assert_array_equal(full[o], row[o])
        r, means = [], []
        for weight, mean, s in zip(mixture.weights, mixture.means, matrices(mixture), strict=True):
            density = multivariate_normal.pdf(row[o], mean[o], s[np.ix_(o, o)]) if o.any() else 1.0
            r.append(weight * density)
            means.append(mean[m] + s[np.ix_(m, o)] @ np.linalg.solve(s[np.ix_(o, o)], row[o] - mean[o]))
        np.testing.assert_allclose(full[m], np.array(r) @ np.array(means) / sum(r), rtol=1e-9, atol=1e-10)


@each_type
def test_moments_of_completed_rows(covariance_type: CovarianceType) -> None:
    """Against the second moments of every row: those of its completion, plus the conditional covariance."""
    mixture, x = mixture_of(covariance_type, 3), gappy(3, share=0.0)
    random = np.random.default_rng(0)
    q, w = random.dirichlet(np.ones(3), len(x)), random.uniform(0, 3, len(x))
    for observed in (np.array([1, 0, 1, 0], bool), np.array([1, 1, 1, 0], bool), np.zeros(4, bool), np.ones(4, bool)):
        part = Completion(mixture, observed)
        if observed.any():
            own = moments(x[2:, observed], w[2:], q[2:], part.marginal.means, covariance_type)
        else:
            own = np.zeros((3, 2 if covariance_type == "spherical" else 1))
            own[:, 0] = (w[2:, None] * q[2:]).sum(axis=0)
        found = part.complete(own)
        m = np.flatnonzero(~observed)
        for k, (mean, s) in enumerate(zip(mixture.means, matrices(mixture), strict=True)):
            oo = s[np.ix_(observed, observed)]
            slope = s[np.ix_(m, observed)] @ np.linalg.inv(oo)
            c = np.zeros((4, 4))
            c[np.ix_(m, m)] = s[np.ix_(m, m)] - slope @ s[np.ix_(observed, m)]
            y = x[2:] - mean
            y[:, m] = y[:, observed] @ slope.T
            share = w[2:] * q[2:, k]
            second = (y.T * share) @ y + share.sum() * c
            if covariance_type in ("full", "tied"):
                expected = second[np.tril_indices(4)]
            else:
                expected = np.diag(second) if covariance_type == "diag" else [np.trace(second)]
            np.testing.assert_allclose(found[k], [share.sum(), *(share @ y), *expected], rtol=1e-10, atol=1e-10)
            entropy = 0.5 * np.linalg.slogdet(2 * np.pi * np.e * c[np.ix_(m, m)])[1]
            assert part.entropies[k] == pytest.approx(entropy, rel=1e-10, abs=1e-10)


@each_type
def test_complete_rows_get_the_same_numbers_as_beside_no_others(covariance_type: CovarianceType) -> None:
    mixture, x = mixture_of(covariance_type, 4), gappy(4, n=200, share=0.2)
    complete = ~np.isnan(x).any(axis=1)
    assert 1 < complete.sum() < len(x)
    np.testing.assert_array_equal(log_densities(mixture, x)[complete], mixture.log_densities(x[complete]))
    np.testing.assert_array_equal(impute(mixture, x)[complete], x[complete])
    assert marginal(mixture, np.ones(4, bool)) is mixture


@each_type
def test_the_order_of_rows_does_not_matter(covariance_type: CovarianceType) -> None:
    mixture, x = mixture_of(covariance_type, 5), gappy(5)
    order = np.random.default_rng(0).permutation(len(x))
    np.testing.assert_array_equal(log_densities(mixture, x)[order], log_densities(mixture, x[order]))
    np.testing.assert_array_equal(impute(mixture, x)[order], impute(mixture, x[order]))


@each_type
def test_single_precision_is_near_double(covariance_type: CovarianceType) -> None:
    mixture, x = mixture_of(covariance_type, 6), gappy(6, dtype=np.float32)
    filled = impute(mixture, x)
    assert filled.dtype == np.float32
    np.testing.assert_allclose(filled, impute(mixture, x.astype(np.float64)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(log_densities(mixture, x), log_densities(mixture, x.astype(np.float64)), rtol=1e-4)


def test_the_rows_are_not_written_to() -> None:
    x = gappy(7)
    before = x.copy()
    x.flags.writeable = False
    impute(mixture_of("full"), x)
    np.testing.assert_array_equal(x, before)
