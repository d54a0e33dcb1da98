"""Empty clusters take the rows that are farthest from their centres."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from majorant.data import Chunks
from majorant.solvers.nearest import assign
from majorant.solvers.relocation import relocate_empty

Array = NDArray[Any]

X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [9.0, 0.0], [0.0, 7.0], [50.0, 50.0]])
CENTRES = np.array([[0.0, 0.0], [50.0, 50.0], [-1e3, 0.0], [0.0, -1e3]])
"""The first has five rows, the second one, the others none."""


def moments_of(x: Any, centres: Array, weights: Array | None = None) -> Array:
    found, _ = assign(x, weights, centres, np.full(x.shape[0], -1, dtype=np.int32))
    assert found is not None
    return found


def means(moments: Array, centres: Array) -> Array:
    return centres + moments[:, 1:-1] / np.maximum(moments[:, :1], 1e-300)


def scatter(moments: Array) -> float:
    """The sum of squared distances to the means."""
    mass = np.maximum(moments[:, 0], 1e-300)
    return float(np.sum(moments[:, -1] - (moments[:, 1:-1] ** 2).sum(axis=1) / mass))


@pytest.mark.parametrize("kind", [np.ascontiguousarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("rows", [1, 2, 6])
def test_the_farthest_rows_move_whatever_the_blocks(kind: Any, rows: int) -> None:
    before = moments_of(kind(X), CENTRES)
    after = relocate_empty(before, CENTRES, Chunks(kind(X), rows=rows))
    np.testing.assert_allclose(after[:, 0], [3, 1, 1, 1])
    np.testing.assert_allclose(means(after, CENTRES)[[0, 2, 3]], [[1 / 3, 1 / 3], [9, 0], [0, 7]], atol=1e-9)
    assert scatter(after) < scatter(before)


def test_the_only_row_of_a_cluster_stays_and_the_next_moves() -> None:
    centres = np.array([[0.0, 0.0], [40.0, 40.0], [-1e3, 0.0]])
    after = relocate_empty(moments_of(X, centres), centres, Chunks(X))  # the farthest row is alone with its centre
    np.testing.assert_allclose(after[:, 0], [4, 1, 1])
    np.testing.assert_allclose(means(after, centres)[2], [9, 0])


def test_rows_at_their_centres_stay() -> None:
    x = np.tile([[2.0, 3.0]], (5, 1))
    centres = np.array([[2.0, 3.0], [9.0, 9.0]])
    before = moments_of(x, centres)
    np.testing.assert_array_equal(relocate_empty(before, centres, Chunks(x)), before)


def test_a_row_takes_its_weight_along() -> None:
    w = np.array([1.0, 1.0, 1.0, 2.5, 0.5, 1.0])
    before = moments_of(X, CENTRES, w)
    after = relocate_empty(before, CENTRES, Chunks(X, weights=w))
    np.testing.assert_allclose(after[:, 0], [3, 1, 2.5, 0.5])
    np.testing.assert_allclose(before[:, 0], [6, 1, 0, 0])  # untouched


def test_equal_distances_are_settled_by_the_order_of_rows() -> None:
    x = np.array([[-5.0, 0.0], [5.0, 0.0], [0.0, 0.0]])
    centres = np.array([[0.0, 0.0], [100.0, 0.0]])
    for rows in (1, 3):
        after = relocate_empty(moments_of(x, centres), centres, Chunks(x, rows=rows))
        np.testing.assert_allclose(means(after, centres)[1], [-5, 0])
