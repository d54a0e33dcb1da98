"""Ids and other columns of the table, beside the results of its rows."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from majorant.persistence import load

Majorant = Callable[..., object]


@pytest.fixture
def table(tmp_path: Path) -> pl.DataFrame:
    random = np.random.default_rng(0)
    x = np.repeat([0.0, 9.0], 20) + random.normal(size=40)
    values = {"person": 1000 - np.arange(40), "city": ["a", "b"] * 20, "x": x, "y": 2 * x + random.normal(size=40)}
    frame = pl.DataFrame(values).with_columns(cluster=pl.Series(["old"] * 40), day=pl.Series(np.arange(40) % 7))
    frame.write_csv(tmp_path / "t.csv")
    return frame


ROLES = {
    "kmeans": ["--k", "2"],
    "gaussian-mixture": ["--k", "2"],
    "hmm": ["--k", "2", "--time", "x"],
    "latent-class-analysis": ["--k", "2", "--features", "city,cluster,x"],
    "regression-mixture": ["--k", "2", "--target", "y", "--features", "x"],
    "discriminative-latent-classes": ["--k", "2", "--target", "city", "--features", "x,y"],
    "discriminative-clustering": ["--k", "2", "--features", "x,y"],
}


@pytest.mark.parametrize("model", ROLES)
def test_ids_are_no_features_and_stand_beside_each_row(model: str, majorant: Majorant, table: pl.DataFrame) -> None:
    fit = ["fit", model, "t.csv", "--out", "run", "--no-report", *ROLES[model], "--id", "person"]
    answer = majorant(*fit)
    assert answer.status == 0, answer.err  # type: ignore[attr-defined]
    assert "person" not in load("run/model.majorant").feature_names_in_
    found = pl.read_csv("run/assignments.csv")
    assert found.columns[:2] == ["row", "person"]
    assert (found["person"] == 1001 - found["row"]).all() and len(found) == 40
    pl.read_csv("t.csv")[::-1].write_csv("new.csv")
    assert majorant("predict", "run", "new.csv", "--out", "p.csv").status == 0  # type: ignore[attr-defined]
    new = pl.read_csv("p.csv")
    assert (new["person"] == 960 + new["row"]).all() and len(new) == 40
    table.drop("person").write_csv("without.csv")
    assert majorant("predict", "run", "without.csv", "--out", "q.csv").status == 0  # type: ignore[attr-defined]
    assert "person" not in pl.read_csv("q.csv").columns


def test_columns_are_kept_by_name_or_all(majorant: Majorant, table: pl.DataFrame) -> None:
    fit = ["fit", "kmeans", "t.csv", "--k", "2", "--features", "x,y", "--force", "--no-report", "--out", "run"]
    assert majorant(*fit, "--keep", "city,cluster").status == 0  # type: ignore[attr-defined]
    found = pl.read_csv("run/assignments.csv")
    assert found.columns == ["row", "city", "cluster (table)", "cluster", "distance"]
    assert found["city"].equals(table["city"]) and set(found["cluster (table)"]) == {"old"}
    assert majorant(*fit, "--keep", "*", "--id", "day").status == 0  # type: ignore[attr-defined]
    everything = pl.read_csv("run/assignments.csv")
    assert everything.columns[:7] == ["row", "day", "person", "city", "x", "y", "cluster (table)"]
    majorant("predict", "run", "t.csv", "--out", "p.parquet", "--keep", "city")
    assert pl.read_parquet("p.parquet").columns == ["row", "day", "city", "cluster", "distance"]


def test_no_kept_column_is_lost_to_another_of_its_name(majorant: Majorant, table: pl.DataFrame) -> None:
    table.with_columns(pl.lit("mine").alias("cluster (table)")).write_csv("t.csv")
    majorant("fit", "kmeans", "t.csv", "--k", "2", "--features", "x,y", "--no-report", "--out", "run", "--keep", "*")
    found = pl.read_csv("run/assignments.csv")
    assert set(found["cluster (table)"]) == {"mine"} and set(found["cluster (table) (table)"]) == {"old"}
    assert set(found["cluster"]) == {1, 2}


def test_kept_columns_of_a_file_read_in_parts_are_those_of_their_rows(
    majorant: Majorant, table: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    majorant("fit", "kmeans", "t.csv", "--k", "2", "--features", "x,y", "--no-report", "--out", "run")
    many = pl.concat([table] * 100).with_columns(person=pl.Series(np.arange(4000)))
    many.write_parquet("many.parquet")
    monkeypatch.setattr("majorant.cli.parts.PART_BYTES", 1)
    answer = majorant("predict", "run", "many.parquet", "--out", "p.csv", "--keep", "person")
    assert answer.status == 0, answer.err  # type: ignore[attr-defined]
    found = pl.read_csv("p.csv")
    assert (found["person"] + 1 == found["row"]).all() and len(found) == 4000


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--id", "persn"], 'no column "persn" in t.csv. Did you mean "person"?'),
        (["--keep", "citi"], 'no column "citi" in t.csv. Did you mean "city"?'),
        (["--id", "x", "--features", "x,y"], '"x" is given to --id and to --features.'),
        (["--id", "day", "--weights", "day"], '"day" is given to --id and to --weights.'),
    ],
)
def test_mistakes(majorant: Majorant, table: pl.DataFrame, options: list[str], said: str) -> None:
    answer = majorant("fit", "kmeans", "t.csv", "--k", "2", "--out", "run", *options)
    assert answer.status == 2 and said in " ".join(answer.err.split())  # type: ignore[attr-defined]
    assert not Path("run").exists()


def test_an_id_is_no_population(majorant: Majorant, table: pl.DataFrame) -> None:
    answer = majorant("fit", "latent-class-analysis", "t.csv", "--out", "run", "--id", "city", "--population", "city")
    assert '"city" is given to --id and to --population.' in " ".join(answer.err.split())  # type: ignore[attr-defined]


def test_the_printed_next_command_keeps_the_same_columns(majorant: Callable[..., Any], tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    columns = {"x": random.normal(size=30), "y": random.normal(size=30), "city, state": ["a", "b"] * 15}
    pl.DataFrame(columns).write_csv("t.csv")
    for keep, kept in (('"city, state",y', ["city, state", "y"]), ("*", ["x", "y", "city, state"])):
        fit = ("fit", "kmeans", "t.csv", "--features", "x,y", "--k", "2", "--no-report", "--force")
        fit = (*fit, "--out", "a_run_with_a_long_name")
        said = majorant(*fit, "--keep", keep).out.partition("Next     majorant ")[2]
        assert said.count("\n") == 1
        assert majorant(*shlex.split(said.replace("NEW.csv", "t.csv")), "--force").status == 0
        assert [name for name in pl.read_csv("predicted.csv").columns if name in kept] == kept
