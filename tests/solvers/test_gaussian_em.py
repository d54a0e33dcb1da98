"""Short runs of EM: log-likelihoods that rise, starts of both kinds, the closed form of one component."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg
from scipy.stats import multivariate_normal

from majorant.solvers import gaussian_em
from majorant.solvers.covariance_types import COVARIANCE_TYPES, COVARIANCES, CovarianceType
from majorant.solvers.gaussian import Array, Mixture

from ..gaussian import run_em

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


def plain_em(x: Array, weights: Array, mixture: Mixture, floor: float, n_steps: int) -> tuple[Mixture, list[float]]:
    """EM in numpy, with scikit-learn's textbook formulas."""
    kind, values = mixture.covariance_type, []
    for t in range(n_steps + 1):
        covariances = np.stack(
            [
                c
                if kind == "full"
                else mixture.covariances
                if kind == "tied"
                else np.diag(np.broadcast_to(c, x.shape[1]))
                for c in (mixture.covariances if kind != "tied" else mixture.weights)
            ]
        )
        densities = np.stack(
            [
                share * multivariate_normal(mean, covariance).pdf(x)
                for share, mean, covariance in zip(mixture.weights, mixture.means, covariances, strict=True)
            ],
            axis=1,
        )
        values.append(float(weights @ np.log(densities.sum(axis=1))))
        if t == n_steps:
            break
        q = weights[:, None] * densities / densities.sum(axis=1, keepdims=True)
        mass = q.sum(axis=0)
        means = q.T @ x / mass[:, None]
        scatter = np.stack([np.cov(x.T, aweights=share, bias=True).reshape(len(x.T), -1) for share in q.T])
        if kind == "tied":
            scatter = np.einsum("k,kij->ij", mass, scatter) / mass.sum()
        elif kind == "diag":
            scatter = np.maximum(np.diagonal(scatter, axis1=1, axis2=2), floor)
        elif kind == "spherical":
            scatter = np.maximum(np.trace(scatter, axis1=1, axis2=2) / x.shape[1], floor)
        if kind in ("full", "tied"):
            eigenvalues, vectors = np.linalg.eigh(scatter)
            scatter = (vectors * np.maximum(eigenvalues, floor)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
        mixture = Mixture(mass / mass.sum(), means, scatter, kind)
    return mixture, values


def table(seed: int, n: int = 120, d: int = 3) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    x = random.normal(0, 1.5, (3, d))[random.integers(0, 3, n)] + random.normal(size=(n, d))
    return x - x.mean(axis=0), random.gamma(1.0, size=n)


@each_type
@pytest.mark.parametrize("floor", [1e-6, 0.7])
def test_runs_are_those_of_plain_em(covariance_type: CovarianceType, floor: float) -> None:
    x, weights = table(0)
    starts = run_em(
        x, weights, list(np.random.default_rng(0).dirichlet([0.3] * 3, (5, 120))), covariance_type, floor, 0
    )
    runs = run_em(x, weights, [s.mixture for s in starts], covariance_type, floor, 12)
    for start, run in zip(starts, runs, strict=True):
        mixture, values = plain_em(x, weights, start.mixture, floor, 12)
        np.testing.assert_allclose(run.log_likelihoods, values, rtol=1e-11)
        np.testing.assert_allclose(run.mixture.weights, mixture.weights, rtol=1e-8)
        np.testing.assert_allclose(run.mixture.covariances, mixture.covariances, rtol=1e-7, atol=1e-9)
    assert any(run.floored.any() for run in runs) == (floor == 0.7)


@each_type
def test_acceleration_never_loses_and_arrives_sooner(covariance_type: CovarianceType) -> None:
    total = [0, 0]
    for seed in range(20):
        x, weights = table(seed)
        starts = list(np.random.default_rng(seed).dirichlet([0.3] * 3, (3, 120)))
        for accelerate in (False, True):
            runs = run_em(x, weights, starts, covariance_type, 0.01, 3000, 1e-9, accelerate=accelerate)
            for run in runs:
                assert run.converged
                assert np.diff(run.log_likelihoods).min(initial=0.0) >= -1e-11 * abs(run.log_likelihood)
                total[accelerate] += run.n_iter
                (further,) = run_em(x, weights, [run.mixture], covariance_type, 0.01, 1)
                assert further.log_likelihood - further.log_likelihoods[0] <= 1e-8 * weights.sum()
    assert total[1] < 0.7 * total[0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_neither_company_nor_threads_matter(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is the same to the last bit alone, among others, and on any number of threads."""
    x, weights = table(1)
    x = x.astype(dtype)
    drawn = list(np.random.default_rng(1).dirichlet([0.3] * 3, (4, 120)))
    mixture = run_em(x, weights, drawn[:1], "full", 0.01, 3)[0].mixture
    monkeypatch.setattr(gaussian_em, "CALL_OPERATIONS", 1.0)
    for starts in (drawn, [mixture, mixture]):
        alone = [run_em(x, weights, [start], "full", 0.01, 7)[0] for start in starts]
        for n_jobs in (1, 3):
            for one, run in zip(alone, run_em(x, weights, starts, "full", 0.01, 7, n_jobs=n_jobs), strict=True):
                np.testing.assert_array_equal(run.log_likelihoods, one.log_likelihoods)
                np.testing.assert_array_equal(run.mixture.covariances, one.mixture.covariances)
                np.testing.assert_array_equal(run.floored, one.floored)
    np.testing.assert_array_equal(alone[0].log_likelihoods, alone[1].log_likelihoods)


@each_type
def test_single_rows(covariance_type: CovarianceType) -> None:
    x, weights = table(2)
    start = np.random.default_rng(0).dirichlet([0.3] * 3, (1, 120))
    double, single = (run_em(rows, weights, start, covariance_type, 0.01, 10)[0] for rows in (x, x.astype(np.float32)))
    np.testing.assert_allclose(single.log_likelihoods, double.log_likelihoods, rtol=1e-5)
    np.testing.assert_array_equal(single.mixture.means, single.mixture.means.astype(np.float32))


@each_type
def test_rows_without_weight_change_nothing(covariance_type: CovarianceType) -> None:
    x, weights = table(3)
    q = np.random.default_rng(0).dirichlet([0.3] * 3, 120)
    far = np.vstack([x, [[1e3, 1e3, 1e3]]])
    (without,) = run_em(x, weights, [q], covariance_type, 0.01, 10)
    (with_it,) = run_em(far, np.append(weights, 0.0), [np.vstack([q, q[:1]])], covariance_type, 0.01, 10)
    np.testing.assert_array_equal(with_it.mixture.covariances, without.mixture.covariances)


@each_type
def test_a_component_without_mass_stays_absent(covariance_type: CovarianceType) -> None:
    x, weights = table(4)
    q = np.zeros((120, 3))
    q[np.arange(120), 2 * (np.arange(120) % 2)] = 1.0
    for accelerate in (False, True):
        (run,) = run_em(x, weights, [q], covariance_type, 0.01, 6, accelerate=accelerate)
        assert run.mixture.weights[1] == 0 and np.isfinite(run.log_likelihoods).all()
        assert np.isfinite(run.mixture.covariances).all() and np.isfinite(run.mixture.means).all()


@each_type
def test_without_a_floor_a_collapse_is_refused(covariance_type: CovarianceType) -> None:
    x = np.repeat([[0.0, 0.0], [1.0, 5.0]], 5, axis=0)
    with pytest.raises(ValueError, match="not positive definite: use a positive floor"):
        run_em(x, None, [np.eye(2)[np.repeat([0, 1], 5)]], covariance_type, 0.0, 3)
    (run,) = run_em(x, None, [np.eye(2)[np.repeat([0, 1], 5)]], covariance_type, 1e-4, 3)
    assert run.floored.all()


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


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("runs", [0, 4])
def test_ratios_are_the_smallest_generalised_eigenvalues(covariance_type: CovarianceType, runs: int) -> None:
    random, kind = np.random.default_rng(0), COVARIANCES[covariance_type]
    roots, shares = random.normal(size=(runs, *kind.shape(3, 3))), random.dirichlet(np.ones(3), runs)
    covariances = roots @ np.swapaxes(roots, -1, -2) + np.eye(3) if kind.has_matrices else roots**2
    found = kind.ratios(covariances, shares)
    assert found.shape == (runs, 3)
    for own, share, ratios in zip(covariances, shares, found, strict=True):
        each = own if kind.has_matrices else np.array([np.diag(np.broadcast_to(v, 3)) for v in own])
        each = np.broadcast_to(each, (3, 3, 3))
        pooled = np.einsum("k,kab->ab", share, each)
        expected = [linalg.eigh(one, pooled, eigvals_only=True)[0] for one in each]
        np.testing.assert_allclose(ratios, expected, rtol=1e-9)
