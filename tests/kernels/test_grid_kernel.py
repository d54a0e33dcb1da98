"""The kernels for grids of regions against numpy, in both precisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from majorant import _kernels
from majorant.solvers.structural_svm.descent import PlaneCache
from majorant.solvers.structural_svm.grids import GridProblem, GridSet
from majorant.solvers.structural_svm.problem import exact_pass

N = 11
SIZES = [(1, 1, 2, 1), (3, 4, 3, 2), (16, 9, 2, 8), (21, 5, 4, 17), (70, 2, 3, 33)]
"""Features, regions, classes, parts."""

CASES = [(size, dtype) for size in SIZES for dtype in (np.float32, np.float64)]


@dataclass
class Case:
    """Images whose regions lie in the stack in another order than the images, with rows of no image between them."""

    grids: GridSet
    problem: GridProblem
    w: NDArray[np.float64]
    shares: NDArray[np.float64]

    def regions(self, i: int) -> NDArray[np.float64]:
        a = self.grids.starts[i]
        return self.grids.rows[a : a + self.grids.n_regions].astype(np.float64)

    def terms(self, i: int) -> NDArray[np.float64]:
        """What each part adds to the score of each class, shape (classes, regions, parts)."""
        filters, table = self.grids.split(self.w)
        return self.regions(i) @ filters.T + self.grids.scale * table

    def features(self, i: int, label: int, parts: NDArray[Any], share: Any = 1.0) -> NDArray[np.float64]:
        """Joint features; `parts` may be a table of shares (regions, parts)."""
        q = np.eye(self.grids.n_parts)[parts] if parts.ndim == 1 else parts
        out = np.zeros(self.grids.dim)
        filters, table = self.grids.split(out)
        filters += q.T @ self.regions(i)
        table[label] += self.grids.scale * q
        return share * out


def case(size: tuple[int, int, int, int], dtype: Any, seed: int = 0) -> Case:
    d, regions, classes, parts = size
    random = np.random.default_rng(seed)
    starts = random.permutation(N).astype(np.int64) * (regions + 1)
    rows = random.normal(size=(N * (regions + 1), d)).astype(dtype)
    codes = random.integers(0, classes, N).astype(np.int32)
    grids = GridSet(rows, starts, regions, codes, classes, parts, 0.5)
    cost = random.random((classes, classes))
    np.fill_diagonal(cost, 0)
    shares = random.random(N)
    return Case(grids, GridProblem(grids, cost), random.normal(size=grids.dim), shares / shares.sum())


def close(dtype: Any) -> dict[str, float]:
    return {"rtol": 3e-5, "atol": 3e-5} if dtype == np.float32 else {"rtol": 1e-11, "atol": 1e-11}


@pytest.mark.parametrize(("size", "dtype"), CASES)
def test_inference(size: tuple[int, int, int, int], dtype: Any) -> None:
    at = case(size, dtype)
    cost = at.problem.cost
    best, label, parts, own = at.grids.infer(slice(2, 9), at.w, cost, own=True)
    assert own is not None
    given = (label + 1) % size[2]
    again, kept, others, _ = at.grids.infer(slice(2, 9), at.w, cost, given.astype(np.int32))
    np.testing.assert_array_equal(kept, given)
    np.testing.assert_array_equal(again, best)
    for j, i in enumerate(range(2, 9)):
        terms, code = at.terms(i), at.grids.codes[i]
        scores = terms.max(axis=2).sum(axis=1)
        np.testing.assert_allclose(best[j], scores, **close(dtype))
        assert scores[label[j]] + cost[code, label[j]] == pytest.approx((scores + cost[code]).max(), rel=1e-5)
        np.testing.assert_allclose(own.reshape(7, *terms.shape[1:])[j], terms[code], **close(dtype))
        for chosen, of in ((parts[j], label[j]), (others[j], given[j])):
            found = terms[of][np.arange(size[1]), chosen]
            np.testing.assert_allclose(found, terms[of].max(axis=1), **close(dtype))


def test_the_first_of_equal_parts_and_labels_is_named() -> None:
    grids = case((20, 5, 3, 19), np.float64).grids
    _, label, parts, _ = grids.infer(slice(0, N), np.zeros(grids.dim), np.zeros((3, 3)))
    assert not label.any() and not parts.any()


@pytest.mark.parametrize("beta", [0.0, 0.5, 20.0])
@pytest.mark.parametrize(("size", "dtype"), CASES)
def test_pooled_loss_and_its_gradient(size: tuple[int, int, int, int], dtype: Any, beta: float) -> None:
    at = case(size, dtype)
    value, gradient = at.problem.pooled(at.w, at.shares, beta, 8.0)
    expected, slopes = 0.0, np.zeros(at.grids.dim)
    for i, code in enumerate(at.grids.codes):
        terms = at.terms(i)
        top = terms.max(axis=2, keepdims=True)
        within = np.exp(beta * (terms - top))
        mean = within.mean(axis=2)
        pool = (terms.mean(axis=2) if beta == 0 else top[:, :, 0] + np.log(mean) / beta).sum(axis=1)
        raised = 8.0 * (pool + at.problem.cost[code])
        total = np.log(np.exp(raised - raised.max()).sum()) + raised.max()
        expected += at.shares[i] * (total / 8.0 - pool[code])
        share = np.exp(raised - total) - (np.arange(len(pool)) == code)
        within /= within.sum(axis=2, keepdims=True)
        for c in range(len(pool)):
            slopes += at.features(i, c, within[c], at.shares[i] * share[c])
    assert value == pytest.approx(expected, rel=1e-4 if dtype == np.float32 else 1e-11)
    np.testing.assert_allclose(gradient, slopes, **close(dtype))


@pytest.mark.parametrize(("size", "dtype"), CASES)
def test_exact_pass_is_that_of_a_loop_over_planes(size: tuple[int, int, int, int], dtype: Any) -> None:
    at = case(size, dtype)
    quick = at.problem.exact_pass(at.w, at.shares)
    slow = exact_pass(at.problem, at.w, at.shares, lambda i, plane: None)
    assert quick.value == pytest.approx(slow.value, rel=1e-5)
    assert quick.loss == pytest.approx(slow.loss, rel=1e-12)
    np.testing.assert_allclose(quick.features, slow.features, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("size", "dtype"), CASES)
def test_sweeps_keep_the_weights_those_of_the_shares_and_raise_the_dual(
    size: tuple[int, int, int, int], dtype: Any
) -> None:
    at = case(size, dtype)
    alpha = 0.3
    linear = at.grids.sums(slice(0, N), at.shares, at.grids.codes, np.zeros((N, size[1]), dtype=np.int32))
    planes = at.problem.dual_planes()
    assert not planes.covers(at.shares)
    planes.collect(np.zeros(at.grids.dim), at.shares)
    assert planes.covers(at.shares)
    last = -np.inf
    random = np.random.default_rng(1)
    for online in (True, False, False, True, False, True):
        features, _ = planes.mixture(at.shares)
        w = (linear - features) / alpha
        left = planes.sweep(w, at.shares, random.permutation(N), alpha, online=online)
        assert left >= 0
        features, loss = planes.mixture(at.shares)
        np.testing.assert_allclose(w, (linear - features) / alpha, **close(dtype))
        dual = loss - alpha / 2 * w @ w
        assert dual >= last - 1e-6
        last = dual
    assert last <= 0.5 * alpha * w @ w + at.problem.exact_pass(w, at.shares).value - w @ linear + 1e-5


@pytest.mark.parametrize(("size", "dtype"), [c for c in CASES if c[0][0] > 1])
def test_sweeps_are_those_of_planes_in_python(
    size: tuple[int, int, int, int], dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # After a step two planes are equal but for rounding: one step an image, and other weights before the next one.
    for room in ("planes", "descent"):
        monkeypatch.setattr(f"majorant.solvers.structural_svm.{room}.MOST_STEPS", 1)
    at = case(size, dtype)
    quick, slow = at.problem.dual_planes(), PlaneCache(at.problem)
    near = {"rtol": 1e-4, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-9}
    assert quick.collect(at.w, at.shares) == pytest.approx(slow.collect(at.w, at.shares))
    random = np.random.default_rng(1)
    for online in (True, True, False, True):
        mine = random.normal(size=at.grids.dim)
        theirs = mine.copy()
        order = random.permutation(N)
        left = quick.sweep(mine, at.shares, order, 2.0, online=online)
        assert left == pytest.approx(slow.sweep(theirs, at.shares, order, 2.0, online=online), rel=1e-4)
        np.testing.assert_allclose(mine, theirs, **near)
        (found, loss), (features, expected) = quick.mixture(at.shares), slow.mixture(at.shares)
        np.testing.assert_allclose(found, features, **near)
        assert loss == pytest.approx(expected, rel=1e-4)


def test_steps_over_the_planes_that_are_known_end_at_their_maximum() -> None:
    at = case((21, 5, 4, 17), np.float64)
    planes, random = at.problem.dual_planes(), np.random.default_rng(1)
    w = np.zeros(at.grids.dim)
    for _ in range(6):
        planes.collect(random.normal(size=at.grids.dim), at.shares)
        planes.sweep(w, at.shares, np.arange(N), 0.05, online=False)
    left = [planes.sweep(w, at.shares, random.permutation(N), 0.05, online=False) for _ in range(200)]
    assert left[-1] < 1e-6 * left[0]


@pytest.mark.parametrize(("size", "dtype"), CASES)
def test_mixtures_are_weighted_sums_of_joint_features(size: tuple[int, int, int, int], dtype: Any) -> None:
    at = case(size, dtype)
    _, regions, classes, n_parts = size
    random = np.random.default_rng(3)
    label = random.integers(0, classes, (N, 4)).astype(np.int32)
    parts = random.integers(0, n_parts, (N, 4, regions)).astype(np.int32)
    share, used = random.random((N, 4)), random.integers(1, 5, N).astype(np.int32)
    found = np.empty(at.grids.dim)
    loss = at.grids.native.mixture(0, N, at.shares, at.problem.cost, label, parts, share, used, found)
    expected, features = 0.0, np.zeros(at.grids.dim)
    for i in range(N):
        for j in range(used[i]):
            weight = at.shares[i] * share[i, j]
            expected += weight * at.problem.cost[at.grids.codes[i], label[i, j]]
            features += at.features(i, label[i, j], parts[i, j], weight)
    assert loss == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(found, features, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"starts": np.array([0, 3])}, "in the stack"),
        ({"starts": np.array([-1, 1])}, "in the stack"),
        ({"regions": 0}, "must be regions"),
        ({"parts": 0}, "must be regions"),
        ({"codes": np.array([0, 2], dtype=np.int32)}, "codes"),
        ({"codes": np.zeros(3, dtype=np.int32)}, "one entry an image"),
    ],
)
def test_what_points_outside_is_refused(changed: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "x": np.ones((4, 3)),
        "starts": np.array([0, 2]),
        "regions": 2,
        "codes": np.zeros(2, dtype=np.int32),
        "classes": 2,
        "parts": 3,
        "scale": 1.0,
    }
    with pytest.raises(ValueError, match=message):
        _kernels.grids(**given | changed)


def test_planes_that_name_no_part_or_class_are_refused() -> None:
    at = case((3, 4, 3, 2), np.float64)
    for wrong, message in ((("label", 3), "classes"), (("parts", 2), "parts"), (("parts", -1), "parts")):
        label, parts = np.zeros((N, 1), dtype=np.int32), np.zeros((N, 1, 4), dtype=np.int32)
        {"label": label, "parts": parts}[str(wrong[0])][5] = wrong[1]
        planes = label, parts, np.ones((N, 1)), np.ones(N, dtype=np.int32)
        with pytest.raises(ValueError, match=message):
            at.grids.native.mixture(0, N, at.shares, at.problem.cost, *planes, np.empty(at.grids.dim))
