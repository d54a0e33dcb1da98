"""The quadratic approximation: against the true profile cost, dense matrices, repeated rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax, xlogy

from majorant.starts.quadratic import QuadraticApproximation, principal_axes

Array = NDArray[np.float64]


def draw(n: int, p: int, m: int | None, seed: int = 0, weighted: bool = True) -> tuple[Array, Array | None, Array]:
    """Rows, labels and shares."""
    random = np.random.default_rng(seed)
    x = random.normal(1.3, 1.0, (n, p)) * np.array([3.0, 1.0, 0.5, 2.0, 1.0])[:p]
    y = None if m is None else np.eye(m)[np.r_[np.arange(m), random.integers(0, m, n - m)]]
    shares = random.dirichlet(np.full(n, 5.0)) if weighted else np.full(n, 1 / n)
    return x, y, shares


def profile(xi: Array, x: Array, y: Array, shares: Array, alpha: float) -> float:
    """The bound minimised over tables, coefficients and biases by a solver that knows nothing of ours."""
    k, p = xi.shape[1], x.shape[1]
    joint = np.einsum("n,nk,nm->km", shares, xi, y)
    tables = -xlogy(joint, joint).sum() + xlogy(joint.sum(1), joint.sum(1)).sum()

    def prior(flat: Array) -> tuple[float, Array]:
        w = flat.reshape(p + 1, k)
        u = x @ w[:-1] + w[-1]
        value = shares @ (logsumexp(u, axis=1) - (xi * u).sum(1)) + alpha / (2 * k) * (w[:-1] ** 2).sum()
        g = shares[:, None] * (softmax(u, axis=1) - xi)
        return float(value), np.vstack([x.T @ g + alpha / k * w[:-1], g.sum(0)]).ravel()

    found = minimize(prior, np.zeros((p + 1) * k), jac=True, method="BFGS", options={"gtol": 1e-11, "maxiter": 3000})
    return float(tables + found.fun + shares @ xlogy(xi, xi).sum(1))


@pytest.mark.parametrize(
    ("n", "k", "m", "p", "alpha"), [(24, 3, 2, 4, 0.1), (20, 4, 3, 5, 0.05), (18, 2, None, 3, 0.05)]
)
def test_third_order(n: int, k: int, m: int | None, p: int, alpha: float) -> None:
    """Halving the distance to uniform assignments divides what is left by eight."""
    x, y, shares = draw(n, p, m)
    near = QuadraticApproximation.of(principal_axes(x, shares), alpha, shares, y)
    d = np.random.default_rng(1).normal(size=(n, k))
    d -= d.mean(axis=1, keepdims=True)
    d /= np.abs(d).max() * k
    labels = np.eye(n) if y is None else y
    left, quadratic = [], []
    for eps in (0.4, 0.2, 0.1, 0.05):
        xi = 1 / k + eps * d
        left.append(abs(profile(xi, x, labels, shares, alpha) - near.cost(xi)))
        quadratic.append(abs(near.cost(xi) - near.label_entropy))
    orders = np.log2(np.array(left[:-1]) / np.array(left[1:]))
    assert (orders > 2.7).all(), (orders, left)  # of order three, or four where the third vanishes (two classes)
    assert left[-1] < 0.05 * quadratic[-1]


@pytest.mark.parametrize("m", [None, 2, 4])
@pytest.mark.parametrize(("n", "p"), [(15, 4), (6, 5)])
def test_equals_the_dense_matrix(m: int | None, n: int, p: int) -> None:
    x, y, _ = draw(n, p, m, weighted=False)
    alpha, shares = 0.3, np.full(n, 1 / n)
    centring = np.eye(n) - 1 / n
    a = centring @ (np.eye(n) - x @ np.linalg.inv(n * alpha * np.eye(p) + x.T @ centring @ x) @ x.T) @ centring / n
    labels = np.eye(n) if y is None else y
    b = (labels @ np.linalg.inv(labels.T @ labels) @ labels.T - 1 / n) / n
    near = QuadraticApproximation.of(principal_axes(x, shares), alpha, shares, y)
    np.testing.assert_allclose(near.apply(np.eye(n)) / n, a - b, atol=1e-13)
    np.testing.assert_allclose(1 + near.shrinkage.sum(), n * (1 - np.trace(a)), atol=1e-10)
    v = np.random.default_rng(2).normal(size=(n, 3))
    np.testing.assert_allclose(near.quadratic(v), np.trace(v.T @ (a - b) @ v), atol=1e-12)


@pytest.mark.parametrize("m", [None, 2])
@pytest.mark.parametrize(("n", "p"), [(12, 3), (4, 5)])
def test_weights_are_repeats(m: int | None, n: int, p: int) -> None:
    x, y, _ = draw(n, p, m)
    repeats = np.arange(n) % 3 + 1
    shares = repeats / repeats.sum()
    near = QuadraticApproximation.of(principal_axes(x, shares), 0.2, shares, y)
    rows = np.repeat(np.arange(n), repeats)
    whole = np.full(len(rows), 1 / len(rows))
    far = QuadraticApproximation.of(principal_axes(x[rows], whole), 0.2, whole, None if y is None else y[rows])
    v = np.random.default_rng(3).normal(size=(n, 2))
    np.testing.assert_allclose(near.apply(v)[rows], far.apply(v[rows]), atol=1e-12)


@pytest.mark.parametrize(("n", "p"), [(20, 4), (5, 9)])
def test_sparse_rows_are_rows(n: int, p: int) -> None:
    random = np.random.default_rng(5)
    x = np.where(random.random((n, p)) < 0.5, random.normal(size=(n, p)), 0.0)
    shares = random.dirichlet(np.ones(n))
    dense, thin = principal_axes(x, shares), principal_axes(sparse.csr_matrix(x), shares)
    np.testing.assert_allclose(dense.deviations, thin.deviations, atol=1e-12)
    np.testing.assert_allclose(dense.coordinates, thin.coordinates, atol=1e-9)
    np.testing.assert_allclose(dense.axes, thin.axes, atol=1e-9)


@pytest.mark.parametrize(("n", "p"), [(20, 4), (5, 9)])
def test_axes(n: int, p: int) -> None:
    random = np.random.default_rng(6)
    x, shares = random.normal(2.0, 1.0, (n, p)), random.dirichlet(np.ones(n))
    axes = principal_axes(x, shares)
    np.testing.assert_allclose(
        np.einsum("an,bn,n->ab", axes.scores, axes.scores, shares), np.eye(len(axes.scores)), atol=1e-9
    )
    np.testing.assert_allclose(axes.scores @ shares, 0, atol=1e-9)
    np.testing.assert_allclose(axes.coordinates @ axes.axes.T, x - shares @ x, atol=1e-9)
    np.testing.assert_allclose((x - axes.mean) @ axes.axes, axes.coordinates, atol=1e-9)
    assert (np.diff(axes.deviations) <= 0).all()
    assert principal_axes(x, shares, 2).scores.shape == (2, n)
    flat = principal_axes(np.ones((n, p)), shares)
    assert flat.scores.shape == (1, n) and not flat.coordinates.any()


def test_soft_labels() -> None:
    """Soft labels are what many rows with hard ones in their proportion would be."""
    x, _, _ = draw(10, 3, None)
    counts = np.random.default_rng(7).multinomial(4, [0.5, 0.3, 0.2], size=10)
    rows, labels = np.repeat(np.arange(10), 4), np.concatenate([np.repeat(np.arange(3), c) for c in counts])
    near = QuadraticApproximation.of(principal_axes(x, np.full(10, 0.1)), 0.1, np.full(10, 0.1), counts / 4)
    far = QuadraticApproximation.of(
        principal_axes(x[rows], np.full(40, 1 / 40)), 0.1, np.full(40, 1 / 40), np.eye(3)[labels]
    )
    xi = softmax(np.random.default_rng(8).normal(size=(10, 2)), axis=1)
    np.testing.assert_allclose(near.cost(xi), far.cost(xi[rows]), atol=1e-12)
