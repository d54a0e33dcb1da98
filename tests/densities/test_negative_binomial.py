"""Counts that vary more than Poisson's: against scipy's and Poisson's, at edges, and in a hidden Markov model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import digamma, polygamma

import majorant as mj
from majorant.data.chunks import Block
from majorant.densities import NegativeBinomial, Poisson, check_density
from majorant.densities.negative_binomial import LARGE, SIZES, log_gap

K, D, N = 2, 3, 400
ONE = np.ones(1)


def counts(seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    mean = np.where(random.random((N, 1)) < 0.5, [2.0, 9.0, 1.0], [14.0, 3.0, 1.0])
    x = random.poisson(mean / 2.5 * random.standard_gamma(2.5, (N, D))).astype(float)
    return np.where(random.random((N, D)) < 0.1, np.nan, x)


def test_log_densities_are_scipys() -> None:
    x, random = counts(), np.random.default_rng(2)
    theta = np.concatenate([random.uniform(0.5, 20, (1, K, D)), random.uniform(0.3, 9, (1, K, D))], axis=2)
    found = NegativeBinomial(D).log_density(theta, Block(0, (x,)))[0]
    mean, size = theta[0, :, :D], theta[0, :, D:]
    expected = [np.nansum(stats.nbinom.logpmf(x, size[k], size[k] / (size[k] + mean[k])), axis=1) for k in range(K)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_large_size_is_poisson() -> None:
    x = counts()
    mean = np.full((1, 1, D), 4.0)
    found = NegativeBinomial(D).log_density(np.concatenate([mean, np.full((1, 1, D), 1e5)], axis=2), Block(0, (x,)))
    np.testing.assert_allclose(found, Poisson(D).log_density(mean, Block(0, (x,))), rtol=2e-3)


def test_it_keeps_its_word() -> None:
    check_density(NegativeBinomial(D), counts())


def test_columns_of_zeros_and_states_without_rows() -> None:
    density, q = NegativeBinomial(1), np.zeros((1, 2, 5))
    q[:, 0] = 1
    rows = Block(0, (np.zeros((5, 1)),))
    theta = density.solve(density.statistics(None, rows, q), None, ONE)
    for _ in range(3):
        theta = density.solve(density.statistics(theta, rows, q), theta, ONE)
    assert np.isfinite(theta).all() and (theta[0, :, 0] == 0).all()
    assert (np.abs(density.log_density(theta, rows)[0]) < 1e-290).all()


@pytest.mark.parametrize(("mean", "size"), [(0.05, 0.1), (2.0, 0.3), (8.0, 30.0), (300.0, 2.0)])
def test_a_few_steps_end_at_the_largest_likelihood(mean: float, size: float) -> None:
    """Steps of EM with rates as latent values took hundreds of steps for this."""
    random = np.random.default_rng(1)
    x = random.poisson(mean / size * random.standard_gamma(size, (2000, 1))).astype(float)
    density, rows, q = NegativeBinomial(1), Block(0, (x,)), np.ones((1, 1, len(x)))
    theta = np.array([[[5.0, 1.0]]])
    for _ in range(30):
        theta = density.solve(density.statistics(theta, rows, q), theta, ONE)

    def minus_log_likelihood(log_size: float) -> float:
        r = np.exp(log_size)
        return -float(stats.nbinom.logpmf(x, r, r / (r + x.mean())).sum())

    best = optimize.minimize_scalar(minus_log_likelihood, bounds=(-4, 6), method="bounded", options={"xatol": 1e-10})
    np.testing.assert_allclose(theta[0, 0], [x.mean(), np.exp(best.x)], rtol=1e-5)


def test_counts_that_vary_less_than_poissons_are_at_the_end_at_once() -> None:
    x = np.tile([[3.0], [4.0], [5.0]], (30, 1))
    density, rows, q = NegativeBinomial(1), Block(0, (x,)), np.ones((1, 1, len(x)))
    theta = np.array([[[4.0, 2.0]]])
    for _ in range(2):
        theta = density.solve(density.statistics(theta, rows, q), theta, ONE)
    np.testing.assert_allclose(theta[0, 0], [4.0, SIZES[1]])


def test_a_hidden_markov_model_of_overdispersed_counts() -> None:
    random = np.random.default_rng(0)
    states = np.repeat([0, 1, 0, 1], 150)
    mean, size = np.array([3.0, 20.0])[states], np.array([1.5, 4.0])[states]
    x = random.poisson(mean / size * random.standard_gamma(size))[:, None].astype(float)
    x[7] = np.nan
    model = mj.HiddenMarkovModel(2, emission="negative_binomial", random_state=0).fit(x)
    poisson = mj.HiddenMarkovModel(2, emission="poisson", random_state=0).fit(x)
    assert model.regular_ and model.converged_ and model.bic(x) < poisson.bic(x) - 100
    np.testing.assert_allclose(np.sort(model.rates_.ravel()), [3, 20], rtol=0.15)
    errors = model.standard_errors(x)
    assert (np.abs(np.sort(model.sizes_.ravel()) - [1.5, 4.0]) < 4 * np.sort(errors["sizes"].ravel())).all()
    assert model.score_samples(x).sum() == pytest.approx(model.log_likelihood_, abs=1e-6)
    residuals = model.pseudo_residuals(x)
    assert abs(np.nanstd(residuals) - 1) < 0.1 and np.isnan(residuals[7, 0])
    drawn, _ = model.sample(2000)
    assert (drawn == np.rint(drawn)).all() and drawn.min() >= 0
    with pytest.raises(ValueError, match="counts are whole numbers from 0 on"):
        mj.HiddenMarkovModel(2, emission="negative_binomial").fit(x - 1)


def test_the_gap_and_its_slope_go_on_where_sizes_are_large() -> None:
    r = LARGE * np.array([0.9, 1.1, 2.0])
    gap, slope = log_gap(r)
    np.testing.assert_allclose(gap, np.log(r) - digamma(r), rtol=1e-11)
    np.testing.assert_allclose(slope, 1 / r - polygamma(1, r), rtol=1e-11)
