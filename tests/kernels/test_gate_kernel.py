"""The kernel of weights that depend on covariates against plain numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp, softmax

from majorant import _kernels

Array = NDArray[Any]


def problem(n: int, g: int, k: int, runs: int = 2) -> tuple[Array, Array, Array, Array]:
    """Covariates (g, n), weights of each run, coefficients and log densities."""
    random = np.random.default_rng(n + 7 * g + 11 * k)
    weights, coef = random.gamma(1.0, size=(runs, n)), random.normal(size=(runs, k, g))
    return random.normal(size=(g, n)), weights, coef, 30 * random.normal(size=(runs, k, n))


def passed(columns: Array, w: Array, beta: float, coef: Array, table: Array | None, q: Array) -> tuple[Array, Array]:
    (runs, k, g), n = coef.shape, columns.shape[1]
    sums = np.full((runs, k + (k - 1) * g + k * (k - 1) // 2 * (g * (g + 1) // 2)), np.nan)
    log_sums = np.full((runs, n), np.nan)
    _kernels.gate_pass(columns, w, beta, coef, table, q, log_sums, sums)
    return log_sums, sums


def expected_sums(columns: Array, w: Array, coef: Array, q: Array) -> Array:
    """Masses, and the gradient and curvature of the multinomial logit as sums over rows of outer products."""
    p, k = softmax(coef @ columns, axis=0), len(coef)
    parts = [q.sum(axis=1), ((q - w * p)[1:] @ columns.T).ravel()]
    for a in range(1, k):
        for b in range(1, a + 1):
            block = (columns * (w * p[a] * ((a == b) - p[b]))) @ columns.T
            parts.append(block[np.tril_indices(len(columns))])
    return np.concatenate(parts)


@pytest.mark.parametrize(("n", "g", "k"), [(1, 1, 1), (127, 1, 2), (128, 2, 3), (300, 4, 5), (129, 0, 2)])
@pytest.mark.parametrize("beta", [1.0, 0.3, np.inf])
def test_pass(n: int, g: int, k: int, beta: float) -> None:
    columns, weights, coef, table = problem(n, g, k)
    for w in (weights, weights[:1]):
        q = np.full(table.shape, np.nan)
        log_sums, sums = passed(columns, w, beta, coef, table, q)
        for run, own in enumerate(np.broadcast_to(w, weights.shape)):
            joint = table[run] + log_softmax(coef[run] @ columns, axis=0)
            if np.isinf(beta):
                shares, value = np.eye(k)[joint.argmax(axis=0)].T, joint.max(axis=0)
            else:
                shares, value = softmax(beta * joint, axis=0), logsumexp(beta * joint, axis=0) / beta
            np.testing.assert_allclose(q[run], own * shares, rtol=1e-11, atol=1e-290)
            np.testing.assert_allclose(log_sums[run], value, rtol=1e-12)
            wanted = expected_sums(columns, own, coef[run], own * shares)
            np.testing.assert_allclose(sums[run], wanted, rtol=1e-10, atol=1e-10)
        given = q.copy()
        assert np.array_equal(passed(columns, w, beta, coef, None, q)[1], sums)
        assert np.array_equal(q, given)
        alone = np.full((1, *table.shape[1:]), np.nan)
        assert np.array_equal(passed(columns, w[-1:], beta, coef[1:], table[1:], alone)[1], sums[1:])


def test_rows_that_no_component_makes_and_logits_far_apart() -> None:
    columns, w = np.array([[1.0, 1.0, 1.0, 1.0], [5000.0, -5000.0, 0.0, 0.0]]), np.full((1, 4), 2.0)
    coef, table = np.array([[[0.0, 0.0], [0.0, 1.0]]]), np.zeros((1, 2, 4))
    table[0, :, 2], table[0, 0, 3] = -np.inf, np.nan
    q = np.empty((1, 2, 4))
    log_sums, _ = passed(columns, w, 1.0, coef, table, q)
    assert q[0, :, :3].T.tolist() == [[0, 2], [2, 0], [1, 1]]
    assert log_sums[0, :3].tolist() == [0, 0, -np.inf]
    assert np.isnan(log_sums[0, 3])
    assert np.isnan(q[0, :, 3]).all()


def test_shapes_are_checked() -> None:
    columns, w, coef, table = problem(20, 3, 2)
    q, log_sums, sums = np.empty((2, 2, 20)), np.empty((2, 20)), np.empty((2, 11))
    good = [columns, w, 1.0, coef, table, q, log_sums, sums]
    _kernels.gate_pass(*good)
    bad = {
        1: np.ones((3, 20)),
        2: 0.0,
        3: coef[:, :, :2].copy(),
        4: table[:1],
        5: q[:, :, :5].copy(),
        6: None,
        7: sums[:1],
    }
    for place, value in bad.items():
        with pytest.raises(ValueError, match=r"must be"):
            _kernels.gate_pass(*good[:place], value, *good[place + 1 :])
