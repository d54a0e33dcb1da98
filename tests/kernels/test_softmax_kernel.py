"""The kernels of multinomial logits against plain numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, logsumexp, softmax

from majorant import _kernels

Array = NDArray[Any]

each_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["double", "single"])
SIZES = [(1, 1, 1), (15, 0, 3), (16, 2, 2), (17, 3, 4), (100, 7, 3), (333, 20, 5), (50, 40, 9), (64, 1, 17)]


def problem(n: int, p: int, k: int, dtype: Any) -> tuple[Array, Array, Array, Array]:
    g = np.random.default_rng(n + 7 * p + 11 * k)
    return g.normal(size=(n, p)).astype(dtype), g.gamma(1.0, size=n), g.normal(size=(p + 1, k)), g.normal(size=(n, k))


def scores(x: Array, theta: Array, offsets: Array | None = None) -> tuple[Array, Array]:
    x1 = np.column_stack([x.astype(np.float64), np.ones(len(x))])
    return x1, x1 @ theta + (0 if offsets is None else offsets)


@each_dtype
@pytest.mark.parametrize(("n", "p", "k"), SIZES)
def test_pass(n: int, p: int, k: int, dtype: Any) -> None:
    x, w, theta, offsets = problem(n, p, k, dtype)
    for weights, shift in [(w, offsets), (None, None)]:
        moments, blocks = np.full((p + 1, k), np.nan), np.full((k * (k - 1) // 2, (p + 1) ** 2), np.nan)
        q, logs = np.full((n, k), np.nan), np.full((n, k), np.nan)
        value = _kernels.softmax_pass(x, weights, theta, shift, moments, blocks, q, logs)
        omega = np.ones(n) if weights is None else weights
        x1, u = scores(x, theta, shift)
        np.testing.assert_allclose(value, omega @ logsumexp(u, axis=1), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(q, softmax(u, axis=1), rtol=1e-11, atol=1e-300)
        np.testing.assert_allclose(logs, log_softmax(u, axis=1), rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(moments, x1.T @ (omega[:, None] * q), rtol=1e-11, atol=1e-11)
        for pair, (a, b) in enumerate(zip(*np.triu_indices(k, 1), strict=True)):
            block = (x1 * (omega * q[:, a] * q[:, b])[:, None]).T @ x1
            np.testing.assert_allclose(blocks[pair].reshape(p + 1, p + 1), block, rtol=1e-10, atol=1e-11)
        assert _kernels.softmax_pass(x, weights, theta, shift) == value


@each_dtype
@pytest.mark.parametrize(("n", "p", "k"), SIZES)
def test_soft_moments(n: int, p: int, k: int, dtype: Any) -> None:
    x, w, _, q = problem(n, p, k, dtype)
    out = np.full((p + 1, k), np.nan)
    _kernels.soft_moments(x, w, q, out)
    x1, _ = scores(x, np.zeros((p + 1, k)))
    np.testing.assert_allclose(out, x1.T @ (w[:, None] * q), rtol=1e-11, atol=1e-11)


def test_states_may_be_absent_and_scores_far_apart() -> None:
    x = np.array([[1000.0], [-1000.0], [0.0]])
    theta = np.array([[3.0, -3.0], [0.0, 0.0]])
    offsets = np.array([[0.0, 0.0], [0.0, -np.inf], [-np.inf, 0.0]])
    q, logs = np.empty((3, 2)), np.empty((3, 2))
    value = _kernels.softmax_pass(x, None, theta, offsets, None, None, q, logs)
    assert q.tolist() == [[1, 0], [1, 0], [0, 1]]
    assert value == 3000 - 3000 + 0
    assert logs[0, 1] == -6000
    nothing = _kernels.softmax_pass(x[:1], None, theta, np.full((1, 2), -np.inf), None, None, q[:1])
    assert nothing == -np.inf
    assert (q[0] == 0).all()


def test_shapes_are_checked() -> None:
    x, w, theta, offsets = problem(20, 3, 2, np.float64)
    for arguments in [
        (x, w[:5], theta, None),
        (x, w, theta[:2], None),
        (x, w, theta, offsets[:4]),
        (x, w, theta, None, np.empty((3, 2))),
        (x, w, theta, None, None, np.empty((2, 16))),
        (x, w, theta, None, None, None, np.empty((20, 3))),
    ]:
        with pytest.raises(ValueError, match=r"must be|must have"):
            _kernels.softmax_pass(*arguments)
    with pytest.raises(ValueError, match="must be"):
        _kernels.soft_moments(x, w, offsets, np.empty((3, 2)))


@pytest.mark.parametrize("p", [0, 1, 7, 513, 2000])
def test_losses_of_bits(p: int) -> None:
    eta = np.random.default_rng(p).normal(size=(3, p)) * 20
    eta[0, :1], eta[1, :1] = 1e4, -1e4
    softplus, minus = np.full(3, np.nan), eta.copy()
    _kernels.bit_losses(minus, softplus)
    np.testing.assert_allclose(softplus, np.logaddexp(0, eta).sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(minus, -expit(eta), rtol=1e-13, atol=1e-300)


def test_losses_of_bits_that_are_no_numbers_are_none() -> None:
    softplus = np.zeros(1)
    _kernels.bit_losses(np.array([[1.0, np.nan]]), softplus)
    assert np.isnan(softplus[0])
