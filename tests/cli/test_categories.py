"""Columns of text as numbers: `--categorical`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from majorant.cli.settings import known_models
from majorant.persistence import load

Majorant = Callable[..., Any]
FIT = ["fit", "kmeans", "t.parquet", "--k", "2", "--out", "run", "--id", "name"]


def table(n: int = 40) -> pl.DataFrame:
    random = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "name": [f"n{i}" for i in range(n)],
            "size": random.normal(size=n),
            "sex": ["m", "f"] * (n // 2),
            "mood": pl.Series(["low", "high", "middle", "low"] * (n // 4), dtype=pl.Enum(["low", "middle", "high"])),
        }
    )


def test_levels_are_columns_of_fit_prediction_and_page(majorant: Majorant, tmp_path: Path) -> None:
    table().write_parquet(tmp_path / "t.parquet")
    answer = majorant(*FIT, "--categorical", "one-hot")
    assert (answer.status, answer.err) == (0, "")
    model = load("run/model.majorant")
    assert list(model.feature_names_in_) == ["size", "sex=f", "sex=m", "mood"]
    moods = np.array([["low", "middle", "high"].index(mood) for mood in table()["mood"]])
    expected = [moods[model.labels_ == c].mean() for c in range(model.n_clusters)]
    np.testing.assert_allclose(model.cluster_centers_[:, 3], expected)
    assert majorant("predict", "run", "t.parquet", "--out", "p.csv").status == 0
    kept = pl.read_csv("p.csv")
    assert kept.equals(pl.read_csv("run/assignments.csv"))
    page = Path("run/report.html").read_text("utf-8")
    assert "sex=f" in page and majorant("report", "run").status == 0
    assert Path("run/report.html").read_text("utf-8") == page
    new = table().with_columns(pl.lit("x").alias("sex"))  # a level that the fit did not see
    new.write_parquet(tmp_path / "new.parquet")
    refused = majorant("predict", "run", "new.parquet", "--out", "new.csv")
    assert (
        refused.status == 2
        and '"sex" is "x" in row 1, a level that the fit has not seen; it saw f, m.' in refused.words
    )


@pytest.mark.parametrize("model", [name for name, card in known_models().items() if not card.takes_text])
def test_text_among_the_features_is_told_how_to_become_numbers(majorant: Majorant, tmp_path: Path, model: str) -> None:
    """As a date or many different texts cannot, and models of series have no such option."""
    table().with_columns(day=pl.lit("2024-01-05")).write_parquet(tmp_path / "t.parquet")
    card = known_models()[model]
    target = ["--target", "mood"] if card.needs_target else []
    for name, said in (("sex", "text such as"), ("name", "text such as"), ("day", "dates such as")):
        answer = majorant("fit", model, "t.parquet", "--features", f"size,{name}", *target, "--out", "run")
        assert answer.status == 2 and f'it holds {said} "' in answer.words
        option = "--formula reads text" if card.kind == "regression" else "--categorical one-hot"
        assert (option in answer.words) == (name == "sex" and not card.in_order)


def test_named_features_and_wrong_words(majorant: Majorant, tmp_path: Path) -> None:
    table().write_parquet(tmp_path / "t.parquet")
    assert majorant(*FIT, "--categorical", "auto", "--features", "size,sex").status == 0
    assert list(load("run/model.majorant").feature_names_in_) == ["size", "sex=f", "sex=m"]
    assert (
        'must be drop, auto or one-hot; got "onehot". Did you mean "one-hot"?'
        in majorant(*FIT, "--categorical", "onehot").words
    )
    hmm = ["fit", "hmm", "t.parquet", "--k", "2", "--out", "other"]
    assert "leave --categorical out" in majorant(*hmm, "--categorical", "one-hot").words


def test_regressions_compare_levels_with_the_first(majorant: Majorant, tmp_path: Path) -> None:
    own = table().with_columns(size=np.random.default_rng(1).normal(size=40) + (np.arange(40) % 2 == 0))
    own.write_parquet(tmp_path / "t.parquet")
    fit = ["fit", "regression-mixture", "t.parquet", "--target", "size", "--features", "sex", "--k", "1", "--force"]
    assert majorant(*fit, "--categorical", "one-hot", "--out", "run").status == 0
    model, lines = load("run/model.majorant"), {sex: own.filter(pl.col("sex") == sex)["size"].mean() for sex in "fm"}
    assert list(model.feature_names_in_) == ["sex: m against f"]
    np.testing.assert_allclose([model.intercept_[0], model.intercept_[0] + model.coef_[0, 0]], list(lines.values()))
    page = Path("run/report.html").read_text("utf-8")
    assert majorant("report", "run").status == 0 and Path("run/report.html").read_text("utf-8") == page
    assert majorant("predict", "run", "t.parquet", "--out", "p.csv").status == 0
    np.testing.assert_allclose(pl.read_csv("p.csv")["prediction"], [lines[sex] for sex in own["sex"]])
    assert majorant(*fit, "--categorical", "one-hot", "--set", "fit_intercept=False", "--out", "run").status == 0
    assert list(load("run/model.majorant").feature_names_in_) == ["sex=f", "sex=m"]


def test_what_is_said_of_levels_names_columns_of_the_table(majorant: Majorant, tmp_path: Path) -> None:
    gaps = table().with_columns(sex=pl.Series([None, *table()["sex"][1:]]))
    gaps.write_parquet(tmp_path / "t.parquet")
    refused = majorant(*FIT, "--categorical", "one-hot")
    assert 'values are missing in 1 row of t.parquet, in "sex". Fill them in, leave those columns out' in refused.words
    told = majorant(*FIT, "--categorical", "one-hot", "--drop-missing").out
    assert 'empty cells: 1 in "sex"' in told and "says what" not in told


def test_text_of_one_value_is_left_out_of_contrasts_and_said_to_be(majorant: Majorant) -> None:
    draws = np.random.default_rng(0)
    x, noise = draws.normal(size=60), draws.normal(size=60)
    pl.DataFrame({"x": x, "sex": ["F"] * 60, "y": np.where(draws.random(60) < 0.5, x, -x) + 0.1 * noise}).write_csv(
        "t.csv"
    )
    settings = ["--categorical", "one-hot", "--k", "2", "--set", "n_init=2", "--no-report", "--out", "run"]
    answer = majorant("fit", "regression-mixture", "t.csv", "--target", "y", *settings)
    assert answer.status == 0 and "left out, text, one value: sex" in " ".join(answer.out.split())
