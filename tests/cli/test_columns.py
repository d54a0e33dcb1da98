"""What the screen, summary.json and the page say of a table's columns."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from majorant.cli.settings import known_models
from majorant.persistence import load


def table() -> pl.DataFrame:
    """Sixty birds of three groups, numbered anew in each."""
    random = np.random.default_rng(0)
    size = random.normal(size=60) + np.repeat([0.0, 5.0, 10.0], 20)
    return pl.DataFrame(
        {
            "sample": np.tile(np.arange(1, 21), 3),
            "bird": [f"N{i}" for i in range(60)],
            "seen": [f"2007-11-{1 + i % 28:02d}" for i in range(60)],
            "sex": ["m", "f"] * 30,
            "size": size,
            "inches": size / 2.54,
            "year": np.full(60, 2013),
            "income": np.exp(4 * random.normal(size=60)),
        }
    )


def test_every_column_is_told(majorant: Callable[..., Any], tmp_path: Path) -> None:
    table().write_csv(tmp_path / "birds.csv")
    answer = majorant("fit", "kmeans", "birds.csv", "--k", "3", "--standardise", "--out", "run")
    assert answer.status == 0
    said = " ".join(answer.out.split("Model ")[0].split())
    for sentence in (
        "left out, looks like an id: sample",
        "left out, text, another in every row: bird",
        "--id bird writes the names of the rows beside the results",
        "left out, a date: seen",
        "left out, text: sex",
        '"inches": says what "size" says (correlation above 0.999)',
        '"year": constant',
        '"income": skewed, few rows lie far out; its logarithm may serve better',
    ):
        assert sentence in said
    assert load("run/model.majorant").n_features_in_ == 4
    uses = {c["name"]: c["use"] for c in json.loads(Path("run/summary.json").read_text("utf-8"))["columns"]}
    assert [name for name, use in uses.items() if use == "feature"] == ["size", "inches", "year", "income"]
    page = Path("run/report.html").read_text("utf-8")
    assert "4 columns used, 4 left out." in page and "looks like an id" in page
    assert majorant("report", "run").status == 0
    assert Path("run/report.html").read_text("utf-8") == page


def test_ids_are_no_columns_left_out_and_means_are_in_the_units_of_the_rows(
    majorant: Callable[..., Any], tmp_path: Path
) -> None:
    birds = table().select("bird", "size", "income")
    birds.write_csv(tmp_path / "birds.csv")
    fit = ("fit", "kmeans", "birds.csv", "--id", "bird", "--standardise", "--force", "--out", "run", "--k")
    for k in (2, 5, 9):
        answer = majorant(*fit, str(k))
        assert answer.status == 0 and "left out," not in answer.out and "--id" not in answer.out
        page = Path("run/report.html").read_text("utf-8")
        assert "3 columns used, 0 left out." in page
        profile, parts = page.split('id="profiles"')[1].split("</section>")[0], pl.read_csv("run/assignments.csv")
        mean = birds["size"].filter(parts["cluster"] == 1).mean()
        shown = re.findall(r'<th scope="row">size</th><td class="number">([\d.]+)', profile)
        assert [float(cell) for cell in shown] == ([pytest.approx(mean, abs=0.06)] if k < 9 else [])
        assert ("<b>Explained</b>" in profile) == (">Explained</th>" in profile) == (k < 9)
        assert ("<b>The table</b>" in profile) == (k < 9) and ("<small" in profile.split("<textarea")[0]) == (k == 2)


@pytest.mark.parametrize("model", known_models())
def test_a_table_mostly_of_text_is_told_what_the_same_command_takes(
    majorant: Callable[..., Any], tmp_path: Path, model: str
) -> None:
    card = known_models()[model]
    birds = table().select("sex", "size", pl.col("sex").alias("again"), pl.int_range(pl.len()).mod(2).alias("y"))
    (birds if card.needs_target else birds.drop("y")).write_csv(tmp_path / "birds.csv")
    target = ["--target", "y"] if card.needs_target else []
    size = ["--k", "2"] if card.size_parameter else []
    fit = ["fit", model, "birds.csv", *size, "--no-report", "--force", "--out", "run"]
    done = majorant(*fit, *target)
    words = " ".join(done.out.split())
    advised = re.search(r"only 1 column of numbers is used: (--formula .* as in '(.*?)'|--categorical one-hot)", words)
    assert done.status == 0 and bool(advised) == (not card.takes_text and not card.in_order)
    assert (" of numbers " in words) == bool(advised)
    if advised:
        formula = ["--formula", advised[2]] if advised[2] else [*target, "--categorical", "one-hot"]
        done = majorant(*fit, *formula)
        assert done.status == 0 and " of numbers " not in done.out
        assert majorant(*fit, *target, "--features", "size").out.count(" of numbers ") == 0


def test_a_column_that_is_named_is_used(majorant: Callable[..., Any], tmp_path: Path) -> None:
    table().write_csv(tmp_path / "birds.csv")
    answer = majorant("fit", "kmeans", "birds.csv", "--k", "3", "--features", "sample,size", "--out", "run")
    assert '"sample": looks like an id; leave it out if it is one' in " ".join(answer.out.split())
    assert list(load("run/model.majorant").feature_names_in_) == ["sample", "size"]


def test_a_row_without_any_cell_is_of_no_part(majorant: Callable[..., Any], tmp_path: Path) -> None:
    birds = table().with_row_index("row", offset=1).select("row", "size", "income")
    empty = pl.when(pl.col("row").is_in([3, 40])).then(None)
    birds = birds.with_columns(empty.otherwise(pl.col(name)).alias(name) for name in ("size", "income"))
    birds = birds.with_columns(pl.when(pl.col("row") == 7).then(None).otherwise(pl.col("size")).alias("size"))
    birds.write_csv(tmp_path / "birds.csv")
    fit = ["fit", "gaussian-mixture", "birds.csv", "--features", "size,income", "--k", "2", "--no-report"]
    assert "58 rows used, 2 of 60 left out" in majorant(*fit, "--out", "run").out
    assert "58 rows, 2 left out" in majorant("predict", "run", "birds.csv", "--out", "p.csv").out
    for file in ("run/assignments.csv", "p.csv"):
        assert set(range(1, 61)) - set(pl.read_csv(file)["row"]) == {3, 40}


def test_rows_far_outside_those_of_the_fit_are_counted(majorant: Callable[..., Any], tmp_path: Path) -> None:
    table().write_csv(tmp_path / "birds.csv")
    majorant("fit", "kmeans", "birds.csv", "--k", "3", "--features", "size,income", "--out", "run", "--no-report")
    assert "far outside" not in majorant("predict", "run", "birds.csv", "--out", "same.csv").out
    size = pl.when(pl.arange(60) < 2).then(1e6).otherwise(pl.col("size")).alias("size")
    table().with_columns(size).write_csv(tmp_path / "odd.csv")
    said = " ".join(majorant("predict", "run", "odd.csv", "--out", "odd_p.csv").out.split())
    assert "Warning: 2 rows of 60 lie far outside the rows of the fit" in said


@pytest.mark.parametrize("write", [pl.DataFrame.write_csv, pl.DataFrame.write_parquet])
def test_a_table_may_come_by_standard_input(
    majorant: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[..., Any]
) -> None:
    write(table(), tmp_path / "birds")
    content = (tmp_path / "birds").read_bytes()
    fit = ["fit", "kmeans", "-", "--k", "3", "--out", "run", "--no-report"]
    for arguments in (fit, ["predict", "run", "-", "--out", "p.csv"]):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        answer = majorant(*arguments)
        assert answer.status == 0, answer.err
    assert pl.read_csv("p.csv").height == 60
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    assert "majorant: standard input is empty." in majorant("fit", "kmeans", "-", "--out", "other").words


def test_a_bound_that_is_out_of_reach_is_told_without_a_warning(majorant: Callable[..., Any], tmp_path: Path) -> None:
    X = np.random.default_rng(0).integers(0, 2, size=(600, 40))
    pl.DataFrame(X, schema=[f"q{i}" for i in range(40)]).write_csv(tmp_path / "t.csv")
    answer = majorant("fit", "kmeans", "t.csv", "--k", "3", "--set", "effort=fast", "--out", "run", "--no-report")
    assert (answer.status, answer.err) == (0, "")


@pytest.mark.parametrize("model", ["kmeans", "regression-mixture", "discriminative-latent-classes"])
def test_row_names_of_r_are_no_feature_and_can_be_kept(
    majorant: Callable[..., Any], tmp_path: Path, model: str
) -> None:
    birds = table().select("bird", "sample", "size", "income", "sex").rename({"bird": ""}).with_row_index("id")
    birds.write_csv(tmp_path / "birds.csv")
    target = {"regression-mixture": ["--target", "income"], "discriminative-latent-classes": ["--target", "sex"]}
    answer = majorant("fit", model, "birds.csv", *target.get(model, []), "--k", "2", "--id", "", "--out", "run")
    assert answer.status == 0 and "left out, looks like an id: id" in answer.out
    features = load("run/model.majorant").feature_names_in_
    assert "id" not in features and ("sample" in features) == (model in target)  # which may depend on a count
    assert pl.read_csv("run/assignments.csv").columns[:2] == ["row", ""]
    assert majorant("predict", "run", "birds.csv", "--out", "p.csv").status == 0
    assert pl.read_csv("p.csv").columns[:2] == ["row", ""]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("model", ["kmeans", "gaussian-mixture", "latent-class-analysis", "regression-mixture"])
def test_a_column_without_a_value_is_left_out_in_every_format(
    majorant: Callable[..., Any], tmp_path: Path, model: str, ending: str
) -> None:
    rows = pl.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), schema=["a", "b"])
    getattr(rows.with_columns(none=pl.lit(None, pl.Float64)), f"write_{ending}")(tmp_path / f"t.{ending}")
    target = ["--target", "b"] if model == "regression-mixture" else []
    told = majorant("fit", model, f"t.{ending}", *target, "--k", "1", "--out", "run", "--no-report")
    assert told.status == 0 and "left out, empty: none" in told.out


def test_new_rows_may_lack_a_whole_column_where_the_model_takes_gaps(majorant: Callable[..., Any]) -> None:
    pl.DataFrame({"a": [0.0, 1, 5, 6, 9], "b": [1.0, 0, 2, 5, 3]}).write_csv("t.csv")
    assert majorant("fit", "gaussian-mixture", "t.csv", "--k", "1", "--out", "run", "--no-report").status == 0
    Path("new.csv").write_text("a,b\n1,\n2,\n", encoding="utf-8")
    assert majorant("predict", "run", "new.csv", "--out", "p.csv").status == 0
    assert pl.read_csv("p.csv")["component"].to_list() == [1, 1]


def test_columns_that_say_what_their_neighbours_say_are_told_together(
    majorant: Callable[..., Any], tmp_path: Path
) -> None:
    walk = np.cumsum(np.random.default_rng(0).normal(size=(60, 12)) * ([1.0] + 11 * [0.03]), axis=1)
    pl.DataFrame({f"y{j}": walk[:, j] for j in range(12)}).write_csv("years.csv")
    said = majorant("fit", "kmeans", "years.csv", "--k", "2", "--out", "run").out
    said = " ".join(said.split())
    assert said.count("says what a column before it says") == 1 and '"y1", "y2"' in said
