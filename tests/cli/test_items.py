"""Latent classes by the command line: text, numbers and empty cells of a table, from fit to predict and report."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import majorant as mj
from majorant.cli.app import app
from majorant.cli.errors import CommandError


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pl.DataFrame:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    z = random.random(150) < 0.4
    frame = pl.DataFrame(
        {
            "id": np.arange(150),
            "visited": np.where(random.random(150) < np.where(z, 0.9, 0.2), "yes", "no"),
            "asked": [None if i % 9 == 0 else "yes" if u < (0.8 if b else 0.1) else "no"
                      for i, (u, b) in enumerate(zip(random.random(150), z, strict=True))],
            "spent": random.normal(np.where(z, 50.0, 20.0), 8.0),
            "times": random.integers(1, 3, 150),
        }
    )  # fmt: skip
    frame.write_csv("items.csv")
    return frame


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.output


def test_a_table_of_text_and_empty_cells_is_fitted_predicted_and_reported(table: pl.DataFrame) -> None:
    said = run("fit", "latent-class-analysis", "items.csv", "--k", "1:3", "--weights", "times", "--out", "run")
    assert "classes" in said and "classs" not in said and "left out, not numeric" not in said
    assert "left out, looks like an id: id" in " ".join(said.split())
    model = mj.load("run/model.majorant")
    items = table.select("visited", "asked", "spent")
    direct = mj.LatentClassAnalysis(2, random_state=0).fit(items, sample_weight=table["times"].to_numpy())
    assert model.items_.names == ("visited", "asked", "spent") and model.n_components == 2
    assert model.log_likelihood_ == pytest.approx(direct.log_likelihood_, rel=1e-12)
    run("predict", "run", "items.csv", "--out", "predicted.csv")
    np.testing.assert_allclose(
        pl.read_csv("predicted.csv")[:, -1].to_numpy(), direct.predict_proba(items)[:, -1], atol=1e-5
    )
    Path("run/report.html").unlink()
    run("report", "run")
    assert "<html" in Path("run/report.html").read_text()[:400].lower()


def test_items_can_be_named_and_told_what_they_are(table: pl.DataFrame) -> None:
    run("fit", "latent-class-analysis", "items.csv", "--k", "2", "--features", "visited,times", "--out", "run")
    assert mj.load("run/model.majorant").items_.kinds == ("categorical", "categorical")
    done = CliRunner().invoke(app, ["fit", "latent-class-analysis", "items.csv", "--features", "vsited", "--out", "no"])
    assert done.exit_code != 0 and 'Did you mean "visited"' in str(done.exception)


def test_a_new_level_is_named(table: pl.DataFrame) -> None:
    run("fit", "latent-class-analysis", "items.csv", "--k", "2", "--features", "visited,asked", "--out", "run")
    table.head(3).with_columns(visited=pl.Series(["yes", "maybe", "no"])).write_csv("new.csv")
    done = CliRunner().invoke(app, ["predict", "run", "new.csv", "--out", "predicted.csv"])
    assert isinstance(done.exception, CommandError) and "maybe" in str(done.exception)


def test_covariates_of_numbers_and_text_have_effects_with_odds_ratios(table: pl.DataFrame) -> None:
    random = np.random.default_rng(1)
    high = (table["spent"] > 35).to_numpy()
    age = [None if i == 9 else float(a) for i, a in enumerate(random.normal(40 + 6 * high, 8.0))]
    sex = np.where(random.random(150) < 0.3 + 0.4 * high, "male", "female")
    wide = table.with_columns(pl.Series("age", age), pl.Series("sex", sex))
    wide.write_csv("items.csv")
    said = run("fit", "latent-class-analysis", "items.csv", "--k", "1:2", "--covariates", "age,sex", "--out", "run")
    words = " ".join(said.split())
    assert "; sex=male against female." in words and "odds ratio" in said
    assert "149 rows used, 1 of 150 left out for empty cells (1 in covariates)" in words
    assert "16 of 596 cells are empty" in said and '"cells_missing": 16' in Path("run/summary.json").read_text()
    assert "lack" not in said and pl.read_csv("run/assignments.csv").height == 149
    page = Path("run/report.html").read_text().replace("\u202f", "")
    assert "One row left out for empty cells (1 in covariates)." in page
    assert "1 row left out" in page and not re.search(r"of 150\b", page)
    model = mj.load("run/model.majorant")
    assert model.gating_names_in_ == ["age", "sex=male"] and model.items_.names == (
        "visited",
        "asked",
        "spent",
        "times",
    )
    kept = wide.filter(pl.col("age").is_not_null())
    given = kept.select("age", "sex")
    direct = mj.LatentClassAnalysis(2, random_state=0).fit(kept.select(model.items_.names), gating=given)
    assert model.log_likelihood_ == pytest.approx(direct.log_likelihood_, rel=1e-12)
    run("predict", "run", "items.csv", "--out", "predicted.csv")
    found = pl.read_csv("predicted.csv")
    assert found["row"].to_list() == list(range(1, 151))
    proba = direct.predict_proba(kept.select(model.items_.names), gating=given)
    np.testing.assert_allclose(found.filter(pl.col("row") != 10)[:, -1].to_numpy(), proba[:, -1], atol=1e-6)
    asked = ["fit", "latent-class-analysis", "items.csv", "--k", "2", "--covariates", "age,sex", "--missing", "fail"]
    done = CliRunner().invoke(app, [*asked, "--out", "none"])
    assert isinstance(done.exception, CommandError) and "values are missing in" in str(done.exception)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("latent-class-analysis", "--covariates", "agee"), 'no column "agee"'),
        (("latent-class-analysis", "--covariates", "times,times"), '"times" is named twice'),
        (("latent-class-analysis", "--covariates", "times", "--features", "times,asked"), "cannot be"),
        (("kmeans", "--covariates", "times"), "takes no --covariates"),
        (("latent-class-analysis", "--covariates", "times", "--missing", "-99"), "is told by --na -99"),
        (("kmeans", "--missing", "fit"), "needs every value"),
    ],
)
def test_covariates_that_cannot_be_are_refused(table: pl.DataFrame, arguments: tuple[str, ...], message: str) -> None:
    model, *options = arguments
    done = CliRunner().invoke(app, ["fit", model, "items.csv", "--k", "2", *options, "--out", "run"])
    assert isinstance(done.exception, CommandError) and message in str(done.exception)


def test_one_class_is_fitted_and_reported_beside_covariates(table: pl.DataFrame) -> None:
    said = run("fit", "latent-class-analysis", "items.csv", "--k", "1", "--covariates", "times", "--out", "run")
    assert "odds ratio" not in said and mj.load("run/model.majorant").n_components == 1


def test_effects_are_in_a_table_of_the_run(table: pl.DataFrame) -> None:
    run("fit", "latent-class-analysis", "items.csv", "--k", "2", "--covariates", "times", "--out", "run")
    model = mj.load("run/model.majorant")
    effects = pl.read_csv("run/tables/effects.csv")
    told = model.covariate_effects(table.select(model.items_.names), table.select("times"))
    np.testing.assert_allclose(effects["Odds ratio"].to_numpy(), told.odds_ratios[1], rtol=1e-9)
    profile = pl.read_csv("run/tables/class-profile.csv")
    assert profile["Item"].to_list()[:2] == ["visited", "visited"] and profile["Level"].to_list()[:2] == ["no", "yes"]


def test_populations_are_compared(table: pl.DataFrame) -> None:
    region = np.where(np.arange(150) % 3 == 0, "north", "south")
    table.with_columns(region=pl.Series(region)).write_csv("items.csv")
    asked = ("fit", "latent-class-analysis", "items.csv", "--features", "visited,asked,spent", "--k", "2")
    said = run(*asked, "--population", "region", "--set", "equal_items=['visited', 'asked']", "--out", "run")
    assert "region=north" in said and "--population region" in Path("run/report.html").read_text()
    model = mj.load("run/model.majorant")
    assert model.items_.names == ("visited", "asked", "spent (north)", "spent (south)")
    shares = pl.read_csv("run/tables/population-shares.csv")
    assert shares["Population"].to_list() == ["north", "south"]
    np.testing.assert_allclose(shares["Class 1"].to_numpy(), model.population_shares_[0], rtol=1e-9)
    assert (shares["Class 1 (low)"] < shares["Class 1"]).all() and (shares["Class 1"] < shares["Class 1 (high)"]).all()
    page = Path("run/report.html").read_text()
    assert "all items but" in page and "invariance_tests" in page
    run("predict", "run", "items.csv", "--out", "predicted.csv")
    run(*asked, "--population", "region", "--set", "equal_items=none", "--no-report", "--out", "free")
    assert mj.load("free/model.majorant").populations_.all_free
    done = CliRunner().invoke(app, [*asked, "--population", "regions", "--out", "other"])
    assert done.exit_code and 'no column "regions" in items.csv. Did you mean "region"?' in str(done.exception)
    done = CliRunner().invoke(
        app, ["fit", "kmeans", "items.csv", "--population", "region", "--k", "2", "--out", "other"]
    )
    assert done.exit_code and "k-means takes no --population" in str(done.exception)


def test_codes_for_missing_cells_are_pointed_out_and_read_as_such(table: pl.DataFrame) -> None:
    at = pl.int_range(150)
    marked = table.with_columns(
        visited=pl.when((at > 9) & (at < 20)).then(pl.lit("-99")).otherwise(pl.col("visited")),
        times=pl.when(at < 5).then(-99).otherwise(pl.col("times").fill_null(0)),
    )
    marked.write_csv("codes.csv")
    asked = ("fit", "latent-class-analysis", "codes.csv", "--k", "2", "--features", "visited,times", "--no-report")
    said = " ".join(run(*asked, "--out", "raw").split())
    assert '-99 stands in "visited", "times": if it means a missing cell, read the table with --na -99' in said
    read = " ".join(run(*asked, "--na", "-99,none", "--out", "run").split())
    assert "stands in" not in read and mj.load("run/model.majorant").items_.levels[0] == ("no", "yes")
    marked.write_parquet("codes.parquet")
    run(*asked[:2], "codes.parquet", *asked[3:], "--na", "-99", "--out", "other")
    found = [mj.load(f"{name}/model.majorant").log_likelihood_ for name in ("run", "other")]
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    assert any("level -99" in remark for remark in mj.load("raw/model.majorant").items_.remarks)
    for form in ("csv", "parquet"):  # which is read part by part
        run("predict", "other", f"codes.{form}", "--out", f"of-{form}.csv")
    assert pl.read_csv("of-csv.csv").equals(pl.read_csv("of-parquet.csv"))


def test_numbers_of_classes_are_side_by_side_in_one_table(table: pl.DataFrame) -> None:
    asked = ("--k", "1:2", "--features", "visited,asked,spent")
    run("fit", "latent-class-analysis", "items.csv", *asked, "--out", "run")
    found = pl.read_csv("run/tables/criterion.csv")
    assert found["Classes"].to_list() == [1, 2] and found["Entropy R²"].to_list()[0] is None
    page = Path("run/report.html").read_text("utf-8")
    run("report", "run")
    assert Path("run/report.html").read_text("utf-8") == page
    model = mj.load("run/model.majorant")
    told = model.fit_statistics(table.select(model.items_.names))
    at = model.n_components - 1
    assert found["SABIC"][at] == pytest.approx(told.sabic) and found["ICL"][at] == pytest.approx(told.icl)
    assert Path("run/figures/class-profile.pdf").read_bytes().startswith(b"%PDF")
    classes, direct = (
        pl.read_csv("run/tables/classification.csv"),
        model.classification(table.select(model.items_.names)),
    )
    np.testing.assert_allclose(classes[:, 1:].to_numpy(), direct.assigned)
