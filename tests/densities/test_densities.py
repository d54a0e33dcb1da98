"""Densities: they keep their word, are scipy's, and leave missing cells out; and those that do not are told."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from majorant.data.chunks import Block
from majorant.densities import Bernoulli, Categorical, Poisson, Product, ZeroInflatedPoisson, check_density
from majorant.densities.normal import FLOOR, LEAST_RATIO, Normal

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
def test_densities_keep_their_word(name: str) -> None:
    check_density(DENSITIES[name](), *columns_of(name, 0))


MISTAKES: dict[str, tuple[Any, str]] = {
    "statistics": (lambda given: given[:, :, :-1], r"be \(runs, components, width\), \(2, 3, 13\); got \(2, 3, 12\)"),
    "statistics ": (lambda given: given**1.01, "be linear in q"),
    "statistics  ": (lambda given: given + 1e-3 * given.mean(axis=2, keepdims=True) ** 0, "be linear in q"),
    "solve": (lambda given: given[0], "give arrays that begin with the 2 runs; got 3"),
    "solve ": (lambda given: given * 1.001, "end where no small change is better"),
    "log_density": (lambda given: given.transpose(0, 2, 1), r"be \(runs, components, rows\), \(2, 3, 120\)"),
    "log_density ": (lambda given: given - 1, "be zero for a row without a cell"),
    "log_density  ": (lambda given: given + len(given), "give each run what it has alone"),
    "log_density   ": (lambda given: np.where(given < given.mean(), -np.inf, given), "be finite"),
    "describe": (lambda given: {name: -values for name, values in given.items()}, "within its limits"),
    "describe ": (lambda given: {name: values[:, 0] for name, values in given.items()}, r"as \(runs, components"),
    "recalled": (lambda given: given[:, ::-1], "give a batch of one run with the same 'means'"),
    "vector": (lambda given: given[0], r"be \(runs, m\)"),
    "theta_of": (lambda given: given * 0.99, "undo vector"),
    "score": (lambda given: given * 1.001, "be the slopes by vector"),
    "expected_log_density": (lambda given: given * 1.001, "be the sum of q log f of each run"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_density_that_breaks_its_word_is_told_where(mistake: str) -> None:
    method, (wrong, said) = mistake.strip(), MISTAKES[mistake]
    right = getattr(ZeroInflatedPoisson, method)
    made = type("Mine", (ZeroInflatedPoisson,), {method: lambda self, *given: wrong(right(self, *given))})
    with pytest.raises(ValueError, match=rf"Mine\.{method} must .*{said}"):
        check_density(made(D), *columns_of("zero-inflated Poisson", 0))


def test_steps_that_go_down_and_members_that_lack_are_told() -> None:
    class Down(Poisson):
        def solve(self, statistics: Any, theta: Any, share: Any) -> Any:
            return super().solve(statistics, theta, share) if theta is None else theta * 1.1

    with pytest.raises(ValueError, match=r"Down.solve must not lower the log density; got"):
        check_density(Down(D), *columns_of("Poisson", 0))
    with pytest.raises(TypeError, match="int is no density: it lacks n_columns, exact, width, log_density"):
        check_density(3, *columns_of("Poisson", 0))  # type: ignore[arg-type]


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


def test_parameters_are_counted() -> None:
    assert Bernoulli(4).n_parameters(3) == 12
    assert Categorical([2, 3, 5]).n_parameters(2) == 14
    both = Product([("a", Bernoulli(4)), ("b", Categorical([3]))])
    assert both.n_parameters(2) == 12 and both.statistics_are_free


def test_edges_have_finite_densities() -> None:
    x = np.array([[0.0, 1.0], [1.0, 1.0]])
    found = Bernoulli(2).log_density(np.array([[[0.0, 1.0]]]), Block(0, (x,)))[0, 0]
    assert found[0] == 0 and found[1] < -600 and np.isfinite(found).all()


@pytest.mark.parametrize(
    ("variances", "collapsed"),
    [
        ([[1.0, 1.0], [0.5, 2.0]], ""),
        ([[1.0, 2 * LEAST_RATIO], [1.0, 1.0]], ""),
        ([[1.0, 1.0], [LEAST_RATIO / 2, 1.0]], "component 2 .* column 1"),  # of what is pooled
        ([[1.0, FLOOR], [1.0, FLOOR]], "component 1 .* column 2"),  # all of them
    ],
)
def test_a_normal_state_that_collapses_is_named(variances: list[list[float]], collapsed: str) -> None:
    density = Normal(np.zeros(2), ONE)
    theta = np.concatenate([np.zeros((2, 2)), variances], axis=1)[None]
    for of_one_or_many in (np.full(2, 50.0), np.full((1, 2), 50.0)):
        found = density.degeneracy(theta, of_one_or_many, SimpleNamespace(n_components=2))
        assert re.search(collapsed, found) and bool(found) == bool(collapsed)
    assert density.degeneracy(theta[:, 1:], np.full(1, 100.0), SimpleNamespace(n_components=1)) == ""
