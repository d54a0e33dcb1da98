"""`model.report(X)` and `model.plot(X)`: a page and a picture of any model, shown at once in a notebook."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest

import majorant as mj
from majorant.report import Report
from majorant.results.certificate import Certificate
from majorant.results.matching import match_labels

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


def test_names_of_columns_and_a_table_of_a_formula_reach_the_page() -> None:
    table = FRAME.assign(y=TARGET)
    model = mj.RegressionMixture.from_formula("y ~ wide", table, n_components=2, n_init=2, random_state=0)
    assert "wide" in model.report(table).html and "long" not in model.report(table).html.split("<style>")[0]
    assert "long" in mj.KMeans(2, random_state=0).fit(ROWS).report(FRAME).html


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(TypeError, match="give it an array or a data frame; got dict"):
        mj.KMeans(2, random_state=0).fit(ROWS).report({"a": 1})


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


def test_results_are_short_and_show_themselves() -> None:
    matched = match_labels([0, 0, 1, 1], [1, 1, 0, 0])
    assert repr(matched) == "MatchedLabels(Adjusted Rand index 1: 100 % of 4 rows have matched labels)"
    proof = Certificate(1.0, 1.0, "any")
    stable = mj.stability(mj.KMeans(2, n_init=1, random_state=0).fit(ROWS), ROWS, n_runs=2)
    for result in (matched, proof, stable, stable.seeds, mj.KMeans(2, random_state=0).fit(ROWS).search_):
        assert len(repr(result)) < 400 and "array" not in repr(result)
        assert result._repr_html_().startswith("<") and "array" not in result._repr_html_()
