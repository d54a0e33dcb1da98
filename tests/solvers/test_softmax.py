"""Softmax regression: gradients by differences, optimality, equivalences, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from majorant.data.chunks import Chunks
from majorant.solvers import SoftmaxFit, softmax_regression
from majorant.solvers.logits import log_probabilities, logit_sums, soft_moments
from majorant.solvers.rotation import rotation
from majorant.solvers.softmax import SoftmaxProblem

Array = NDArray[Any]


def problem(n: int, p: int, k: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Rows, soft targets and weights."""
    g = np.random.default_rng(seed)
    x = g.normal(size=(n, p)) * g.gamma(2.0, size=p) + g.normal(size=p)
    return x, softmax(x @ g.normal(size=(p, k)) / p + g.normal(size=(n, k)), axis=1), g.gamma(1.0, size=n)


def objective(x: Array, targets: Array, w: Array, l2: float, coef: Array, intercept: Array) -> float:
    logs = log_softmax(x @ coef.T + intercept, axis=1)
    return float(-np.sum(w[:, None] * targets * logs) + l2 / 2 * np.sum(coef**2))


def gradient(x: Array, targets: Array, w: Array, l2: float, fit: SoftmaxFit) -> tuple[Array, Array]:
    share = w[:, None] * (
        targets.sum(axis=1, keepdims=True) * softmax(x @ fit.coef.T + fit.intercept, axis=1) - targets
    )
    return share.T @ x + l2 * fit.coef, share.sum(axis=0)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(
    ("n", "p", "k", "l2"), [(60, 3, 4, 0.7), (90, 2, 3, 0.0), (40, 150, 5, 0.3), (800, 130, 4, 2.0)]
)
def test_the_gradient_is_zero_at_the_minimum(n: int, p: int, k: int, l2: float, is_sparse: bool) -> None:
    x, targets, w = problem(n, p, k)
    if is_sparse:
        x[np.abs(x) < 0.5] = 0
    fit = softmax_regression(sparse.csr_matrix(x) if is_sparse else x, targets, weights=w, l2=l2, tol=1e-14)
    assert fit.converged
    assert fit.objective == pytest.approx(objective(x, targets, w, l2, fit.coef, fit.intercept), rel=1e-11)
    of_coef, of_intercept = gradient(x, targets, w, l2, fit)
    assert max(np.abs(of_coef).max(), np.abs(of_intercept).max()) < 3e-5 * w.sum()
    np.testing.assert_allclose(fit.intercept.sum(), 0, atol=1e-9)


def test_as_scikit_learn() -> None:
    x, targets, w = problem(300, 4, 3)
    y = targets.argmax(axis=1)
    ours = softmax_regression(x, np.eye(3)[y], weights=w, l2=1 / 0.6)
    theirs = LogisticRegression(C=0.6, tol=1e-12, max_iter=10_000).fit(x, y, sample_weight=w)
    np.testing.assert_allclose(ours.coef, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept, theirs.intercept_ - theirs.intercept_.mean(), atol=1e-5)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_sums_by_differences(is_sparse: bool) -> None:
    x, _, w = problem(23, 3, 4)
    rows: Any = sparse.csr_matrix(x) if is_sparse else x
    g = np.random.default_rng(1)
    theta, direction, offsets = g.normal(size=(4, 4)), g.normal(size=(4, 4)), g.normal(size=(23, 4))
    step = 1e-5
    ahead, behind = (logit_sums(rows, w, theta + s * direction, offsets) for s in (step, -step))
    here = logit_sums(rows, w, theta, offsets)
    assert (ahead.value - behind.value) / (2 * step) == pytest.approx(float(np.sum(here.moments * direction)), rel=1e-7)
    blocks = logit_sums(rows, w, theta, blocks=True).blocks
    assert blocks is not None
    curvature = sum(
        float((direction[:, a] - direction[:, b]) @ block @ (direction[:, a] - direction[:, b]))
        for a, b, block in zip(*np.triu_indices(4, 1), blocks, strict=True)
    )
    ahead, behind = (logit_sums(rows, w, theta + s * direction) for s in (step, -step))
    second = float(np.sum((ahead.moments - behind.moments) * direction)) / (2 * step)
    assert second == pytest.approx(curvature, rel=1e-6)
    q = softmax(log_probabilities(rows, theta) + offsets, axis=1)
    np.testing.assert_allclose(soft_moments(rows, w, q), here.moments, rtol=1e-10)


@pytest.mark.parametrize("is_small", [True, False])
def test_the_value_never_rises_from_anywhere(is_small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_small:
        monkeypatch.setattr("majorant.solvers.softmax.MOST_FOR_NEWTON", 0)
    x, targets, w = problem(50, 3, 3)
    sums = w * targets.sum(axis=1)
    task = SoftmaxProblem(Chunks(x, weights=sums), soft_moments(x, w, targets), 0.1)
    for seed in range(8):
        theta = 10 * np.random.default_rng(seed).normal(size=(4, 3))
        value = task.value(theta, task.sums(theta))
        for _ in range(15):
            theta, new, _, _ = task.minimise(theta, tol=1e-13, max_iter=1)
            assert new <= value + 1e-10 * abs(value)
            assert new == pytest.approx(task.value(theta, task.sums(theta)), rel=1e-12)
            value = new
        least = task.minimise(np.zeros((4, 3)), tol=1e-14, max_iter=500)[1]
        assert value >= least - 1e-9 * abs(least)
        assert task.minimise(theta, tol=1e-14, max_iter=500)[1] == pytest.approx(least, rel=1e-8)


def test_a_weight_is_a_repeat_and_a_row_sum_is_a_weight() -> None:
    x, targets, _ = problem(40, 3, 3)
    counts = np.random.default_rng(0).integers(0, 4, size=40)
    a = softmax_regression(x, targets, weights=counts, l2=0.5)
    b = softmax_regression(np.repeat(x, counts, axis=0), np.repeat(targets, counts, axis=0), l2=0.5)
    c = softmax_regression(x, targets * counts[:, None], l2=0.5)
    np.testing.assert_allclose(a.coef, b.coef, atol=1e-8)
    np.testing.assert_allclose(a.coef, c.coef, atol=1e-8)


def test_saturated_targets_are_reproduced() -> None:
    """One indicator a group, no penalty: the fitted probabilities are the mean targets of the groups."""
    groups = np.array([0, 0, 1, 1, 2])
    targets = np.random.default_rng(0).dirichlet(np.ones(4), size=5)
    fit = softmax_regression(np.eye(3)[groups], targets)
    means = np.array([targets[groups == g].mean(axis=0) for g in range(3)])
    np.testing.assert_allclose(softmax(fit.coef.T + fit.intercept, axis=1), means, atol=1e-6)
    reference = fit.relative_to(1)
    assert (reference.coef[1] == 0).all()
    assert reference.intercept[1] == 0
    np.testing.assert_allclose(softmax(reference.coef.T + reference.intercept, axis=1), means, atol=1e-6)


def test_single_precision_one_state_and_no_feature() -> None:
    x, targets, w = problem(200, 3, 3)
    single = softmax_regression(x.astype(np.float32), targets, weights=w, l2=1.0)
    np.testing.assert_allclose(single.coef, softmax_regression(x, targets, weights=w, l2=1.0).coef, atol=1e-5)
    one = softmax_regression(x, targets[:, :1], l2=1.0)
    assert one.objective == pytest.approx(0, abs=1e-9)
    assert not one.coef.any()
    none = softmax_regression(np.empty((200, 0)), targets, weights=w)
    np.testing.assert_allclose(softmax(none.intercept), w @ targets / w.sum(), rtol=1e-6)


def test_separable_rows_without_a_penalty_end() -> None:
    x = np.linspace(-1, 1, 20)[:, None]
    fit = softmax_regression(x, np.eye(2)[(x[:, 0] > 0).astype(int)], tol=1e-8)
    assert np.isfinite(fit.coef).all()
    assert 0 <= fit.objective < 1e-5


def test_a_start_near_the_minimum_saves_steps() -> None:
    x, targets, w = problem(100, 4, 3)
    cold = softmax_regression(x, targets, weights=w, l2=0.1)
    warm = softmax_regression(x, targets, weights=w, l2=0.1, coef=(cold.coef, cold.intercept))
    assert warm.n_iter == 0 < cold.n_iter


def test_threads_do_not_matter() -> None:
    x, targets, w = problem(20_000, 3, 3)
    one, two = (softmax_regression(x, targets, weights=w, l2=1.0, n_jobs=n) for n in (1, 2))
    assert (one.coef == two.coef).all()
    assert one.objective == two.objective


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(0, 15), st.integers(1, 4), st.floats(-8, 8), st.booleans(), st.integers(0, 1000))
def test_any_shape_and_scale(n: int, p: int, k: int, power: float, is_sparse: bool, seed: int) -> None:
    g = np.random.default_rng(seed)
    x = g.normal(size=(n, p)) * 10**power * g.integers(0, 2, size=p)
    targets = g.dirichlet(np.ones(k), size=n)
    l2 = 0.1 * 100**power
    fit = softmax_regression(sparse.csr_matrix(x) if is_sparse else x, targets, l2=l2, tol=1e-12)
    reached = objective(x, targets, np.ones(n), l2, fit.coef, fit.intercept)
    assert reached == pytest.approx(fit.objective, rel=1e-8, abs=1e-8)
    assert reached <= objective(x, targets, np.ones(n), l2, np.zeros((k, p)), np.zeros(k)) + 1e-9
    of_coef, of_intercept = gradient(x, targets, np.ones(n), l2, fit)
    assert np.abs(of_intercept).max() < 1e-4 * n
    assert np.abs(of_coef).max(initial=0) < 1e-4 * n * max(10**power, 1e-300)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("shape", [(12, 30), (30, 12)])
def test_rotation_keeps_the_scores(shape: tuple[int, int], is_sparse: bool) -> None:
    g = np.random.default_rng(0)
    x = g.normal(size=shape) + 3
    rows = rotation(sparse.csr_matrix(x) if is_sparse else x, g.gamma(1.0, size=shape[0]))
    theta = g.normal(size=(rows.z.shape[1] + 1, 3))
    outward = rows.outward(theta)
    np.testing.assert_allclose(x @ outward[:-1] + outward[-1], rows.z @ theta[:-1] + theta[-1], atol=1e-9)
    np.testing.assert_allclose(rows.inward(outward), theta, atol=1e-9)
    assert np.sum(outward[:-1] ** 2) == pytest.approx(np.sum(theta[:-1] ** 2))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x": np.array([[np.nan], [1.0]])}, "finite"),
        ({"x": np.array([[1e200], [1.0]])}, "rescale"),
        ({"x": np.ones((3, 1))}, r"got shapes \(3, 1\) and \(2, 2\)"),
        ({"targets": np.array([[-1.0, 2.0], [0.5, 0.5]])}, "not negative"),
        ({"targets": np.array([[np.inf, 2.0], [0.5, 0.5]])}, "finite"),
        ({"targets": np.zeros((2, 2))}, "zero in every row"),
        ({"targets": np.zeros((2, 0))}, "at least one row and one state"),
        ({"weights": [1.0]}, "sample_weight"),
        ({"l2": -1.0}, "l2 must be"),
        ({"max_iter": 0}, "max_iter"),
        ({"coef": (np.zeros((1, 1)), np.zeros(2))}, r"shape \(2, 1\)"),
        ({"coef": (np.full((2, 1), np.nan), np.zeros(2))}, "coef must be finite"),
    ],
)
def test_bad_input(changes: dict[str, Any], words: str) -> None:
    good: dict[str, Any] = {"x": np.ones((2, 1)), "targets": np.full((2, 2), 0.5)}
    with pytest.raises(ValueError, match=words):
        softmax_regression(**(good | changes))


def test_a_damaged_sparse_matrix_is_refused() -> None:
    x = sparse.csr_matrix(np.eye(3))
    x.indices[1] = 77
    with pytest.raises(ValueError, match="damaged"):
        softmax_regression(x, np.full((3, 2), 0.5))
