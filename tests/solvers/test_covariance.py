"""Second moments of rows: those of numpy, by columns or by rows, dense or sparse, in any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.covariance import ledoit_wolf

from majorant.solvers.covariance import (
    centred_combinations,
    centred_gram,
    covariance,
    mean_of,
    principal_variances,
    shrinkage,
    weighted_gram,
)

Array = NDArray[np.float64]


def rows(n: int, p: int, dtype: type = np.float64) -> tuple[Array, Array]:
    random = np.random.default_rng(n + p)
    x = np.where(random.random((n, p)) < 0.4, random.normal(2.0, 1.0, (n, p)), 0.0)
    return x.astype(dtype), random.dirichlet(np.full(n, 3.0))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(("n", "p"), [(40, 5), (6, 30)])
def test_moments_are_those_of_numpy(n: int, p: int, kind: Any, dtype: type) -> None:
    dense, shares = rows(n, p, dtype)
    x, mean = kind(dense), mean_of(kind(dense), shares)
    tol = 1e-12 if dtype == np.float64 else 1e-5
    centred = dense - np.average(dense, axis=0, weights=shares)
    expected = np.cov(dense, rowvar=False, aweights=shares, ddof=0)
    np.testing.assert_allclose(covariance(x, shares, mean), expected, atol=tol)
    np.testing.assert_allclose(centred_gram(x, mean), centred @ centred.T, atol=10 * tol)
    np.testing.assert_allclose(centred_combinations(x, mean, np.eye(n)), centred.T, atol=tol)
    variances = np.linalg.eigvalsh(expected)[-min(n, p) :]
    np.testing.assert_allclose(principal_variances(x, shares), np.maximum(variances, 0), atol=tol)
    by_rows = np.linalg.eigvalsh(weighted_gram(x, shares, mean))[-min(n, p) :]
    np.testing.assert_allclose(by_rows, variances, atol=tol)


def test_threads_change_no_bit() -> None:
    x, shares = rows(20_000, 4)
    mean = mean_of(x, shares)
    np.testing.assert_array_equal(covariance(x, shares, mean, 1), covariance(x, shares, mean, 2))


def shrunk(x: Array, shares: Array, n: int) -> Array:
    mean, p = np.average(x, axis=0, weights=shares), x.shape[1]
    found = covariance(x, shares, mean)
    size = float(np.trace(found)) / p
    share = shrinkage(x, shares, mean, size, float((found**2).sum()), n)
    return np.asarray((1 - share) * found + share * size * np.eye(p))


@pytest.mark.parametrize(("n", "p"), [(40, 5), (6, 30), (2000, 3), (5, 1)])
def test_shrinkage_is_that_of_ledoit_and_wolf(n: int, p: int) -> None:
    dense, _ = rows(n, p)
    np.testing.assert_allclose(shrunk(dense, np.full(n, 1 / n), n), ledoit_wolf(dense)[0], atol=1e-12)


def test_shrinkage_of_weights_is_that_of_repeats_of_as_many_rows() -> None:
    dense, _ = rows(30, 4)
    counts = np.random.default_rng(0).integers(1, 5, 30)
    again = np.repeat(dense, counts, axis=0)
    expected = shrunk(again, np.full(len(again), 1 / len(again)), 30)
    np.testing.assert_allclose(shrunk(dense, counts / counts.sum(), 30), expected, rtol=1e-12)
