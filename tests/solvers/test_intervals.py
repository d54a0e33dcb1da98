"""k-means of one column by dynamic programming: enumeration, digits far from the origin, weights, ties."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import majorant as mj
from majorant.solvers.intervals import JOINED, MOST_CELLS, best_intervals, interval_search, only_column

Array = NDArray[np.float64]


def of_all_divisions(x: Array, w: Array, k: int) -> float:
    """Return the least sum of squares of k intervals, by trying all of them."""

    def within(a: int, b: int) -> float:
        about = x[a:b] - x[a]
        return float(np.sum(w[a:b] * (about - np.average(about, weights=w[a:b])) ** 2))

    n = len(x)
    return min(
        sum(within(a, b) for a, b in zip((0, *cuts), (*cuts, n), strict=True))
        for cuts in combinations(range(1, n), k - 1)
    )


@pytest.mark.parametrize("far", [0.0, 1e6, -1e9])
@pytest.mark.parametrize("seed", range(20))
def test_no_division_is_better(seed: int, far: float) -> None:
    g = np.random.default_rng(seed)
    n = int(g.integers(2, 10))
    x, w = g.normal(size=n) + far, g.uniform(0.1, 3, n)
    for k in range(1, n + 1):
        labels, objective = best_intervals(x, w, k)
        order = np.argsort(x)
        assert objective == pytest.approx(of_all_divisions(x[order], w[order], k), rel=1e-9, abs=1e-12)
        assert np.array_equal(np.unique(labels), np.arange(k))
        assert (np.diff(labels[order]) >= 0).all()


def test_tight_groups_far_apart_keep_their_digits() -> None:
    g = np.random.default_rng(0)
    x = np.concatenate([g.normal(size=50) * 1e-6 + at for at in (-1e5, 0.0, 1e5)])
    expected = sum(float(np.sum((part - part.mean()) ** 2)) for part in (x[:50] + 1e5, x[50:100], x[100:] - 1e5))
    _, objective = best_intervals(x, np.ones(150), 3)
    assert objective == pytest.approx(expected, rel=1e-4)  # the numbers themselves hold no more digits


def test_weights_are_repeats() -> None:
    g = np.random.default_rng(1)
    x, w = g.normal(size=40), g.integers(1, 5, 40).astype(float)
    _, weighted = best_intervals(x, w, 4)
    _, repeated = best_intervals(np.repeat(x, w.astype(int)), np.ones(int(w.sum())), 4)
    assert weighted == pytest.approx(repeated, rel=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_equally_spaced_rows_are_divided_equally(seed: int) -> None:
    model = mj.KMeans(6, random_state=seed).fit(np.linspace(0, 1, 600)[:, None])
    assert np.array_equal(np.bincount(model.labels_), [100] * 6)
    assert model.inertia_ == pytest.approx(6 * 100 * (100**2 - 1) / 12 / 599**2, rel=1e-12)
    assert "dynamic programming" in str(model.summary())


@pytest.mark.parametrize("direction", [(1.0, 2.0), (0.3, -1.7, 0.0, 1e-3)])
@pytest.mark.parametrize("seed", range(4))
def test_equally_spaced_rows_on_a_slope_are_divided_equally(direction: tuple[float, ...], seed: int) -> None:
    X = np.outer(np.arange(600) / 600, direction) + np.arange(len(direction))
    model = mj.KMeans(6, random_state=seed).fit(X)
    assert np.array_equal(np.bincount(model.labels_), [100] * 6)
    expected = np.dot(direction, direction) * 6 * 100 * (100**2 - 1) / 12 / 600**2
    assert model.inertia_ == pytest.approx(expected, rel=1e-12)
    assert -model.score(X) == pytest.approx(expected, rel=1e-12)


def test_rows_beside_the_line_are_searched() -> None:
    X = np.outer(np.arange(60.0), [1.0, 2.0])
    X[7, 1] += 1e-6
    far = np.vstack(
        [np.random.default_rng(0).normal(size=(60, 2)), [[1e15, 2e15]]]
    )  # seen from there the others are one
    for rows in (X, far):
        assert "dynamic programming" not in str(mj.KMeans(4, random_state=0).fit(rows).summary())


def test_no_start_of_lloyds_is_better_and_constant_columns_do_not_count() -> None:
    g = np.random.default_rng(2)
    x = np.round(g.gamma(1, 20, size=500), 1)[:, None]
    X = np.hstack([np.full((500, 1), 3.0), x, np.full((500, 1), -7.0)])
    w = g.integers(1, 4, 500).astype(float)
    model = mj.KMeans(7, random_state=0).fit(X, sample_weight=w)
    assert "dynamic programming" in str(model.summary())
    lloyd = mj.KMeans(7, algorithm="lloyd", n_init=50, random_state=0).fit(X, sample_weight=w)
    assert model.inertia_ <= lloyd.inertia_ * (1 + 1e-12)
    assert -model.score(X, sample_weight=w) == pytest.approx(model.inertia_, rel=1e-10)
    assert (model.cluster_centers_[:, 0] == 3).all() and (model.cluster_centers_[:, 2] == -7).all()
    certificate = model.certify(X, sample_weight=w)
    assert certificate.bound == pytest.approx(model.inertia_, rel=1e-9)
    assert certificate.bound <= model.inertia_


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_single_precision_too(dtype: type) -> None:
    x: NDArray[Any] = np.random.default_rng(3).normal(size=(300, 1)).astype(dtype)
    model = mj.KMeans(5, random_state=0).fit(x)
    expected = best_intervals(x[:, 0].astype(np.float64), np.ones(300), 5)[1]
    assert model.inertia_ == pytest.approx(expected, rel=1e-5 if dtype == np.float32 else 1e-12)
    assert model.cluster_centers_.dtype == dtype


def test_what_is_too_large_or_has_more_columns_is_searched() -> None:
    x = np.random.default_rng(4).normal(size=(MOST_CELLS // 10 + 1, 1))
    assert only_column(x, 10) is None
    assert only_column(x[:100], 10) == 0
    assert only_column(np.ones((5, 2)), 2) is None
    assert only_column(np.random.default_rng(5).normal(size=(50, 2)), 3) is None


@pytest.mark.parametrize("k", [6, 12])
@pytest.mark.parametrize("power", [0.3, 1.0, 4.0])
def test_neighbours_joined_and_parted_again_cost_nothing(monkeypatch: pytest.MonkeyPatch, power: float, k: int) -> None:
    """Heavy tails, of which a few far points are clusters of their own, and weights."""
    g = np.random.default_rng(6)
    x, w = np.sort(g.normal(size=8_000)), g.integers(1, 4, 8_000).astype(float)
    x = np.sign(x) * np.abs(x) ** power
    _, least = best_intervals(x, w, k)
    monkeypatch.setattr("majorant.solvers.intervals.MOST_CELLS", 40_000)
    found = interval_search(x[:, None], w, k)
    assert found is not None and found.optima[0][0] == JOINED
    assert least <= found.objective * (1 + 1e-12) and found.objective <= least * (1 + 1e-6)
    assert interval_search(x[:, None], w, 101) is None


@pytest.mark.slow
def test_weights_and_order_do_not_matter_where_neighbours_are_joined() -> None:
    g = np.random.default_rng(7)
    x, w = g.normal(size=(MOST_CELLS // 20 + 5_000, 1)).astype(np.float32), g.integers(1, 3, MOST_CELLS // 20 + 5_000)
    model = mj.KMeans(20, random_state=0).fit(x, sample_weight=w)
    again = mj.KMeans(20, random_state=1, n_jobs=2).fit(g.permutation(np.repeat(x, w, axis=0)))
    assert "groups of neighbouring rows" in model.search_.certain
    assert "is unknown" not in str(model.summary())
    assert np.array_equal(model.cluster_centers_, again.cluster_centers_) and model.inertia_ == again.inertia_
    assert -model.score(x, sample_weight=w) == pytest.approx(model.inertia_, rel=1e-6)


def test_points_of_which_the_first_are_equal_are_on_a_line_too() -> None:
    points = np.array([[1.0, 1.0]] * 64 + [[2.0, 2.0], [2.0, 2.0], [7.0, 7.0], [8.0, 8.0]])
    found = interval_search(points, np.ones(len(points)), 3)
    assert found is not None and found.objective == pytest.approx(1.0)
    assert interval_search(points[:64], np.ones(64), 3) is None
