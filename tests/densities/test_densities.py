"""Densities: against scipy's, M-steps that maximise, missing cells left out, coordinates there and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from majorant.data.chunks import Block
from majorant.densities import Bernoulli, Categorical, Poisson, Product

from ..mixtures_of_parts import DENSITIES, D, K, N, columns_of

RANDOM = np.random.default_rng(0)
ONE = np.ones(2)


def solved(name: str, seed: int = 0) -> tuple[Any, Block, Any, Any, Any]:
    density, rows = DENSITIES[name](), Block(0, tuple(columns_of(name, seed)))
    q = np.moveaxis(RANDOM.dirichlet(np.ones(K), (2, N)), 2, 1).copy()
    statistics = density.statistics(None, rows, q)
    return density, rows, q, statistics, density.solve(statistics, None, ONE)


def test_log_densities_are_scipys() -> None:
    p = RANDOM.uniform(0.1, 0.9, (1, 2, D))
    x = (RANDOM.random((9, D)) < 0.5).astype(float)
    found = Bernoulli(D).log_density(p, Block(0, (x,)))[0]
    np.testing.assert_allclose(found, [stats.bernoulli.logpmf(x, p[0, k]).sum(axis=1) for k in range(2)], rtol=1e-12)
    rates, counts = RANDOM.uniform(0.5, 9, (1, 2, D)), RANDOM.poisson(4, (9, D)).astype(float)
    found = Poisson(D).log_density(rates, Block(0, (counts,)))[0]
    np.testing.assert_allclose(found, [stats.poisson.logpmf(counts, rates[0, k]).sum(axis=1) for k in range(2)])
    codes = RANDOM.integers(0, 3, (9, D)).astype(float)
    shares = RANDOM.dirichlet(np.ones(3), (2, D))
    found = Categorical([3] * D).log_density(shares.reshape(1, 2, -1), Block(0, (codes,)))[0]
    expected = [np.log(shares[k, np.arange(D), codes.astype(int)]).sum(axis=1) for k in range(2)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", DENSITIES)
def test_the_m_step_is_a_maximum(name: str) -> None:
    density, _, _, statistics, theta = solved(name)
    best = density.expected_log_density(statistics, theta)
    vector = density.vector(theta)
    for _ in range(20):
        moved = density.theta_of(vector + 0.05 * RANDOM.normal(size=vector.shape), theta)
        assert (density.expected_log_density(statistics, moved) < best).all()


@pytest.mark.parametrize("name", DENSITIES)
def test_the_expected_log_density_is_the_sum_over_rows(name: str) -> None:
    density, rows, q, statistics, theta = solved(name)
    direct = np.sum(q * density.log_density(theta, rows), axis=(1, 2))
    np.testing.assert_allclose(density.expected_log_density(statistics, theta), direct, rtol=1e-12)


@pytest.mark.parametrize("name", DENSITIES)
def test_coordinates_and_estimates_there_and_back(name: str) -> None:
    density, _, _, _, theta = solved(name)
    again = density.theta_of(density.vector(theta), theta)
    for key, values in density.describe(theta).items():
        np.testing.assert_allclose(density.describe(again)[key], values, rtol=1e-10, atol=1e-12)
    recalled = density.recalled({key: values[0] for key, values in density.describe(theta).items()})
    for key, values in density.describe(recalled).items():
        np.testing.assert_array_equal(values[0], density.describe(theta)[key][0])


@pytest.mark.parametrize("name", DENSITIES)
def test_a_missing_cell_leaves_its_column_out(name: str) -> None:
    density, rows, _, _, theta = solved(name)
    gone = tuple(np.where(np.arange(c.shape[1]) == 1, np.nan, c) for c in rows.columns)
    all_gone = tuple(np.full_like(c, np.nan) for c in rows.columns)
    assert (density.log_density(theta, Block(0, all_gone)) == 0).all()
    one_gone = density.log_density(theta, Block(0, gone))
    only = tuple(np.where(np.arange(c.shape[1]) == 1, c, np.nan) for c in rows.columns)
    np.testing.assert_allclose(
        one_gone + density.log_density(theta, Block(0, only)), density.log_density(theta, rows), rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("name", DENSITIES)
def test_statistics_are_linear_and_additive(name: str) -> None:
    density, rows, q, statistics, _ = solved(name)
    parts = [Block(0, tuple(c[a:b] for c in rows.columns)) for a, b in ((0, 50), (50, N))]
    summed = density.statistics(None, parts[0], q[:, :, :50]) + density.statistics(None, parts[1], q[:, :, 50:])
    np.testing.assert_allclose(summed, statistics, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(density.statistics(None, rows, 3 * q), 3 * statistics, rtol=1e-12)
    assert statistics.shape == (2, K, density.width)


def test_parameters_are_counted() -> None:
    assert Bernoulli(4).n_parameters(3) == 12
    assert Categorical([2, 3, 5]).n_parameters(2) == 14
    assert Product([("a", Bernoulli(4)), ("b", Categorical([3]))]).n_parameters(2) == 12


def test_edges_have_finite_densities() -> None:
    x = np.array([[0.0, 1.0], [1.0, 1.0]])
    found = Bernoulli(2).log_density(np.array([[[0.0, 1.0]]]), Block(0, (x,)))[0, 0]
    assert found[0] == 0 and found[1] < -600 and np.isfinite(found).all()
