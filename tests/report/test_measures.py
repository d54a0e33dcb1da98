from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.sparse import csr_array
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import silhouette_samples, silhouette_score

from majorant.report.measures.clustering import Clustering
from majorant.report.measures.partition import find_best_pair, linear_placement
from majorant.report.sections.discriminants import RIDGE, Plane
from majorant.report.sections.pair import cut_points
from majorant.results.silhouettes import measure_silhouettes, silhouettes_by, thinned_rows

from .stand_in import CARD, clustered_run, make_run


def wine() -> tuple[np.ndarray, np.ndarray]:
    data = load_wine()
    return (data.data - data.data.mean(axis=0)) / data.data.std(axis=0), data.target.astype(np.int64)


def test_spread_and_variance_are_those_of_the_definition() -> None:
    clustering = Clustering(clustered_run(200, 4, 3), CARD)
    X, labels = clustering.run.X, clustering.labels
    within = sum(((X[labels == j] - X[labels == j].mean(axis=0)) ** 2).sum() for j in range(3))
    assert clustering.variance_explained == pytest.approx(1 - within / ((X - X.mean(axis=0)) ** 2).sum())
    first = X[labels == 0]
    assert clustering.spreads[0] == pytest.approx(np.sqrt(((first - first.mean(axis=0)) ** 2).sum(axis=1).mean()))
    total = ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    between = sum((labels == j).sum() * (X[labels == j].mean(axis=0) - X.mean(axis=0)) ** 2 for j in range(3))
    assert np.allclose(clustering.explained, between / total)


def test_constant_columns_explain_nothing() -> None:
    X = np.column_stack([np.arange(6.0), np.full(6, 0.1), np.zeros(6)])
    clustering = Clustering(make_run(X, np.array([0, 0, 0, 1, 1, 1]), 2), CARD)
    assert clustering.ranked_features == [0]
    assert np.isnan(clustering.explained[1:]).all()


def test_silhouettes_of_all_rows() -> None:
    X, labels = wine()
    found = measure_silhouettes(X, labels, np.bincount(labels))
    assert found is not None
    assert not found.sampled
    assert found.mean == pytest.approx(silhouette_score(X, labels))
    assert int(found.negative.sum()) == int((found.values < 0).sum())


def test_silhouettes_of_many_rows_are_those_of_a_sample() -> None:
    rng = np.random.default_rng(0)
    labels = np.sort(rng.integers(3, size=9000))
    X = rng.normal(size=(9000, 2)) + 4.0 * labels[:, None]
    found = measure_silhouettes(X, labels, np.bincount(labels))
    assert found is not None
    assert found.sampled
    assert len(found.values) <= 2000
    assert found.mean == pytest.approx(silhouette_score(X[::3], labels[::3]), abs=0.02)


def test_silhouettes_need_two_clusters_and_a_cluster_with_two_rows() -> None:
    X = np.arange(4.0)[:, None]
    for labels in ([0, 0, 0, 0], [0, 1, 2, 3]):
        assert measure_silhouettes(X, np.array(labels), np.bincount(labels)) is None


def test_thinned_rows_keep_every_cluster_and_stay_below_the_limit() -> None:
    labels = np.repeat(np.arange(50), [5000, *[3] * 48, 1])
    sizes = np.bincount(labels)
    rows = thinned_rows(labels, sizes, 500)
    assert len(rows) <= 500
    assert len(np.unique(rows)) == len(rows)
    assert set(labels[rows]) == set(range(50))
    assert np.array_equal(rows, thinned_rows(labels, sizes, 500))


def test_the_best_pair_has_the_smallest_ratio_of_determinants() -> None:
    X, labels = wine()
    found = find_best_pair(X, labels, 3, np.ones(13))
    assert found is not None
    total, within = np.cov(X.T), np.zeros((13, 13))
    for j in range(3):
        within += np.cov(X[labels == j].T) * ((labels == j).sum() - 1) / (len(X) - 1)
    ratios = {
        (a, b): np.linalg.det(within[np.ix_([a, b], [a, b])]) / np.linalg.det(total[np.ix_([a, b], [a, b])])
        for a in range(13)
        for b in range(a + 1, 13)
    }
    assert found.n_tried == 78
    assert tuple(sorted((found.first, found.second))) == min(ratios, key=ratios.__getitem__)
    assert found.wilks == pytest.approx(min(ratios.values()))


def test_linear_placement_is_a_linear_discriminant() -> None:
    X, labels = wine()
    reference = LinearDiscriminantAnalysis(solver="lsqr").fit(X[:, :2], labels)
    assert np.array_equal(linear_placement(X[:, :2], labels, 3), reference.predict(X[:, :2]))


def test_a_pair_needs_two_columns_that_are_no_copies() -> None:
    x = np.arange(10.0)
    labels = (x > 4).astype(np.int64)
    assert find_best_pair(np.column_stack([x, 2 * x]), labels, 2, np.ones(2)) is None
    assert find_best_pair(x[:, None], labels, 2, np.ones(1)) is None


def test_cut_points() -> None:
    values = np.array([0.0, 1.0, 5.0, 6.0])
    assert cut_points(values, np.array([1, 1, 0, 0]), [0, 1]) == ["3.00"]
    assert cut_points(values, np.array([1, 0, 1, 0]), [0, 1]) == []


def test_the_map_of_wide_rows_is_that_of_tables_of_columns_by_columns() -> None:
    random = np.random.default_rng(0)
    rows, labels = random.normal(size=(40, 100)), np.arange(40) % 4
    rows[:, 0] += 3.0 * labels
    seen: Any = SimpleNamespace(
        ranked_features=np.arange(100),
        complete=rows,
        means=rows.mean(axis=0),
        deviations=rows.std(axis=0),
        sizes=np.bincount(labels),
        used=[0, 1, 2, 3],
        labels=labels,
    )
    found = Plane.of(seen)
    z = (rows - seen.means) / seen.deviations
    centres = np.array([z[labels == j].mean(axis=0) for j in range(4)])
    rest = z - centres[labels]
    values, axes = eigh(centres.T @ centres / 4, rest.T @ rest / 40 + RIDGE * np.eye(100))
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(100)])
    np.testing.assert_allclose(found.rows, (z @ (axes * signs))[:, :-3:-1], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.share, values[-2:].sum() / values[-3:].sum(), rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_silhouettes_are_those_of_scikit_learn(seed: int) -> None:
    """Of dense and sparse rows, far from zero, repeated, alone in their cluster, and with a gap in the labels."""
    random = np.random.default_rng(seed)
    X = random.integers(0, 5, size=(40, 3)) + (1e6 if seed == 1 else 0.0)
    labels = random.choice([0, 1, 3], size=40)
    labels[0] = 5
    expected = silhouette_samples(X - X.mean(axis=0), labels)
    found = measure_silhouettes(X, labels, np.bincount(labels))
    assert found is not None
    np.testing.assert_allclose(found.values, expected, atol=1e-9)
    distances = np.abs(random.normal(size=(40, 40)))
    distances = (distances + distances.T) * (1 - np.eye(40))
    np.testing.assert_allclose(
        silhouettes_by(distances, labels), silhouette_samples(distances, labels, metric="precomputed"), atol=1e-12
    )
    if seed != 1:
        sparse_rows = measure_silhouettes(csr_array(X), labels, np.bincount(labels))
        assert sparse_rows is not None
        np.testing.assert_allclose(sparse_rows.values, expected, atol=1e-6)
