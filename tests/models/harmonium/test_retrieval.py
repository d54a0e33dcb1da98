"""Retrieval: cosines of representations, across views, with ties in the order of the gallery."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

import majorant as mj
from majorant.solvers import similarity
from majorant.solvers.similarity import most_similar


@pytest.fixture(scope="module")
def fitted() -> tuple[mj.Harmonium, dict[str, np.ndarray]]:
    g = np.random.default_rng(0)
    h = g.normal(size=(150, 2))
    X = {"tags": (h @ g.normal(size=(2, 9)) > 0).astype(float), "sizes": h + 0.1 * g.normal(size=(150, 2))}
    return mj.Harmonium(3, views={"tags": mj.Bernoulli(), "sizes": mj.Gaussian()}, l2=1.0).fit(X), X


@pytest.mark.parametrize("shown", [("tags", "sizes"), ("tags",), ("sizes",)])
def test_neighbours_are_those_of_the_largest_cosine(
    fitted: tuple[mj.Harmonium, dict[str, np.ndarray]], shown: tuple[str, ...]
) -> None:
    model, X = fitted
    queries, gallery = {name: X[name][:20] for name in shown}, {"sizes": X["sizes"]}
    rows, similarities = model.retrieve(queries, gallery, n=150)
    expected = cosine_similarity(model.transform(queries), model.transform(gallery))
    assert (np.sort(rows, axis=1) == np.arange(150)).all()
    np.testing.assert_allclose(similarities, np.take_along_axis(expected, rows, axis=1), atol=1e-12)
    assert (np.diff(similarities, axis=1) <= 1e-12).all()
    few, of_few = model.retrieve(queries, gallery, n=4)
    np.testing.assert_array_equal(few, rows[:, :4])
    np.testing.assert_array_equal(of_few, similarities[:, :4])


def test_a_row_that_shows_all_views_finds_itself_among_rows_of_one(
    fitted: tuple[mj.Harmonium, dict[str, np.ndarray]],
) -> None:
    model, X = fitted
    rows, _ = model.retrieve(X, {"sizes": X["sizes"]}, n=15)
    assert (rows == np.arange(150)[:, None]).any(axis=1).mean() > 0.7  # by chance: a tenth


def test_ties_are_in_the_order_of_the_gallery_and_zero_is_like_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    g = np.random.default_rng(1)
    gallery = np.repeat(g.normal(size=(4, 3)), 5, axis=0) * g.uniform(0.1, 9, (20, 1))
    gallery[7] = 0
    queries = np.vstack([gallery[[0, 5, 10]], np.zeros(3), 1e200 * gallery[15]])
    rows, similarities = most_similar(queries, gallery, 20)
    for row, found in zip(rows, similarities, strict=True):
        for value in np.unique(np.round(found, 10)):
            assert (np.diff(row[np.round(found, 10) == value]) > 0).all()
    assert rows[0, :5].tolist() == [0, 1, 2, 3, 4] and rows[4, :5].tolist() == [15, 16, 17, 18, 19]
    assert rows[3].tolist() == list(range(20)) and (similarities[3] == 0).all()
    monkeypatch.setattr(similarity, "PAIRS", 30)
    again = most_similar(queries, gallery, 20)
    np.testing.assert_array_equal(again[0], rows)
    np.testing.assert_array_equal(again[1], similarities)


def test_more_than_the_gallery_has_is_refused(fitted: tuple[mj.Harmonium, dict[str, np.ndarray]]) -> None:
    model, X = fitted
    with pytest.raises(ValueError, match="n=11 rows are asked for, but the gallery has 10"):
        model.retrieve(X, {"sizes": X["sizes"][:10]}, n=11)
    with pytest.raises(ValueError, match="n must be"):
        model.retrieve(X, X, n=0)


@pytest.mark.parametrize("lost", [["tags"], ["tags", "sizes"]])
def test_rows_that_show_nothing_are_like_none(lost: list[str]) -> None:
    """Their expected latents are zero but for rounding, which has no direction."""
    g = np.random.default_rng(0)
    sizes = g.normal(size=(60, 3))
    tags = (sizes @ g.normal(size=(3, 5)) > 0).astype(float)
    model = mj.Harmonium(2, views={"tags": mj.Bernoulli(), "sizes": mj.Gaussian()}, l2=0.1)
    model.fit({"tags": tags, "sizes": sizes})
    query = {name: np.full((2, 5 if name == "tags" else 3), np.nan) for name in lost}
    rows, similarities = model.retrieve(query, {"sizes": sizes})
    assert rows.tolist() == [list(range(10))] * 2 and not similarities.any()
    gallery = {"tags": tags.copy(), "sizes": sizes.copy()}
    for values in gallery.values():
        values[7] = np.nan
    rows, similarities = model.retrieve({"sizes": sizes[:5]}, gallery, n=60)
    assert (similarities[rows == 7] == 0).all()


def test_a_gallery_of_few_rows_is_told_whole() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = mj.Harmonium(2, l2=0.1).fit(X)
    assert model.retrieve(X, X[:4])[0].shape == (30, 4) and model.retrieve(X, X)[0].shape == (30, 10)
