"""Spherical k-means: the objective against all partitions, against scikit-learn, and what a user sees."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris

import majorant as mj
from majorant.solvers.swap import swap_search

Array = NDArray[np.float64]


def directions(X: Array) -> Array:
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def cosine_cost(X: Array, labels: NDArray[Any], weights: Array | None = None) -> float:
    """Return the least sum of one minus the cosine for given clusters: weight minus the lengths of their sums."""
    w = np.ones(len(X)) if weights is None else weights
    u = directions(X) * w[:, None]
    return float(w.sum() - sum(np.linalg.norm(u[labels == j].sum(axis=0)) for j in np.unique(labels)))


def least_cost(X: Array, k: int, weights: Array) -> float:
    """Return the least objective of all partitions into k clusters at most."""
    partitions = itertools.product(range(k), repeat=len(X) - 1)
    return min(cosine_cost(X, np.array([0, *labels]), weights) for labels in partitions)


def spread_rows(seed: int, n: int = 300, d: int = 5, k: int = 6) -> Array:
    g = np.random.default_rng(seed)
    rows = g.normal(size=(k, d))[g.integers(0, k, n)] + 0.7 * g.normal(size=(n, d))
    return np.asarray(rows * g.lognormal(size=(n, 1)))


@pytest.mark.parametrize("seed", range(20))
def test_small_tables_reach_the_best_of_all_partitions(seed: int) -> None:
    g = np.random.default_rng(seed)
    n, d, k = int(g.integers(4, 9)), int(g.integers(2, 5)), int(g.integers(2, 4))
    X, w = g.normal(size=(n, d)), g.uniform(0.2, 3, n) ** 3
    best = least_cost(X, k, w)
    model = mj.KMeans(k, metric="cosine", random_state=seed).fit(X, sample_weight=w)
    assert model.inertia_ == pytest.approx(best, rel=1e-9, abs=1e-12)
    certificate = model.certify(X, sample_weight=w)
    assert certificate.bound <= best * (1 + 1e-9)
    assert certificate.objective == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert "cosine distance" in certificate.sentence


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("table", ["iris", "digits", "spread", "text"])
def test_never_above_scikit_learn_on_normalised_rows(table: str, seed: int) -> None:
    made = {"iris": load_iris().data, "digits": load_digits().data[:600], "spread": spread_rows(0, 600)}
    X = made.get(table)
    if X is None:
        X = np.random.default_rng(0).poisson(0.3, (500, 40)).astype(float)
        X[~X.any(axis=1), 0] = 1.0
    theirs = KMeans(8, n_init=10, random_state=seed).fit(directions(X)).labels_
    ours = mj.KMeans(8, metric="cosine", random_state=seed).fit(X)
    assert ours.inertia_ <= cosine_cost(X, theirs) * (1 + 1e-9)
    assert ours.inertia_ == pytest.approx(cosine_cost(X, ours.labels_), rel=1e-9)


@pytest.mark.parametrize("heavy", [1.0, 1e9])
def test_no_move_of_a_single_row_helps(heavy: float) -> None:
    X, k = directions(spread_rows(1, 80)), 5
    w = np.ones(len(X))
    w[::20] = heavy
    found = swap_search(X, w, k, seed=0, on_sphere=True)
    np.testing.assert_allclose(np.linalg.norm(found.centres, axis=1), 1, rtol=1e-12)
    reached = cosine_cost(X, found.labels, w)
    assert found.objective / 2 == pytest.approx(reached, rel=1e-7, abs=1e-9 * heavy)
    for i, j in itertools.product(range(len(X)), range(k)):
        labels = found.labels.copy()
        labels[i] = j
        assert cosine_cost(X, labels, w) >= reached - 1e-9 * heavy


def test_centres_are_the_directions_of_sums() -> None:
    X = spread_rows(2)
    model = mj.KMeans(6, metric="cosine", random_state=0).fit(X)
    for j, centre in enumerate(model.cluster_centers_):
        total = directions(X)[model.labels_ == j].sum(axis=0)
        np.testing.assert_allclose(centre, total / np.linalg.norm(total), atol=1e-12)
    distances = model.transform(X)
    np.testing.assert_allclose(distances, 1 - directions(X) @ model.cluster_centers_.T, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), distances.argmin(axis=1))
    assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-12)
    assert model.search_.objective_name == "cosine distance"
    assert "cosine distance" in str(model.summary())


def test_lengths_of_rows_do_not_matter() -> None:
    X = spread_rows(3)
    lengths = 2.0 ** np.random.default_rng(0).integers(-600, 600, (len(X), 1))
    one, other = (mj.KMeans(4, metric="cosine", random_state=0).fit(rows) for rows in (X, X * lengths))
    np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)
    np.testing.assert_array_equal(one.labels_, other.predict(X))


def test_weights_are_repeats() -> None:
    X = spread_rows(4, 60)
    w = np.random.default_rng(0).integers(0, 4, len(X))
    one = mj.KMeans(3, metric="cosine", random_state=0).fit(X, sample_weight=w.astype(float))
    other = mj.KMeans(3, metric="cosine", random_state=0).fit(np.repeat(X, w, axis=0))
    np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_and_single_precision_end_at_the_same(dtype: Any) -> None:
    g = np.random.default_rng(0)
    topics = g.gamma(0.2, 4.0, (5, 30))
    X = g.poisson(topics[g.integers(0, 5, 200)]).astype(dtype)
    X[~X.any(axis=1), 0] = 1.0
    dense = mj.KMeans(5, metric="cosine", random_state=0).fit(X)
    thin = mj.KMeans(5, metric="cosine", random_state=0).fit(sparse.csr_matrix(X))
    assert dense.cluster_centers_.dtype == thin.cluster_centers_.dtype == dtype
    assert thin.inertia_ == pytest.approx(dense.inertia_, rel=1e-5)
    np.testing.assert_array_equal(thin.predict(sparse.csr_matrix(X)), thin.predict(X))
    np.testing.assert_allclose(np.linalg.norm(thin.cluster_centers_, axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {"algorithm": "lloyd"},
        {"init": "random-partition"},
        {"init": "forgy", "bounds": mj.GibbsLimit(eta=0.1)},
        {"bounds": mj.Biased(mj.Balance())},
        {"size_min": 30, "size_max": 80},
    ],
    ids=str,
)
def test_every_search_keeps_to_the_sphere(settings: dict[str, Any]) -> None:
    X = spread_rows(5)
    best = mj.KMeans(6, metric="cosine", random_state=0).fit(X).inertia_
    model = mj.KMeans(6, metric="cosine", random_state=0, **settings).fit(X)
    np.testing.assert_allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1, rtol=1e-12)
    assert best * (1 - 1e-9) <= model.inertia_ <= 1.5 * best
    cost = (1 - directions(X) @ model.cluster_centers_.T)[np.arange(len(X)), model.labels_].sum()
    assert model.inertia_ == pytest.approx(cost, rel=1e-9)
    assert all(np.diff(model.trace_["objective"]) <= 1e-9) or "bounds" in settings
    if "size_min" in settings:
        assert 30 <= np.bincount(model.labels_).min() <= np.bincount(model.labels_).max() <= 80


def test_given_centres_keep_their_order_and_opposite_rows_have_a_centre() -> None:
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, 3.0]])
    model = mj.KMeans(2, metric="cosine", init=np.array([[-0.5, -0.1], [1.0, 7.0]]), random_state=0).fit(X)
    np.testing.assert_allclose(model.cluster_centers_[0], [-1, 0], atol=1e-9)
    np.testing.assert_array_equal(model.labels_, [1, 0, 1, 1])
    opposite = mj.KMeans(1, metric="cosine").fit([[1.0, 0.0], [-2.0, 0.0]])
    assert opposite.inertia_ == pytest.approx(2)
    assert "sum of the rows" in opposite.search_.certain


def test_streams_and_files(tmp_path: Path) -> None:
    X = spread_rows(6, 5000)
    np.save(tmp_path / "rows.npy", X)
    rows = mj.open_rows(tmp_path / "rows.npy")
    streamed = mj.KMeans(6, metric="cosine", random_state=0).fit(rows)
    model = mj.KMeans(6, metric="cosine", random_state=0).fit(X)
    assert streamed.inertia_ == pytest.approx(model.inertia_, rel=1e-6)
    assert streamed.score(rows) == pytest.approx(-streamed.inertia_, rel=1e-12)
    model.save(tmp_path / "model.mj")
    loaded = mj.load(tmp_path / "model.mj")
    np.testing.assert_array_equal(loaded.predict(X), model.labels_)


def test_rows_without_direction_are_refused(tmp_path: Path) -> None:
    X = spread_rows(7, 50)
    model = mj.KMeans(3, metric="cosine", random_state=0).fit(X)
    X[31] = 0
    np.save(tmp_path / "rows.npy", X)
    for rows in (X, sparse.csr_matrix(X), mj.open_rows(tmp_path / "rows.npy")):
        for use in (mj.KMeans(3, metric="cosine").fit, model.predict, model.transform, model.score):
            with pytest.raises(ValueError, match=r"row 31 of X is all zeros, which has no direction: drop such rows"):
                use(rows)
    with pytest.raises(ValueError, match="row 1 of init is all zeros"):
        mj.KMeans(2, metric="cosine", init=np.array([[1.0, 0], [0, 0]])).fit(X[:9, :2])
    with pytest.raises(ValueError, match=r"metric must be one of.*cosine"):
        mj.KMeans(2, metric="manhattan").fit(X)  # type: ignore[arg-type]
