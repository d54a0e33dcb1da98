"""k-means finds what Lloyd's iteration finds, and what enumeration finds, whatever the form of the rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans as Reference
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import majorant as mj
from majorant.models.kmeans.search import ends_of
from majorant.search import SearchReport
from majorant.solvers.swap import SwapResult

POLICIES = [
    mj.Tightest(),
    mj.GibbsLimit(eta=0.2),
    mj.RandomWalk(eta=0.2, n_sweeps=5),
    mj.GrowingSubset(eta=0.2),
    mj.Tempered(eta=0.2),
    mj.Biased(mj.Balance(), eta=0.2),
    mj.Biased(mj.PairConstraints(must_link=[[0, 1], [1, 2]], cannot_link=[[0, 50]]), eta=0.2),
    mj.Biased(mj.Coherence([[0, 1], [1, 2], [2, 50]]), eta=0.2),
]

INITS = ["auto", "k-means++", "random", "forgy", "random-partition"]


def blobs(seed: int, n: int = 300, d: int = 3, k: int = 5, spread: float = 1.0) -> NDArray[np.float64]:
    """Overlapping round clouds: no ties, and local optima."""
    random = np.random.default_rng(seed)
    centres = random.normal(scale=3, size=(k, d))
    return centres[random.integers(k, size=n)] + spread * random.normal(size=(n, d))


def far_blobs(seed: int, n: int = 120, d: int = 3, k: int = 3) -> NDArray[np.float64]:
    """Clouds so far apart that every sensible start ends in the one best partition."""
    random = np.random.default_rng(seed)
    return 40 * np.eye(k, d)[np.arange(n) % k] + random.normal(size=(n, d))


def sse(X: NDArray[Any], labels: NDArray[Any], weights: NDArray[Any] | None = None) -> float:
    """Weighted sum of squares about the means of the parts, in two passes."""
    weights = np.ones(len(X)) if weights is None else weights
    total = 0.0
    for part in np.unique(labels):
        x, w = X[labels == part].astype(np.float64), weights[labels == part]
        if w.sum() > 0:
            total += float(w @ np.sum((x - w @ x / w.sum()) ** 2, axis=1))
    return total


def partitions(n: int, k: int) -> Iterator[list[int]]:
    """All ways to put n rows into at most k parts, each once."""

    def extend(labels: list[int], used: int) -> Iterator[list[int]]:
        if len(labels) == n:
            yield labels
            return
        for part in range(min(used + 1, k)):
            yield from extend([*labels, part], max(used, part + 1))

    yield from extend([], 0)


# Against scikit-learn, from the same centres


def assert_same_as_reference(
    X: Any, init: NDArray[Any], rtol: float = 1e-9, weights: Any = None, **parameters: Any
) -> None:
    k = len(init)
    ours = mj.KMeans(k, init=init, **parameters).fit(X, sample_weight=weights)
    theirs = Reference(k, init=init, n_init=1, **parameters).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=rtol, atol=rtol)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=rtol)
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.cluster_centers_.dtype == theirs.cluster_centers_.dtype
    assert ours.labels_.dtype == theirs.labels_.dtype


@pytest.mark.parametrize("algorithm", ["lloyd", "elkan"])
@pytest.mark.parametrize(
    ("n", "d", "k"), [(50, 1, 2), (300, 3, 7), (200, 17, 4), (400, 2, 40), (3000, 5, 6), (120, 70, 3)]
)
def test_same_iterates_as_scikit_learn(n: int, d: int, k: int, algorithm: str, seed: int) -> None:
    X = blobs(seed, n, d)
    assert_same_as_reference(X, X[:k], algorithm=algorithm)
    assert_same_as_reference(X, X[:k], algorithm=algorithm, tol=0.0)


@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_same_iterates_as_scikit_learn_when_stopped_early(max_iter: int, seed: int) -> None:
    X = blobs(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert_same_as_reference(X, X[:6], max_iter=max_iter)


def test_same_iterates_as_scikit_learn_in_single_precision(seed: int) -> None:
    X = blobs(seed).astype(np.float32)
    assert_same_as_reference(X, X[:4], rtol=1e-5, tol=0.0)


def test_same_iterates_as_scikit_learn_with_weights(seed: int) -> None:
    X = blobs(seed)
    weights = np.random.default_rng(seed).uniform(0.1, 5, len(X))
    assert_same_as_reference(X, X[:5], weights=weights, tol=0.0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_same_iterates_as_scikit_learn_on_sparse_rows(dtype: type[Any], weighted: bool, seed: int) -> None:
    random = np.random.default_rng(seed)
    X = sparse.random(400, 30, density=0.2, format="csr", random_state=seed, dtype=np.float64).astype(dtype)
    weights = random.uniform(0.5, 2, 400) if weighted else None
    assert_same_as_reference(X, X[:4].toarray(), rtol=1e-9 if dtype == np.float64 else 1e-4, weights=weights, tol=0.0)


def test_sparse_rows_give_the_fit_of_dense_ones(seed: int) -> None:
    X = far_blobs(seed) * (np.random.default_rng(seed).random((120, 3)) < 0.8)
    dense = mj.KMeans(3, init=X[:3], tol=0.0).fit(X)
    for form in (sparse.csr_matrix(X), sparse.csr_array(X), sparse.csc_matrix(X)):
        fitted = mj.KMeans(3, init=X[:3], tol=0.0).fit(form)
        np.testing.assert_array_equal(fitted.labels_, dense.labels_)
        np.testing.assert_array_equal(fitted.predict(form), dense.predict(X))
        np.testing.assert_allclose(fitted.cluster_centers_, dense.cluster_centers_, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(fitted.transform(form), dense.transform(X), rtol=1e-6, atol=1e-6)
        assert fitted.inertia_ == pytest.approx(dense.inertia_, rel=1e-9)


# Closed forms, enumeration and equivalences


@pytest.mark.parametrize("init", INITS)
def test_one_cluster_is_the_mean(init: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    X, weights = random.normal(5, 2, (200, 4)), random.uniform(0, 3, 200)
    model = mj.KMeans(1, init=init, random_state=seed).fit(X, sample_weight=weights)
    np.testing.assert_allclose(model.cluster_centers_[0], np.average(X, axis=0, weights=weights), rtol=1e-12)
    assert model.inertia_ == pytest.approx(sse(X, np.zeros(200), weights), rel=1e-12)
    assert not model.labels_.any()
    assert model.search_.n_hits == model.search_.n_starts


@pytest.mark.parametrize("example", range(6))
@pytest.mark.parametrize("bounds", [None, mj.GibbsLimit(eta=0.1)], ids=repr)
def test_tiny_tables_reach_the_optimum_of_all_partitions(example: int, bounds: Any, seed: int) -> None:
    random = np.random.default_rng([seed, example])
    n, d, k = int(random.integers(4, 9)), int(random.integers(1, 4)), int(random.integers(2, 4))
    X = random.integers(0, 6, (n, d)) + (random.random((n, d)) if example % 2 else 0.0)
    weights = random.integers(1, 5, n).astype(np.float64) if example % 3 else np.ones(n)
    optimum = min(sse(X, np.array(labels), weights) for labels in partitions(n, k))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = mj.KMeans(k, n_init=60, bounds=bounds, random_state=seed).fit(X, sample_weight=weights)
    assert model.inertia_ == pytest.approx(optimum, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("k", [1, 3, 8])
def test_weights_are_repeats(init: str, k: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    X, times = blobs(seed, 90, 2), random.integers(0, 4, 90)
    weighted = mj.KMeans(k, init=init, random_state=seed).fit(X, sample_weight=times)
    repeated = mj.KMeans(k, init=init, random_state=seed).fit(random.permutation(np.repeat(X, times, axis=0)))
    np.testing.assert_array_equal(weighted.cluster_centers_, repeated.cluster_centers_)
    np.testing.assert_array_equal(weighted.labels_, repeated.predict(X))
    assert weighted.inertia_ == repeated.inertia_
    assert weighted.n_iter_ == repeated.n_iter_
    assert weighted.search_ == repeated.search_


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("bounds", [None, mj.GibbsLimit(eta=0.3), mj.RandomWalk(eta=0.3)], ids=repr)
def test_the_order_of_the_rows_changes_no_bit(init: str, bounds: Any, seed: int) -> None:
    random = np.random.default_rng(seed)
    X, weights = np.round(blobs(seed), 1), random.uniform(0, 2, 300)
    order = random.permutation(300)
    straight = mj.KMeans(6, init=init, n_init=3, bounds=bounds, random_state=seed).fit(X, sample_weight=weights)
    mixed = mj.KMeans(6, init=init, n_init=3, bounds=bounds, random_state=seed).fit(
        X[order], sample_weight=weights[order]
    )
    np.testing.assert_array_equal(mixed.labels_, straight.labels_[order])
    np.testing.assert_array_equal(mixed.cluster_centers_, straight.cluster_centers_)
    assert mixed.inertia_ == straight.inertia_
    assert mixed.search_ == straight.search_


@pytest.mark.parametrize("unit", [2.0**-70, 0.25, 2.0**90])
def test_units_that_are_powers_of_two_change_no_bit(unit: float, seed: int) -> None:
    X = blobs(seed)
    plain = mj.KMeans(6, init=X[:6]).fit(X)
    scaled = mj.KMeans(6, init=X[:6] * unit).fit(X * unit)
    np.testing.assert_array_equal(scaled.labels_, plain.labels_)
    np.testing.assert_array_equal(scaled.cluster_centers_, plain.cluster_centers_ * unit)
    assert scaled.inertia_ == plain.inertia_ * unit**2


@pytest.mark.parametrize(
    ("unit", "offset"), [(1e-8, 0.0), (1e8, 0.0), (1.0, 1e6), (1.0, -1e9), (1e-5, 3.0), (3e250, 0.0)]
)
def test_units_and_origin_change_nothing_but_units(unit: float, offset: float, seed: int) -> None:
    X = far_blobs(seed)
    if unit == 3e250:
        X = X * 1e-120
    plain = mj.KMeans(3, random_state=seed).fit(X)
    moved = mj.KMeans(3, random_state=seed).fit(X * unit + offset)
    np.testing.assert_array_equal(moved.labels_, plain.labels_)
    span = np.ptp(X)
    np.testing.assert_allclose((moved.cluster_centers_ - offset) / unit, plain.cluster_centers_, atol=1e-6 * span)
    assert moved.inertia_ / unit / unit == pytest.approx(plain.inertia_, rel=1e-6)
    assert [s.objective / unit / unit for s in moved.search_.starts] == pytest.approx(
        [s.objective for s in plain.search_.starts], rel=1e-6
    )


def test_rotations_turn_the_answer(seed: int) -> None:
    X = far_blobs(seed)
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    plain, turned = (mj.KMeans(3, random_state=seed).fit(rows) for rows in (X, X @ turn))
    assert turned.inertia_ == pytest.approx(plain.inertia_, rel=1e-9)
    np.testing.assert_allclose(
        np.sort(turned.cluster_centers_ @ turn.T, axis=0), np.sort(plain.cluster_centers_, axis=0)
    )


# What every fit holds


@pytest.mark.parametrize("bounds", [None, *POLICIES], ids=repr)
@pytest.mark.parametrize("init", ["k-means++", "random-partition"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_fit_is_consistent(init: str, bounds: Any, dtype: type[Any], seed: int) -> None:
    X = blobs(seed).astype(dtype)
    model = mj.KMeans(5, init=init, n_init=3, algorithm="lloyd", bounds=bounds, random_state=seed, tol=0.0).fit(X)
    eps = 1e-10 if dtype == np.float64 else 1e-5
    assert model.inertia_ == pytest.approx(sse(X, model.labels_), rel=eps)
    means = [X[model.labels_ == z].mean(axis=0, dtype=np.float64) for z in range(5)]
    np.testing.assert_allclose(model.cluster_centers_, means, rtol=10 * eps, atol=10 * eps)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    sizes = np.bincount(model.labels_, minlength=5)
    assert sizes.min() > 0 and (np.diff(sizes) <= 0).all(), "heaviest first"

    search, trace = model.search_, model.trace_
    assert search.n_starts == 3 and search.best == model.inertia_
    assert trace["objective"][-1] == pytest.approx(model.inertia_, rel=eps)
    assert model.inertia_ == trace["objective"].min() or bounds is not None
    eps *= trace["objective"].max()
    assert (np.diff(trace["bound"][trace["exploring"] == 1]) <= eps).all()
    assert (np.diff(trace["objective"][trace["exploring"] == 0]) <= eps).all()
    assert (trace["gap"] >= -eps).all()
    np.testing.assert_allclose(trace["bound"] - trace["objective"], trace["gap"], atol=eps)
    explored = bounds is not None and bounds.eta < 1
    assert (trace["exploring"].sum() > 0) == explored
    assert model.n_iter_ - len(trace) in (0, 1), "scikit-learn counts the iteration that finds no label changed"


@pytest.mark.parametrize("init", INITS)
def test_lloyd_and_elkan_are_the_same(init: str, seed: int) -> None:
    X = blobs(seed)
    lloyd, elkan = (mj.KMeans(6, init=init, algorithm=a, random_state=seed).fit(X) for a in ("lloyd", "elkan"))
    np.testing.assert_array_equal(lloyd.cluster_centers_, elkan.cluster_centers_)
    np.testing.assert_array_equal(lloyd.labels_, elkan.labels_)
    assert lloyd.search_ == elkan.search_


def test_the_seed_decides(seed: int) -> None:
    X = blobs(seed, k=12)

    def fitted(state: Any) -> float:
        return mj.KMeans(12, n_init=1, algorithm="lloyd", random_state=state).fit(X).inertia_

    fits = [fitted(s) for s in range(8)]
    assert len(set(fits)) > 1
    assert fits == [fitted(np.random.RandomState(s)) for s in range(8)]
    state = np.random.RandomState(seed)
    first, second = (fitted(state) for _ in range(2))
    assert first != second, "a RandomState goes on where it was"


# Starts


@pytest.mark.parametrize(
    ("init", "source"),
    [
        ("auto", "k-means++"),
        ("k-means++", "k-means++"),
        ("random", "random rows"),
        ("forgy", "random rows"),
        ("random-partition", "random partition"),
    ],
)
def test_starts_are_named_and_counted(init: str, source: str, seed: int) -> None:
    X = blobs(seed)
    lloyd = mj.KMeans(4, init=init, algorithm="lloyd", random_state=seed)
    assert {s.source for s in clone(lloyd).set_params(n_init=3).fit(X).search_.starts} == {source}
    assert clone(lloyd).fit(X).search_.n_starts == 10
    assert clone(lloyd).set_params(n_init=1).fit(X).search_.n_starts == 1


# The swap search


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("n_rows", [500, 10_000])
def test_search_has_the_objective_of_the_fit_and_tells_descents_that_were_cut_short(n_rows: int, seed: int) -> None:
    X = np.random.default_rng(seed).normal(size=(n_rows, 3))
    model = mj.KMeans(4, random_state=0).fit(X)
    search = model.search_
    assert search.best == pytest.approx(model.inertia_, rel=1e-12)
    assert all(s.converged for s in search.starts if s.objective == search.best)
    assert all(s.converged for s in search.starts) != search.is_cut_short
    assert ("stopped early" in str(model.summary())) == search.is_cut_short == ("distinct ends" in str(model.summary()))


def test_a_quick_bound_is_none_where_none_was_found_as_the_page_says() -> None:
    wines = load_wine().data
    X = (wines - wines.mean(axis=0)) / wines.std(axis=0)
    model = mj.KMeans(3, random_state=0).fit(X)
    assert model.search_.proved_bound is None
    assert "Provable bound: not computed." in str(model.summary())
    assert 0.95 * model.inertia_ < model.certify(X).bound <= model.inertia_


@pytest.mark.parametrize(
    ("polished", "ends", "converged"),
    [
        (7.0, [9.0, 7.0, 7.0, 8.0], [True] * 4),
        (6.9, [9.0, 6.9, 6.9, 8.0], [False, True, True, False]),  # the last polish gained: others may end there too
    ],
)
def test_descents_are_cut_short_where_the_last_polish_still_gains(
    polished: float, ends: list[float], converged: list[bool]
) -> None:
    optima = [("k-means++", 9.0), ("perturbation", 7.0), ("perturbation", 7.0 + 1e-9), ("perturbation", 8.0)]
    result = SwapResult(np.zeros((2, 1)), np.zeros(3, dtype=np.int32), polished, 5, True, [9.0], optima)
    records = tuple(ends_of(result))
    assert [r.objective for r in records] == ends
    assert [r.converged for r in records] == converged
    search = SearchReport(records, "SSE")
    assert search.is_cut_short == (not all(converged))
    assert ("distinct ends" in repr(search)) == search.is_cut_short


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_data_without_clusters_end_where_lloyd_gains_nothing(dtype: Any) -> None:
    """The swap search ends before it has settled there, and steps of Lloyd's algorithm follow."""
    X = np.random.default_rng(0).normal(size=(4000, 20)).astype(dtype)
    fitted = mj.KMeans(20, random_state=0).fit(X)
    means = np.array([X[fitted.labels_ == j].mean(axis=0, dtype=float) for j in range(20)])
    at_means = ((X - means[fitted.labels_]) ** 2).sum()
    assert at_means <= fitted.inertia_ <= at_means * (1 + 1e-6)
    peer = Reference(20, init=fitted.cluster_centers_, n_init=1, tol=0).fit(X)
    assert fitted.inertia_ < peer.inertia_ * (1 + 1e-5)


def test_a_search_is_three_starts_and_its_perturbations(seed: int) -> None:
    X = blobs(seed, k=8)
    model = mj.KMeans(8, random_state=seed).fit(X)
    search, trace = model.search_, model.trace_
    assert search.n_starts - search.n_perturbations == 3 and 0 < search.n_perturbations <= 40
    assert {s.source for s in search.starts[:3]} == {"k-means++"}
    assert {s.source for s in search.starts[3:]} == {"perturbation"}
    assert search.best == pytest.approx(model.inertia_, rel=1e-9)
    assert (np.diff(trace["objective"]) <= 1e-9 * model.inertia_).all(), "an accepted step never loses"
    assert trace["objective"][-1] == model.inertia_ == pytest.approx(sse(X, model.labels_))
    assert mj.KMeans(8, effort="fast", random_state=seed).fit(X).search_.n_starts == 1
    two = mj.KMeans(8, n_init=2, random_state=seed).fit(X).search_
    assert two.n_starts == 2 and two.n_perturbations == 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_search_is_not_beaten_by_restarts(dtype: type[Any], seed: int) -> None:
    X = blobs(seed, n=400, k=15).astype(dtype)
    search = mj.KMeans(15, random_state=seed).fit(X).inertia_
    restarts = mj.KMeans(15, algorithm="lloyd", n_init=30, tol=0.0, random_state=seed).fit(X).inertia_
    assert search <= restarts * (1 + (1e-9 if dtype == np.float64 else 1e-5))


def test_no_single_row_can_move_for_the_better(seed: int) -> None:
    """Hartigan's condition: with both means moved along, no row is better off elsewhere."""
    X = blobs(seed, n=200, k=6)
    model = mj.KMeans(6, random_state=seed).fit(X)
    sizes = np.bincount(model.labels_, minlength=6)
    squares = ((X[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    own = squares[np.arange(len(X)), model.labels_]
    leaves = np.where(sizes > 1, sizes / np.maximum(sizes - 1, 1), np.inf)[model.labels_] * own
    joins = squares * sizes / (sizes + 1)
    joins[np.arange(len(X)), model.labels_] = np.inf
    assert (leaves[sizes[model.labels_] > 1] <= joins.min(axis=1)[sizes[model.labels_] > 1] * (1 + 1e-9)).all()


def test_a_choice_of_start_or_bounds_means_lloyd(seed: int) -> None:
    X = blobs(seed)
    for chosen in ({"init": "random"}, {"init": X[:4]}, {"bounds": mj.Tightest()}):
        by_default = mj.KMeans(4, random_state=seed, **chosen).fit(X)
        lloyd = mj.KMeans(4, algorithm="lloyd", random_state=seed, **chosen).fit(X)
        np.testing.assert_array_equal(by_default.cluster_centers_, lloyd.cluster_centers_)
        assert by_default.search_.n_perturbations == 0


def test_sparse_rows_are_searched_by_swaps_unless_they_are_many(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.round(blobs(seed), 2) * (np.random.default_rng(seed).random((300, 3)) < 0.7)
    of_sparse = mj.KMeans(4, random_state=seed).fit(sparse.csr_matrix(X))
    assert of_sparse.search_.n_perturbations > 0
    of_dense = mj.KMeans(4, random_state=seed).fit(X)
    assert of_sparse.inertia_ == pytest.approx(of_dense.inertia_, rel=1e-9)
    assert of_sparse.inertia_ == pytest.approx(-of_sparse.score(sparse.csr_matrix(X)), rel=1e-9)
    monkeypatch.setattr("majorant.models.kmeans.search.MOST_ENTRIES", 100)
    assert mj.KMeans(4, random_state=seed).fit(sparse.csr_matrix(X)).search_.n_perturbations == 0


@pytest.mark.parametrize("algorithm", ["swap", "lloyd"])
def test_columns_of_sparse_rows_without_entries_change_nothing(seed: int, algorithm: Any) -> None:
    g = np.random.default_rng(seed)
    words = sparse.random(200, 60, density=0.2, format="csr", random_state=seed)
    places = np.sort(g.choice(1 << 20, 60, replace=False))
    hashed = sparse.csr_matrix((words.data, places[words.indices], words.indptr), shape=(200, 1 << 20))
    few = mj.KMeans(5, algorithm=algorithm, tol=0, random_state=seed).fit(words)
    many = mj.KMeans(5, algorithm=algorithm, tol=0, random_state=seed).fit(hashed)
    assert many.inertia_ == few.inertia_
    assert many.cluster_centers_.shape == (5, 1 << 20)
    np.testing.assert_array_equal(many.cluster_centers_[:, places], few.cluster_centers_)
    assert np.count_nonzero(many.cluster_centers_) == np.count_nonzero(few.cluster_centers_)
    np.testing.assert_array_equal(many.labels_, few.labels_)
    np.testing.assert_array_equal(many.predict(hashed), many.labels_)


@pytest.mark.parametrize("algorithm", ["swap", "lloyd"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("far", [1e5, 1e10, 1e18])
def test_a_row_far_out_does_not_blur_the_others(far: float, dtype: type[Any], algorithm: str, seed: int) -> None:
    X = np.random.default_rng(seed).normal(size=(50, 3)).astype(dtype)
    near = mj.KMeans(2, algorithm=algorithm, random_state=seed, tol=0.0).fit(X[1:])
    X[0, 0] = far
    model = mj.KMeans(3, algorithm=algorithm, random_state=seed, tol=0.0).fit(X)
    squares = ((X[:, None].astype(np.float64) - model.cluster_centers_) ** 2).sum(axis=2)
    np.testing.assert_array_equal(model.labels_, squares.argmin(axis=1))
    assert model.inertia_ == pytest.approx(squares.min(axis=1).sum(), rel=1e-9 if dtype == np.float64 else 1e-5)
    assert model.inertia_ <= near.inertia_ * (1.1 if algorithm == "lloyd" else 1 + 1e-5)


# The certificate


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_certificate_holds(dtype: type[Any], weighted: bool, seed: int) -> None:
    X = (far_blobs(seed) + 1e3).astype(dtype)
    weights = np.random.default_rng(seed).uniform(0.5, 2, len(X)) if weighted else None
    model = mj.KMeans(3, random_state=seed).fit(X, sample_weight=weights)
    certificate = model.certify(X, sample_weight=weights)
    assert certificate.proved and certificate.bound <= certificate.objective * (1 + 1e-9)
    assert certificate.objective == pytest.approx(model.inertia_, rel=1e-9 if dtype == np.float64 else 1e-4)
    assert "proved optimal" in certificate.sentence
    if dtype == np.float64:
        assert certificate.bound == pytest.approx(model.inertia_, rel=1e-4)
    assert model.search_.proved_bound is None  # a fit does what was asked


def test_a_bad_fit_is_not_certified(seed: int) -> None:
    X = far_blobs(seed)
    bad = mj.KMeans(3, init=X[:3] * 0 + X.mean(axis=0) + np.arange(3)[:, None], max_iter=1).fit(X)
    good = mj.KMeans(3, random_state=seed).fit(X)
    for effort in ("fast", "default", "tight"):
        assert bad.certify(X, effort=effort).bound <= good.inertia_ * (1 + 1e-9)


def test_certify_says_what_it_cannot_do(seed: int) -> None:
    X = blobs(seed)
    model = mj.KMeans(3, random_state=seed).fit(X)
    with pytest.raises(TypeError, match="dense array"):
        model.certify(sparse.csr_matrix(X))
    with pytest.raises(ValueError, match="effort"):
        model.certify(X, effort="best")
    with pytest.raises(NotFittedError):
        mj.KMeans(3).certify(X)


def test_a_start_more_never_makes_it_worse(seed: int) -> None:
    X = blobs(seed, k=10)
    fits = [mj.KMeans(10, init="random", n_init=n, random_state=seed).fit(X) for n in range(1, 9)]
    assert (np.diff([f.inertia_ for f in fits]) <= 0).all()
    for few, more in pairwise(fits):
        assert more.search_.starts[:-1] == few.search_.starts


def test_a_given_start_is_made_once(seed: int) -> None:
    X = blobs(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = mj.KMeans(4, init=X[:4]).fit(X)
        assert mj.KMeans(4, init=X[:4].tolist(), n_init=1).fit(X).inertia_ == model.inertia_
    assert [s.source for s in model.search_.starts] == ["given centres"]
    with pytest.warns(RuntimeWarning, match="only one init.*n_init=5"):
        again = mj.KMeans(4, init=X[:4], n_init=5).fit(X)
    assert again.search_ == model.search_


def test_given_centres_keep_their_order_and_are_not_written_to(seed: int) -> None:
    X = far_blobs(seed, n=100)
    init = np.array([[0, 0, 40], [40, 0, 0], [0, 40, 0]], dtype=np.float64)
    model = mj.KMeans(3, init=init).fit(X)
    np.testing.assert_array_equal(model.cluster_centers_.argmax(axis=1), [2, 0, 1])
    assert init[0, 2] == 40 and model.init is init


def first_rows(X: Any, n_clusters: int, random_state: Any) -> Any:
    return X[:n_clusters].copy()  # scikit-learn writes into what it is given


def test_a_callable_start_is_asked_once_a_start(seed: int) -> None:
    X, asked = blobs(seed), []

    def init(rows: Any, n_clusters: int, random_state: Any) -> Any:
        asked.append((rows, n_clusters))
        return rows[random_state.choice(len(rows), n_clusters, replace=False)]

    model = mj.KMeans(4, init=init, n_init=6, random_state=seed).fit(X)
    assert len(asked) == 6 and {k for _, k in asked} == {4}
    np.testing.assert_array_equal(asked[0][0], X)
    assert {s.source for s in model.search_.starts} == {"callable"}
    assert model.inertia_ == mj.KMeans(4, init=init, n_init=6, random_state=seed).fit(X).inertia_
    theirs = Reference(4, init=first_rows, n_init=1, tol=0.0).fit(X)
    ours = mj.KMeans(4, init=first_rows, n_init=1, tol=0.0).fit(X)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_)


@pytest.mark.parametrize(
    ("init", "message"),
    [
        (np.zeros((3, 2)), r"\(3, 2\).*features.*3"),
        (np.zeros((4, 3)), r"\(4, 3\).*clusters.*3"),
        (np.full((3, 3), np.nan), "NaN"),
        (np.zeros(3), "1D array"),
        ([["a"] * 3] * 3, "'?a'?"),
        (lambda X, n_clusters, random_state: X[:1], r"\(1, 3\).*clusters.*3"),
        (lambda X, n_clusters, random_state: None, "scalar array|None|NaN"),
        (3, "scalar array|init"),
    ],
    ids=["columns", "rows", "NaN", "1-D", "words", "callable's rows", "callable's nothing", "number"],
)
def test_wrong_centres_are_refused(init: Any, message: str, seed: int) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        mj.KMeans(3, init=init, n_init=1).fit(far_blobs(seed))


def test_seeds_are_rows_of_weight(seed: int) -> None:
    """After no more than one step from seeds, a far row of weight is always noticed and one of none never."""
    X = np.vstack([np.random.default_rng(seed).normal(size=(50, 2)), [[1e3, 0.0]]])
    for last, found in ((1.0, True), (0.0, False)):
        model = mj.KMeans(2, random_state=seed).fit(X, sample_weight=np.r_[np.ones(50), last])
        assert (model.cluster_centers_.max() == 1e3) == found


# Empty clusters and too few distinct rows


@pytest.mark.parametrize("n_empty", [1, 2, 4])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_empty_clusters_are_moved_where_they_help(n_empty: int, form: Any, seed: int) -> None:
    X = far_blobs(seed, k=6, d=6)
    away = 1e4 * (1 + np.arange(n_empty))[:, None] * np.ones(6)
    init = np.vstack([X[:2], away])
    model = mj.KMeans(2 + n_empty, init=init, tol=0.0).fit(form(X))
    assert (np.bincount(model.labels_, minlength=2 + n_empty) > 0).all()
    assert np.abs(model.cluster_centers_).max() < 100
    two = mj.KMeans(2, init=init[:2], tol=0.0).fit(X)
    assert model.inertia_ < two.inertia_
    assert (np.diff(model.trace_["objective"]) <= 1e-9 * two.inertia_).all()


def in_parts(x: Any) -> Any:
    return mj.open_rows(lambda: (x[a : a + 3] for a in range(0, len(x), 3)))


FORMS = pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, in_parts], ids=["dense", "sparse", "stream"])


@FORMS
def test_an_empty_cluster_beside_an_outlier_finds_a_row(form: Any) -> None:
    """The row farthest from its centre is all of its cluster: the next one moves."""
    X = np.array([0.0, 1, 10, 11, 100])[:, None]
    init = np.array([0.5, 10.5, 80, 500])[:, None]
    assert mj.KMeans(4, init=init).fit(form(X)).inertia_ == pytest.approx(0.5, rel=1e-12)


@FORMS
@pytest.mark.parametrize("seed", range(30))
def test_no_cluster_is_empty_while_distinct_rows_are_left(form: Any, seed: int) -> None:
    """Outliers, copies and far centres: every empty cluster finds a row, however often it takes."""
    random = np.random.default_rng(seed)
    X = random.integers(0, 6, (12, 1 + seed % 2)) * 10.0 ** random.integers(0, 4, (12, 1))
    distinct = len(np.unique(X, axis=0))
    k = int(random.integers(2, distinct + 1))
    init = np.vstack([X[:1], 1e3 * random.normal(size=(k - 1, X.shape[1]))])
    model = mj.KMeans(k, init=init, tol=float(random.choice([0.0, 1e-4, 1.0]))).fit(form(X))
    assert (np.bincount(model.labels_, minlength=k) > 0).all()
    assert model.inertia_ == pytest.approx(sse(X, model.labels_), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("bounds", POLICIES[:-2], ids=repr)  # the others name row 50
def test_empty_clusters_are_moved_under_every_policy(bounds: Any, seed: int) -> None:
    X = far_blobs(seed)
    model = mj.KMeans(3, init=np.vstack([X[:2], [[1e4] * 3]]), bounds=bounds, random_state=seed).fit(X)
    assert (np.bincount(model.labels_, minlength=3) > 0).all()
    assert model.inertia_ == pytest.approx(sse(X, model.labels_), rel=1e-9)


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("distinct", [1, 2, 4])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_fewer_distinct_rows_than_clusters(init: str, distinct: int, form: Any, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(distinct, 2))
    X = values[np.arange(20) % distinct]
    with pytest.warns(
        ConvergenceWarning, match=rf"distinct clusters \({distinct}\) found smaller than n_clusters \(5\)"
    ):
        model = mj.KMeans(5, init=init, random_state=seed).fit(form(X))
    assert np.isfinite(model.cluster_centers_).all()
    assert model.inertia_ == pytest.approx(0.0, abs=1e-12)
    assert len(np.unique(model.labels_)) == distinct
    np.testing.assert_allclose(model.cluster_centers_[model.labels_], X, atol=1e-7)


def test_rows_without_weight_are_no_distinct_rows(seed: int) -> None:
    X = np.random.default_rng(seed).normal(size=(10, 2))
    with pytest.warns(ConvergenceWarning, match="only 2 distinct rows with weight"):
        model = mj.KMeans(3, random_state=seed).fit(X, sample_weight=[1, 1] + [0] * 8)
    assert model.inertia_ == 0.0


@pytest.mark.parametrize(("n_rows", "seconds"), [(300, 0.0), (300, 1e-3), (300, 0.1), (5000, 0.1), (5000, 0.4)])
def test_a_bound_takes_no_longer_than_allowed(n_rows: int, seconds: float) -> None:
    X = np.random.default_rng(0).normal(size=(n_rows, 12))
    model = mj.KMeans(5, random_state=0).fit(X)
    began = time.process_time()
    certificate = model.certify(X, seconds=seconds)
    assert time.process_time() - began <= 3 * seconds + 0.05
    assert 0 <= certificate.bound <= certificate.objective
    assert certificate.objective == pytest.approx(model.inertia_, rel=1e-9)
    if seconds < 0.01:
        assert certificate.bound == 0 and certificate.method.startswith("none within")


def test_a_bound_within_a_hundredth_of_a_second_proves_iris_optimal() -> None:
    X = load_iris().data
    assert mj.KMeans(3, random_state=0).fit(X).certify(X, seconds=0.02).proved
