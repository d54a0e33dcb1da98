"""The pass over rows with missing entries, against densities and expectations written out row by row."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from majorant import _kernels
from majorant.solvers.covariance_types import COVARIANCE_TYPES, COVARIANCES, CovarianceType
from majorant.solvers.gaussian import Mixture

Array = NDArray[np.float64]


def random_mixture(k: int, d: int, covariance_type: CovarianceType, draws: np.random.Generator) -> Mixture:
    factors = draws.normal(size=(k, d, 2 * d))
    whole = np.einsum("kde,kfe->kdf", factors, factors) / d
    variances = draws.uniform(0.3, 3.0, (k, d))
    covariances = {"full": whole, "tied": whole[0], "diag": variances, "spherical": variances[:, 0]}[covariance_type]
    return Mixture(draws.dirichlet(np.ones(k)), draws.normal(size=(k, d)), covariances, covariance_type)


def passed(x: NDArray[np.floating], w: Array | None, mixture: Mixture, beta: float = 1.0) -> tuple[bool, float, Array]:
    kind, d = mixture.covariance, mixture.n_features
    out, totals = np.empty((1, mixture.n_components, 2 + d + kind.n_second(d))), np.empty((1, 2))
    covariances = np.ascontiguousarray(mixture.covariances).reshape(1, -1)
    own = mixture.weights[None], mixture.means[None], covariances
    _kernels.gauss_gaps(x, w, *own, kind.code, beta, out, totals)
    return bool(np.isfinite(totals[0, 0])), float(totals[0, 0]), out[0]


def by_rows(x: Array, w: Array, mixture: Mixture) -> tuple[float, Array]:
    """Minus the log-likelihood, and the moments of completed rows about the means with the entropies, row by row."""
    kind, (k, d) = mixture.covariance, mixture.means.shape
    matrices, total = kind.matrices(mixture.covariances, k, d), 0.0
    out = np.zeros((k, 2 + d + kind.n_second(d)))
    for row, weight in zip(x, w, strict=True):
        there, gone = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
        logs, parts = np.log(mixture.weights), []
        for j in range(k):
            mean, inside = mixture.means[j], matrices[j][np.ix_(there, there)]
            logs[j] += multivariate_normal(mean[there], inside).logpdf(row[there]) if len(there) else 0.0
            slopes = np.linalg.solve(inside, matrices[j][np.ix_(there, gone)]).T
            away = np.zeros(d)
            away[there] = row[there] - mean[there]
            away[gone] = slopes @ away[there]
            left = matrices[j][np.ix_(gone, gone)] - slopes @ matrices[j][np.ix_(there, gone)]
            second = np.outer(away, away)
            second[np.ix_(gone, gone)] += left
            kept = {"diag": np.diag(second), "spherical": [np.trace(second)]}.get(kind.name, second[np.tril_indices(d)])
            entropy = multivariate_normal(cov=left).entropy() if len(gone) else 0.0
            parts.append(np.concatenate([[1.0], away, kept, [-entropy]]))
        whole = np.logaddexp.reduce(logs)
        total -= weight * whole
        out += weight * np.exp(logs - whole)[:, None] * np.array(parts)
    return total, out


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("d", [1, 3, 6])
def test_a_pass_is_that_of_each_row(d: int, covariance_type: CovarianceType) -> None:
    draws = np.random.default_rng(d)
    x = draws.normal(size=(70, d))
    x[draws.random(x.shape) < 0.3] = np.nan
    x[3] = np.nan
    w, mixture = draws.uniform(0.2, 3.0, len(x)), random_mixture(4, d, covariance_type, draws)
    done, free, out = passed(x, w, mixture)
    expected = by_rows(x, w, mixture)
    assert done and free == pytest.approx(expected[0], rel=1e-11)
    np.testing.assert_allclose(out, expected[1], rtol=1e-9, atol=1e-10)
    single = x.astype(np.float32)
    np.testing.assert_array_equal(passed(single, w, mixture)[2], passed(single.astype(np.float64), w, mixture)[2])


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_complete_rows_are_those_of_the_other_kernel(covariance_type: CovarianceType) -> None:
    draws = np.random.default_rng(0)
    x, mixture = draws.normal(size=(300, 4)), random_mixture(3, 4, covariance_type, draws)
    for beta in (1.0, 0.5, np.inf):
        free, _, moments = mixture.tight_moments(x, None, beta)
        done, found, out = passed(x, None, mixture, beta)
        assert done and found == free
        np.testing.assert_array_equal(out[:, :-1], moments)
        np.testing.assert_array_equal(out[:, -1], 0.0)


@pytest.mark.parametrize(("beta", "shares"), [(1.0, [0.2, 0.8]), (2.0, [1 / 17, 16 / 17]), (np.inf, [0.0, 1.0])])
def test_rows_without_entries_belong_to_components_by_their_weights(beta: float, shares: list[float]) -> None:
    mixture = Mixture(np.array([0.2, 0.8]), np.zeros((2, 2)), np.ones((2, 2)), "diag")
    done, free, out = passed(np.full((5, 2), np.nan), None, mixture, beta)
    expected = -5 * np.log(0.8) if np.isinf(beta) else -5 * np.log(np.sum(mixture.weights**beta)) / beta
    assert done and free == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(out[:, 0], 5 * np.array(shares), atol=1e-12)
    np.testing.assert_allclose(out[:, 3:5], out[:, :1] * np.ones(2), atol=1e-12)


def test_singular_covariances_are_left_to_others() -> None:
    mixture = random_mixture(2, 3, "full", np.random.default_rng(0))
    flat = Mixture(mixture.weights, mixture.means, np.zeros((2, 3, 3)), "full")
    assert not passed(np.zeros((5, 3)), None, flat)[0]


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_runs_are_passes_of_their_own(covariance_type: CovarianceType) -> None:
    """Each to the last bit, also beside one whose covariance is singular."""
    draws = np.random.default_rng(2)
    x, w = draws.normal(size=(60, 4)), draws.uniform(0.2, 3.0, 60)
    x[draws.random(x.shape) < 0.3] = np.nan
    x[7] = np.nan
    mixtures = [random_mixture(3, 4, covariance_type, draws) for _ in range(3)]
    mixtures[1] = Mixture(mixtures[1].weights, mixtures[1].means, 0.0 * mixtures[1].covariances, covariance_type)
    kind = COVARIANCES[covariance_type]
    out, totals = np.empty((3, 3, 2 + 4 + kind.n_second(4))), np.empty((3, 2))
    weights, means, covariances = (
        np.stack([getattr(one, name) for one in mixtures]) for name in ("weights", "means", "covariances")
    )
    _kernels.gauss_gaps(x, w, weights, means, covariances.reshape(3, -1), kind.code, 1.0, out, totals)
    for own, total, mixture in zip(out, totals, mixtures, strict=True):
        done, free, moments = passed(x, w, mixture)
        assert total[0] == free and done == np.isfinite(free)
        np.testing.assert_array_equal(own, moments)
    assert np.isinf(totals[1, 0]) and not out[1].any()


def test_wrong_sizes_are_refused() -> None:
    mixture, x = random_mixture(2, 3, "full", np.random.default_rng(0)), np.zeros((5, 3))
    out, totals = np.empty((1, 2, 2 + 3 + COVARIANCES["full"].n_second(3))), np.empty((1, 2))
    weights, means, covariances = mixture.weights[None], mixture.means[None], mixture.covariances.reshape(1, -1)
    for rows, own, sums, ends in (
        (np.zeros((5, 2)), covariances, out, totals),
        (x, covariances[:, 1:].copy(), out, totals),
        (x, covariances, out[:, :, 1:].copy(), totals),
        (x, covariances, out, totals[:, 1:].copy()),
        (x, np.repeat(covariances, 2, axis=0), out, totals),
    ):
        with pytest.raises(ValueError, match=r"must|do not fit"):
            _kernels.gauss_gaps(rows, None, weights, means, own, 0, 1.0, sums, ends)
    with pytest.raises(ValueError, match="1 to 64 columns"):
        _kernels.gauss_gaps(np.zeros((5, 65)), None, weights, np.zeros((1, 2, 65)), covariances, 0, 1.0, out, totals)
