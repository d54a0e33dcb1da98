"""Regression with a nuclear norm: closed forms, optimality, the duality gap, monotone steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from majorant.solvers import nuclear_norm_regression
from majorant.solvers.nuclear_norm import gram_roots, pseudo_solve
from majorant.solvers.symmetric_tensors import collapse, expand, multiplicities, powers

Array = NDArray[Any]


def problem(d: int, order: int, seed: int, rows: int = 200) -> tuple[Array, Array]:
    """Normal equations of a regression on all products of features; with few rows they are singular."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, d))
    phi = powers(x, order) * multiplicities(d, order)
    z = np.einsum("hi,ni->hn", random.normal(size=(2, d)), x)[random.integers(0, 2, rows), np.arange(rows)]
    return phi.T @ phi / rows, phi.T @ (z**order + random.normal(size=rows)) / rows


def value(v: Array, gram: Array, target: Array, d: int, order: int, penalty: float) -> float:
    spectrum = np.linalg.svd(expand(v, d, order).reshape(d, -1), compute_uv=False)
    return float(v @ gram @ v / 2 - target @ v + penalty * spectrum.sum())


@pytest.mark.parametrize("penalty", [0.0, 0.1, 0.5, 5.0])
def test_matrices_under_an_orthonormal_design_are_shrunk_by_eigenvalue(penalty: float, seed: int) -> None:
    a = np.random.default_rng(seed).normal(size=(4, 4))
    a = a + a.T
    gram = np.diag(multiplicities(4, 2))
    fit = nuclear_norm_regression(gram, gram @ collapse(a), 4, 2, penalty, tol=1e-10)
    eigenvalues, vectors = np.linalg.eigh(a)
    shrunk = np.sign(eigenvalues) * np.maximum(np.abs(eigenvalues) - penalty, 0)
    assert fit.converged
    error = np.linalg.norm(fit.tensor - (vectors * shrunk) @ vectors.T)
    assert error <= np.sqrt(2 * fit.gap) + 1e-9  # the objective is strongly convex here


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("penalty", [0.1, 2.0])
def test_one_feature_is_a_soft_threshold(order: int, penalty: float) -> None:
    fit = nuclear_norm_regression(np.array([[2.0]]), np.array([-1.0]), 1, order, penalty, tol=1e-12)
    np.testing.assert_allclose(fit.coefficients, [min(-1 + penalty, 0) / 2], atol=1e-6)


@pytest.mark.parametrize(("d", "order", "rows"), [(3, 2, 200), (3, 3, 200), (4, 3, 12), (2, 2, 1)])
@pytest.mark.parametrize("penalty", [1e-4, 0.05, 1.0])
class TestAnyProblem:
    def test_the_gap_is_small_and_true(self, d: int, order: int, rows: int, penalty: float, seed: int) -> None:
        gram, target = problem(d, order, seed, rows)
        fit = nuclear_norm_regression(gram, target, d, order, penalty)
        assert fit.objective == pytest.approx(value(fit.coefficients, gram, target, d, order, penalty), rel=1e-9)
        assert fit.converged and 0 <= fit.gap <= 1e-7 * abs(target @ pseudo_solve(gram, target))
        rough = nuclear_norm_regression(gram, target, d, order, penalty, max_iter=2)
        assert fit.objective >= rough.objective - rough.gap - 1e-9 * abs(rough.objective)

    def test_no_direction_leads_down(self, d: int, order: int, rows: int, penalty: float, seed: int) -> None:
        gram, target = problem(d, order, seed, rows)
        fit = nuclear_norm_regression(gram, target, d, order, penalty)
        random = np.random.default_rng(seed + 1)
        for size in (1e-3, 0.1, 1.0):
            for direction in random.normal(size=(50, len(target))):
                moved = value(fit.coefficients + size * direction, gram, target, d, order, penalty)
                assert moved >= fit.objective - fit.gap

    def test_no_step_rises(self, d: int, order: int, rows: int, penalty: float, seed: int) -> None:
        gram, target = problem(d, order, seed, rows)
        fit = nuclear_norm_regression(gram, target, d, order, penalty, tol=1e-10, max_iter=100)
        assert (np.diff(fit.history) <= 1e-12 * np.abs(fit.history).max()).all()


def test_without_penalty_it_is_least_squares(seed: int) -> None:
    gram, target = problem(3, 3, seed)
    fit = nuclear_norm_regression(gram, target, 3, 3, 0.0)
    np.testing.assert_allclose(fit.coefficients, np.linalg.solve(gram, target), rtol=1e-8)
    assert fit.gap == 0 and fit.converged


@pytest.mark.parametrize("shift", range(4))
def test_the_norm_fills_in_what_the_data_leave_open(shift: int, seed: int) -> None:
    """14 rows, 21 unknowns, rank one: what is found explains the data with no larger norm than the truth."""
    random = np.random.default_rng(seed + shift)
    x, b = random.normal(size=(14, 6)), random.normal(size=6)
    phi = powers(x, 2) * multiplicities(6, 2)
    y = (x @ b) ** 2
    gram, target = phi.T @ phi / 14, phi.T @ y / 14
    penalty = 1e-4 * (b @ b)
    fit = nuclear_norm_regression(gram, target, 6, 2, penalty)
    norm = np.linalg.svd(fit.tensor, compute_uv=False).sum()
    assert norm <= b @ b + fit.gap / penalty
    assert norm < np.linalg.svd(expand(pseudo_solve(gram, target), 6, 2), compute_uv=False).sum()
    assert np.mean((phi @ fit.coefficients - y) ** 2) < 1e-3 * np.mean(y**2)


def test_zero_targets_give_zero() -> None:
    fit = nuclear_norm_regression(np.eye(3), np.zeros(3), 2, 2, 0.1)
    assert not fit.coefficients.any() and fit.converged


def test_features_in_other_units_keep_their_rank() -> None:
    gram, _ = problem(3, 2, 0)
    scale = np.array([1e-6, 1.0, 1e5])
    unit = powers(scale, 2)
    assert gram_roots(gram * np.outer(unit, unit)).rank == gram_roots(gram).rank == 6


def test_roots_of_a_singular_gram_matrix() -> None:
    a = np.random.default_rng(0).normal(size=(4, 2))
    gram = a @ a.T
    roots = gram_roots(gram)
    assert roots.rank == 2
    np.testing.assert_allclose(roots.root.T @ roots.root, gram, atol=1e-12)
    np.testing.assert_allclose(roots.inverse @ roots.root.T, np.eye(2), atol=1e-12)
    assert gram_roots(np.zeros((3, 3))).rank == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.eye(3), np.zeros(3), 2, 4, 0.1), "order must be 2"),
        ((np.eye(4), np.zeros(4), 2, 2, 0.1), r"shape \(3, 3\)"),
        ((np.eye(3), np.zeros(2), 2, 2, 0.1), r"target \(3,\)"),
        ((np.eye(3), np.full(3, np.nan), 2, 2, 0.1), "finite"),
        ((np.eye(3), np.zeros(3), 2, 2, -1.0), "penalty"),
        ((np.eye(3), np.zeros(3), 2, 2, np.nan), "penalty"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        nuclear_norm_regression(*arguments)
