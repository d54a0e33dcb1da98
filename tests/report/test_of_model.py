"""`model.report(X)` and `model.plot(X)`: a page and a picture of any model, shown at once in a notebook."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import majorant as mj
from majorant.report import Report
from majorant.results.certificate import Certificate
from majorant.results.matching import match_labels

from ..estimators import ESTIMATORS, NAMES, N, reference, target
from ..estimators import ROWS as THREE_GROUPS
from .markup import check_page

matplotlib.use("Agg")
ROWS = np.random.default_rng(0).normal(size=(60, 3)) + np.repeat([[0.0], [4.0]], 30, axis=0)
FRAME = pd.DataFrame(ROWS, columns=["wide", "long", "high"])
TARGET = np.where(np.arange(60) % 2, 2.0, -3.0) * ROWS[:, 0] + 0.1 * np.random.default_rng(1).normal(size=60)
WORDS = pd.DataFrame(np.where(ROWS > 1, "yes", "no"), columns=["a", "b", "c"])
FITS: dict[str, Any] = {
    "clusters": lambda: (mj.KMeans(2, random_state=0).fit(FRAME), FRAME, None),
    "a mixture": lambda: (mj.GaussianMixture(2, n_init=2, random_state=0).fit(ROWS), ROWS, None),
    "regressions": lambda: (mj.RegressionMixture(2, n_init=2, random_state=0).fit(ROWS, TARGET), ROWS, TARGET),
    "latent classes": lambda: (mj.LatentClassAnalysis(2, n_init=2, random_state=0).fit(WORDS), WORDS, None),
    "a representation": lambda: (
        mj.Harmonium(2, l2=1e-4).fit(ROWS + np.outer(np.arange(60) % 3, [5.0, -5.0, 0.0])),
        ROWS,
        None,
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", FITS)
def test_a_fitted_model_reports_and_draws_itself(case: str, tmp_path: Path) -> None:
    model, X, y = FITS[case]()
    made = model.report(X, y, table_name="rows.csv")
    assert isinstance(made, Report) and "rows.csv" in made.html and len(repr(made)) < 200
    check_page(made.html)
    shown = made._repr_html_()
    assert shown.startswith('<iframe srcdoc="') and html.unescape(shown.split('"')[1]) == made.html
    made.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == made.html
    ax = model.plot(X, y)
    assert ax.has_data() and (ax.get_xlabel() or ax.get_ylabel())
    matplotlib.pyplot.close("all")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_pages_and_pictures_take_arrow_tables_and_no_dates_or_masked_cells(cls: type[Any]) -> None:
    fitted, y = reference(cls), target(cls, N)
    for shown in (fitted.report, fitted.plot):
        if shown == fitted.report or getattr(fitted, "rank_", 2) > 1:  # no picture of one component
            shown(pa.table([*THREE_GROUPS.T], names=NAMES), y)
        with pytest.raises(TypeError, match="X holds dates"):
            shown(THREE_GROUPS.astype("M8[D]"), y)
        with pytest.raises(ValueError, match="X is a masked array"):
            shown(np.ma.masked_less(THREE_GROUPS.astype(float), 20), y)
        if y is not None:
            with pytest.raises(ValueError, match="y is a masked array"):
                shown(THREE_GROUPS, np.ma.masked_less(y, 1))
    matplotlib.pyplot.close("all")


def test_names_of_columns_and_a_table_of_a_formula_reach_the_page() -> None:
    table = FRAME.assign(y=TARGET)
    model = mj.RegressionMixture.from_formula("y ~ wide", table, n_components=2, n_init=2, random_state=0)
    assert "wide" in model.report(table).html and "long" not in model.report(table).html.split("<style>")[0]
    assert "long" in mj.KMeans(2, random_state=0).fit(ROWS).report(FRAME).html


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(TypeError, match="give it an array or a data frame; got dict"):
        mj.KMeans(2, random_state=0).fit(ROWS).report({"a": 1})
    with pytest.raises(TypeError, match=r"y is the target; got a path: report\(X\)\.save\('r.html'\)"):
        mj.KMeans(2, random_state=0).fit(ROWS).report(ROWS, "r.html")
    with pytest.raises(TypeError, match=r"report\(\) takes no 'path', as fit takes none"):
        mj.KMeans(2, random_state=0).fit(ROWS).report(ROWS, path="r.html")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", FITS)
def test_columns_in_another_order_or_more_of_them_are_refused(case: str) -> None:
    model, X, y = FITS[case]()
    swapped = X[X.columns[::-1]] if hasattr(X, "columns") else None
    with pytest.raises(ValueError, match=r"same order|was fitted to 3"):
        model.report(np.hstack([X, X]) if swapped is None else swapped, y)
    if swapped is not None:
        with pytest.raises(ValueError, match="same order"):
            model.predict(swapped)
        with pytest.raises(ValueError, match="unseen at fit time"):
            model.report(X.assign(more=1), y)


@pytest.mark.filterwarnings("ignore")
def test_rows_of_a_table_for_a_paper_are_those_that_its_criteria_count() -> None:
    weights, gating = np.tile([0.2, 1.0, 0.5], 20), FRAME[["wide"]].where(FRAME["wide"] < 4)
    cases = [
        (mj.LatentClassAnalysis(2, n_init=2, random_state=0), (WORDS,), {"gating": gating}),
        (mj.LatentClassAnalysis(2, n_init=2, random_state=0), (WORDS,), {"gating": gating, "sample_weight": weights}),
        (mj.GaussianMixture(2, n_init=2, random_state=0), (ROWS,), {"sample_weight": weights}),
        (mj.RegressionMixture(2, n_init=2, random_state=0), (ROWS, TARGET), {"sample_weight": weights}),
    ]
    for model, rows, given in cases:
        table = model.fit(*rows, **given).report(*rows, **given).tables["coefficients"]
        told = dict(zip(table.columns[0].values, table.columns[1].values, strict=True))
        n = np.exp(2 + (told["BIC"] - told["AIC"]) / told["Parameters"])
        assert told["Rows"] == pytest.approx(n, rel=1e-6) and told["Rows"] < 60


def dots(ax: Any) -> np.ndarray:
    places = np.concatenate([drawn.get_offsets() for drawn in ax.collections])
    matplotlib.pyplot.close("all")
    return places[np.lexsort(places.T)]


def of(columns: Any) -> np.ndarray:
    return np.asarray(columns)[np.lexsort(np.asarray(columns).T)]


@pytest.mark.filterwarnings("ignore")
def test_pictures_of_regressions_take_what_is_beside_the_rows() -> None:
    x, share = ROWS[:, :1], 1 / (1 + np.exp(-TARGET))
    trials, gating = np.full(60, 7.0), ROWS[:, 1:2]
    gated = mj.RegressionMixture(2, n_init=2, random_state=0).fit(x, TARGET, gating=gating)
    np.testing.assert_allclose(dots(gated.plot(x, TARGET, gating=gating)), of(np.column_stack([x, TARGET])))
    successes = np.round(trials * share)
    counts = mj.RegressionMixture(2, family="binomial", n_init=2, random_state=0).fit(x, successes, trials=trials)
    ax = counts.plot(x, successes, trials=trials)
    assert ax.get_ylabel() == "share of trials"
    np.testing.assert_allclose(dots(ax), of(np.column_stack([x, successes / 7])))
    offset = np.linspace(0, 1, 60)
    events = mj.RegressionMixture(2, family="poisson", n_init=2, random_state=0).fit(x, successes, offset=offset)
    line = events.plot(x, successes, offset=offset).lines[0]
    grid = np.asarray(line.get_xdata())[:, None]
    expected = events.predict_components(grid, offset=np.full(len(grid), 0.5))[:, 0]
    np.testing.assert_allclose(line.get_ydata(), expected)
    for model in (gated, mj.KMeans(2, random_state=0).fit(x)):
        with pytest.raises(TypeError, match="unexpected keyword argument 'day'"):
            model.plot(x, TARGET, day=x)


@pytest.mark.filterwarnings("ignore")
def test_tables_of_series_are_read_by_their_names_in_order_of_time() -> None:
    table = pd.DataFrame({"person": np.repeat([3, 1], 30), "day": np.tile(np.arange(30), 2), "y": ROWS[::-1, 0]})
    model = mj.HiddenMarkovModel(2, n_init=2, random_state=0).fit_formula("y ~ 1 | person", table, time="day")
    mixed = table.sample(frac=1, random_state=0)
    np.testing.assert_allclose(np.sort(dots(model.plot(mixed, n_steps=0))[:, 1]), np.sort(table["y"]))
    pages = [model.report(one).tables for one in (table, mixed)]
    assert [t.to_csv() for t in pages[0].values()] == [t.to_csv() for t in pages[1].values()]
    numbers = model.report(table[["y"]], groups=table["person"], time=table["day"])
    assert numbers.tables["components"].to_csv() == pages[0]["components"].to_csv()
    for draw in (model.plot, model.report):
        with pytest.raises(ValueError, match="the fit had several sequences"):
            draw(table[["y"]])


def test_results_are_short_and_show_themselves() -> None:
    matched = match_labels([0, 0, 1, 1], [1, 1, 0, 0])
    assert repr(matched) == "MatchedLabels(Adjusted Rand index 1: 100 % of 4 rows have matched labels)"
    proof = Certificate(1.0, 1.0, "any")
    stable = mj.stability(mj.KMeans(2, n_init=1, random_state=0).fit(ROWS), ROWS, n_runs=2)
    answers = np.random.default_rng(0).integers(0, 2, (60, 3)).astype(str)
    classes = mj.LatentClassAnalysis(2, random_state=0).fit(answers)
    of_classes = (
        classes.covariate_effects(answers, np.arange(60.0)[:, None]),
        classes.distal_outcome(answers, np.arange(60.0)),
        classes.classification(answers),
        classes.class_profile(answers),
        classes.identification(),
    )
    for result in of_classes:
        assert len(str(result)) < 1000 and max(map(len, str(result).splitlines())) <= 80
    for result in (*of_classes, matched, proof, stable, stable.seeds, mj.KMeans(2, random_state=0).fit(ROWS).search_):
        assert len(repr(result)) < 1000 and "array" not in repr(result)
        assert result._repr_html_().startswith("<") and "array" not in result._repr_html_()
