"""Solvers of the convex bound of a structural SVM: the same objective, and a gap that is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize as scipy_minimize

from majorant.solvers.simplex_qp import simplex_qp
from majorant.solvers.structural_svm import SOLVERS as OFFERED
from majorant.solvers.structural_svm import BoundRequest, Plane, exact_pass
from majorant.solvers.structural_svm.joint_planes import joint_planes

SOLVERS = {**OFFERED, "joint planes": joint_planes}


@dataclass
class Listed:
    """Outputs that are few enough to be listed: features (n, outputs, dim) and losses (n, outputs)."""

    features: NDArray[np.float64]
    losses: NDArray[np.float64]
    is_sparse: bool = False

    @property
    def n_samples(self) -> int:
        return len(self.features)

    @property
    def dim(self) -> int:
        return self.features.shape[2]

    def augmented(self, i: int, w: NDArray[np.float64]) -> Plane:
        p = int((self.features[i] @ w + self.losses[i]).argmax())
        row = self.features[i, p]
        if not self.is_sparse:
            return Plane(float(self.losses[i, p]), row, p)
        at = np.flatnonzero(row)
        return Plane(float(self.losses[i, p]), row[at], p, at)

    def bound(
        self, w: NDArray[np.float64], linear: NDArray[np.float64], shares: NDArray[np.float64], alpha: float
    ) -> float:
        return float(alpha / 2 * w @ w + shares @ (self.features @ w + self.losses).max(axis=1) - w @ linear)


def listed(seed: int, *, is_sparse: bool = False) -> tuple[Listed, NDArray[np.float64], NDArray[np.float64]]:
    """A problem, its linear term and its shares; the first output of a sample is its own and costs nothing."""
    random = np.random.default_rng(seed)
    n, outputs, dim = 12, 7, 5
    features = random.normal(size=(n, outputs, dim)) * (random.random((n, outputs, dim)) < (0.5 if is_sparse else 1.0))
    losses = random.random((n, outputs))
    losses[:, 0] = 0.0
    shares = random.random(n)
    shares[3] = 0.0
    shares /= shares.sum()
    return Listed(features, losses, is_sparse), shares @ features[:, 0], shares


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("alpha", [1.0, 0.1])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_solvers_reach_the_minimum_that_smooth_minimisation_brackets(name: str, alpha: float, is_sparse: bool) -> None:
    problem, linear, shares = listed(1, is_sparse=is_sparse)
    tol = 1e-3 if name == "bcfw" else 1e-7  # Frank-Wolfe steps shrink with the gap
    found = SOLVERS[name](BoundRequest(problem, linear, shares, alpha=alpha, tol=tol, max_passes=4000))
    assert found.converged
    assert found.objective == pytest.approx(problem.bound(found.w, linear, shares, alpha), rel=1e-12)
    lowest = minimum(problem, linear, shares, alpha)
    assert lowest - 1e-9 <= found.objective <= lowest * (1 + tol) + 1e-9
    assert found.objective - found.gap <= lowest + 1e-9
    assert np.all(np.diff(found.objectives) <= 0)


def minimum(problem: Listed, linear: NDArray[np.float64], shares: NDArray[np.float64], alpha: float) -> float:
    """By a general method on the epigraph: w and one slack a sample."""
    n, outputs, dim = problem.features.shape

    def value(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        w, slack = x[:dim], x[dim:]
        return float(alpha / 2 * w @ w + shares @ slack - w @ linear), np.concatenate([alpha * w - linear, shares])

    rows = np.hstack([-problem.features.reshape(-1, dim), np.repeat(np.eye(n), outputs, axis=0)])
    start = np.concatenate([np.zeros(dim), problem.losses.max(axis=1)])
    constraint: Any = {"type": "ineq", "fun": lambda x: rows @ x - problem.losses.ravel(), "jac": lambda _: rows}
    found = scipy_minimize(
        value, start, jac=True, method="SLSQP", constraints=[constraint], options={"ftol": 1e-14, "maxiter": 1000}
    )
    return float(found.fun)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_warm_start_on_another_linear_term_ends_where_a_cold_one_does(name: str) -> None:
    problem, linear, shares = listed(2)
    other = shares @ problem.features[:, 1]
    solve = SOLVERS[name]
    state = solve(BoundRequest(problem, linear, shares, alpha=0.3)).state
    warm = solve(BoundRequest(problem, other, shares, alpha=0.3, state=state))
    cold = solve(BoundRequest(problem, other, shares, alpha=0.3))
    assert warm.converged and cold.converged
    assert abs(warm.objective - cold.objective) <= 1e-3 * cold.objective
    assert solve(BoundRequest(problem, other, shares, alpha=0.3, state=warm.state)).n_passes == 1


@pytest.mark.parametrize("name", SOLVERS)
def test_other_shares_keep_the_state_valid(name: str) -> None:
    """As a fold does: samples lose their share, others come in."""
    problem, linear, shares = listed(3)
    fold = np.where(np.arange(len(shares)) < 6, shares, 0.0)
    fold /= fold.sum()
    solve = SOLVERS[name]
    part = solve(BoundRequest(problem, fold @ problem.features[:, 0], fold, alpha=0.3))
    whole = solve(BoundRequest(problem, linear, shares, alpha=0.3, state=part.state))
    lowest = minimum(problem, linear, shares, 0.3)
    assert whole.converged
    assert whole.objective - whole.gap <= lowest + 1e-9 <= whole.objective + 2e-9


def test_an_exact_pass_is_a_subgradient() -> None:
    problem, linear, shares = listed(4)
    w = np.random.default_rng(0).normal(size=problem.dim)
    seen = []
    cut = exact_pass(problem, w, shares, lambda i, plane: seen.append(i))
    assert seen == np.flatnonzero(shares).tolist()
    assert cut.value == pytest.approx(w @ cut.features + cut.loss)
    for step in np.eye(problem.dim) * 1e-6:
        slope = (problem.bound(w + step, linear, shares, 0.0) - problem.bound(w - step, linear, shares, 0.0)) / 2e-6
        assert slope == pytest.approx((cut.features - linear)[step > 0][0], rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rank", [2, 6, 12])
def test_simplex_qp_satisfies_the_optimality_conditions(seed: int, rank: int) -> None:
    random = np.random.default_rng(seed)
    factor = random.normal(size=(12, rank))
    quadratic, linear = factor @ factor.T, random.normal(size=12)
    mu = simplex_qp(quadratic, linear, np.eye(12)[0])
    gradient = quadratic @ mu - linear
    assert mu.min() >= 0
    assert mu.sum() == pytest.approx(1)
    assert mu @ gradient - gradient.min() <= 1e-8


def test_simplex_qp_with_equal_columns() -> None:
    mu = simplex_qp(np.ones((3, 3)), np.zeros(3), np.eye(3)[1])
    assert mu.sum() == pytest.approx(1)
