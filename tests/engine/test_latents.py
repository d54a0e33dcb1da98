"""Free energies, posteriors and sums over latent values, against their formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from majorant.energy import row_minimum
from majorant.engine.latents import as_soft, collect, entropies, expected, tightest

TEMPERATURES = pytest.mark.parametrize("beta", [0.1, 1.0, 10.0])
DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def table(dtype: type = np.float64, n: int = 60, k: int = 5) -> NDArray[Any]:
    return np.random.default_rng(0).normal(0, 2, (n, k)).astype(dtype)


class TestTightest:
    @DTYPES
    @TEMPERATURES
    def test_free_energy_and_posterior(self, beta: float, dtype: type) -> None:
        energies = table(dtype)
        free, q = tightest(energies, beta)
        exact = energies.astype(np.float64)
        partition = np.exp(-beta * exact).sum(axis=1)
        rounding = 1e-13 if dtype == np.float64 else 1e-5
        np.testing.assert_allclose(free, -np.log(partition) / beta, rtol=rounding, atol=rounding / beta)
        np.testing.assert_allclose(q, np.exp(-beta * exact) / partition[:, None], rtol=10 * rounding)

    def test_at_zero_temperature(self) -> None:
        energies = table()
        free, z = tightest(energies, np.inf)
        np.testing.assert_array_equal(free, energies.min(axis=1))
        np.testing.assert_array_equal(z, energies.argmin(axis=1))
        assert z.dtype == np.int32

    @TEMPERATURES
    def test_absent_states(self, beta: float) -> None:
        energies = table()
        energies[:, 2] = np.inf
        free, q = tightest(energies, beta)
        assert not q[:, 2].any()
        present = tightest(np.delete(energies, 2, axis=1), beta)
        np.testing.assert_allclose(free, present[0], rtol=1e-14)
        np.testing.assert_allclose(np.delete(q, 2, axis=1), present[1], rtol=1e-14)
        free, z = tightest(energies, np.inf)
        assert not (z == 2).any() and np.isfinite(free).all()

    def test_one_state(self) -> None:
        for beta in (0.1, 1.0, np.inf):
            np.testing.assert_array_equal(tightest(np.full((3, 1), 7.0), beta)[0], 7.0)

    @TEMPERATURES
    def test_large_energies_neither_overflow_nor_vanish(self, beta: float) -> None:
        energies = np.array([[1e5, 1e5 + 1], [-1e5, -1e5 + 1], [0.0, 1e300]])
        free, q = tightest(energies, beta)
        np.testing.assert_allclose(q[:2, 1] / q[:2, 0], np.exp(-beta))
        np.testing.assert_allclose(
            free[:2], [1e5 - np.log1p(np.exp(-beta)) / beta, -1e5 - np.log1p(np.exp(-beta)) / beta]
        )
        assert free[2] == 0 and q[2].tolist() == [1, 0]

    @pytest.mark.parametrize(
        "layout", [np.asfortranarray, lambda e: np.repeat(e, 2, axis=0)[::2]], ids=["F", "strided"]
    )
    def test_any_layout(self, layout: Any) -> None:
        np.testing.assert_array_equal(tightest(layout(table()), np.inf)[1], table().argmin(axis=1))

    @given(
        energies=arrays(np.float64, (4, 3), elements=st.floats(-50, 50)),
        q=arrays(np.float64, (4, 3), elements=st.floats(0.001, 1)),
        beta=st.sampled_from([0.1, 1.0, 10.0]),
    )
    def test_no_latent_values_have_a_lower_bound(
        self, energies: NDArray[np.float64], q: NDArray[np.float64], beta: float
    ) -> None:
        """The variational principle on which everything stands, and its equality at the posterior."""
        q = q / q.sum(axis=1, keepdims=True)
        free, posterior = tightest(energies, beta)
        assert (expected(q, energies) - entropies(q) / beta >= free - 1e-9).all()
        np.testing.assert_allclose(expected(posterior, energies) - entropies(posterior) / beta, free, atol=1e-9)


@DTYPES
@pytest.mark.parametrize("k", [1, 2, 3, 7, 8, 9, 16, 17, 40])
def test_the_first_of_equal_states_is_the_best(k: int, dtype: type) -> None:
    ties = np.random.default_rng(k).integers(0, 3, (200, k)).astype(dtype)
    least, argument = row_minimum(ties)
    np.testing.assert_array_equal(argument, ties.argmin(axis=1))
    np.testing.assert_array_equal(least, ties.min(axis=1))


def test_entropies() -> None:
    q = np.array([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]])
    np.testing.assert_allclose(entropies(q), [0, np.log(2), -0.25 * np.log(0.25) - 0.75 * np.log(0.75)])
    np.testing.assert_array_equal(entropies(np.array([0, 1])), [0, 0])


def test_expectations_do_not_see_absent_states() -> None:
    energies = np.array([[1.0, np.inf], [np.inf, 2.0], [3.0, 5.0]])
    np.testing.assert_array_equal(expected(np.array([0, 1, 1]), energies), [1, 2, 5])
    np.testing.assert_array_equal(expected(np.array([[1, 0], [0, 1], [0.5, 0.5]]), energies), [1, 2, 4])


def test_hard_values_as_soft_ones() -> None:
    z = np.array([2, 0, 1], dtype=np.int32)
    soft = as_soft(z, 3)
    np.testing.assert_array_equal(soft, np.eye(3)[[2, 0, 1]])
    assert as_soft(soft, 3) is soft


class TestCollect:
    @DTYPES
    @pytest.mark.parametrize("weighted", [False, True])
    def test_hard_and_soft_sums(self, dtype: type, weighted: bool) -> None:
        random = np.random.default_rng(0)
        features, z = random.normal(size=(50, 4)).astype(dtype), random.integers(0, 3, 50)
        w = random.random(50) if weighted else None
        factor = np.ones(50) if w is None else w
        by_hand = np.stack([(factor[:, None] * features)[z == s].sum(axis=0, dtype=np.float64) for s in range(3)])
        rounding = 1e-13 if dtype == np.float64 else 1e-5
        np.testing.assert_allclose(collect(z, features, 3, w), by_hand, rtol=rounding, atol=rounding)
        np.testing.assert_allclose(collect(as_soft(z, 3), features, 3, w), by_hand, rtol=rounding, atol=rounding)
        q = random.random((50, 3))
        np.testing.assert_allclose(
            collect(q, features, 3, w),
            (q * factor[:, None]).T @ features.astype(np.float64),
            rtol=rounding,
            atol=rounding,
        )

    def test_states_without_units(self) -> None:
        np.testing.assert_array_equal(collect(np.array([1, 1]), np.ones((2, 2)), 4), [[0, 0], [2, 2], [0, 0], [0, 0]])
        np.testing.assert_array_equal(collect(np.empty(0, dtype=np.int32), np.empty((0, 2)), 2), np.zeros((2, 2)))
