"""The low-rank program over simplices and the ball relaxation: monotone, feasible, right on problems with an answer."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from majorant.starts.ball import ball_relaxation, nearest_groups, softened
from majorant.starts.quadratic import QuadraticApproximation, principal_axes
from majorant.starts.simplex_program import low_rank_simplex_program, random_assignments

Array = NDArray[np.float64]
COUPLINGS = ["independent", "joint"]


def groups(k: int, seed: int = 0, noise: int = 0) -> tuple[QuadraticApproximation, Array]:
    """Rows in groups far apart, and which one each belongs to."""
    random = np.random.default_rng(seed)
    truth = np.arange(12 * k) % k
    centres = np.column_stack([np.cos(2 * np.pi * np.arange(k) / k), np.sin(2 * np.pi * np.arange(k) / k)]) * 8
    x = np.column_stack([centres[truth] + random.normal(size=(len(truth), 2)), random.normal(size=(len(truth), noise))])
    shares = random.dirichlet(np.full(len(x), 20.0))
    return QuadraticApproximation.of(principal_axes(x, shares), 1e-2, shares), truth


def with_labels(seed: int) -> QuadraticApproximation:
    near, truth = groups(3, seed)
    return QuadraticApproximation(near.scores, near.shrinkage, near.shares, np.eye(3)[truth])


def same_partition(a: Array, b: Array) -> bool:
    return len(set(zip(a.tolist(), b.tolist(), strict=True))) == len(set(a.tolist())) == len(set(b.tolist()))


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("seed", range(6))
def test_the_cost_never_rises(coupling: str, seed: int) -> None:
    near = with_labels(seed) if seed % 2 else groups(3, seed, noise=6)[0]
    n = len(near.shares)
    start = random_assignments(4, n, 3, np.random.default_rng(seed))
    found = low_rank_simplex_program(near.apply, start, shares=near.shares, coupling=coupling, max_iter=80)  # type: ignore[arg-type]
    assert found.path.shape[1] == (4 if coupling == "independent" else 1) and found.n_iter > 3
    assert (np.diff(found.path, axis=0) <= 0).all() and (found.path[-1] < found.path[0]).all()
    alive = np.isfinite(found.values)
    assert alive.any() and (found.columns >= 0).all()
    np.testing.assert_allclose(found.columns[alive].sum(axis=2), 1.0, atol=1e-10)
    np.testing.assert_allclose([near.quadratic(c) for c in found.columns[alive]], found.values[alive], atol=1e-12)
    assert near.quadratic(found.best()) == pytest.approx(found.values.min())
    np.testing.assert_allclose(found.average().sum(axis=1), 1.0)
    if coupling == "independent":
        np.testing.assert_allclose(found.path[-1], found.values, atol=1e-12)


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("k", [2, 3])
def test_finds_groups(k: int, coupling: str) -> None:
    near, truth = groups(k)
    start = random_assignments(6, len(truth), k, np.random.default_rng(0))
    found = low_rank_simplex_program(near.apply, start, shares=near.shares, coupling=coupling)  # type: ignore[arg-type]
    assert same_partition(found.best().argmax(axis=1), truth)


def test_a_column_does_not_depend_on_the_others() -> None:
    near, _ = groups(3)
    start = random_assignments(4, len(near.shares), 3, np.random.default_rng(2))
    whole = low_rank_simplex_program(near.apply, start, shares=near.shares, coupling="independent", max_iter=30)
    for r in range(4):
        alone = low_rank_simplex_program(
            near.apply, start[[r]], shares=near.shares, coupling="independent", max_iter=30
        )
        np.testing.assert_allclose(alone.columns[0], whole.columns[r], atol=1e-8)


def test_stationary_where_it_ends() -> None:
    """The gradient of the cost by differences agrees, and no feasible direction descends."""
    near, _ = groups(2)
    random = np.random.default_rng(3)
    start = random_assignments(1, len(near.shares), 2, random)
    best = low_rank_simplex_program(near.apply, start, shares=near.shares, max_iter=2000, tol=0.0).best()
    for _ in range(50):
        other = random_assignments(1, len(near.shares), 2, random)[0]
        slope = 2 * float(np.einsum("n,nk,nk->", near.shares, near.apply(best), other - best))
        step = 1e-6
        difference = (near.quadratic(best + step * (other - best)) - near.quadratic(best)) / step
        assert difference == pytest.approx(slope, abs=1e-5) and slope > -1e-6


@pytest.mark.parametrize("apply_labels", [False, True])
def test_the_ball_is_below_every_assignment(apply_labels: bool) -> None:
    """Rows of an assignment less its mean lie in the ball, so that the relaxed cost is lower."""
    near = with_labels(1) if apply_labels else groups(3, 1)[0]
    z = ball_relaxation(near.apply, len(near.shares), np.random.default_rng(0))
    assert np.sqrt((z**2).sum(axis=1)).max() <= 1 + 1e-12
    for seed in range(5):
        xi = random_assignments(1, len(near.shares), 3, np.random.default_rng(seed))[0]
        assert near.quadratic(z) <= near.quadratic(xi - 1 / 3) + 1e-9
    if not apply_labels:
        truth = groups(3, 1)[1]
        assert near.quadratic(z) <= near.quadratic(np.eye(3)[truth] - 1 / 3) + 1e-9


@pytest.mark.parametrize(("k", "noise"), [(2, 0), (2, 20), (4, 0), (4, 20)])
def test_the_ball_finds_groups_in_noise(k: int, noise: int) -> None:
    near, truth = groups(k, 5, noise)
    random = np.random.default_rng(0)
    z = ball_relaxation(near.apply, len(truth), random)
    labels = nearest_groups(z, near.shares, k, random)
    assert same_partition(labels, truth)
    xi = softened(labels, k)
    np.testing.assert_allclose(xi.sum(axis=1), 1)
    assert (xi > 0).all() and (xi.argmax(axis=1) == labels).all()


@pytest.mark.parametrize(
    ("start", "shares", "message"),
    [
        (np.ones((3, 2)), None, "shape"),
        (-np.ones((1, 3, 2)), None, "at least 0"),
        (np.full((1, 3, 2), np.nan), None, "finite"),
        (np.arange(6.0).reshape(1, 3, 2), None, "one row sum"),
        (np.zeros((1, 3, 2)), None, "above zero"),
        (np.ones((1, 3, 2)), np.ones(3), "sum one"),
        (np.ones((1, 3, 2)), np.ones(2) / 2, "3 positive"),
    ],
)
def test_wrong_input(start: Array, shares: Array | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        low_rank_simplex_program(lambda v: -v, start, shares=shares)


def test_the_program_of_the_paper_is_the_default() -> None:
    near, _ = groups(3)
    start = random_assignments(4, len(near.shares), 3, np.random.default_rng(2))
    default, joint, apart = (
        low_rank_simplex_program(near.apply, start, shares=near.shares, max_iter=30, **settings)
        for settings in ({}, {"coupling": "joint"}, {"coupling": "independent"})
    )
    np.testing.assert_array_equal(default.columns, joint.columns)
    assert not np.allclose(default.columns, apart.columns)
