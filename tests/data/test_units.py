"""Distinct units: no order of rows, no repeats, and no block that cuts a group."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from majorant.data.units import blocks_of, distinct_units

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("sizes", [[3] * 9000, RANDOM.integers(1, 40, 2000).tolist(), [20_000, 1, 9000], [1] * 20_000])
def test_no_block_cuts_a_group_and_none_is_lost(sizes: list[int]) -> None:
    groups = np.repeat(np.arange(len(sizes)), sizes)
    x = np.arange(len(groups), dtype=np.float64)[:, None]
    blocks = list(blocks_of([x, groups, RANDOM.normal(size=(len(x), 2))], None, groups).blocks())
    assert len(blocks) > 1
    np.testing.assert_array_equal(np.concatenate([b.columns[0] for b in blocks]), x)
    ends = [set(b.columns[1].tolist()) for b in blocks]
    assert all(not a & b for a, b in pairwise(ends))


def test_rows_without_groups_are_cut_anywhere() -> None:
    assert [len(b) for b in blocks_of([np.zeros((10_000, 1))], None).blocks()] == [8192, 1808]


@pytest.mark.parametrize("grouped", [False, True])
def test_given_rows_are_found_among_the_units(grouped: bool) -> None:
    x = RANDOM.integers(0, 3, (60, 2)).astype(float)
    x[RANDOM.random(x.shape) < 0.2] = np.nan
    gate, groups = RANDOM.integers(0, 2, 60), np.arange(60) // 3 if grouped else None
    units = distinct_units([x, gate], None, groups)
    np.testing.assert_array_equal(units.columns[0][units.positions], x)
    np.testing.assert_array_equal(units.columns[1][units.positions], gate)
    order = np.repeat(RANDOM.permutation(20), 3) * 3 + np.tile(np.arange(3), 20)
    again = distinct_units([x[order], gate[order]], None, None if groups is None else groups[order])
    np.testing.assert_array_equal(again.columns[0], units.columns[0])
    np.testing.assert_array_equal(again.weights, units.weights)
