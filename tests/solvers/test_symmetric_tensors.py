"""Collapsed symmetric tensors: entries, multiplicities, inner products."""

from __future__ import annotations

from itertools import permutations
from math import comb, factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from majorant.solvers.symmetric_tensors import collapse, expand, index_tuples, multiplicities, powers


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_every_entry_is_counted_once(d: int, order: int) -> None:
    assert len(index_tuples(d, order)) == comb(d + order - 1, order)
    assert multiplicities(d, order).sum() == d**order


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 100))
def test_an_expanded_tensor_is_symmetric_and_collapses_back(d: int, order: int, seed: int) -> None:
    v = np.random.default_rng(seed).normal(size=len(index_tuples(d, order)))
    tensor = expand(v, d, order)
    assert tensor.shape == (d,) * order
    for axes in permutations(range(order)):
        np.testing.assert_array_equal(tensor, tensor.transpose(axes))
    np.testing.assert_array_equal(collapse(tensor), v)


def test_inner_products_with_tensor_powers() -> None:
    random = np.random.default_rng(0)
    x, v = random.normal(size=3), random.normal(size=10)
    whole = np.einsum("abc,a,b,c->", expand(v, 3, 3), x, x, x)
    assert np.dot(multiplicities(3, 3) * powers(x, 3), v) == pytest.approx(whole, rel=1e-13)
    np.testing.assert_allclose(expand(powers(x, 3), 3, 3), np.einsum("a,b,c->abc", x, x, x), rtol=1e-13)
    assert multiplicities(3, 3)[index_tuples(3, 3).tolist().index([0, 1, 2])] == factorial(3)


def test_shared_tables_cannot_be_changed() -> None:
    for table in (index_tuples(3, 2), multiplicities(3, 2)):
        with pytest.raises(ValueError, match="read-only"):
            table[0] = 0
