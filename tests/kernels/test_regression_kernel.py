"""The kernels of regression mixtures against plain numpy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp

from majorant import _kernels

Array = NDArray[Any]

each_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["double", "single"])
SIZES = [(1, 1, 1), (5, 2, 1), (127, 3, 2), (128, 1, 4), (129, 4, 3), (700, 7, 2), (300, 13, 5)]


def problem(n: int, p: int, k: int, dtype: Any, seed: int = 0) -> tuple[Array, Array, Array, Array, Array, Array]:
    """x, y, w, weights, coef, variances."""
    g = np.random.default_rng(seed)
    x = g.normal(size=(n, p)).astype(dtype)
    coef = g.normal(size=(k, p))
    y = (np.sum(x * coef[g.integers(k, size=n)], axis=1) + 0.3 * g.normal(size=n)).astype(dtype)
    return x, y, g.gamma(1.0, size=n), g.dirichlet(np.ones(k)), coef + 0.1 * g.normal(size=(k, p)), g.uniform(0.1, 1, k)


def energies(x: Array, y: Array, weights: Array, coef: Array, variances: Array) -> tuple[Array, Array]:
    r = y[:, None].astype(np.float64) - x.astype(np.float64) @ coef.T
    with np.errstate(divide="ignore"):
        return -np.log(weights) + 0.5 * (np.log(2 * np.pi * variances) + r**2 / variances), r


def expected_statistics(x: Array, r: Array, q: Array, w: Array) -> Array:
    x = x.astype(np.float64)
    lower = np.tril_indices(x.shape[1])
    rows = []
    for k in range(q.shape[1]):
        share = w * q[:, k]
        gram = (x * share[:, None]).T @ x
        rows.append(np.r_[share.sum(), share @ r[:, k] ** 2, x.T @ (share * r[:, k]), gram[lower]])
    return np.array(rows)


@each_dtype
@pytest.mark.parametrize(("n", "p", "k"), SIZES)
@pytest.mark.parametrize("beta", [1.0, 0.3, np.inf])
def test_pass(n: int, p: int, k: int, beta: float, dtype: Any) -> None:
    x, y, w, weights, coef, variances = problem(n, p, k, dtype)
    statistics = np.full((k, 2 + p + p * (p + 1) // 2), np.nan)
    table, q = np.full((n, k), np.nan, dtype=dtype), np.full((n, k), np.nan, dtype=dtype)
    free = _kernels.regression_pass(x, y, w, weights, coef, variances, beta, statistics, table, q)
    expected, r = energies(x, y, weights, coef, variances)
    if np.isinf(beta):
        soft = np.eye(k)[expected.argmin(axis=1)]
        frees = expected.min(axis=1)
    else:
        frees = -logsumexp(-beta * expected, axis=1) / beta
        soft = np.exp(-beta * (expected - frees[:, None]))
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(table, expected, rtol=64 * eps)
    np.testing.assert_allclose(q, soft, atol=256 * eps)
    assert free == pytest.approx(w @ frees, rel=1e-12)
    want = expected_statistics(x, r, soft, w)
    np.testing.assert_allclose(statistics, want, rtol=1e-11, atol=1e-12 * np.abs(want).max())


def test_a_component_without_weight_is_absent() -> None:
    x, y, w, weights, coef, variances = problem(50, 2, 3, np.float64)
    weights[1] = 0.0
    q = np.empty((50, 3))
    table = np.empty((50, 3))
    free = _kernels.regression_pass(x, y, w, weights, coef, variances, 1.0, None, table, q)
    assert np.isinf(table[:, 1]).all()
    assert (q[:, 1] == 0).all()
    others = [0, 2]
    want, _ = energies(x, y, weights[others], coef[others], variances[others])
    assert free == pytest.approx(-w @ logsumexp(-want, axis=1))


def random_statistics(k: int, p: int, seed: int, *, spread: float = 1.0) -> Array:
    g = np.random.default_rng(seed)
    lower = np.tril_indices(p)
    rows = []
    for _ in range(k):
        x = g.normal(size=(30, p))
        r = g.normal(size=30) * np.exp(spread * g.normal())
        rows.append(np.r_[30.0, r @ r, x.T @ r, (x.T @ x)[lower]])
    return np.array(rows) * g.uniform(0.5, 2.0, size=(k, 1))


def value_at(statistics: Array, p: int, weights: Array, shift: Array, variances: Array) -> float:
    """The expected energy when coefficients are moved by `shift`, written out."""
    lower = np.tril_indices(p)
    total = 0.0
    for s, pi, b, v in zip(statistics, weights, shift, variances, strict=True):
        gram = np.zeros((p, p))
        gram[lower] = s[2 + p :]
        gram.T[lower] = s[2 + p :]
        squares = s[1] - 2 * b @ s[2 : 2 + p] + b @ gram @ b
        total += s[0] * (-np.log(pi) + 0.5 * np.log(2 * np.pi * v)) + 0.5 * squares / v
    return total


@pytest.mark.parametrize("common", [False, True], ids=["own", "common"])
@pytest.mark.parametrize("ratio", [1.5, 4.0, 1e4, np.inf])
@pytest.mark.parametrize("seed", range(6))
def test_step_is_the_constrained_minimiser(ratio: float, seed: int, common: bool) -> None:
    k, p = 4, 3
    statistics = random_statistics(k, p, seed)
    weights, coef, variances = np.full(k, 0.25), np.zeros((k, p)), np.ones(k)
    value = _kernels.regression_step(statistics, ratio, 1e-12, common, weights, coef, variances)
    assert value == pytest.approx(value_at(statistics, p, weights, coef, variances), rel=1e-12)
    assert weights == pytest.approx(statistics[:, 0] / statistics[:, 0].sum())
    assert variances.max() <= ratio * variances.min() * (1 + 1e-12)
    g = np.random.default_rng(seed)
    for size in (0.3, 1e-2, 1e-3):
        for _ in range(40):
            other = np.exp(np.log(variances) + size * g.normal(size=k))
            other = np.full(k, other[0]) if common else np.clip(other, other.min(), ratio * other.min())
            pi = g.dirichlet(np.ones(k)) if size > 0.1 else weights
            moved = coef + size * g.normal(size=(k, p))
            assert value_at(statistics, p, pi, moved, other) >= value - 1e-9 * abs(value)


def test_variances_under_a_ratio_against_a_grid() -> None:
    for seed in range(30):
        g = np.random.default_rng(seed)
        k, ratio = 3, 9.0
        mass, own = g.uniform(1, 20, k), np.exp(2 * g.normal(size=k))
        statistics = np.column_stack([mass, mass * own, np.zeros(k), mass])
        weights, coef, variances = np.full(k, 1 / 3), np.zeros((k, 1)), np.ones(k)
        _kernels.regression_step(statistics, ratio, 1e-12, False, weights, coef, variances)

        def cost(v: Array, mass: Array = mass, own: Array = own) -> Array:
            return np.sum(mass * (np.log(v) + own / v), axis=-1)

        low = np.exp(np.linspace(np.log(own.min() / 10), np.log(own.max() * 2), 20001))[:, None]
        best = cost(np.clip(own, low, ratio * low)).min()
        assert cost(variances) <= best + 1e-12 * abs(best)


@each_dtype
@pytest.mark.parametrize("seed", range(10))
def test_em_never_rises_and_its_bounds_hold(seed: int, dtype: Any) -> None:
    x, y, w, weights, coef, variances = problem(400, 3, 3, dtype, seed)
    path = np.full((60, 2), np.nan)
    free, steps, _ = _kernels.regression_em(x, y, w, 100.0, 1e-16, False, 60, 0.0, weights, coef, variances, path)
    path = path[:steps]
    slack = 1e-12 * np.abs(path).max()
    assert (np.diff(path[:, 0]) <= slack).all()
    assert (path[:, 1] >= path[:, 0] - slack).all()
    assert (path[1:, 1] <= path[:-1, 0] + slack).all()
    expected, _ = energies(x, y, weights, coef, variances)
    assert free == path[-1, 0] == pytest.approx(-w @ logsumexp(-expected, axis=1), rel=1e-10)


def test_em_of_one_line_is_least_squares() -> None:
    x, y, w, *_ = problem(300, 4, 2, np.float64)
    weights, coef, variances = np.ones(1), np.zeros((1, 4)), np.ones(1)
    _, steps, converged = _kernels.regression_em(x, y, w, np.inf, 1e-16, False, 50, 1e-9, weights, coef, variances)
    root = np.sqrt(w)
    want = np.linalg.lstsq(x * root[:, None], y * root, rcond=None)[0]
    np.testing.assert_allclose(coef[0], want, rtol=1e-10)
    assert variances[0] == pytest.approx(w @ (y - x @ want) ** 2 / w.sum())
    assert converged
    assert steps <= 3


def test_plain_steps_from_the_end_of_a_run_go_on() -> None:
    x, y, w, *start = problem(200, 2, 2, np.float64)
    once, twice = [a.copy() for a in start], [a.copy() for a in start]
    _kernels.regression_em(x, y, w, np.inf, 1e-16, False, 6, 0.0, *once)
    for _ in range(2):
        _kernels.regression_em(x, y, w, np.inf, 1e-16, False, 3, 0.0, *twice)
    for a, b in zip(once, twice, strict=True):
        assert np.array_equal(a, b)


def drawn_lines(seed: int) -> tuple[Any, Any, list[Any]]:
    """Rows on lines, and a start: plateaus lie between many of these and their maxima."""
    rng = np.random.default_rng(seed)
    n, k, p = int(rng.integers(60, 300)), int(rng.integers(2, 6)), int(rng.integers(1, 4))
    x = np.column_stack([np.ones(n), rng.normal(size=(n, p))])
    coef = rng.normal(size=(k, p + 1)) * rng.uniform(0.3, 3)
    y = np.sum(x * coef[rng.integers(k, size=n)], axis=1) + rng.uniform(0.2, 1) * rng.normal(size=n)
    return x, y, [rng.dirichlet(np.ones(k) * 3), coef + 0.5 * rng.normal(size=coef.shape), np.ones(k)]


@pytest.mark.parametrize("seed", [115, 246, *range(10)])
def test_a_converged_run_has_nothing_left_to_gain(seed: int) -> None:
    """After an extrapolation a step or two may gain hardly anything though much is left."""
    x, y, run = drawn_lines(seed)
    end, _, converged = _kernels.regression_em(x, y, None, 100.0, 1e-16, False, 3000, 1e-8 * len(y), *run)
    assert converged
    for _ in range(600):  # too few steps to be extrapolated
        free, _, _ = _kernels.regression_em(x, y, None, 100.0, 1e-16, False, 6, 0.0, *run)
    assert free > end - 1e-4


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("limits", ["a weight is zero", "variances at their ratio"])
def test_runs_at_a_limit_never_rise(limits: str, seed: int) -> None:
    x, y, (weights, coef, variances) = drawn_lines(seed)
    ratio = 1.5 if limits == "variances at their ratio" else 100.0
    if limits == "a weight is zero":
        weights[0] = 0.0
        weights /= weights.sum()
    path = np.full((200, 2), np.nan)
    _, steps, _ = _kernels.regression_em(x, y, None, ratio, 1e-16, False, 200, 0.0, weights, coef, variances, path)
    assert (np.diff(path[:steps, 0]) <= 1e-12 * np.abs(path[:steps]).max()).all()
    assert variances.max() <= ratio * variances.min() * (1 + 1e-12)
    assert np.isfinite(coef).all() and weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_extrapolation_ends_where_plain_steps_do(seed: int, common: bool) -> None:
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(150), rng.normal(size=150)])
    y = np.sum(x * np.array([[0.0, 1.0], [1.0, -1.0]])[np.arange(150) % 2], axis=1) + rng.normal(size=150)
    start = np.array([0.5, 0.5]), np.array([[0.0, 0.5], [0.5, -0.5]]), np.ones(2)
    plain, run = [a.copy() for a in start], [a.copy() for a in start]
    end, steps, converged = _kernels.regression_em(x, y, None, 100.0, 1e-16, common, 1000, 1e-12, *run)
    n_plain, free = 0, np.inf
    while free - end > 1e-9 and n_plain < 10_000:
        free, _, _ = _kernels.regression_em(x, y, None, 100.0, 1e-16, common, 1, 0.0, *plain)
        n_plain += 1
    assert converged
    assert end <= free <= end + 1e-9
    assert steps < n_plain
    for a, b in zip(plain, run, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-3)


@each_dtype
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("with_odds", [False, True], ids=["even", "odds"])
def test_concentrate(dtype: Any, weighted: bool, with_odds: bool) -> None:
    x, y, w, *_ = problem(150, 3, 2, dtype)
    weights = w if weighted else np.ones(150)
    odds = np.random.default_rng(1).uniform(0.5, 2, 150) if with_odds else None
    drawn, mass, line = np.array([3, 50, 99, 140]), 40.3, np.empty(3)
    threshold = _kernels.regression_concentrate(x, y, w if weighted else None, odds, drawn, mass, 3, line)

    def fit(rows: Array, ridge: float) -> Array:
        a, b = x[rows].astype(np.float64), y[rows].astype(np.float64)
        share = weights[rows]
        gram = (a * share[:, None]).T @ a
        return np.linalg.solve(gram + ridge * np.trace(gram) / 3 * np.eye(3), a.T @ (share * b))

    def nearest(coef: Array, odds: Array | None) -> Array:
        d = (y - x.astype(np.float64) @ coef) ** 2 / (1.0 if odds is None else odds)
        order = np.argsort(d, kind="stable")
        return order[: 1 + np.searchsorted(np.cumsum(weights[order]), mass)]

    want = fit(drawn, 1e-4)
    for _ in range(3):
        want = fit(nearest(want, odds), 1e-6)
    np.testing.assert_allclose(line, want, rtol=1e-9)
    rows = nearest(line, None)
    assert threshold == pytest.approx(((y - x.astype(np.float64) @ line) ** 2)[rows].max(), rel=1e-6)


def test_equal_weights_are_none() -> None:
    x, y, *_ = problem(150, 3, 2, np.float64)
    drawn = np.array([3, 50, 99, 140])
    plain, ones = np.empty(3), np.empty(3)
    _kernels.regression_concentrate(x, y, None, None, drawn, 37.0, 4, plain)
    _kernels.regression_concentrate(x, y, np.ones(150), None, drawn, 37.0, 4, ones)
    np.testing.assert_allclose(plain, ones, rtol=1e-12)


def test_greedy_finds_lines_that_lie_apart() -> None:
    g = np.random.default_rng(0)
    x = np.column_stack([np.ones(300), g.uniform(-1, 1, 300)])
    true = np.array([[0.0, 3.0], [5.0, -2.0], [-4.0, 0.0]])
    y = np.sum(x * true[np.arange(300) % 3], axis=1) + 0.02 * g.normal(size=300)
    found = np.empty((3, 2))
    _kernels.regression_greedy(x, y, None, 3, np.full((3, 32), 70.0), g.random((3, 96)), found)
    np.testing.assert_allclose(found[np.argsort(found[:, 0])], true[[2, 0, 1]], atol=0.05)


def test_shapes_are_checked() -> None:
    x, y, w, weights, coef, variances = problem(20, 2, 2, np.float64)
    wrong: list[Any] = [
        (x[:10], y, w, weights, coef, variances, 1.0),
        (x, y, w[:3], weights, coef, variances, 1.0),
        (x, y, w, weights[:1], coef, variances, 1.0),
        (x, y, w, weights, np.ones((2, 1)), variances, 1.0),
        (x, y, w, weights, coef, variances, 0.0),
        (x, y, w, weights, coef, variances, 1.0, np.empty((2, 6))),
        (x, y, w, weights, coef, variances, 1.0, None, np.empty((20, 3))),
    ]
    for arguments in wrong:
        with pytest.raises(ValueError, match="must"):
            _kernels.regression_pass(*arguments)
    for ratio, floor in product((0.5, 4.0), (0.0, 1e-9)):
        if (ratio, floor) != (4.0, 1e-9):
            with pytest.raises(ValueError, match="ratio must be"):
                _kernels.regression_em(x, y, w, ratio, floor, False, 5, 0.0, weights, coef, variances)
    with pytest.raises(ValueError, match="names no row"):
        _kernels.regression_concentrate(x, y, None, None, np.array([0, 20, 1]), 5.0, 1, np.empty(2))
