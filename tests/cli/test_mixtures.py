"""Mixtures by the command line: probabilities, sizes compared by a criterion, empty cells, decimal commas."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.utils import get_tags

import majorant as mj
from majorant.persistence import load, load_with_extra
from majorant.results.selection import Selection

Majorant = Callable[..., Any]
FIT = ["fit", "gaussian-mixture", "t.csv", "--out", "run"]


def rows() -> np.ndarray:
    """Two round groups that lie apart."""
    rng = np.random.default_rng(5)
    return np.round(np.vstack([rng.normal(size=(30, 2)), rng.normal((9, 0), 1, size=(30, 2))]), 3)


@pytest.fixture
def table(tmp_path: Path) -> pl.DataFrame:
    frame = pl.DataFrame({"a": rows()[:, 0], "b": rows()[:, 1]})
    frame.write_csv(tmp_path / "t.csv")
    return frame


def test_a_run_holds_components_probabilities_and_how_unsure_they_are(majorant: Majorant, table: pl.DataFrame) -> None:
    answer = majorant(*FIT, "--k", "2", "--set", "covariance_type=diag")
    assert (answer.status, answer.err) == (0, "")
    assert "Model    Gaussian mixture, 2 components, 2 features\n" in answer.out
    model = load("run/model.majorant")
    assert model.covariance_type == "diag"
    found = pl.read_csv("run/assignments.csv")
    assert found.columns == ["row", "component", "probability", "uncertainty", "probability_1", "probability_2"]
    proba = model.predict_proba(table)
    np.testing.assert_allclose(found[["probability_1", "probability_2"]].to_numpy(), proba)
    np.testing.assert_array_equal(found["component"].to_numpy(), proba.argmax(axis=1) + 1)
    np.testing.assert_allclose(found["uncertainty"].to_numpy(), 1 - proba.max(axis=1), atol=1e-15)
    assert majorant("predict", "run", "t.csv", "--out", "p.csv").status == 0
    assert pl.read_csv("p.csv").equals(found)
    told = json.loads(Path("run/summary.json").read_text())["criteria"]
    assert (
        model.bic(table) == pytest.approx(told["bic"])
        and f"\nBIC {told['bic']:.2f}, AIC {told['aic']:.2f}" in answer.out
    )
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert "report of a Gaussian mixture" in page and '<section id="uncertainty"' in page
    assert "gaussian-mixture" in majorant("models").out


def test_sizes_are_compared_and_the_best_is_kept(majorant: Majorant, table: pl.DataFrame) -> None:
    asked = ["--k", "1:3", "--vary", "covariance_type=full,tied", "--criterion", "bic", "--random-state", "3"]
    answer = majorant(*FIT, *asked)
    assert (answer.status, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert any(line.startswith("Compare  6 fits by BIC in ") for line in lines)
    assert any(line.split() == ["components", "full", "tied"] for line in lines)
    expected = mj.select(
        mj.GaussianMixture(random_state=3), table, n_components=range(1, 4), covariance_type=["full", "tied"]
    )
    assert expected.best.size == 2
    assert expected.sentence in " ".join(answer.out.split())
    assert f"Gaussian mixture, {expected.describe(expected.best)}" in answer.out
    model, extra = load_with_extra("run/model.majorant")
    np.testing.assert_array_equal(model.means_, expected.best_estimator_.means_)
    kept = Selection.from_state(extra["selection"])
    assert kept.candidates == expected.candidates
    written = json.loads(Path("run/summary.json").read_text())
    assert written["selection"]["sentence"] == expected.sentence
    assert written["selection"]["candidates"][0]["value"] == expected.candidates[0].value
    assert "--k 1:3" in written["command"] and "--vary covariance_type=full,tied" in written["command"]
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert expected.sentence in page
    Path("run/report.html").unlink()
    assert majorant("report", "run").status == 0
    assert Path("run/report.html").read_text(encoding="utf-8") == page


def test_weights_reach_every_fit_and_the_criterion(majorant: Majorant, table: pl.DataFrame, tmp_path: Path) -> None:
    weights = np.where(np.arange(60) < 30, 2.0, 1.0)
    table.with_columns(w=weights).write_csv(tmp_path / "t.csv")
    assert majorant(*FIT, "--k", "1:2", "--criterion", "icl", "--weights", "w").status == 0
    expected = mj.select(
        mj.GaussianMixture(random_state=0), table, n_components=[1, 2], criterion="icl", sample_weight=weights
    )
    kept = json.loads(Path("run/summary.json").read_text())["selection"]
    assert [c["value"] for c in kept["candidates"]] == [c.value for c in expected.candidates]


def test_when_no_fit_can_be_chosen_nothing_is_written(majorant: Majorant, tmp_path: Path) -> None:
    pl.DataFrame({"a": [0.0, 1.0, 5.0], "b": [1.0, 3.0, 2.0]}).write_csv(tmp_path / "t.csv")
    answer = majorant(*FIT, "--k", "2:3")
    assert answer.status == 2 and not Path("run").exists()
    assert answer.words.startswith("majorant: no fit can be chosen. 2 components")


def test_a_degenerate_fit_says_so_on_the_screen_and_on_the_page(majorant: Majorant, tmp_path: Path) -> None:
    pl.DataFrame({"a": [0.0, 1.0, 5.0, 5.0], "b": [1.0, 3.0, 2.0, 7.0]}).write_csv(tmp_path / "t.csv")
    answer = majorant(*FIT, "--k", "3")
    assert answer.status == 0 and "Warning: No regular solution" in answer.out
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert '<section id="regularity"' in page and '<section id="criterion"' not in page


def test_decimal_commas_are_named(majorant: Majorant, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;b;c\n1,5;2;x\n2,25;3;y\n-3;9;z\n")
    answer = majorant("fit", "kmeans", "t.csv", "--k", "2", "--out", "run")
    assert answer.status == 0
    assert "left out, text whose numbers need --decimal ,: a\n" in answer.out
    answer = majorant("fit", "kmeans", "t.csv", "--k", "2", "--features", "a,b", "--out", "other")
    said = 'majorant: column "a" of t.csv is text: its numbers, such as "1,5", need --decimal ,.'
    assert answer.words.startswith(said)
    (tmp_path / "t.csv").write_text("a;b\n1,5;2,5\n2,25;3,5\n")
    assert "a, b holds numbers that need --decimal ," in majorant("fit", "kmeans", "t.csv", "--out", "third").words


def test_values_to_vary_are_read_as_lists(majorant: Majorant, table: pl.DataFrame) -> None:
    answer = majorant(*FIT, "--k", "2", "--vary", 'covariance_type=["full", "diag"]', "--vary", "tol=1e-4")
    assert answer.status == 0
    kept = json.loads(Path("run/summary.json").read_text())["selection"]["candidates"]
    assert [c["setting"] for c in kept] == [{"covariance_type": t, "tol": 1e-4} for t in ("full", "diag")]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--vary", "covariance_tpye=full"], 'has no parameter "covariance_tpye". Did you mean "covariance_type"?'),
        (["--vary", "covariance_type"], '--vary takes name=value; got "covariance_type".'),
        (["--vary", "n_components=1,2"], "--vary cannot vary n_components. Give a range, such as --k 1:6."),
        (["--vary", "tol=1,2", "--vary", "tol=3"], "--vary tol=... is given twice."),
        (["--k", "1:2", "--vary", "covariance_type=full,ful"], "refused: --set covariance_type must be"),
    ],
)
def test_mistakes(majorant: Majorant, table: pl.DataFrame, more: list[str], words: str) -> None:
    answer = majorant(*FIT, *more)
    assert answer.status == 2 and words in answer.words and not Path("run").exists()


# Empty cells, where the model takes them

takes_gaps = pytest.mark.skipif(
    not get_tags(mj.GaussianMixture()).input_tags.allow_nan, reason="GaussianMixture takes no missing values yet"
)


@pytest.fixture
def with_gaps(tmp_path: Path) -> np.ndarray:
    X = rows()
    X[[3, 17, 40], [0, 1, 1]] = np.nan
    pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}).fill_nan(None).write_csv(tmp_path / "t.csv")
    return X


@takes_gaps
def test_empty_cells_are_left_in_and_counted(majorant: Majorant, with_gaps: np.ndarray) -> None:
    answer = majorant(*FIT, "--k", "2")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.startswith(
        "Table    t.csv, 60 rows used, 0 left out\n         3 of 120 cells are empty: left in, and not filled in\n"
    )
    expected = mj.GaussianMixture(2, random_state=0).fit(with_gaps)
    np.testing.assert_array_equal(load("run/model.majorant").means_, expected.means_)
    assert "3 of 120 cells are empty" in Path("run/report.html").read_text(encoding="utf-8").replace("\u202f", "")
    assert json.loads(Path("run/summary.json").read_text())["table"]["cells_missing"] == 3
    assert pl.read_csv("run/assignments.csv").height == 60
    assert majorant("predict", "run", "t.csv", "--out", "p.csv").status == 0
    assert majorant("report", "run").status == 0


def test_rows_with_empty_cells_can_be_left_out(majorant: Majorant, with_gaps: np.ndarray) -> None:
    answer = majorant(*FIT, "--k", "2", "--drop-missing", "--standardise")
    assert answer.out.startswith("Table    t.csv, 57 rows used, 3 of 60 left out for empty cells\n")
    assert majorant("report", "run").status == 0
