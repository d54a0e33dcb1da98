"""Counts with more zeros than Poisson's: against definitions and roots, at edges, and in a hidden Markov model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

import majorant as mj
from majorant.data.chunks import Block
from majorant.densities import Poisson, ZeroInflatedPoisson
from majorant.densities.zero_inflated import rate_above_zero

ONE = np.ones(1)


def fitted(x: Any) -> Any:
    """The means and the shares of needless zeros of one component."""
    x = np.asarray(x, dtype=float).reshape(len(x), -1)
    density = ZeroInflatedPoisson(x.shape[1])
    return density.solve(density.statistics(None, Block(0, (x,)), np.ones((1, 1, len(x)))), None, ONE)[0, 0]


def test_log_densities_are_their_definition() -> None:
    random = np.random.default_rng(0)
    x = np.where(random.random((50, 3)) < 0.2, np.nan, random.poisson(2.0, (50, 3)) * random.integers(0, 2, (50, 3)))
    mean, share = random.uniform(0.1, 9, (2, 3)), random.uniform(0, 0.9, (2, 3))
    found = ZeroInflatedPoisson(3).log_density(np.concatenate([mean, share], axis=1)[None], Block(0, (x,)))[0]
    pmf = [p * (x == 0) + (1 - p) * stats.poisson(m / (1 - p)).pmf(x) for m, p in zip(mean, share, strict=True)]
    np.testing.assert_allclose(found, np.nansum(np.log(pmf), axis=2), rtol=1e-12)


@pytest.mark.parametrize("excess", [1e-12, 1e-7, 1e-3, 0.3, 1.0, 4.0, 30.0, 500.0])
def test_rates_are_roots(excess: float) -> None:
    """The mean of the counts above zero exceeds one by (r - 1 + exp(-r)) / (1 - exp(-r)), r / 2 + r^2 / 12 if small."""

    def beyond(r: float) -> float:
        return (r / 2 + r**2 / 12 if r < 1e-4 else (r + np.expm1(-r)) / -np.expm1(-r)) - excess

    expected = brentq(beyond, excess, 2 * excess, xtol=1e-300, rtol=1e-14)
    assert rate_above_zero(np.array([excess]))[0] == pytest.approx(expected, rel=1e-9)


def test_edges_are_poisson_and_have_densities() -> None:
    zeros, ones, few = [0, 0, 0, 0], [3, 3, 3, 3], [0, 1, 1, 0]
    np.testing.assert_allclose(fitted(np.transpose([zeros, ones, few])), [0, 3, 0.5, 0, 0, 0])
    one = fitted([0, 0, 0, 7])
    assert one[0] == pytest.approx(7 / 4) and 0.74 < one[1] < 0.75
    theta, x = np.array([[[0.0, 2.0, 0.0, 0.0]]]), np.array([[0.0, 3.0], [1.0, 3.0]])
    found = ZeroInflatedPoisson(2).log_density(theta, Block(0, (x,)))[0, 0]
    assert found[0] == pytest.approx(stats.poisson(2).logpmf(3)) and found[1] < -600 and np.isfinite(found).all()
    np.testing.assert_allclose(found, Poisson(2).log_density(theta[:, :, :2], Block(0, (x,)))[0, 0], rtol=1e-12)


def test_a_hidden_markov_model_of_counts_with_needless_zeros() -> None:
    random = np.random.default_rng(0)
    states = np.repeat([0, 1, 0, 1], 150)
    rate, share = np.array([3.0, 12.0])[states], np.array([0.5, 0.2])[states]
    x = np.where(random.random(600) < share, 0.0, random.poisson(rate))[:, None]
    x[7] = np.nan
    model = mj.HiddenMarkovModel(2, emission="zero_inflated_poisson", random_state=0).fit(x)
    poisson = mj.HiddenMarkovModel(2, emission="poisson", random_state=0).fit(x)
    assert model.regular_ and model.converged_ and model.bic(x) < poisson.bic(x) - 100
    order, errors = np.argsort(model.means_.ravel()), model.standard_errors(x)
    for name, expected in (("means", [1.5, 9.6]), ("inflations", [0.5, 0.2])):
        away = getattr(model, f"{name}_").ravel()[order] - expected
        assert (np.abs(away) < 4 * errors[name].ravel()[order]).all()
    assert model.score_samples(x).sum() == pytest.approx(model.log_likelihood_, abs=1e-6)
    residuals = model.pseudo_residuals(x)
    assert abs(np.nanstd(residuals) - 1) < 0.1 and np.isnan(residuals[7, 0])
    ahead = model.forecast(x, 2)
    p = ahead.density(np.arange(80.0))[0, 0]
    assert p.sum() == pytest.approx(1, abs=1e-12) and ahead.mean[0, 0, 0] == pytest.approx(p @ np.arange(80), rel=1e-12)
    for level in (0.05, 0.3, 0.6, 0.95):
        assert ahead.quantile(level)[0, 0, 0] == np.searchsorted(np.cumsum(p), level)
    drawn, z = model.sample(20_000)
    np.testing.assert_allclose([drawn[z == k].mean() for k in range(2)], model.means_.ravel(), rtol=0.05)
    with pytest.raises(ValueError, match="counts are whole numbers from 0 on"):
        mj.HiddenMarkovModel(2, emission="zero_inflated_poisson").fit(x - 1)
