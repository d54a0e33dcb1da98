"""Short runs of EM: log-likelihoods that rise, starts of both kinds, the closed form of one component."""

from __future__ import annotations

import numpy as np
import pytest

from majorant.solvers.gaussian import COVARIANCE_TYPES, CovarianceType, Mixture
from majorant.solvers.gaussian_em import run_em

each_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)


@each_type
def test_log_likelihoods_rise_and_are_those_of_the_mixture(covariance_type: CovarianceType) -> None:
    random = np.random.default_rng(0)
    x = np.vstack([random.normal(size=(40, 3)), random.normal(4, 2, size=(40, 3))])
    weights = random.random(80)
    runs = run_em(x, weights, list(random.dirichlet([1.0, 1.0], (4, 80))), covariance_type, 1e-3, 15)
    for run in runs:
        assert run.n_iter == 15 and not run.converged
        assert np.diff(run.log_likelihoods).min() >= -1e-10 * abs(run.log_likelihood)
        densities = run.mixture.weights * np.exp(run.mixture.log_densities(x))
        assert run.log_likelihood == pytest.approx(weights @ np.log(densities.sum(axis=1)), rel=1e-12)
    (again,) = run_em(x, weights, [runs[0].mixture], covariance_type, 1e-3, 1000, tol=1e-9)
    assert again.converged and again.log_likelihoods[0] == pytest.approx(runs[0].log_likelihood, rel=1e-12)


@each_type
def test_one_component_is_the_closed_form(covariance_type: CovarianceType) -> None:
    x = np.random.default_rng(0).normal(size=(30, 3)) * [1.0, 2.0, 3.0] + 1e6
    (run,) = run_em(x, None, [np.ones((30, 1))], covariance_type, 1e-9, 1)
    covariance = np.cov(x.T, bias=True)
    expected = {
        "full": covariance[None],
        "tied": covariance,
        "diag": np.diag(covariance)[None],
        "spherical": np.array([np.trace(covariance) / 3]),
    }[covariance_type]
    np.testing.assert_allclose(run.mixture.covariances, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(run.mixture.means, x.mean(axis=0, keepdims=True), rtol=1e-14)
    assert not run.floored.any()


def test_mapping_is_exact() -> None:
    random = np.random.default_rng(0)
    x, matrix, shift = random.normal(size=(20, 2)), random.normal(size=(2, 2)), random.normal(size=2)
    (run,) = run_em(x, None, [random.dirichlet([1.0, 1.0], 20)], "full", 1e-3, 5)
    moved = run.mixture.mapped(matrix, shift)
    jacobian = np.log(abs(np.linalg.det(matrix)))
    np.testing.assert_allclose(moved.log_densities(x @ matrix + shift), run.mixture.log_densities(x) - jacobian)
    with pytest.raises(ValueError, match="a factor for each column"):
        Mixture(np.ones(1), np.zeros((1, 2)), np.ones((1, 2)), "diag").mapped(matrix)
    with pytest.raises(ValueError, match=r"covariance of component 0 is not positive definite.*positive floor"):
        Mixture(np.ones(1), np.zeros((1, 2)), np.ones((1, 2, 2)), "full").precision_factors()
