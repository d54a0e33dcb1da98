"""k-medoids: the objective against all choices of medoids, the search against single swaps, and what a user sees."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score

import majorant as mj
from majorant.models.kmedoids import METRICS
from majorant.registry import card_of
from majorant.report import Run, html_report
from majorant.report.measures.clustering import measure
from majorant.solvers.medoids import EFFORTS, _Places, medoid_search

Array = NDArray[np.float64]


def cost(distances: Array, medoids: Any, weights: Array) -> float:
    return float(weights @ distances[:, list(medoids)].min(axis=1))


def table(seed: int, n: int = 120, k: int = 5) -> Array:
    g = np.random.default_rng(seed)
    return np.asarray(g.normal(size=(k, 3))[g.integers(0, k, n)] * 3 + g.normal(size=(n, 3)))


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "precomputed", "one-way"])
@pytest.mark.parametrize("seed", range(10))
def test_small_tables_reach_the_best_of_all_choices(seed: int, metric: str) -> None:
    g = np.random.default_rng(seed)
    n, k = int(g.integers(4, 14)), int(g.integers(1, 4))
    X, w = g.normal(size=(n, 2)), g.uniform(0.2, 3, n)
    if metric == "one-way":  # a road up is longer than the road down
        D = cdist(X, X) * np.where(X[:, :1] < X[:, 0], 2.0, 1.0)
    else:
        D = cdist(X, X, "cityblock" if metric == "precomputed" else metric)
    given = metric in ("precomputed", "one-way")
    model = mj.KMedoids(k, metric="precomputed" if given else metric, random_state=seed)
    model.fit(D if given else X, sample_weight=w)
    best = min(cost(D, m, w) for m in itertools.combinations(range(n), k))
    assert model.inertia_ == pytest.approx(best, rel=1e-12)
    assert cost(D, model.medoid_indices_, w) == pytest.approx(best, rel=1e-12)
    np.testing.assert_array_equal(model.labels_, D[:, model.medoid_indices_].argmin(axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("effort", list(EFFORTS))
def test_no_single_swap_helps(effort: Any, dtype: Any) -> None:
    X = table(0)
    D = cdist(X, X).astype(dtype)
    w = np.random.default_rng(0).uniform(0.1, 4, len(X))
    found = medoid_search(D, w, 6, seed=1, effort=effort)
    D = D.astype(np.float64)
    reached = cost(D, found.medoids, w)
    assert found.objective == pytest.approx(reached, rel=1e-12)
    np.testing.assert_array_equal(D[np.arange(len(X)), found.medoids[found.labels]], D[:, found.medoids].min(axis=1))
    assert np.all(np.diff(found.steps) < 0) and found.steps[-1] == found.objective
    for j, c in itertools.product(range(6), range(len(X))):
        swapped = found.medoids.copy()
        swapped[j] = c
        assert cost(D, swapped, w) >= reached * (1 - 1e-9)


def test_ties_and_equal_distances() -> None:
    g = np.random.default_rng(0)
    for _ in range(50):
        n, k = int(g.integers(3, 30)), int(g.integers(2, 6))
        D = g.integers(0, 3, (n, n)).astype(float)
        D = np.triu(D, 1) + np.triu(D, 1).T
        found = medoid_search(D, np.ones(n), min(k, n), seed=0)
        assert len(set(found.medoids.tolist())) == min(k, n)
        assert found.objective == cost(D, found.medoids, np.ones(n))


@pytest.mark.parametrize("seed", range(5))
def test_perturbations_find_what_descents_miss(seed: int) -> None:
    X = np.random.default_rng(seed).normal(size=(300, 2))
    D, w = cdist(X, X), np.ones(300)
    ends = [medoid_search(D, w, 12, seed=s, effort="fast").objective for s in range(10)]
    assert medoid_search(D, w, 12, seed=seed).objective <= np.median(ends)
    assert medoid_search(D, w, 12, seed=seed, effort="best").objective <= min(ends) * (1 + 1e-9)


def test_weights_are_repeats_and_the_order_of_rows_does_not_matter() -> None:
    X = table(1)
    g = np.random.default_rng(0)
    w, order = g.integers(0, 4, len(X)), g.permutation(len(X))
    models = [
        mj.KMedoids(5, random_state=0).fit(X, sample_weight=w.astype(float)),
        mj.KMedoids(5, random_state=0).fit(np.repeat(X, w, axis=0)),
        mj.KMedoids(5, random_state=0).fit(X[order], sample_weight=w[order].astype(float)),
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.cluster_centers_, models[0].cluster_centers_)
        assert model.inertia_ == pytest.approx(models[0].inertia_, rel=1e-12)
    given = mj.KMedoids(5, metric="precomputed", random_state=0).fit(cdist(X, X), sample_weight=w.astype(float))
    assert (w[given.medoid_indices_] > 0).all()
    assert given.inertia_ == pytest.approx(models[0].inertia_, rel=0.02)


@pytest.mark.parametrize("metric", METRICS)
def test_every_distance_of_scipy(metric: str) -> None:
    X = np.abs(table(2, 60)) + 0.1
    if metric in ("dice", "jaccard", "rogerstanimoto", "sokalsneath", "yule"):
        X = np.where(np.median(X, axis=0) < X, 1.0, 0.0)
        X = X[X.any(axis=1)]
    needed: dict[str, dict[str, Any]] = {"seuclidean": {"V": np.ones(3)}, "mahalanobis": {"VI": np.eye(3)}}
    model = mj.KMedoids(3, metric=metric, metric_params=needed.get(metric), random_state=0).fit(X)
    D = cdist(X, X, metric, **needed.get(metric, {}))
    np.testing.assert_array_equal(model.cluster_centers_, X[model.medoid_indices_])
    assert model.inertia_ == pytest.approx(D[:, model.medoid_indices_].min(axis=1).sum(), rel=1e-9, abs=1e-9)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-9, abs=1e-9)


def test_a_function_of_two_rows() -> None:
    X = table(3, 40)

    def distance(a: Array, b: Array) -> float:
        return float(np.abs(a - b).sum())

    one = mj.KMedoids(4, metric=distance, random_state=0).fit(X)
    other = mj.KMedoids(4, metric="cityblock", random_state=0).fit(X)
    np.testing.assert_array_equal(one.medoid_indices_, other.medoid_indices_)


def test_given_distances_of_new_rows() -> None:
    X, new = table(4), table(5, 30)
    by_rows = mj.KMedoids(5, random_state=0).fit(X)
    given = mj.KMedoids(5, metric="precomputed", effort="best", random_state=0).fit(cdist(X, X))
    assert given.inertia_ == pytest.approx(by_rows.inertia_, rel=0.01)
    expected = cdist(new, X[given.medoid_indices_])
    np.testing.assert_allclose(given.transform(cdist(new, X)), expected)
    np.testing.assert_array_equal(given.predict(cdist(new, X)), expected.argmin(axis=1))
    assert not hasattr(given, "cluster_centers_") and "medoid, row" in str(given.summary())
    by_rows.set_params(metric="precomputed").fit(cdist(X, X))
    assert not hasattr(by_rows, "cluster_centers_")


def test_equal_rows_and_more_clusters_than_distinct_rows() -> None:
    X = np.array([[0.0], [0.0], [1.0], [1.0], [9.0]])
    with pytest.warns(ConvergenceWarning, match="3 distinct rows"):
        model = mj.KMedoids(4, random_state=0).fit(X)
    assert model.inertia_ == 0 and len(model.medoid_indices_) == 4
    assert "no better solution exists" in model.search_.certain
    one = mj.KMedoids(1).fit(X)
    assert one.cluster_centers_.item() == 1 and "no better one exists" in one.search_.certain


@pytest.mark.parametrize("case", ["rows without weight", "equal rows"])
def test_a_table_of_too_few_distinct_rows_is_told_of(case: str) -> None:
    X, weights = np.array([[0.0], [5.0], [9.0], [9.5], [7.0]]), None
    if case == "rows without weight":
        weights = np.array([1.0, 1.0, 0.0, 0.0, 0.0])
    else:
        X[2:] = X[0]
    model = mj.KMedoids(4, metric="precomputed", random_state=0)
    with pytest.warns(ConvergenceWarning, match="2 distinct rows with weight"):
        model.fit(cdist(X, X), sample_weight=weights)
    assert model.inertia_ == 0


def test_each_descent_has_steps_of_its_own() -> None:
    X = np.random.default_rng(0).normal(size=(300, 2))
    model, one = (mj.KMedoids(12, effort=e, random_state=0).fit(X) for e in ("default", "fast"))
    first, *others = model.search_.starts
    assert first.n_iter == one.n_iter_ == len(one.trace_) == one.search_.starts[0].n_iter
    assert len({start.n_iter for start in others}) > 1
    assert model.n_iter_ == len(model.trace_)
    best = model.search_.best
    assert any(start.n_iter == model.n_iter_ for start in model.search_.starts if start.objective <= best * (1 + 1e-9))


def test_perturbations_that_move_nothing_are_no_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nearly every row is a medoid, most rows drawn are, too."""
    X = np.random.default_rng(0).normal(size=(12, 2))
    tried = medoid_search(cdist(X, X), np.ones(12), 10, seed=0)
    assert len(tried.optima) >= 10  # as many returns, the starts among them
    monkeypatch.setattr(_Places, "perturb", lambda self, draws, anywhere: None)
    found = medoid_search(cdist(X, X), np.ones(12), 10, seed=0)
    assert {kind for kind, *_ in found.optima} == {"seeds"}


def test_saved_reported_and_shown(tmp_path: Path) -> None:
    X = load_iris().data
    model = mj.KMedoids(3, random_state=0).fit(X)
    model.save(tmp_path / "model.mj")
    loaded = mj.load(tmp_path / "model.mj")
    np.testing.assert_array_equal(loaded.predict(X), model.labels_)
    given = mj.KMedoids(3, metric="precomputed", random_state=0).fit(cdist(X, X))
    given.save(tmp_path / "model.mj")
    np.testing.assert_array_equal(mj.load(tmp_path / "model.mj").predict(cdist(X, X)), given.labels_)
    page = html_report(Run(model, X, ("a", "b", "c", "d"), "iris.csv", ""))
    assert "Total distance" in page and "total distance" in str(model.summary())


def test_what_is_no_distance_is_refused() -> None:
    X = table(6, 20)
    D = cdist(X, X)
    cases: list[tuple[dict[str, Any], Any, str]] = [
        ({"metric": "precomputed"}, X, r"square table of distances of all rows; got shape \(20, 3\)"),
        ({"metric": "precomputed"}, -D, r"X\[0, 1\] is -.*must not be negative"),
        ({"metric": "precomputed"}, D + 1, r"X\[0, 0\] is 1: the distance of a row to itself must be zero"),
        ({"metric": "manhatten"}, X, "metric must be one of"),
        ({"metric": "mahalanobis"}, X, 'needs metric_params={"VI": ...}'),
        ({"metric": "cosine"}, np.vstack([X, np.zeros(3)]), r"gives nan as the distance of the rows"),
        ({"metric": "minkowski", "metric_params": {"q": 3}}, X, "failed"),
        ({"metric": lambda a, b: -1.0}, X, "gives -1 as the distance"),
        ({"n_clusters": 21}, X, "n_samples=20 should be >= n_clusters=21"),
        ({}, np.full((5, 2), np.nan), "takes no missing values"),
        ({}, sparse.csr_matrix(X), "[Ss]parse"),
    ]
    for parameters, rows, message in cases:
        with pytest.raises((ValueError, TypeError), match=message):
            mj.KMedoids(**{"n_clusters": 3, **parameters}).fit(rows)


@pytest.mark.parametrize("metric", ["cityblock", "cosine", "euclidean"])
def test_silhouettes_are_of_its_own_distance(metric: str) -> None:
    X = np.random.default_rng(0).gamma(2.0, size=(60, 4))
    table = cdist(X, X, metric)
    np.fill_diagonal(table, 0.0)
    found = mj.select(mj.KMedoids(metric=metric, random_state=0), X, n_components=[2, 3, 4])
    of_table = mj.select(mj.KMedoids(metric="precomputed", random_state=0), table, n_components=[2, 3, 4])
    for candidate, other, fitted in zip(found.candidates, of_table.candidates, found.estimators, strict=True):
        expected = silhouette_score(table, fitted.labels_, metric="precomputed")
        assert candidate.value == pytest.approx(expected, abs=1e-9) == other.value
    page = measure(Run(found.best_estimator_, X, tuple("abcd"), "t.csv", ""), card_of(mj.KMedoids()))
    assert page.silhouettes is not None and page.silhouettes.mean == pytest.approx(found.best.value)
    with pytest.raises(ValueError, match="a report shows rows"):
        html_report(Run(of_table.best_estimator_, table, tuple(f"d{i}" for i in range(60)), "t.csv", ""))
