"""Rows of a representation in the plane: which rows, where, in which colours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex

import majorant as mj
from majorant.plot.style import COLOURS
from majorant.summary.neighbourhoods import neighbourhoods_of


@pytest.fixture(autouse=True)
def backend() -> Iterator[None]:
    with mpl.rc_context({"backend": "agg"}):
        yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def fitted() -> tuple[Any, np.ndarray, np.ndarray]:
    g = np.random.default_rng(0)
    labels = g.integers(3, size=70)
    X = (4.0 * np.eye(3, 4)[labels] + g.normal(size=(70, 4))) @ g.normal(size=(4, 8)) + 0.1 * g.normal(size=(70, 8))
    model = mj.Harmonium(4, l2=0.001).fit(X)
    assert model.rank_ >= 3
    return model, X, labels


def dots(ax: Any) -> list[PathCollection]:
    return [c for c in ax.collections if isinstance(c, PathCollection)]


def test_classes_have_their_colours_and_rows_their_places_on_the_map(fitted: Any) -> None:
    model, X, labels = fitted
    names = np.array(["b", "a", "c"])[labels]
    _, given = pyplot.subplots()
    ax = mj.plot.embedding(model, X, names, given)
    assert ax is given
    found = neighbourhoods_of(model.transform(X)[:, : model.rank_])
    assert found is not None
    assert [drawn.get_label() for drawn in dots(ax)] == ["a", "b", "c"]
    for k, drawn in enumerate(dots(ax)):
        np.testing.assert_array_equal(drawn.get_offsets(), found.places[names == "abc"[k]])
        assert to_hex(drawn.get_facecolor()[0]) == COLOURS[k].lower()
    assert ax.get_xlabel() == "t-SNE: only who is beside whom counts" and len(ax.get_xticks()) == 0
    again = mj.plot.embedding(model, X, names)
    for one, other in zip(dots(ax), dots(again), strict=True):
        np.testing.assert_array_equal(one.get_offsets(), other.get_offsets())


def test_of_ten_classes_no_two_look_alike_and_the_legend_lies_beside_the_axes(fitted: Any) -> None:
    model, X, _ = fitted
    ax = mj.plot.embedding(model, X, np.arange(70) % 10, method="components")
    looks = set()
    for drawn in dots(ax):
        face, line = drawn.get_facecolor(), to_hex(drawn.get_edgecolor()[0])
        fill = to_hex(face[0]) if len(face) else "hollow"
        assert fill not in ("hollow", COLOURS[-1].lower()) or line != "#ffffff"
        looks.add((fill, line))
    assert len(looks) == 10  # without a glance at the shape of the mark
    assert len({drawn.get_paths()[0].vertices.tobytes() for drawn in dots(ax)}) >= 8
    ax.figure.canvas.draw()
    legend, box = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert legend.x0 >= box.x1
    assert legend.x1 <= ax.figure.bbox.x1 and legend.y0 >= ax.figure.bbox.y0


def test_components_are_drawn_as_they_are_and_numbers_on_a_scale(fitted: Any) -> None:
    model, X, _ = fitted
    y = X[:, 0]
    ax = mj.plot.embedding(model, X, y, method="components")
    (drawn,) = dots(ax)
    np.testing.assert_array_equal(drawn.get_offsets(), model.transform(X)[:, :2])
    np.testing.assert_array_equal(drawn.get_array(), y)
    assert drawn.get_cmap().name == "cividis" and len(ax.figure.axes) == 2
    (plain,) = dots(mj.plot.embedding(model, X, method="components"))
    assert len(plain.get_offsets()) == 70


def test_of_many_rows_the_map_has_some(fitted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, labels = fitted
    monkeypatch.setattr("majorant.summary.neighbourhoods.MOST_ROWS", 33)
    assert sum(len(drawn.get_offsets()) for drawn in dots(mj.plot.embedding(model, X, labels))) == 33


def test_what_cannot_be_drawn_is_refused(fitted: Any) -> None:
    model, X, labels = fitted
    with pytest.raises(TypeError, match="such as a Harmonium; got KMeans"):
        mj.plot.embedding(mj.KMeans(2, random_state=0).fit(X), X)
    with pytest.raises(ValueError, match="one entry for each of 70 rows; got shape \\(69,\\)"):
        mj.plot.embedding(model, X, labels[:-1])
    with pytest.raises(ValueError, match=r'got 4 and 20\. Give method="components"'):
        mj.plot.embedding(model, X[:20])
    with pytest.raises(ValueError, match="method"):
        mj.plot.embedding(model, X, method="umap")
    alone = mj.Harmonium(1, l2=0.001).fit(X)
    with pytest.raises(ValueError, match="uses 1 component; a picture needs two"):
        mj.plot.embedding(alone, X)
