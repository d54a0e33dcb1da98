"""Upper bounds on the log-likelihood of mixtures: above all that any search finds, and close to it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from majorant.solvers.mixture_bounds import mixture_upper_bound
from majorant.solvers.mixture_bounds.bumps import whitened
from majorant.solvers.mixture_bounds.mixing import Aim, best_mixing, improved_shares

Array = NDArray[Any]

N_INSTANCES = 100


@dataclass(frozen=True)
class Instance:
    x: Array
    w: Array
    floor: Array


def instance(seed: int, n: int | None = None, d: int | None = None) -> Instance:
    """A small data set with clusters, repeated rows now and then, and a floor at odds with its axes."""
    random = np.random.default_rng(seed)
    n, d = n or int(random.integers(1, 16)), d or int(random.integers(1, 4))
    x = random.normal(size=(n, d)) * random.uniform(0.3, 3.0, d)
    x[: n // 2] += random.uniform(0.0, 6.0, d)
    if seed % 3 == 0:
        x = np.round(x)
    x *= 10.0 ** random.integers(-3, 4)
    spread = x.std(axis=0) + 0.1 * np.abs(x).max()
    root = np.tril(random.normal(size=(d, d))) * 0.3 + np.eye(d)
    floor = (root @ root.T) * np.outer(spread, spread) * random.uniform(0.01, 0.3)
    w = random.choice([1.0, 2.0, 0.5, 3.7], n) if seed % 2 else np.ones(n)
    return Instance(x, w, floor)


def fitted_by_em(one: Instance, k: int, seed: int, *, is_free: bool, steps: int = 25) -> float:
    """What EM reaches from random responsibilities, with covariances equal to the floor or only at least that."""
    random = np.random.default_rng(seed)
    n, d = one.x.shape
    root = np.linalg.cholesky(one.floor)
    y = np.linalg.solve(root, (one.x - one.x.mean(axis=0)).T).T
    q = random.dirichlet(np.full(k, 0.3), n)
    value, total = -np.inf, one.w.sum()
    for _ in range(steps):
        joint = q * one.w[:, None]
        mass = joint.sum(axis=0) + 1e-300
        away = y[:, None] - (joint.T @ y / mass[:, None])
        squares, spread = (away**2).sum(axis=2), np.zeros(k)
        if is_free:
            variances, axes = np.linalg.eigh(np.einsum("ik,ikl,ikm->klm", joint, away, away) / mass[:, None, None])
            variances = np.maximum(variances, 1.0)
            squares = (np.einsum("ikl,klm->ikm", away, axes) ** 2 / variances).sum(axis=2)
            spread = np.log(variances).sum(axis=1)
        logs = np.log(mass / total) - 0.5 * (squares + spread + d * np.log(2 * np.pi))
        density = logsumexp(logs, axis=1)
        value = max(value, float(one.w @ density))
        q = np.exp(logs - density[:, None])
    return value - float(total) * float(np.log(np.diag(root)).sum())


@cache
def best_known(seed: int) -> float:
    one = instance(seed)
    tries = [(1, True), (2, True), (3, True), (6, False)]
    return max(fitted_by_em(one, k, 10 * seed + s, is_free=is_free) for s, (k, is_free) in enumerate(tries))


def slack(value: float) -> float:
    return 1e-10 * (1 + abs(value))


@pytest.mark.parametrize("effort", ["fast", "default"])
def test_no_search_finds_a_better_mixture(effort: Any) -> None:
    for seed in range(N_INSTANCES):
        one = instance(seed)
        found = mixture_upper_bound(one.x, one.w, one.floor, effort=effort)
        known = best_known(seed)
        assert found.bound >= known - slack(known), seed
        assert found.bound >= found.attained, seed
        # Sharp: the best distribution of places attains it but for what ending early costs.
        assert found.bound - found.attained <= 0.01, seed
        assert found.attained >= known - 0.01, seed


@pytest.mark.parametrize("budget", [0.0, 1.0, 1e4, 1e5, 1e6])
def test_valid_whatever_the_work(budget: float) -> None:
    for seed in range(0, N_INSTANCES, 3):
        one = instance(seed)
        found = mixture_upper_bound(one.x, one.w, one.floor, budget=budget)
        assert np.isfinite(found.bound)
        assert found.bound >= best_known(seed) - slack(best_known(seed))


@pytest.mark.parametrize("reached", [-np.inf, -1e3, 0.0, 1e9])
def test_valid_whatever_was_reached(reached: float) -> None:
    for seed in range(0, N_INSTANCES, 10):
        one = instance(seed)
        found = mixture_upper_bound(one.x, one.w, one.floor, reached=reached)
        assert found.bound >= best_known(seed) - slack(best_known(seed))


def test_one_point_and_two() -> None:
    peak = -0.5 * np.log(2 * np.pi * 4.0)
    one = mixture_upper_bound(np.array([[3.0]]), np.array([2.5]), np.array([[4.0]]))
    assert one.bound == pytest.approx(2.5 * peak, abs=2e-3)
    # Two points up to two standard deviations apart: one component between them is best of all mixtures.
    for apart in (0.5, 2.0, 4.0):
        two = mixture_upper_bound(np.array([[0.0], [apart]]), None, np.array([[4.0]]))
        exact = 2 * (peak - apart**2 / 8 / 4.0)
        assert exact <= two.bound <= exact + 5e-3
    # Far apart: a component for each.
    far = mixture_upper_bound(np.array([[0.0], [1e3]]), None, np.array([[4.0]]))
    assert far.bound == pytest.approx(2 * (peak - np.log(2)), abs=5e-3)


@pytest.mark.parametrize("seed", range(6))
def test_a_function_of_the_weighted_points(seed: int) -> None:
    one = instance(seed, n=12)
    base = mixture_upper_bound(one.x, one.w, one.floor).bound
    order = np.random.default_rng(seed).permutation(len(one.x))
    assert mixture_upper_bound(one.x[order], one.w[order], one.floor).bound == base
    counts = np.arange(12) % 3 + 1
    weighted = mixture_upper_bound(one.x, counts.astype(float), one.floor).bound
    assert mixture_upper_bound(np.repeat(one.x, counts, axis=0), None, one.floor).bound == weighted
    assert mixture_upper_bound(one.x, one.w, one.floor).bound == base
    with threadpool_limits(limits=1):
        assert mixture_upper_bound(one.x, one.w, one.floor).bound == base
    padded = np.concatenate((one.x, one.x[:1] + 1e6))
    assert mixture_upper_bound(padded, np.append(one.w, 0.0), one.floor).bound == base


@pytest.mark.parametrize("seed", range(8))
def test_moves_with_affine_maps(seed: int) -> None:
    one = instance(seed, n=14)
    d = one.x.shape[1]
    random = np.random.default_rng(seed)
    a = random.normal(size=(d, d)) + 2 * np.eye(d)
    base = mixture_upper_bound(one.x, one.w, one.floor, effort="tight").bound
    moved = mixture_upper_bound(one.x @ a + random.normal(size=d), one.w, a.T @ one.floor @ a, effort="tight").bound
    assert moved == pytest.approx(base - one.w.sum() * np.linalg.slogdet(a)[1], abs=0.01)


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e150])
def test_units_do_not_matter(scale: float) -> None:
    one = instance(4, n=14, d=2)
    base = mixture_upper_bound(one.x, one.w, one.floor).bound
    scaled = mixture_upper_bound(one.x * scale, one.w, one.floor * scale**2).bound
    assert scaled == pytest.approx(base - one.w.sum() * 2 * np.log(scale), abs=5e-3, rel=1e-9)


def test_rounding_far_from_the_origin_is_paid_for() -> None:
    one = instance(7, n=14, d=2)
    base = mixture_upper_bound(one.x, one.w, one.floor)
    far = one.x + 2.0**30
    assert mixture_upper_bound(far, one.w, one.floor).bound == pytest.approx(base.bound, abs=1e-2)


def test_many_points_are_first_taken_in_cells() -> None:
    random = np.random.default_rng(0)
    x = np.concatenate((random.normal(size=(3000, 2)), random.normal(size=(2000, 2)) + 4.0))
    x = x.round(3)
    truth = logsumexp(
        [np.log(s) - 0.5 * ((x - m) ** 2).sum(axis=1) - np.log(2 * np.pi) for s, m in ((0.6, 0.0), (0.4, 4.0))], axis=0
    ).sum()
    found = mixture_upper_bound(x, None, 0.5 * np.eye(2), reached=truth)
    assert 0 <= found.bound - found.attained <= 1
    assert truth <= found.attained <= found.bound <= truth + 50


def test_many_columns() -> None:
    """The bound is loose there, and valid."""
    random = np.random.default_rng(0)
    x = random.normal(size=(60, 12))
    x[:30] += 3.0
    one = Instance(x, np.ones(60), 0.5 * np.eye(12))
    known = max(fitted_by_em(one, k, s, is_free=True) for k in (1, 2, 5) for s in range(2))
    found = mixture_upper_bound(x, None, one.floor, effort="fast")
    assert found.bound >= known
    assert found.bound <= 60 * -0.5 * (12 * np.log(2 * np.pi) + 12 * np.log(0.5)) + 1e-6  # the peak
    assert "at their peak" in found.method or found.method == "peak of the density"


@pytest.mark.parametrize("seed", range(10))
def test_leading_coordinates_bound_all(seed: int) -> None:
    one = instance(seed, n=12, d=3)
    bumps = whitened(one.x, one.w, one.floor)
    mixing, _ = best_mixing(bumps, 1e8, Aim(-np.inf, 0.01))
    for q in (1, 2):
        part, _ = best_mixing(bumps.leading(q), 1e8, Aim(-np.inf, 0.01))
        assert bumps.leading(q).log_likelihood(part.log_density) >= bumps.log_likelihood(mixing.log_density) - 0.01


@pytest.mark.parametrize("seed", range(20))
def test_better_shares_until_the_gradient_says_so(seed: int) -> None:
    random = np.random.default_rng(seed)
    table, w = random.random((30, 8)) ** random.integers(1, 9), random.uniform(0.1, 3.0, 30)
    table[:, 5] = table[:, 4]  # two of the atoms are the same
    shares, values = np.full(8, 1 / 8), []
    for _ in range(15):
        values.append(float(w @ np.log(table @ shares)))
        shares = improved_shares(table, w, shares, 1)
        assert shares.sum() == pytest.approx(1.0)
        assert (shares >= 0).all()
    assert (np.diff(values) >= -1e-10).all()
    gradient = (w / (table @ shares)) @ table / w.sum()
    assert gradient.max() <= 1 + 1e-6
    assert np.allclose(shares * (gradient - 1), 0, atol=1e-6)


def test_mistakes_are_named() -> None:
    x, floor = np.zeros((3, 2)), np.eye(2)
    with pytest.raises(ValueError, match="effort"):
        mixture_upper_bound(x, None, floor, effort="great")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="points must be"):
        mixture_upper_bound(x, None, np.eye(3))
    with pytest.raises(ValueError, match="weights must be"):
        mixture_upper_bound(x, np.ones(2), floor)
    with pytest.raises(ValueError, match="positive definite"):
        mixture_upper_bound(x, None, np.ones((2, 2)))
    with pytest.raises(ValueError, match="positive definite"):
        mixture_upper_bound(x, None, -floor)
