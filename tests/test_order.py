"""The order of parts: by the key, ties by the rows, the same as a sort by all columns."""

from __future__ import annotations

import numpy as np
import pytest

from majorant._order import ordered


@pytest.mark.parametrize("seed", range(10))
def test_the_order_is_that_of_a_sort_by_all_columns(seed: int) -> None:
    g = np.random.default_rng(seed)
    key, rows = g.integers(0, 3, 30).astype(float), g.integers(-1, 2, (30, 4)) * 0.5
    rows[g.random(rows.shape) < 0.2] = -0.0
    assert np.array_equal(ordered(key, rows), np.lexsort((*rows.T[::-1], key)))
    assert np.array_equal(ordered(key, rows.astype(np.float32)), ordered(key, rows))
