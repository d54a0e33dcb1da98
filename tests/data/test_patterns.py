"""Rows grouped by which of their entries are there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from majorant.data.measure import empirical_measure
from majorant.data.patterns import patterns

TABLES = arrays(
    np.float64,
    st.tuples(st.integers(1, 12), st.integers(1, 10)),
    elements=st.sampled_from([np.nan, -1.0, 0.0, 2.0]),
)


@given(x=TABLES)
def test_every_row_is_in_the_one_pattern_of_its_observed_columns(x: np.ndarray) -> None:
    groups = patterns(x)
    positions = np.concatenate([np.arange(len(x))[g.rows] for g in groups])
    assert sorted(positions) == list(range(len(x)))
    for group in groups:
        assert (~np.isnan(x[group.rows]) == group.observed).all()
    assert len({g.observed.tobytes() for g in groups}) == len(groups)
    assert not any(g.is_complete for g in groups[1:])


@given(x=TABLES, data=st.data())
def test_the_order_of_patterns_is_canonical(x: np.ndarray, data: st.DataObject) -> None:
    order = np.array(data.draw(st.permutations(range(len(x)))))
    a, b = patterns(x), patterns(x[order])
    assert [g.observed.tolist() for g in a] == [g.observed.tolist() for g in b]


def test_rows_that_lie_together_are_slices() -> None:
    x = np.array([[1.0, 2.0], [1.0, np.nan], [3.0, np.nan]])
    assert [g.rows for g in patterns(x)] == [slice(0, 1), slice(1, 3)]


@given(x=TABLES, data=st.data())
def test_the_measure_does_not_depend_on_the_order_of_rows(x: np.ndarray, data: st.DataObject) -> None:
    if np.isnan(x).all():
        return
    order = np.array(data.draw(st.permutations(range(len(x)))))
    a, b = empirical_measure(x), empirical_measure(x[order])
    np.testing.assert_array_equal(a.points, b.points)
    np.testing.assert_array_equal(a.weights, b.weights)
    np.testing.assert_array_equal(a.origin, b.origin)
    np.testing.assert_array_equal(a.positions[order], b.positions)


@given(x=TABLES)
def test_equal_rows_with_the_same_entries_missing_merge(x: np.ndarray) -> None:
    if np.isnan(x).all():
        return
    measure = empirical_measure(x)
    distinct = {(row.tobytes()) for row in np.where(np.isnan(x), np.nan, x + 0.0)}  # one sign of zero
    empty = np.isnan(x).all(axis=1)
    assert measure.n_points == len(distinct) - bool(empty.any())
    assert (measure.positions[empty] == -1).all()
    assert measure.total_weight == len(x) - empty.sum()
    there = measure.restore(measure.points)[measure.positions[~empty]]
    columns = ~np.isnan(x).all(axis=0)
    np.testing.assert_array_equal(there[:, columns], x[~empty][:, columns])
    assert all(isinstance(group.rows, slice) for group in patterns(measure.points))


def test_a_row_with_a_gap_is_not_the_row_with_a_zero_there() -> None:
    measure = empirical_measure(np.array([[1.0, 0.0], [1.0, np.nan], [1.0, 0.0]]))
    assert measure.weights.tolist() == [2.0, 1.0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_variances_are_those_of_the_entries_that_are_there(dtype: type) -> None:
    random = np.random.default_rng(0)
    x = random.normal([3.0, 1e3], [1.0, 5.0], (200, 2)).astype(dtype)
    x[random.random(x.shape) < 0.3] = np.nan
    measure = empirical_measure(x)
    np.testing.assert_allclose(measure.variances(), np.nanvar(x.astype(np.float64), axis=0), rtol=1e-4)
    assert (measure.origin >= np.nanmin(x, axis=0)).all() and (measure.origin <= np.nanmax(x, axis=0)).all()
