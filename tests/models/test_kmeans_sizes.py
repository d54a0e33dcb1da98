"""Clusters of limited size: the assignment against a linear program, and what a user sees."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog
from sklearn.base import clone

import majorant as mj
from majorant.solvers.sizes import Sizes, assign_within, sized_kmeans

Array = NDArray[np.float64]


def by_program(costs: Array, weights: Array, sizes: Sizes) -> float:
    """Return the least cost by HiGHS."""
    n, k = costs.shape
    of_rows = sparse.kron(sparse.eye(n), np.ones((1, k)), format="csr")
    of_clusters = sparse.kron(np.ones((1, n)), sparse.eye(k), format="csr")
    found = linprog(
        costs.ravel(),
        A_ub=sparse.vstack([of_clusters, -of_clusters]),
        b_ub=np.r_[np.full(k, sizes.high), np.full(k, -sizes.low)],
        A_eq=of_rows,
        b_eq=weights,
        method="highs",
    )
    assert found.status == 0
    return float(found.fun)


def rows(seed: int, n: int = 200) -> Array:
    g = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0], [0.0, 0.0], [4.0, 1.0], [1.0, 5.0]])
    return np.asarray(g.normal(size=(n, 2)) + centres[g.integers(0, 4, n)])


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_no_assignment_is_cheaper(seed: int, whole: bool) -> None:
    g = np.random.default_rng(seed)
    n = int(g.integers(3, 50))
    k = int(g.integers(2, min(n, 7)))
    X, centres = rows(seed, n), 2 * g.normal(size=(k, 2))
    costs = ((X[:, None] - centres) ** 2).sum(axis=2)
    weights = np.ones(n) if whole else g.uniform(0.2, 3, n)
    low, high = weights.sum() / k * g.uniform(0, 1), weights.sum() / k * g.uniform(1, 1.5)
    sizes = Sizes(np.floor(low), np.ceil(high)) if whole else Sizes(low, high)
    found = assign_within(costs, weights, sizes)
    assert found.cost == pytest.approx(by_program(costs, weights, sizes), rel=1e-9)
    np.testing.assert_allclose(found.mass.sum(axis=0), weights, rtol=1e-12)
    size = found.mass.sum(axis=1)
    assert size.min() >= sizes.low - 1e-9 and size.max() <= sizes.high + 1e-9
    divided = np.count_nonzero(np.count_nonzero(found.mass, axis=0) > 1)
    assert divided == 0 if whole else divided < k
    later = costs + 0.05 * g.normal(size=costs.shape)
    again = assign_within(later, weights, sizes, found.prices)
    assert again.cost == pytest.approx(assign_within(later, weights, sizes).cost, rel=1e-9)


@pytest.mark.parametrize("whole", [True, False])
def test_no_assignment_of_many_rows_is_cheaper(whole: bool) -> None:
    g = np.random.default_rng(0)
    costs = ((rows(0, 600)[:, None] - 2 * g.normal(size=(5, 2))) ** 2).sum(axis=2)  # hundreds of rows have to move
    weights = np.ones(600) if whole else g.uniform(0.2, 3, 600)
    sizes = Sizes(weights.sum() / 5, weights.sum() / 5)
    assert assign_within(costs, weights, sizes).cost == pytest.approx(by_program(costs, weights, sizes), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_ties_come_to_an_end(seed: int) -> None:
    g = np.random.default_rng(seed)
    costs = g.integers(0, 3, (60, 5)).astype(float)
    found = assign_within(costs, np.ones(60), Sizes(12, 12))
    assert found.cost == pytest.approx(by_program(costs, np.ones(60), Sizes(12, 12)))
    assert (found.mass.sum(axis=1) == 12).all()


@pytest.mark.parametrize("seed", range(5))
def test_no_iteration_raises_the_objective(seed: int) -> None:
    X = rows(seed)
    found = sized_kmeans(X, np.ones(200), X[:5], Sizes(35, 45), max_iter=300, tolerance=0.0)
    assert found.converged
    assert (np.diff(found.objectives) <= 1e-9).all()
    means = [X[found.assigned.mass[j] > 0].mean(axis=0) for j in range(5)]
    np.testing.assert_allclose(found.centres, means, rtol=1e-12)


def test_tiny_tables_reach_the_best_of_all_assignments() -> None:
    for seed in range(5):
        X = rows(seed, 8)
        best = np.inf
        for labels in product(range(2), repeat=8):
            z = np.array(labels)
            if np.bincount(z, minlength=2).min() == 4:
                best = min(best, sum(float(((X[z == j] - X[z == j].mean(axis=0)) ** 2).sum()) for j in range(2)))
        model = mj.KMeans(2, size_min=4, effort="best", n_init=20, random_state=0).fit(X)
        assert model.inertia_ == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, lambda X: X.astype(np.float32)])
def test_a_fit_keeps_the_sizes(kind: Any) -> None:
    X = kind(rows(0))
    model = mj.KMeans(4, size_min=45, size_max=55, random_state=0).fit(X)
    sizes = np.bincount(model.labels_)
    assert sizes.min() >= 45 and sizes.max() <= 55
    dense = X.toarray() if sparse.issparse(X) else X
    own = float(np.sum((dense - model.cluster_centers_[model.labels_]) ** 2))
    assert model.inertia_ == pytest.approx(own, rel=1e-5)
    np.testing.assert_array_equal(model.predict_within(X, size_min=45, size_max=55), model.labels_)
    nearest = ((dense[:, None] - model.cluster_centers_) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(model.predict(X), nearest)
    assert "size_min" in str(model.summary())


def test_sizes_that_do_not_bind_change_nothing() -> None:
    X = rows(1)
    free = mj.KMeans(3, random_state=0).fit(X)
    sized = mj.KMeans(3, size_min=1, size_max=200, random_state=0).fit(X)
    assert sized.inertia_ == pytest.approx(free.inertia_, rel=1e-12)
    np.testing.assert_array_equal(sized.labels_, free.labels_)


def test_perturbations_follow_the_starts_and_only_help() -> None:
    X = np.random.default_rng(3).uniform(size=(150, 2))
    fast, default = (mj.KMeans(8, size_min=15, effort=e, random_state=0).fit(X) for e in ("fast", "default"))
    assert fast.search_.n_perturbations == 0 < default.search_.n_perturbations
    assert default.inertia_ < fast.inertia_
    assert [s.source == "perturbation" for s in default.search_.starts][:4] == [False] * 3 + [True]


def test_order_repeats_and_weights() -> None:
    X = np.round(rows(2), 1)
    model = mj.KMeans(4, size_min=50, random_state=0)
    by_row = clone(model).fit(X)
    assert clone(model).fit(X[::-1]).inertia_ == by_row.inertia_
    twice = clone(model).set_params(size_min=100).fit(np.repeat(X, 2, axis=0))
    weighted = clone(model).set_params(size_min=100).fit(X, sample_weight=np.full(200, 2.0))
    assert twice.inertia_ == weighted.inertia_ == pytest.approx(2 * by_row.inertia_, rel=1e-6)
    assert np.bincount(twice.labels_).tolist() == [100] * 4


def test_equal_rows_are_divided_between_clusters() -> None:
    X = np.repeat([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]], [10, 5, 3], axis=0)
    model = mj.KMeans(3, size_min=6, size_max=6, random_state=0).fit(X)
    assert np.bincount(model.labels_).tolist() == [6, 6, 6]
    assert model.inertia_ == pytest.approx(sum(6 * X[model.labels_ == j].var(axis=0).sum() for j in range(3)))


def test_rows_without_weight_are_told_their_nearest_cluster() -> None:
    X, w = rows(3), np.ones(200)
    w[:20] = 0
    model = mj.KMeans(3, size_max=60, random_state=0).fit(X, sample_weight=w)
    assert np.bincount(model.labels_[20:]).tolist() == [60, 60, 60]
    np.testing.assert_array_equal(model.labels_[:20], model.predict(X[:20]))


def test_given_centres_keep_their_order_and_the_bound_holds() -> None:
    X = rows(4)
    model = mj.KMeans(3, init=X[:3], size_min=60, size_max=70).fit(X)
    assert model.search_.n_starts == 1
    certificate = model.certify(X)
    assert certificate.objective == pytest.approx(model.inertia_, rel=1e-9)
    assert certificate.bound <= mj.KMeans(3, random_state=0).fit(X).inertia_ * (1 + 1e-9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size_min": 60}, "4 clusters of at least 60 need rows of weight 240; X has 200"),
        ({"size_max": 10}, "4 clusters of at most 10 hold rows of weight 40; X has 200"),
        ({"size_min": 9, "size_max": 3}, "size_min=9 is larger than size_max=3"),
        ({"size_max": -1}, "size_max must be at least 0"),
        ({"size_min": 1, "bounds": mj.GibbsLimit()}, "no bound policy"),
    ],
)
def test_sizes_that_cannot_be_had_are_told_with_the_numbers(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mj.KMeans(4, **given).fit(rows(0))
