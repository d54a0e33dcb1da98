"""Bags on the command line: samples of several rows, of which one shows the class."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import majorant as mj

Majorant = Callable[..., Any]
FIT = ["fit", "latent-svc", "t.csv", "--target", "kind", "--bag", "id"]
RUN = ["--set", "alpha=0.01", "--out", "run"]
SIZES = np.arange(30) % 3 + 2
LAST = np.cumsum(SIZES) - 1


@pytest.fixture
def table(tmp_path: Path) -> pl.DataFrame:
    """Thirty bags of two to four rows, whose last row shows the class; rows of a bag are not together."""
    random = np.random.default_rng(3)
    bag = np.repeat(np.arange(30), SIZES)
    features = random.normal(size=(len(bag), 2))
    features[LAST] += np.where(np.arange(30)[:, None] % 2 == 1, 6, -6)
    frame = pl.DataFrame(
        {
            "id": [f"b{i}" for i in bag],
            "kind": np.array(["no", "yes"])[bag % 2],
            "place": np.concatenate([np.arange(size) for size in SIZES]),
            "x1": features[:, 0].round(3),
            "x2": features[:, 1].round(3),
            "w": 1 + bag % 2,
        }
    ).sort("place", maintain_order=True)
    frame = frame.drop("place")
    frame.write_csv(tmp_path / "t.csv")
    return frame


def test_a_run_of_bags(majorant: Majorant, table: pl.DataFrame) -> None:
    answer = majorant(*FIT, "--features", "x1,x2", *RUN)
    assert (answer.status, answer.err) == (0, "")
    assert f"t.csv, {SIZES.sum()} rows in 30 bags used, 0 left out" in answer.out
    assert "one row for each bag, with its region" in answer.out
    model = mj.load("run/model.majorant")
    X, bags = table[["x1", "x2"]], table["id"].to_numpy()
    expected = mj.LatentSVC(0.01, random_state=0).fit(X, table["kind"].to_numpy(), bags=bags)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assigned = pl.read_csv("run/assignments.csv")
    assert assigned.columns == ["bag", "prediction", "region", "row"]
    assert assigned["bag"].to_list() == [f"b{i}" for i in range(30)]
    assert assigned["prediction"].to_list() == ["no", "yes"] * 15
    np.testing.assert_array_equal(assigned["region"], SIZES)
    assert table["id"][(assigned["row"] - 1).to_list()].to_list() == assigned["bag"].to_list()
    assert np.all(np.abs(table["x1"].to_numpy()[assigned["row"].to_numpy() - 1]) > 2)
    assert json.loads(Path("run/summary.json").read_text())["table"]["bags"] == 30
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert "bags of <i>t</i> in two classes" in page
    assert "Every bag is put into its own class." in page and "--bag id" in page
    Path("run/report.html").unlink()
    assert majorant("report", "run").status == 0
    assert Path("run/report.html").read_text(encoding="utf-8") == page


def test_new_bags_are_predicted_wherever_their_rows_lie(majorant: Majorant, table: pl.DataFrame) -> None:
    assert majorant(*FIT, "--features", "x1,x2", "--standardise", *RUN).status == 0
    known = pl.read_csv("run/assignments.csv")
    new = table.drop("kind", "w").reverse().head(60)
    new.write_csv("new.csv")
    answer = majorant("predict", "run", "new.csv", "--out", "p.csv")
    assert (answer.status, answer.err) == (0, "") and "p.csv, 30 bags of 60 rows, 0 left out" in answer.out
    found = pl.read_csv("p.csv")
    assert found["bag"].to_list() == new["id"].unique(maintain_order=True).to_list()
    both = found.join(known, on="bag")
    assert both["prediction"].equals(both["prediction_right"])
    assert new[(both["row"] - 1).to_list()]["x1"].equals(table[(both["row_right"] - 1).to_list()]["x1"])
    new.drop("id").write_csv("new.csv")
    answer = majorant("predict", "run", "new.csv", "--out", "q.csv")
    assert answer.status == 2 and 'no column "id" in new.csv.' in answer.words


def test_a_row_that_lacks_a_value_leaves_its_bag_with_the_others(majorant: Majorant, table: pl.DataFrame) -> None:
    some = table.with_columns(x1=pl.when(pl.int_range(table.height) == 1).then(None).otherwise("x1"))
    some.write_csv("t.csv")
    assert "values are missing in 1 row" in majorant(*FIT, *RUN).words
    answer = majorant(*FIT, "--features", "x1,x2", "--drop-missing", *RUN)
    assert f"{SIZES.sum() - 1} rows in 30 bags used, 1 of 90 left out for empty cells" in answer.out
    assigned = pl.read_csv("run/assignments.csv")
    assert table["id"][(assigned["row"] - 1).to_list()].to_list() == assigned["bag"].to_list()


def test_there_may_be_more_starts_than_rows(majorant: Majorant, table: pl.DataFrame) -> None:
    few = table.filter(pl.col("id").is_in(["b0", "b1", "b3"]))
    few.write_csv("t.csv")
    answer = majorant(*FIT, "--features", "x1,x2", "--set", f"n_init={few.height + 3}", *RUN)
    n_starts = few.height + 4  # the annealed start goes with the plain one
    assert answer.status == 0 and f"Search   {n_starts} starts" in answer.out


def test_classes_are_its_parts_and_come_from_the_target(majorant: Majorant, table: pl.DataFrame) -> None:
    answer = majorant(*FIT, "--features", "x1,x2", *RUN)
    assert "Model    latent SVM, 2 classes, 2 features" in answer.out
    assert re.search(r"class +weight +right\n +no +15 +1\.000\n +yes +15 +1\.000\n", answer.out)
    assert json.loads(Path("run/summary.json").read_text())["model"]["classes"] == 2
    answer = majorant(*FIT, "--k", "2", "--out", "other")
    assert answer.status == 2 and "latent SVM takes no --k: it has as many classes as its target." in answer.words


@pytest.mark.parametrize("column", ["kind", "id", "x1"])
def test_cells_that_are_missing_are_told_with_advice_that_helps(
    majorant: Majorant, table: pl.DataFrame, column: str
) -> None:
    pl.DataFrame(table).with_columns(
        pl.when(pl.int_range(table.height) == 4).then(None).otherwise(column).alias(column)
    ).write_csv("t.csv")
    answer = majorant(*FIT, "--features", "x1,x2", *RUN)
    columns = ", leave those columns out with --features" if column == "x1" else ""
    assert f'in 1 row of t.csv, in "{column}". Fill them in{columns}, or leave those rows out with' in answer.words
    assert majorant(*FIT, "--features", "x1,x2", "--drop-missing", *RUN).status == 0
    answer = majorant("predict", "run", "t.csv", "--out", "p.csv")
    assert "--features" not in answer.words and (answer.status == 0 or "Fill them in, or" in answer.words)


def test_numbers_and_weights(majorant: Majorant, table: pl.DataFrame) -> None:
    numbered = table.with_columns(id=pl.col("id").str.slice(1).cast(pl.Int64))
    numbered.write_csv("t.csv")
    answer = majorant(*FIT, "--weights", "w", *RUN)
    assert (answer.status, answer.err) == (0, "") and mj.load("run/model.majorant").n_features_in_ == 2
    assert pl.read_csv("run/assignments.csv")["bag"].to_list() == list(range(30))
    uneven = numbered.with_columns(w=pl.int_range(numbered.height))
    uneven.write_csv("t.csv")
    assert 'bag 0 of t.csv has the weight 0.0 in row 1 and 30.0 in row 31: "w" must' in majorant(
        *FIT, "--weights", "w", *RUN, "--force"
    ).words  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*FIT[:-1], "sample"], 'no column "sample" in t.csv.'),
        ([*FIT[:-1], "kind"], '"kind" cannot name the bags and be the target or the weights at once.'),
        ([*FIT, "--features", "x1,id"], '"id" cannot be a feature and'),
        ([*FIT[:-1], "w"], 'bag 1 of t.csv has the target no in row 1 and maybe in row 5: "kind" must be the same'),
        (["fit", "kmeans", "t.csv", "--bag", "id"], "k-means takes no --bag. Models that do: latent-svc."),
    ],
)
def test_mistakes(majorant: Majorant, table: pl.DataFrame, arguments: list[str], words: str) -> None:
    kinds = ["maybe" if i == 4 else kind for i, kind in enumerate(table["kind"])]
    table.with_columns(kind=pl.Series(kinds)).write_csv("t.csv")
    answer = majorant(*arguments, "--out", "run")
    assert answer.status == 2 and words in answer.words and not Path("run").exists()


def test_the_tables_of_the_guide_are_fitted_as_written(majorant: Majorant) -> None:
    page = (Path(__file__).parents[2] / "docs" / "latent_svm.md").read_text(encoding="utf-8")
    tables = dict(re.findall(r"`(\w+\.csv)`:\n\n```text\n(.*?)```", page, flags=re.DOTALL))
    predicted = tables.pop("predicted.csv")
    for name, text in tables.items():
        Path(name).write_text(text, encoding="utf-8")
    commands = re.search(r"```sh\n(.*?)```", page, flags=re.DOTALL)
    assert commands is not None
    for line in commands[1].splitlines():
        answer = majorant(*line.split()[1:])
        assert (answer.status, answer.err) == (0, ""), line
    assert Path("predicted.csv").read_text(encoding="utf-8") == predicted
