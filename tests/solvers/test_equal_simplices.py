"""Projection on rows of one common sum: against brute force, and what characterises it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from majorant.solvers.equal_simplices import project_equal_simplices

Array = NDArray[np.float64]


def on_simplices(z: Array, a: float) -> Array:
    """Each row on the simplex of size a, the threshold found by trying every number of active entries."""
    out = np.empty_like(z)
    for row, of in zip(z, out, strict=True):
        s = np.sort(row)[::-1]
        for j in range(len(s), 0, -1):
            level = (s[:j].sum() - a) / j
            if s[j - 1] - level >= 0:
                break
        of[:] = np.maximum(row - level, 0)
    return out


def brute_force(z: Array, omega: Array) -> float:
    """The common sum by a search over one number."""

    def distance(a: float) -> float:
        return float(omega @ ((on_simplices(z, a) - z) ** 2).sum(axis=1))

    high = float(np.maximum(z, 0).sum(axis=1).max()) + 1.0
    return float(minimize_scalar(distance, bounds=(0, high), method="bounded", options={"xatol": 1e-13}).x)


@pytest.mark.parametrize("seed", range(12))
def test_equals_brute_force(seed: int) -> None:
    random = np.random.default_rng(seed)
    n, k = int(random.integers(1, 9)), int(random.integers(1, 6))
    z = random.normal(0.3, 1.0, (n, k))
    omega = random.dirichlet(np.ones(n)) if seed % 2 else np.full(n, 1 / n)
    v, a = project_equal_simplices(z, omega)
    assert abs(float(a) - max(brute_force(z, omega), 0.0)) < 1e-6
    if a > 0:  # brute force knows the best sum to 1e-6 only; given the sum, the rows are exact
        np.testing.assert_allclose(v, on_simplices(z, float(a)), atol=1e-12, rtol=0)
        thresholds = np.max(np.where(v > 0, z - v, -np.inf), axis=1)
        assert abs(float(omega @ thresholds)) < 1e-12, "at the best sum the thresholds are zero on average"


@given(
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=3, max_side=6), elements=st.floats(-1e3, 1e3)),
    st.integers(-8, 8),
)
@settings(max_examples=60, deadline=None)
def test_of_any_shape_and_scale(z: Array, power: int) -> None:
    v, a = project_equal_simplices(z * 10.0**power)
    size = max(np.abs(z).max() * 10.0**power, 1e-300)
    assert v.shape == z.shape and (v >= 0).all() and a.shape == z.shape[:-2]
    np.testing.assert_allclose(v.sum(axis=-1), np.broadcast_to(a[..., None], z.shape[:-1]), atol=1e-12 * size)
    again, b = project_equal_simplices(v)
    np.testing.assert_allclose(again, v, atol=1e-12 * size)
    np.testing.assert_allclose(a, b, atol=1e-12 * size)


def test_no_feasible_array_is_nearer() -> None:
    random = np.random.default_rng(3)
    z = random.normal(0.0, 1.0, (7, 4))
    v, _ = project_equal_simplices(z)
    for _ in range(200):
        other = random.dirichlet(np.ones(4), size=7) * random.exponential()
        assert np.einsum("nk,nk->", z - v, other - v) <= 1e-12


def test_weights_are_repeats() -> None:
    z = np.random.default_rng(4).normal(0.5, 1.0, (5, 3))
    repeats = np.array([1, 3, 2, 1, 1])
    v, a = project_equal_simplices(z, repeats / repeats.sum())
    w, b = project_equal_simplices(np.repeat(z, repeats, axis=0))
    np.testing.assert_allclose(np.repeat(v, repeats, axis=0), w, atol=1e-14)
    assert abs(float(a - b)) < 1e-14


def test_negative_rows_become_zero() -> None:
    v, a = project_equal_simplices(np.array([[-1.0, -2.0], [0.5, -3.0]]))
    assert not v.any() and a == 0
