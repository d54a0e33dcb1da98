"""The weighted empirical measure: what an answer may depend on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy import sparse

from majorant.data.measure import Measure, empirical_measure, safe_scale

Rows = NDArray[Any]

SMALL = st.sampled_from([-3.0, -1.5, -0.0, 0.0, 0.5, 2.0, 2.5])
"""Few values, so that rows repeat; all are float32 numbers."""


@st.composite
def rows(draw: st.DrawFn, elements: st.SearchStrategy[float] = SMALL) -> Rows:
    shape = draw(st.tuples(st.integers(1, 12), st.integers(1, 4)))
    return draw(arrays(np.float64, shape, elements=elements))


def assert_equal(a: Measure, b: Measure) -> None:
    """The same measure to the last bit; which row is which point aside."""
    np.testing.assert_array_equal(a.points, b.points)
    np.testing.assert_array_equal(a.weights, b.weights)
    np.testing.assert_array_equal(a.origin, b.origin)
    assert a.scale == b.scale


def random_rows(seed: int = 0, n: int = 60, d: int = 3) -> Rows:
    """Rows of which many are equal."""
    return np.random.default_rng(seed).integers(-2, 3, (n, d)).astype(np.float64)


class TestInvariance:
    @given(x=rows(), data=st.data())
    def test_order_of_rows(self, x: Rows, data: st.DataObject) -> None:
        order = np.array(data.draw(st.permutations(range(len(x)))))
        w = np.array(data.draw(st.lists(st.sampled_from([0.1, 0.2, 0.7, 3.0]), min_size=len(x), max_size=len(x))))
        a, b = empirical_measure(x, w), empirical_measure(x[order], w[order])
        assert_equal(a, b)
        np.testing.assert_array_equal(a.positions[order], b.positions)

    @given(x=rows(), data=st.data())
    def test_a_repeated_row_is_a_weight(self, x: Rows, data: st.DataObject) -> None:
        times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(x), max_size=len(x))))
        times[0] = max(times[0], 1)
        assert_equal(empirical_measure(x, times.astype(np.float64)), empirical_measure(np.repeat(x, times, axis=0)))

    @given(x=rows())
    def test_rows_without_weight_do_not_exist(self, x: Rows) -> None:
        w = np.ones(2 * len(x))
        w[len(x) :] = 0
        measure = empirical_measure(np.concatenate([x, 100 + x]), w)
        assert_equal(measure, empirical_measure(x))
        assert (measure.positions[len(x) :] == -1).all()

    @given(x=rows())
    def test_the_sign_of_zero(self, x: Rows) -> None:
        assert_equal(empirical_measure(x), empirical_measure(np.where(x == 0, -0.0, x)))

    @given(x=rows(), exponent=st.integers(-900, 900))
    def test_powers_of_two_change_nothing_but_the_scale(self, x: Rows, exponent: int) -> None:
        a, b = empirical_measure(x), empirical_measure(x * 2.0**exponent)
        np.testing.assert_array_equal(a.positions, b.positions)
        np.testing.assert_array_equal(a.weights, b.weights)
        np.testing.assert_array_equal(a.points * (2.0**exponent * b.scale), b.points)

    @given(x=rows())
    def test_single_precision_keeps_the_order(self, x: Rows) -> None:
        double, single = empirical_measure(x), empirical_measure(x.astype(np.float32))
        np.testing.assert_array_equal(double.positions, single.positions)
        np.testing.assert_array_equal(double.weights, single.weights)
        assert single.points.dtype == np.float32
        np.testing.assert_allclose(single.points, double.points, rtol=1e-6, atol=1e-6)

    @given(x=rows())
    def test_single_precision_keeps_the_order_of_sparse_rows(self, x: Rows) -> None:
        double, single = (empirical_measure(sparse.csr_matrix(x.astype(t))) for t in (np.float64, np.float32))
        np.testing.assert_array_equal(double.positions, single.positions)

    @pytest.mark.parametrize("seed", range(5))
    def test_sparse_rows_are_the_dense_ones(self, seed: int) -> None:
        x = random_rows(seed) * (np.random.default_rng(seed).random((60, 3)) < 0.5)
        dense, stored = empirical_measure(x), empirical_measure(sparse.csr_matrix(x))
        assert dense.n_points == stored.n_points < 60
        of_row = stored.points.toarray()[stored.positions]
        np.testing.assert_array_equal(of_row, x)  # sparse rows keep their units
        np.testing.assert_array_equal(dense.weights[dense.positions], stored.weights[stored.positions])
        np.testing.assert_allclose(dense.variances(), stored.variances(), rtol=1e-12)

    @given(x=rows(), data=st.data())
    def test_the_order_of_sparse_rows_and_explicit_zeros(self, x: Rows, data: st.DataObject) -> None:
        order = np.array(data.draw(st.permutations(range(len(x)))))
        plain = sparse.csr_matrix(x)
        full = sparse.csr_matrix((x.ravel(), np.indices(x.shape).reshape(2, -1)), shape=x.shape)
        a, b, c = empirical_measure(plain), empirical_measure(plain[order]), empirical_measure(full)
        for other in (b, c):
            np.testing.assert_array_equal(a.points.toarray(), other.points.toarray())
            np.testing.assert_array_equal(a.weights, other.weights)
        np.testing.assert_array_equal(a.positions[order], b.positions)

    @pytest.mark.parametrize(
        "layout", [np.asfortranarray, lambda x: np.repeat(x, 2, axis=1)[:, ::2]], ids=["F order", "strided"]
    )
    def test_layout(self, layout: Any) -> None:
        assert_equal(empirical_measure(random_rows()), empirical_measure(layout(random_rows())))

    def test_the_rows_are_not_written_to(self) -> None:
        x = random_rows()
        x.flags.writeable = False
        before = x.copy()
        empirical_measure(x)
        np.testing.assert_array_equal(x, before)


class TestUnits:
    @given(x=rows(st.integers(-(10**6), 10**6).map(lambda i: i / 1e5)))
    def test_points_lead_back_to_the_rows(self, x: Rows) -> None:
        measure = empirical_measure(x)
        np.testing.assert_allclose(measure.restore(measure.points)[measure.positions], x, rtol=0, atol=1e-14 * 20)
        assert (measure.origin >= x.min(axis=0)).all() and (measure.origin <= x.max(axis=0)).all()
        np.testing.assert_allclose(measure.variances(), x.var(axis=0) * measure.scale**2, rtol=1e-9, atol=1e-25)

    @pytest.mark.parametrize("exponent", range(-300, 301, 50))
    def test_any_scale(self, exponent: int) -> None:
        x = np.random.default_rng(0).uniform(0.5, 9.0, (40, 3))
        scaled = x * 10.0**exponent
        measure = empirical_measure(scaled)
        size = np.abs(measure.points).max()
        assert np.isfinite(size**2) and size**2 > 0
        assert np.isfinite(measure.variances()).all() and (measure.variances() > 0).all()
        back = measure.restore(measure.points)[measure.positions]
        np.testing.assert_allclose(back, scaled, rtol=1e-13)

    @pytest.mark.parametrize("exponent", range(-30, 31, 10))
    def test_any_scale_in_single_precision(self, exponent: int) -> None:
        x = (np.random.default_rng(0).uniform(0.5, 9.0, (40, 3)) * 10.0**exponent).astype(np.float32)
        measure = empirical_measure(x)
        largest = np.abs(measure.points).max()
        assert measure.points.dtype == np.float32 and np.isfinite(largest**2) and largest**2 > 0
        np.testing.assert_allclose(measure.restore(measure.points)[measure.positions], x, rtol=1e-6)

    def test_opposite_ends_of_the_number_line(self) -> None:
        measure = empirical_measure(np.array([[-1e308], [1e308], [1.5e308]]))
        assert np.isfinite(measure.points).all() and np.isfinite(measure.variances()).all()
        assert measure.n_points == 3

    def test_constant_columns_are_exactly_zero(self) -> None:
        for value in (0.0, 0.1, -1e300, 1e8 + 0.1, 3e-300):
            x = np.column_stack([np.full(30, value), np.random.default_rng(0).normal(size=30)])
            measure = empirical_measure(x)
            assert not measure.points[:, 0].any() and measure.variances()[0] == 0
            assert measure.origin[0] == value

    def test_a_constant_column_beside_large_numbers(self) -> None:
        measure = empirical_measure(np.column_stack([np.full(5, 7.0), np.arange(5) * 1e250]))
        assert not measure.points[:, 0].any() and (np.diff(measure.points[:, 1]) > 0).all()

    def test_an_offset_costs_no_digits(self) -> None:
        x = np.random.default_rng(0).integers(-1000, 1000, (500, 2)) / 64
        plain, moved = empirical_measure(x), empirical_measure(x + 1e8)  # exact in double
        np.testing.assert_array_equal(plain.positions, moved.positions)
        np.testing.assert_allclose(moved.points, plain.points, rtol=0, atol=1e-13)
        np.testing.assert_allclose(moved.variances(), plain.variances(), rtol=1e-12)
        np.testing.assert_allclose(moved.origin - plain.origin, 1e8, rtol=1e-15)

    def test_weights_count_in_the_variance(self) -> None:
        x, w = np.array([[0.0], [1.0], [5.0]]), np.array([1.0, 2.0, 1.0])
        measure = empirical_measure(x, w)
        np.testing.assert_allclose(measure.variances(), [np.average((x[:, 0] - 7 / 4) ** 2, weights=w)])
        assert measure.total_weight == 4

    def test_a_row_far_out_leaves_the_others_their_digits(self) -> None:
        x = np.random.default_rng(0).normal(size=(99, 2))
        for far in (1e10, 1e20, 1e100):
            measure = empirical_measure(np.vstack([x, [[far, -far]]]))
            near = measure.restore(measure.points)[measure.positions[:-1]]
            np.testing.assert_allclose(near, x, rtol=1e-13, atol=1e-15)

    def test_one_row_and_all_rows_equal(self) -> None:
        for x in (np.array([[3.0, 4.0]]), np.tile([[3.0, 4.0]], (9, 1))):
            measure = empirical_measure(x)
            assert measure.n_points == 1 and measure.total_weight == len(x) and measure.scale == 1
            assert not measure.points.any() and measure.origin.tolist() == [3.0, 4.0]
            assert (measure.positions == 0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_safe_scale_is_a_power_of_two_and_only_where_it_is_needed(dtype: type) -> None:
    assert safe_scale(1.0, dtype) == safe_scale(1e-5, dtype) == safe_scale(1e5, dtype) == 1.0
    assert safe_scale(0.0, dtype) == safe_scale(np.inf, dtype) == safe_scale(np.nan, dtype) == 1.0
    largest = float(np.finfo(dtype).max)
    for value in (largest, largest / 3, 1 / largest):
        scale = safe_scale(value, dtype)
        assert scale != 1.0 and np.frexp(scale)[0] == 0.5
        assert np.isfinite((value * scale) ** 2) and (value * scale) ** 2 > 0


def test_tiny_differences_of_large_numbers_stay_numbers() -> None:
    X = np.array([[1e-300, 1e30], [0.0, 1e30]])
    measure = empirical_measure(X)
    assert np.isfinite(measure.points).all()
    np.testing.assert_array_equal(np.sort(measure.restore(measure.points), axis=0), np.sort(X, axis=0))
