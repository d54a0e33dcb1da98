"""Plots by what they hold: the artists' data, colours and labels; and that they render."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.patches import Ellipse
from scipy.integrate import trapezoid
from scipy.stats import chi2, multivariate_normal
from sklearn.datasets import load_iris
from sklearn.metrics import roc_auc_score, silhouette_samples

import majorant as mj
from majorant.plot.style import COLOURS, colour, mark
from majorant.results.selection import Candidate, Selection
from majorant.search import SearchReport, StartRecord

from ..mixtures import COVARIANCE_TYPES, Fitted, reference, rows


@pytest.fixture(autouse=True)
def backend() -> Iterator[None]:
    with mpl.rc_context({"backend": "agg"}):
        yield
    pyplot.close("all")


def render(ax: Any) -> None:
    stream = io.BytesIO()
    ax.figure.savefig(stream, format="png", dpi=40)
    assert stream.tell() > 1000


def dots(ax: Any) -> list[PathCollection]:
    return [c for c in ax.collections if isinstance(c, PathCollection)]


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_classification_draws_every_row_in_its_parts_colour_and_the_ellipses(covariance_type: str) -> None:
    model, X = reference(covariance_type), rows()
    ax = mj.plot.classification(model, X, (2, 0), share=0.8)
    labels = model.predict(X)
    assert [c.get_label() for c in dots(ax)] == ["1", "2"]
    for k, drawn in enumerate(dots(ax)):
        np.testing.assert_array_equal(drawn.get_offsets(), X[labels == k][:, [2, 0]])
        assert to_hex(drawn.get_facecolor()[0]) == COLOURS[k].lower()
    ellipses = [p for p in ax.patches if isinstance(p, Ellipse)]
    assert len(ellipses) == 2
    full = model.covariances_
    for k, ellipse in enumerate(ellipses):
        covariance = {
            "full": lambda k=k: full[k],
            "tied": lambda: full,
            "diag": lambda k=k: np.diag(full[k]),
            "spherical": lambda k=k: full[k] * np.eye(3),
        }[covariance_type]()[np.ix_([2, 0], [2, 0])]
        lengths = 2 * np.sqrt(np.linalg.eigvalsh(covariance)[::-1] * chi2(2).ppf(0.8))
        np.testing.assert_allclose((ellipse.width, ellipse.height), lengths, rtol=1e-9)
        np.testing.assert_allclose(ellipse.center, model.means_[k, [2, 0]])
        turn = np.radians(ellipse.angle)
        along = np.array([np.cos(turn), np.sin(turn)])
        np.testing.assert_allclose(along @ covariance @ along, (lengths[0] / 2) ** 2 / chi2(2).ppf(0.8), rtol=1e-9)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x3", "x1")
    render(ax)


def test_axes_go_in_and_come_out() -> None:
    model = reference()
    _, ax = pyplot.subplots()
    for draw in (mj.plot.classification, mj.plot.uncertainty, mj.plot.density):
        assert draw(model, rows(), ax=ax) is ax
        assert draw(model, rows()) is not ax
    render(ax)


def test_uncertainty_is_larger_for_less_sure_rows() -> None:
    model, X = reference(), rows()
    ax = mj.plot.uncertainty(model, X)
    unsure = 1 - model.predict_proba(X).max(axis=1)
    sizes = {
        tuple(place): size
        for drawn in dots(ax)
        for place, size in zip(drawn.get_offsets().tolist(), drawn.get_sizes().tolist(), strict=True)
    }
    found = np.array([sizes[tuple(place)] for place in X[:, :2].tolist()])
    order = np.argsort(unsure)
    assert (np.diff(found[order]) >= 0).all() and found.max() > 3 * found.min()
    render(ax)


def test_density_is_the_margin_of_the_mixture() -> None:
    model = reference("diag")
    ax = mj.plot.density(model, features=(1,))
    lines = {line.get_label(): line.get_xydata() for line in ax.lines}
    x, height = lines["mixture"].T
    expected = sum(
        w * multivariate_normal(m[1], v[1]).pdf(x)
        for w, m, v in zip(model.weights_, model.means_, model.covariances_, strict=True)
    )
    np.testing.assert_allclose(height, expected, rtol=1e-9)
    assert trapezoid(height, x) == pytest.approx(1, abs=2e-3)
    np.testing.assert_allclose(lines["1"][:, 1] + lines["2"][:, 1], height)
    render(ax)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_the_contours_are_those_of_the_density_summed_over_the_other_feature(covariance_type: str) -> None:
    model = reference(covariance_type)
    contours = mj.plot.density(model, features=(2, 0), n_levels=3).collections[0]
    others = np.linspace(-30, 30, 6001)
    for level, path in zip(contours.levels, contours.get_paths(), strict=True):
        first, second = path.vertices[len(path.vertices) // 3]
        grid = np.column_stack([np.full(6001, second), others, np.full(6001, first)])
        summed = np.exp(model.score_samples(grid)).sum() * (others[1] - others[0])
        assert np.log(summed) == pytest.approx(level, abs=0.05)


def test_a_component_without_weight_adds_nothing() -> None:
    model = reference("diag")
    model.weights_ = np.array([1.0, 0.0])
    lines = {line.get_label(): line.get_ydata() for line in mj.plot.density(model, features=(0,)).lines}
    np.testing.assert_array_equal(lines["2"], 0.0)
    np.testing.assert_array_equal(lines["1"], lines["mixture"])


def test_density_draws_contours_of_two_features() -> None:
    model = reference()
    ax = mj.plot.density(model, rows(), n_levels=5)
    contours = [c for c in ax.collections if not isinstance(c, PathCollection)]
    assert len(contours) == 1 and len(contours[0].levels) == 5
    normals = {k: multivariate_normal(model.means_[k, :2], model.covariances_[k][:2, :2]) for k in range(2)}
    for level, path in zip(contours[0].levels, contours[0].get_paths(), strict=True):
        on_it = sum(model.weights_[k] * normals[k].pdf(path.vertices) for k in range(2))
        np.testing.assert_allclose(np.log(on_it), level, atol=0.05)
    render(ax)


def test_one_feature_and_frames() -> None:
    X = pd.DataFrame(rows(), columns=["a", "b", "c"])
    model = reference().fit(X)
    for draw in (mj.plot.classification, mj.plot.uncertainty, mj.plot.density):
        assert draw(model, X, ["c"]).get_xlabel() == "c"
        assert draw(model, X, ["c", "a"]).get_ylabel() == "a"
    assert mj.plot.classification(reference().fit(rows()[:, :1]), rows()[:, :1]).get_ylabel() == "component"


def test_a_model_without_covariances_is_drawn_without_ellipses() -> None:
    model = mj.KMeans(3, random_state=0).fit(rows())
    ax = mj.plot.classification(model, rows())
    assert len(dots(ax)) == 3 and not ax.patches
    render(ax)


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ((0, 1, 2), "one or two"),
        ((), "one or two"),
        ("ab", "one or two"),
        ((0, 3), "out of range"),
        (("a", 1), "no feature 'a'"),
    ],
)
def test_features_that_cannot_be_drawn(features: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        mj.plot.classification(reference(), rows(), features)


@pytest.mark.parametrize("share", [0.0, 1.0, np.nan])
def test_a_share_is_between_none_and_all(share: float) -> None:
    with pytest.raises(ValueError, match="share must be"):
        mj.plot.classification(reference(), rows(), share=share)


def selection() -> Selection:
    values = {(1, "full"): 9.0, (2, "full"): 4.0, (3, "full"): -50.0, (1, "tied"): 9.5, (2, "tied"): 4.5}
    candidates = [
        Candidate(k, {"covariance_type": kind}, value, excluded="degenerate" if value < 0 else "")
        for (k, kind), value in values.items()
    ]
    return Selection(tuple(candidates), "bic", "mixture", "component", "n_components", "log-likelihood")


def test_criterion_has_a_line_a_setting_and_a_gap_for_what_is_excluded() -> None:
    ax = mj.plot.criterion(selection())
    lines = {line.get_label(): line.get_xydata() for line in ax.lines}
    np.testing.assert_array_equal(lines["full"], [[1, 9], [2, 4], [3, np.nan]])
    np.testing.assert_array_equal(lines["tied"], [[1, 9.5], [2, 4.5]])
    np.testing.assert_array_equal(lines["best: BIC"], [[2, 4]])
    assert ax.get_xticks().tolist() == [1, 2, 3] and "lower is better" in ax.get_ylabel()
    render(ax)


def test_convergence_and_starts_hold_the_record() -> None:
    model = mj.KMeans(4, init="random", n_init=6, random_state=0, max_iter=4).fit(rows())
    ax = mj.plot.convergence(model)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), model.trace_["objective"])
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), model.trace_["bound"])
    render(ax)
    starts = [("random", 3.0), ("random", 2.0), ("split", 2.0), ("split", 2.0), ("split", 5.0)]
    model.search_ = SearchReport(tuple(StartRecord(kind, value, 1, True) for kind, value in starts), "SSE")
    ax = mj.plot.starts(model)
    rows_drawn = [drawn.get_offsets().tolist() for drawn in dots(ax)]
    assert [sorted(row) for row in rows_drawn] == [[[2.0, 0.0], [3.0, 0.0]], [[2.0, 1.0], [5.0, 1.0]]]
    assert dots(ax)[1].get_sizes().tolist() == [72.0, 36.0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["random", "split"]
    render(ax)


def test_what_is_maximised_is_drawn_as_it_is_known_and_a_bound_that_touches_is_not() -> None:
    model = Fitted(2, random_state=0).fit(rows())
    ax = mj.plot.convergence(model)
    assert len(ax.lines) == 1 and ax.get_ylabel() == "log-likelihood"
    assert ax.lines[0].get_ydata()[-1] == model.log_likelihood_
    render(ax)


def test_parts_with_one_colour_have_different_marks() -> None:
    looks = [(colour(k), mark(k)) for k in range(64)]
    assert len(set(looks)) == 64


def test_matplotlib_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "majorant\[cli\]"'):
        mj.plot.classification(reference(), rows())


@pytest.mark.parametrize("names", [["no", "yes"], [3, 7], [False, True]], ids=str)
def test_classes_are_drawn_under_their_own_names(names: list[Any]) -> None:
    X = np.vstack([np.zeros((5, 2)), np.ones((5, 2))]) + np.arange(10)[:, None] / 50
    y = np.repeat(names, 5)
    ax = mj.plot.classification(mj.LatentPrototypeClassifier(1).fit(X, y), X)
    drawn = [c for c in ax.collections if isinstance(c, PathCollection)]
    assert [c.get_label() for c in drawn] == [str(name) for name in names]
    for part, points in enumerate(drawn):
        np.testing.assert_array_equal(points.get_offsets(), X[y == names[part]])


def test_models_that_lack_what_a_plot_shows_are_refused() -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = mj.KMeans(2, random_state=0).fit(X)
    with pytest.raises(TypeError, match="predict_proba; KMeans has none"):
        mj.plot.uncertainty(model, X)
    with pytest.raises(TypeError, match=r"majorant\.select gave; got KMeans"):
        mj.plot.criterion(model)
    with pytest.raises(TypeError, match="Gaussian mixture; got KMeans"):
        mj.plot.density(model)


def test_a_series_is_drawn_by_state_with_its_times_and_forecast() -> None:
    random, mean = np.random.default_rng(0), np.repeat([0.0, 6.0, 0.0, 6.0], 15)
    table = pd.DataFrame({"id": ["a"] * 30 + ["b"] * 30, "day": [*pd.date_range("2024-01-01", periods=30)] * 2})
    table["y"] = np.where(np.arange(60) == 7, np.nan, random.normal(mean))
    rows_of = {"groups": "id", "time": "day"}
    model = mj.HiddenMarkovModel(2, random_state=0).fit(table, **rows_of)
    shuffled = table.sample(frac=1, random_state=0)
    for ax in (mj.plot.series(model, shuffled, "y", n_steps=4, **rows_of), model.plot(table, **rows_of)):
        render(ax)
        path, there = model.predict(table, **rows_of), ~np.isnan(table["y"].to_numpy())
        for state, drawn in enumerate(dots(ax)):
            at = np.flatnonzero(there & (path == state))
            np.testing.assert_array_equal(drawn.get_offsets(), np.column_stack([at + 1, table["y"][at]]))
            assert drawn.get_label() == f"state {state + 1}"
        assert ax.xaxis.get_major_formatter()(31) == "2024-01-01" and ax.get_ylabel() == "y"
    ax = mj.plot.series(model, table, n_steps=4, **rows_of)
    lines = [list(line.get_xdata()) for line in ax.lines]
    assert lines[:3] == [[*range(1, 8)], [*range(9, 31)], [*range(31, 61)]] and lines[3] == [30.5, 30.5]
    ahead = model.forecast(table, 4, **rows_of)
    np.testing.assert_array_equal(ax.lines[-1].get_ydata(), ahead.mean[-1, :, 0])
    assert ax.xaxis.get_major_formatter()(64) == "2024-02-03" and ax.xaxis.get_major_formatter()(65) == ""
    assert len(mj.plot.series(model, table[["y"]], lengths=[30, 30], n_steps=0).collections) == 2
    with pytest.raises(ValueError, match="no feature 'z'"):
        mj.plot.series(model, table, "z", **rows_of)


def test_silhouettes_are_drawn_by_part_from_high_to_low() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0.0], [4.0], [9.0]], 20, axis=0)
    model = mj.KMeans(3, random_state=0).fit(X)
    ax = mj.plot.silhouettes(model, X)
    render(ax)
    heights = np.array([bar.get_height() for bar in ax.patches])
    values = silhouette_samples(X, model.labels_)
    expected = [np.sort(values[model.labels_ == part])[::-1] for part in range(3)]
    np.testing.assert_allclose(heights, np.concatenate(expected), atol=1e-12)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2", "3"]
    assert ax.get_legend_handles_labels()[1] == [f"mean {values.mean():.2f}"]
    with pytest.raises(ValueError, match="at least two parts"):
        mj.plot.silhouettes(mj.KMeans(1).fit(X), X)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_roc_curves_have_the_areas_of_scikit_learn(n_classes: int) -> None:
    random = np.random.default_rng(0)
    y = random.integers(n_classes, size=90)
    X = np.column_stack([y + random.normal(size=90), y % 2 + random.normal(size=90)])
    model = mj.DiscriminativeLatentClasses(2, random_state=0).fit(X, y)
    ax = mj.plot.roc(model, X, y)
    render(ax)
    shown = range(3) if n_classes == 3 else [1]
    areas = [roc_auc_score(y == c, model.predict_proba(X)[:, c]) for c in shown]
    assert ax.get_legend_handles_labels()[1] == [f"{c}: area {a:.2f}" for c, a in zip(shown, areas, strict=True)]
    with pytest.raises(TypeError, match="probabilities of classes; KMeans has none"):
        mj.plot.roc(mj.KMeans(2).fit(X), X, y)


def test_a_picture_of_other_rows_is_refused_in_words() -> None:
    frame, y = pd.DataFrame(load_iris().data), load_iris().target
    model = mj.DiscriminativeLatentClasses(3, random_state=0).fit(frame, y)
    for truth, words in (
        (y[:50], r"one class for each of the 150 rows; its shape is \(50,\)"),
        (y + 5, "which is no class of the fit"),
        (np.zeros(150, dtype=int), "needs rows of two classes"),
        (pd.Series(y, index=frame.index[::-1]), "index"),
    ):
        with pytest.raises(ValueError, match=words):
            mj.plot.roc(model, frame, truth)
    with_gaps = frame.mask(frame > 7)
    with pytest.raises(ValueError, match="missing cells"):
        mj.plot.silhouettes(mj.GaussianMixture(2, random_state=0).fit(with_gaps), with_gaps)
    text = pd.DataFrame({"a": ["x", "y"] * 20, "b": ["u", "u", "v", "v"] * 10})
    with pytest.raises(ValueError, match="and so numbers"):
        mj.plot.silhouettes(mj.LatentClassAnalysis(2, random_state=0, effort="fast").fit(text), text)


def test_every_picture_of_the_report_can_be_drawn_alone(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3)) + np.repeat([[0.0], [4.0], [9.0]], 20, axis=0)
    model = mj.KMeans(3, random_state=0).fit(X)
    for name, drawn in model.report(X).figures.items():
        found = mj.plot.picture(model, X, name)
        assert found == drawn and found._repr_svg_().startswith("<svg")
        found.save(tmp_path / "one.svg")
        assert (tmp_path / "one.svg").read_text(encoding="utf-8") == drawn
    with pytest.raises(ValueError, match=r"no picture 'quantiles'; it has .*silhouettes"):
        mj.plot.picture(model, X, "quantiles")


def test_profiles_of_very_many_columns_name_none() -> None:
    rows = np.random.default_rng(0).normal(size=(20, 101))
    for width, n_names in ((100, 100), (101, 0)):
        ax = mj.plot.profiles(mj.KMeans(2, random_state=0).fit(rows[:, :width]), rows[:, :width])
        assert sum(label.get_text().startswith("x") for label in ax.get_yticklabels()) == n_names
