"""Nearest centres and moments about them: dense and sparse rows, hard and soft labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from majorant.solvers.nearest import assign, moments, row_squares, squared_distances

Array = NDArray[Any]

each_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["double", "single"])
each_kind = pytest.mark.parametrize("kind", [np.ascontiguousarray, sparse.csr_matrix], ids=["dense", "sparse"])
each_weighting = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])


def example(dtype: type) -> tuple[Array, Array, Array]:
    """Rows of small integers, many of them zero, centres and weights."""
    random = np.random.default_rng(0)
    x = random.integers(-2, 3, (80, 6)) * (random.random((80, 6)) < 0.6)
    return x.astype(dtype), random.integers(-2, 3, (5, 6)).astype(dtype), random.random(80)


def by_hand(x: Array, w: Array | None, centres: Array, q: Array) -> Array:
    """``[sum q w, sum q w (x - c), sum q w |x - c|^2]`` for soft labels q."""
    mass = q if w is None else q * w[:, None]
    difference = x[:, None, :].astype(np.float64) - centres
    return np.concatenate(
        [
            mass.sum(axis=0)[:, None],
            np.einsum("ik,ikd->kd", mass, difference),
            (mass * (difference**2).sum(axis=2)).sum(axis=0)[:, None],
        ],
        axis=1,
    )


@each_kind
@each_dtype
def test_distances(kind: Any, dtype: type) -> None:
    x, centres, _ = example(dtype)
    exact = ((x[:, None] - centres) ** 2).sum(axis=2)
    found = squared_distances(kind(x), centres)
    np.testing.assert_array_equal(found, exact)
    assert found.dtype == dtype


def test_sparse_distances_are_never_negative() -> None:
    x = np.random.default_rng(0).normal(size=(50, 3)) * 1e4
    assert (squared_distances(sparse.csr_matrix(x), x.copy()) >= 0).all()


@each_weighting
@each_kind
@each_dtype
def test_assign(kind: Any, dtype: type, weighted: bool) -> None:
    x, centres, w = example(dtype)
    weights = w if weighted else None
    labels = np.zeros(80, dtype=np.int32)
    found, changed = assign(kind(x), weights, centres, labels)
    nearest = ((x[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(labels, nearest)
    assert changed == np.count_nonzero(nearest) > 0
    np.testing.assert_allclose(found, by_hand(x, weights, centres, np.eye(5)[nearest]), rtol=1e-6, atol=1e-5)
    assert assign(kind(x), weights, centres, labels, with_moments=False) == (None, 0)


@each_weighting
@each_kind
@each_dtype
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_moments(kind: Any, dtype: type, weighted: bool, soft: bool) -> None:
    x, centres, w = example(dtype)
    weights = w if weighted else None
    z = np.random.default_rng(1).integers(0, 4, 80).astype(np.int32)  # the last centre has no rows
    q = np.random.default_rng(2).dirichlet(np.ones(5), 80) if soft else np.eye(5)[z]
    found = moments(kind(x), weights, centres, q if soft else z)
    np.testing.assert_allclose(found, by_hand(x, weights, centres, q), rtol=1e-6, atol=1e-5)
    assert soft or not found[4].any()


@each_dtype
def test_row_squares(dtype: type) -> None:
    x, _, _ = example(dtype)
    np.testing.assert_array_equal(row_squares(sparse.csr_matrix(x)), (x**2).sum(axis=1))
