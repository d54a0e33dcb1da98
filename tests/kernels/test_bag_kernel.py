"""The kernels for bags against numpy, dense and sparse, in both precisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from majorant import _kernels
from majorant.solvers.structural_svm.bags import BagProblem, BagSet
from majorant.solvers.structural_svm.descent import PlaneCache
from majorant.solvers.structural_svm.problem import exact_pass

SIZES = [(1, 2, 0), (3, 5, 1), (16, 4, 0), (21, 9, 0), (67, 11, 2), (70, 3, 0)]


@dataclass
class Case:
    """Bags whose rows lie in the stack in another order than the bags, with rows of no bag between them."""

    bags: BagSet
    problem: BagProblem
    dense: NDArray[Any]
    w: NDArray[np.float64]
    shares: NDArray[np.float64]

    def scores(self, i: int) -> NDArray[np.float64]:
        """Scores of the rows of a bag, shape (rows, classes)."""
        return self.features(i) @ self.w.T

    def features(self, i: int) -> NDArray[np.float64]:
        a = self.bags.starts[i]
        rows = self.dense[a : a + self.bags.counts[i]].astype(np.float64)
        return np.hstack([rows, np.full((len(rows), 1), self.bags.bias)])


def case(d: int, classes: int, first: int, dtype: Any, is_sparse: bool, seed: int = 0) -> Case:
    random = np.random.default_rng(seed)
    n = 13
    counts = random.integers(1, 22, n)
    places = random.permutation(n)
    edges = np.concatenate([[0], np.cumsum(counts[places] + 1)])
    starts = np.empty(n, dtype=np.int64)
    starts[places] = edges[:-1]
    dense = random.normal(size=(edges[-1], d)).astype(dtype)
    if is_sparse:
        dense[random.random(dense.shape) < 0.7] = 0
    rows = sparse.csr_matrix(dense) if is_sparse else dense
    codes = random.integers(0, classes, n).astype(np.int32)
    bags = BagSet(rows, starts, counts, codes, classes, first, 0.5)
    w = random.normal(size=(classes, d + 1))
    w[:first] = 0
    cost = random.random((classes, classes))
    np.fill_diagonal(cost, 0)
    shares = random.random(n)
    return Case(bags, BagProblem(bags, cost), dense, w, shares / shares.sum())


CASES = [
    (*size, dtype, is_sparse) for size in SIZES for dtype in (np.float32, np.float64) for is_sparse in (False, True)
]


def close(dtype: Any) -> dict[str, float]:
    return {"rtol": 2e-5, "atol": 2e-5} if dtype == np.float32 else {"rtol": 1e-11, "atol": 1e-11}


@pytest.mark.parametrize(("d", "classes", "first", "dtype", "is_sparse"), CASES)
def test_scores(d: int, classes: int, first: int, dtype: Any, is_sparse: bool) -> None:
    at = case(d, classes, first, dtype, is_sparse)
    best, where, own = at.bags.scores(slice(2, 11), at.w.ravel(), own=True)
    assert own is not None
    for j, i in enumerate(range(2, 11)):
        scores, count = at.scores(i), at.bags.counts[i]
        np.testing.assert_allclose(best[j], scores.max(axis=0), **close(dtype))
        assert np.all(where[j, :first] == 0)
        chosen = scores[where[j], np.arange(classes)]
        np.testing.assert_allclose(chosen, scores.max(axis=0), **close(dtype))
        np.testing.assert_allclose(own[j, :count], scores[:, at.bags.codes[i]], **close(dtype))
        assert np.all(own[j, count:] == -np.inf)


def test_the_first_of_equal_rows_is_named() -> None:
    rows = np.ones((7, 20))
    counts = np.array([7])
    bags = BagSet(rows, np.zeros(1, dtype=np.int64), counts, np.zeros(1, dtype=np.int32), 6)
    where = bags.scores(slice(0, 1), np.random.default_rng(0).normal(size=6 * 21))[1]
    assert not where.any()


@pytest.mark.parametrize("beta", [0.0, 0.5, 20.0])
@pytest.mark.parametrize(("d", "classes", "first", "dtype", "is_sparse"), CASES)
def test_pooled_loss_and_its_gradient(
    d: int, classes: int, first: int, dtype: Any, is_sparse: bool, beta: float
) -> None:
    at = case(d, classes, first, dtype, is_sparse)
    value, gradient = at.problem.pooled(at.w.ravel(), at.shares, beta, 8.0)
    expected, slopes = 0.0, np.zeros_like(at.w)
    for i, code in enumerate(at.bags.codes):
        scores = at.scores(i)
        top = scores.max(axis=0)
        within = np.exp(beta * (scores - top))
        pool = scores.mean(axis=0) if beta == 0 else top + np.log(within.mean(axis=0)) / beta
        raised = 8.0 * (pool + at.problem.cost[code])
        total = np.log(np.exp(raised - raised.max()).sum()) + raised.max()
        expected += at.shares[i] * (total / 8.0 - pool[code])
        share = np.exp(raised - total) - (np.arange(classes) == code)
        slopes += at.shares[i] * share[:, None] * ((within / within.sum(axis=0)).T @ at.features(i))
    slopes[:first] = 0
    assert value == pytest.approx(expected, rel=1e-4 if dtype == np.float32 else 1e-11)
    np.testing.assert_allclose(gradient.reshape(at.w.shape), slopes, **close(dtype))


@pytest.mark.parametrize(("d", "classes", "first", "dtype", "is_sparse"), CASES)
def test_exact_pass_is_that_of_a_loop_over_planes(
    d: int, classes: int, first: int, dtype: Any, is_sparse: bool
) -> None:
    at = case(d, classes, first, dtype, is_sparse)
    quick = at.problem.exact_pass(at.w.ravel(), at.shares)
    slow = exact_pass(at.problem, at.w.ravel(), at.shares, lambda i, plane: None)
    assert quick.value == pytest.approx(slow.value, rel=1e-5)
    assert quick.loss == pytest.approx(slow.loss, rel=1e-12)
    np.testing.assert_allclose(quick.features, slow.features, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("d", "classes", "first", "dtype", "is_sparse"), CASES)
def test_sweeps_keep_the_weights_those_of_the_shares_and_raise_the_dual(
    d: int, classes: int, first: int, dtype: Any, is_sparse: bool
) -> None:
    at = case(d, classes, first, dtype, is_sparse)
    alpha = 0.3
    linear = at.bags.sums(slice(0, 13), at.shares, at.bags.codes, np.zeros(13, dtype=np.int32))
    planes = at.problem.dual_planes()
    assert not planes.covers(at.shares)
    planes.collect(np.zeros(at.w.size), at.shares)
    assert planes.covers(at.shares)
    last = -np.inf
    random = np.random.default_rng(1)
    for online in (True, False, False, True, False, True):
        features, _ = planes.mixture(at.shares)
        w = (linear - features) / alpha
        left = planes.sweep(w, at.shares, random.permutation(13), alpha, online=online)
        assert left >= 0
        features, loss = planes.mixture(at.shares)
        np.testing.assert_allclose(w, (linear - features) / alpha, **close(dtype))
        dual = loss - alpha / 2 * w @ w
        assert dual >= last - 1e-6
        last = dual
    assert last <= 0.5 * alpha * w @ w + at.problem.exact_pass(w, at.shares).value - w @ linear + 1e-5


@pytest.mark.parametrize(("d", "classes", "first", "dtype", "is_sparse"), [c for c in CASES if c[0] > 1])
def test_sweeps_are_those_of_planes_in_python(
    d: int, classes: int, first: int, dtype: Any, is_sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # After a step two planes are equal but for rounding: one step a bag, and other weights before the next one. With
    # one feature the planes of other bags are then equal too.
    for room in ("planes", "descent"):
        monkeypatch.setattr(f"majorant.solvers.structural_svm.{room}.MOST_STEPS", 1)
    at = case(d, classes, first, dtype, is_sparse)
    quick, slow = at.problem.dual_planes(), PlaneCache(at.problem)
    near = {"rtol": 1e-4, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-9}
    assert quick.collect(at.w.ravel(), at.shares) == pytest.approx(slow.collect(at.w.ravel(), at.shares))
    random = np.random.default_rng(1)
    for online in (True, True, False, True):
        w = random.normal(size=at.w.shape)
        w[:first] = 0
        mine, theirs = w.ravel(), w.ravel().copy()
        order = random.permutation(13)
        left = quick.sweep(mine, at.shares, order, 2.0, online=online)
        assert left == pytest.approx(slow.sweep(theirs, at.shares, order, 2.0, online=online), rel=1e-4)
        np.testing.assert_allclose(mine, theirs, **near)
        (found, loss), (features, expected) = quick.mixture(at.shares), slow.mixture(at.shares)
        np.testing.assert_allclose(found, features, **near)
        assert loss == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("d", "classes", "first", "dtype", "is_sparse"), CASES)
def test_mixtures_are_weighted_sums_of_joint_features(
    d: int, classes: int, first: int, dtype: Any, is_sparse: bool
) -> None:
    at = case(d, classes, first, dtype, is_sparse)
    random = np.random.default_rng(3)
    label = random.integers(0, classes, (13, 4)).astype(np.int32)
    row = (random.random((13, 4)) * at.bags.counts[:, None]).astype(np.int32)
    share, used = random.random((13, 4)), random.integers(1, 5, 13).astype(np.int32)
    found = np.empty(at.w.shape)
    loss = at.bags.native.mixture(0, 13, at.shares, at.problem.cost, label, row, share, used, found)
    expected, features = 0.0, np.zeros_like(at.w)
    for i in range(13):
        for j in range(used[i]):
            expected += at.shares[i] * share[i, j] * at.problem.cost[at.bags.codes[i], label[i, j]]
            if label[i, j] >= first:
                features[label[i, j]] += at.shares[i] * share[i, j] * at.features(i)[row[i, j]]
    assert loss == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(found, features, rtol=1e-12, atol=1e-15)


def test_soft_sums_are_weighted_joint_features() -> None:
    at = case(7, 3, 1, np.float64, False)
    within = np.random.default_rng(2).random((4, at.bags.n_states))
    within[np.arange(at.bags.n_states) >= at.bags.counts[4:8, None]] = 0
    rows = np.minimum(np.arange(at.bags.n_states), at.bags.counts[4:8, None] - 1).astype(np.int32)
    labels = np.repeat(at.bags.codes[4:8, None], at.bags.n_states, axis=1)
    found = at.bags.sums(slice(4, 8), at.shares[4:8], labels, rows, within).reshape(at.w.shape)
    expected = np.zeros_like(at.w)
    for j, i in enumerate(range(4, 8)):
        if at.bags.codes[i] >= 1:
            expected[at.bags.codes[i]] += at.shares[i] * within[j, : at.bags.counts[i]] @ at.features(i)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"starts": np.array([0, 3])}, "in the stack"),
        ({"starts": np.array([-1, 1])}, "in the stack"),
        ({"counts": np.array([2, 0])}, "must have rows"),
        ({"codes": np.array([0, 2], dtype=np.int32)}, "codes"),
        ({"d": 4}, "x must be"),
        ({"first": 2}, "first"),
        ({"edges": np.array([0, 4]), "indices": None}, "CSR rows"),
    ],
)
def test_what_points_outside_is_refused(changed: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "x": np.ones((4, 3)),
        "edges": None,
        "indices": None,
        "d": 3,
        "bias": 1.0,
        "starts": np.array([0, 2]),
        "counts": np.array([2, 2]),
        "codes": np.zeros(2, dtype=np.int32),
        "classes": 2,
        "first": 0,
    }
    with pytest.raises(ValueError, match=message):
        _kernels.bags(**given | changed)


def test_sparse_indices_are_checked() -> None:
    ones = np.ones(1, dtype=np.int64)
    for indices in ([0, 5], [1, 0], [-1, 2]):
        with pytest.raises(ValueError, match="indices"):
            _kernels.bags(
                np.ones((1, 2)),
                np.array([0, 2]),
                np.array(indices, dtype=np.int32),
                3,
                0.0,
                0 * ones,
                ones,
                np.zeros(1, dtype=np.int32),
                2,
                0,
            )
