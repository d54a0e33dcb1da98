"""Formulas on the command line: what is fitted, predicted and reported, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import majorant as mj

Majorant = Callable[..., Any]
FIT = ["fit", "regression-mixture", "t.csv"]
COUNTS = [*FIT, "--formula", "y ~ x + kind | site", "--family", "poisson", "--offset", "log(days)", "--gating", "soil"]
RUN = ["--k", "2", "--out", "run"]


@pytest.fixture
def table(tmp_path: Path) -> pl.DataFrame:
    random = np.random.default_rng(5)
    site = np.repeat(np.arange(40), 3)
    soil = np.round(np.repeat(random.normal(size=40), 3), 2)
    first, x, days = soil > 0.2, np.round(random.uniform(-1, 1, 120), 2), random.integers(1, 5, 120)
    frame = pl.DataFrame(
        {
            "y": random.poisson(days * np.exp(np.where(first, 0.3 + x, 1.5 - x))),
            "x": x,
            "kind": np.array(["a", "b"])[random.integers(2, size=120)],
            "days": days,
            "soil": soil,
            "site": [f"s{i}" for i in site],
        }
    )
    frame.write_csv(tmp_path / "t.csv")
    return frame


def by_formula(table: Any) -> mj.RegressionMixture:
    return mj.RegressionMixture.from_formula(
        "y ~ x + kind | site", table, family="poisson", offset="log(days)", gating="soil", random_state=0
    )


@pytest.mark.filterwarnings("ignore:Gating by soil separates")  # which it does
def test_a_run_by_a_formula_predicts_and_reports(majorant: Majorant, table: pl.DataFrame) -> None:
    answer = majorant(*COUNTS, *RUN)
    assert (answer.status, answer.err) == (0, "")
    assert "Table    t.csv, 120 rows used, 0 left out\n" in answer.out and "kind: b against a" in answer.out
    model, expected = mj.load("run/model.majorant"), by_formula(table)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assigned = pl.read_csv("run/assignments.csv")
    np.testing.assert_array_equal(assigned["component"], expected.responsibilities_.argmax(axis=1) + 1)
    table.drop("y")[:9].write_csv("new.csv")
    assert majorant("predict", "run", "new.csv", "--out", "p.csv").status == 0
    np.testing.assert_allclose(pl.read_csv("p.csv")["prediction"], expected.predict(table.drop("y")[:9]))
    table.drop("y", "site")[:9].write_csv("new.csv")
    assert majorant("predict", "run", "new.csv", "--out", "p.csv", "--force").status == 0
    np.testing.assert_allclose(pl.read_csv("p.csv")["prediction"], expected.predict(table.drop("y", "site")[:9]))
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert "a mixture of two Poisson regressions" in page and "--gating soil" in page and "40 groups" in page
    assert 'id="residuals"' not in page and "Noise" not in page
    Path("run/report.html").unlink()
    assert majorant("report", "run").status == 0
    assert Path("run/report.html").read_text(encoding="utf-8") == page


def test_target_and_features_take_groups_and_offsets_too(majorant: Majorant, table: pl.DataFrame) -> None:
    answer = majorant(*FIT, "--target", "y", "--groups", "site", "--offset", "log(days)", "--family", "poisson", *RUN)
    assert (answer.status, answer.err) == (0, "")
    assert "left out, text: kind" in answer.out
    model = mj.load("run/model.majorant")
    assert model.feature_names_in_.tolist() == ["x", "soil"] and model.groups_ is not None
    again = majorant(*FIT, "--formula", "y ~ x + soil | site", "--offset", "log(days)", "--family", "poisson",
                     "--k", "2", "--out", "other", "--weights", "days")  # fmt: skip
    assert again.status == 2 and "--weights must be the same for all rows of a group" in again.words
    answer = majorant(*FIT, "--target", "y", "--features", "x", "--gating", "soil + kind", *RUN, "--force")
    model, page = mj.load("run/model.majorant"), Path("run/report.html").read_text(encoding="utf-8")
    assert answer.status == 0 and model.gating_coef_.shape == (2, 2)
    assert "Weights depend on these columns" in answer.out and f"{model.gating_coef_[1, 0]:.4f}" in answer.out
    assert "Log odds on <i>soil</i>" in page and "compared with component 1, per unit" in page


def test_trials_are_taken_where_a_new_table_has_them(majorant: Majorant, table: pl.DataFrame) -> None:
    answer = majorant(*FIT, "--formula", "I(y > 2) ~ x", "--trials", "I(days + 1)", "--family", "binomial", *RUN)
    assert (answer.status, answer.err) == (0, "")
    model = mj.load("run/model.majorant")
    for columns in (["x"], ["x", "days"]):
        table.select(columns).write_csv("new.csv")
        assert majorant("predict", "run", "new.csv", "--out", "p.csv", "--force").status == 0
        expected = model.predict(table.select(columns))
        np.testing.assert_allclose(pl.read_csv("p.csv")["prediction"], expected)
    np.testing.assert_allclose(expected, model.predict(table[["x"]]) * (table["days"] + 1).to_numpy())


def test_columns_may_be_named_to_be_left_out(majorant: Majorant, table: pl.DataFrame, tmp_path: Path) -> None:
    """As in R; what is left out may lack values, and weights are no terms of a dot."""
    some = table.with_columns(x=pl.when(pl.int_range(120) == 4).then(None).otherwise("x")).rename({"soil": "so`il"})
    some.write_csv(tmp_path / "t.csv")
    answer = majorant(*FIT, "--formula", "y ~ . - x - site", "--weights", "days", *RUN)
    assert (answer.status, answer.err) == (0, "") and "120 rows used, 0 left out" in answer.out
    assert mj.load("run/model.majorant").feature_names_in_.tolist() == ["kind[T.b]", "so`il"]
    assert majorant(*FIT, "--target", "y", "--groups", "site", "--drop-missing", *RUN, "--force").status == 0
    assert mj.load("run/model.majorant").feature_names_in_.tolist() == ["x", "days", "so`il"]


def test_a_question_ends_without_a_stop(majorant: Majorant, table: pl.DataFrame) -> None:
    for formula in ("Y ~ x", "y ~ lag(x)", "y ~ x + Days", "y ~ log(xx)"):
        answer = majorant(*FIT, "--formula", formula, *RUN)
        assert answer.status == 2 and "Did you mean" in answer.words and "?." not in answer.words
        assert answer.words.endswith((".", "?"))


@pytest.mark.filterwarnings("ignore:Gating by soil separates")  # which it does
def test_sizes_are_compared(majorant: Majorant, table: pl.DataFrame) -> None:
    assert majorant(*COUNTS, "--k", "1:2", "--criterion", "bic", "--out", "run").status == 0
    kept = json.loads(Path("run/summary.json").read_text())
    assert kept["selection"]["candidates"][1]["value"] == by_formula(table).bic_
    assert kept["features"] == ["x", "kind[T.b]"]


def test_rows_without_a_value_are_left_out_on_request(majorant: Majorant, table: pl.DataFrame, tmp_path: Path) -> None:
    some = table.with_columns(kind=pl.when(pl.int_range(120) == 4).then(None).otherwise("kind"))
    some.write_csv(tmp_path / "t.csv")
    answer = majorant(*COUNTS, *RUN)
    assert answer.status == 2 and 'values are missing in 1 row of t.csv, in "kind".' in answer.words
    answer = majorant(*COUNTS, *RUN, "--drop-missing")
    assert answer.status == 0 and "119 rows used, 1 of 120 left out" in answer.out
    assert 5 not in pl.read_csv("run/assignments.csv")["row"]
    table[:9].with_columns(kind=pl.Series([None, *"aabbcaab"])).drop("y").write_csv("new.csv")
    answer = majorant("predict", "run", "new.csv", "--out", "p.csv", "--drop-missing")
    assert answer.status == 2, "the rows are those of the table, not of what is left"
    assert "kind has the level 'c' in row 6 of new.csv, which it did not have at the fit; its levels" in answer.words


@pytest.mark.parametrize(
    ("given", "option"),
    [
        (["--target", "y", "--features", "x", "--groups", "site"], "with --features"),
        (["--formula", "y ~ x"], "of --formula"),
    ],
)
def test_terms_that_lack_a_value_may_be_left_out_by_the_option_that_names_them(
    majorant: Majorant, table: pl.DataFrame, tmp_path: Path, given: list[str], option: str
) -> None:
    """Not the target, which the fit needs; nor by a formula where none was given."""
    lacking = [
        pl.when(pl.int_range(120) == at).then(None).otherwise(name).alias(name) for at, name in ((4, "x"), (5, "y"))
    ]
    table.with_columns(lacking).write_csv(tmp_path / "t.csv")
    answer = majorant(*FIT, *given, *RUN)
    assert answer.status == 2 and f'leave "x" out {option}, or leave those rows out' in answer.words


def test_a_point_leaves_out_what_no_formula_would_name(majorant: Majorant, table: pl.DataFrame, tmp_path: Path) -> None:
    wide = table.drop("site").with_columns(id=pl.int_range(1, 121), gone=pl.lit(None, dtype=pl.Float64))
    wide.write_csv(tmp_path / "t.csv")
    answer = majorant(*FIT, "--formula", "y ~ .", "--family", "poisson", *RUN)
    assert "Columns  left out, looks like an id: id\n         left out, empty: gone\n" in answer.out
    assert mj.load("run/model.majorant").formula_.columns[1:] == ("x", "kind", "days", "soil")
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert majorant("report", "run").status == 0 and Path("run/report.html").read_text(encoding="utf-8") == page
    assert '<section id="columns"' in page
    for formula, weights in (("y ~ . + id", []), ("y ~ . + `id`", []), ("y ~ x", ["id"])):
        kept = majorant(*FIT, "--formula", formula, *(["--weights", *weights] if weights else []), *RUN, "--force")
        assert kept.status == 0 and "an id: id" not in kept.out
    refused = majorant(*FIT, "--formula", "y ~ x + gone", "--drop-missing", *RUN, "--force")
    words = 'majorant: every row of t.csv lacks a value, in "gone". Fill them in, or leave those columns out'
    words += " of --formula."
    assert refused.words == words and majorant(*FIT, "--formula", "y ~ x + gone", *RUN, "--force").words == words


def test_text_among_the_features_of_a_regression_goes_into_a_formula(majorant: Majorant, table: pl.DataFrame) -> None:
    answer = majorant(*FIT, "--target", "y", "--features", "x,kind", *RUN)
    assert (
        answer.status == 2
        and '--formula reads text as levels, each told against the first: --formula "y ~' in answer.words
    )


def test_separated_rows_are_told_with_what_to_do(majorant: Majorant, tmp_path: Path) -> None:
    x = np.linspace(-1, 1, 40)
    pl.DataFrame({"s": (x > 0.1).astype(int), "x": x}).write_csv(tmp_path / "t.csv")
    binomial = [*FIT, "--formula", "s ~ x", "--family", "binomial", "--out", "run", "--no-report"]
    answer = majorant(*binomial, "--k", "1")
    words = " ".join(answer.out.split())
    assert answer.status == 0 and "Warning: The line of a component runs to infinity along x, as its rows" in words
    assert "its rows are separated: leave out columns" in words and "fewer components" not in words
    answer = majorant(*binomial, "--k", "1:2", "--force")
    assert answer.status == 0 and "BIC prefers 1 component" in answer.out
    assert "its rows are separated" in " ".join(answer.out.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*FIT, "--formula", "y ~ x + q"], "the table has no column 'q'"),
        ([*FIT, "--formula", "y ~ open(x)"], "a formula knows no function 'open'"),
        ([*FIT, "--formula", "y ~ log(x)"], "log(x) is nan in row"),
        (
            [*FIT, "--formula", "kind ~ x"],
            "the response 'kind' holds levels: it must be numbers, such as I(kind == 'a').",
        ),
        ([*FIT, "--formula", "Y ~ x"], "the table has no column 'Y'. Did you mean 'y'? Its columns: 'y', 'x',"),
        ([*FIT, "--formula", "y ~ y"], "the response 'y' is among the explanatory terms: leave it out on the right of"),
        ([*FIT, "--formula", "y ~ x", "--target", "y"], "--formula names the columns: leave --target out."),
        ([*FIT, "--formula", "y ~ x", "--features", "x"], "leave --features out."),
        ([*FIT, "--formula", "y ~ x", "--standardise"], 'Write scale() in --formula: "y ~ scale(x)".'),
        ([*FIT, "--groups", "site"], "predicts a column: name it with --target."),
        ([*FIT, "--target", "y", "--groups", "sit"], 'no column "sit" in t.csv. Did you mean "site"?'),
        ([*FIT, "--target", "y", "--family", "poison"], "refused: --family must be one of"),
        ([*FIT, "--target", "y", "--trials", "days"], "--trials goes with --family binomial; got --family gaussian"),
        ([*FIT, "--target", "y", "--offset", "kind"], "offset must be one number per row"),
        (
            ["fit", "kmeans", "t.csv", "--groups", "site"],
            "k-means takes no --groups. Models that do: regression-mixture.",
        ),
        (["fit", "kmeans", "t.csv", "--formula", "~ x"], "k-means takes no --formula. Models that do:"),
        (["fit", "kmeans", "t.csv", "--family", "poisson"], "k-means takes no --family. Models that do:"),
    ],
)
def test_mistakes(majorant: Majorant, table: pl.DataFrame, arguments: list[str], words: str) -> None:
    answer = majorant(*arguments, "--out", "run")
    assert answer.status == 2 and words in answer.words and not Path("run").exists()


@pytest.mark.parametrize(
    ("formula", "is_curved"),
    [
        ("y ~ x", False),
        ("y ~ x + w", False),
        ("y ~ log(x + 9) + w", False),
        ("y ~ x + arm", False),
        ("y ~ x:arm", False),
        ("y ~ x + I(x**2)", True),
        ("y ~ x * arm", True),
        ("y ~ x * w", True),
        ("y ~ poly(x, 2)", True),
    ],
)
def test_terms_that_share_a_column_are_not_told_as_straight_lines(
    majorant: Majorant, tmp_path: Path, formula: str, is_curved: bool
) -> None:
    random = np.random.default_rng(0)
    x, w, arm = random.normal(size=90), random.normal(size=90), np.arange(90) % 2
    y = np.where(np.arange(90) % 3, 2 * x + 0.5 * x**2, 9 - x) + 0.1 * random.normal(size=90)
    pl.DataFrame({"x": x, "w": w, "arm": np.array(["u", "v"])[arm], "y": y}).write_csv(tmp_path / "t.csv")
    done = majorant("fit", "regression-mixture", "t.csv", "--k", "2", "--formula", formula, "--out", "run")
    assert done.status == 0, done.err
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert ("per unit of" in page) != is_curved
    if is_curved:
        for words in ("straight line", " as steep", "at its mean", "at their means"):
            assert words not in page, words
