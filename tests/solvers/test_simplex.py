"""Projection on simplices: brute force over supports, optimality, and what it refuses."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from majorant.solvers import project_on_simplex

Array = NDArray[np.float64]


def brute(v: Array, total: float, omega: Array) -> Array:
    """The best of the stationary points of every support."""
    best, least = np.zeros_like(v), np.inf
    for size in range(1, len(v) + 1):
        for chosen in combinations(range(len(v)), size):
            on = list(chosen)
            tau = (v[on].sum() - total) / np.sum(1 / omega[on])
            u = np.zeros_like(v)
            u[on] = v[on] - tau / omega[on]
            cost = float(np.sum(omega * (u - v) ** 2))
            if (u >= -1e-12).all() and cost < least:
                best, least = u, cost
    return best


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 7])
def test_as_brute_force(k: int, weighted: bool) -> None:
    g = np.random.default_rng(k)
    v, totals = 2 * g.normal(size=(40, k)), g.gamma(1.0, size=40)
    v[:10] = np.round(v[:10])  # ties
    omega = g.gamma(2.0, size=(40, k)) if weighted else np.ones((40, k))
    u = project_on_simplex(v, totals, weights=omega if weighted else None)
    for row in range(40):
        np.testing.assert_allclose(u[row], brute(v[row], totals[row], omega[row]), atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.floats(-10, 10), st.floats(-3, 3), st.integers(0, 1000))
def test_optimality(k: int, power: float, total_power: float, seed: int) -> None:
    g = np.random.default_rng(seed)
    v, s = g.normal(size=(6, k)) * 10**power, 10**total_power
    u = project_on_simplex(v, s)
    size = max(10**power, s)
    assert (u >= 0).all()
    np.testing.assert_allclose(u.sum(axis=-1), s, rtol=1e-9)
    tau = np.where(u > 0, v - u, -np.inf).max(axis=-1, keepdims=True)
    slack = 1e-12 * size
    assert (np.abs(np.where(u > 0, v - u - tau, 0)) <= 10 * slack).all()  # one multiplier a row
    assert (np.where(u == 0, v - tau, 0) <= 10 * slack).all()


def test_points_of_the_simplex_stay_and_totals_of_zero_give_zero() -> None:
    g = np.random.default_rng(0)
    u = g.dirichlet(np.ones(4), size=(2, 3))
    np.testing.assert_allclose(project_on_simplex(u), u, atol=1e-15)
    assert not project_on_simplex(u, 0.0).any()
    np.testing.assert_allclose(project_on_simplex([1e15, 1e15 - 0.5]), [0.75, 0.25])


@pytest.mark.parametrize(
    ("v", "extra", "words"),
    [
        (np.zeros((2, 0)), {}, "at least one state"),
        ([1.0, np.nan], {}, "finite"),
        ([1.0, 2.0], {"total": -1.0}, "not be negative"),
        ([1.0, 2.0], {"weights": [1.0, 0.0]}, "positive"),
    ],
)
def test_bad_input(v: Any, extra: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        project_on_simplex(v, **extra)
