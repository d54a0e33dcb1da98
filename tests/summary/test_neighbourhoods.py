"""The map of rows by t-SNE: who is beside whom, of which rows, and the same again."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.manifold import trustworthiness

from majorant.summary.neighbourhoods import MOST_ROWS, neighbourhoods_of


def groups(n: int, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    g = np.random.default_rng(0)
    labels = g.integers(3, size=n)
    return g.normal(size=(n, d)) + 12.0 * np.eye(3, d)[labels], labels


def test_rows_lie_beside_those_most_like_them() -> None:
    points, labels = groups(90)
    found = neighbourhoods_of(points)
    assert found is not None
    np.testing.assert_array_equal(found.rows, np.arange(90))
    assert trustworthiness(points, found.places, n_neighbors=10) > 0.9
    distances = np.linalg.norm(found.places[:, None] - found.places, axis=2) + 1e9 * np.eye(90)
    assert (labels[distances.argmin(axis=1)] == labels).mean() > 0.97
    assert found.perplexity == pytest.approx(89 / 3)


def test_the_same_rows_give_the_same_map_in_any_order() -> None:
    points, _ = groups(60)
    first, again = neighbourhoods_of(points), neighbourhoods_of(points.copy())
    order = np.random.default_rng(1).permutation(60)
    shuffled = neighbourhoods_of(points[order])
    assert first is not None and again is not None and shuffled is not None
    np.testing.assert_array_equal(first.places, again.places)
    np.testing.assert_array_equal(shuffled.places, first.places[order])
    other = neighbourhoods_of(points, random_state=1)
    assert other is not None and other.places.shape == (60, 2)


def test_of_many_rows_some_are_drawn_from_one_end_to_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_ROWS == 500
    monkeypatch.setattr("majorant.summary.neighbourhoods.MOST_ROWS", 40)
    points, _ = groups(1000)
    found = neighbourhoods_of(points)
    assert found is not None
    assert len(np.unique(found.rows)) == 40 and (np.diff(found.rows) > 0).all()
    assert {int(points[:, 0].argmin()), int(points[:, 0].argmax())} <= set(found.rows.tolist())
    assert found.perplexity == 13.0


@pytest.mark.parametrize(("n", "d"), [(29, 5), (200, 2), (0, 4)])
def test_few_rows_or_columns_have_no_map(n: int, d: int) -> None:
    assert neighbourhoods_of(np.ones((40, 3))) is None  # nor have rows that are all equal
    assert neighbourhoods_of(np.random.default_rng(0).normal(size=(n, d))) is None


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e150])
def test_the_unit_does_not_matter(scale: float) -> None:
    points, _ = groups(40)
    there, found = neighbourhoods_of(points), neighbourhoods_of(points * scale)
    assert there is not None and found is not None
    assert trustworthiness(points, found.places, n_neighbors=8) == pytest.approx(
        trustworthiness(points, there.places, n_neighbors=8), abs=0.1
    )


@pytest.mark.parametrize("points", [np.repeat(np.eye(3), 12, axis=0), np.eye(40, 3) * 1e300 - 1e300])
def test_rows_that_are_equal_to_others_have_finite_places(points: np.ndarray) -> None:
    found = neighbourhoods_of(points)
    assert found is not None and np.isfinite(found.places).all()
