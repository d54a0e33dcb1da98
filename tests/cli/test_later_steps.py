"""Covariates and outcomes in later steps, tests of invariance, known classes and ordered levels by the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import majorant as mj
from majorant.cli.app import app
from majorant.cli.errors import CommandError

LEVELS = ["never", "rarely", "often"]
ITEMS = ["q1", "q2", "q3", "q4"]
FIT = ["fit", "latent-class-analysis", "items.csv", "--k", "2", "--features", ",".join(ITEMS)]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pl.DataFrame:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    z = random.random(200) < 0.4
    chances = np.where(z[:, None], [0.1, 0.2, 0.7], [0.7, 0.2, 0.1]).cumsum(axis=1)[:, :-1]
    answers = {name: np.array(LEVELS)[(random.random((200, 1)) > chances).sum(axis=1)] for name in ITEMS}
    frame = pl.DataFrame(
        {
            "person": [f"P{i:03d}" for i in range(200)],
            **answers,
            "age": 40 + 4 * z + random.normal(0, 6, 200),
            "income": random.normal(np.where(z, 35.0, 30.0), 4.0),
            "job": np.where(random.random(200) < 0.3 + 0.4 * z, "yes", "no"),
            "visits": random.poisson(np.where(z, 5, 2)),
            "country": random.choice(["north", "south"], 200),
            "group": np.where(np.arange(200) < 30, np.where(z, "ill", "well"), None),
        }
    ).with_columns(
        q1=pl.when(pl.int_range(200) % 11 == 0).then(None).otherwise(pl.col("q1")),
        income=pl.when(pl.int_range(200) % 17 == 0).then(None).otherwise(pl.col("income")),
    )
    frame.write_csv("items.csv")
    return frame


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, [*FIT, *arguments, "--out", "run"])
    assert done.exit_code == 0, done.output
    return done.output


def refused(*arguments: str) -> str:
    done = CliRunner().invoke(app, [*FIT, *arguments, "--out", "no"])
    assert isinstance(done.exception, CommandError), done.output
    return str(done.exception)


def test_covariates_and_outcomes_are_taken_in_after_the_classes(table: pl.DataFrame) -> None:
    said = run("--covariates", "age", "--outcomes", "income,job,visits=count", "--method", "ml", "--id", "person")
    model = mj.load("run/model.majorant")
    items = table.select(ITEMS)
    direct = mj.LatentClassAnalysis(2, random_state=0).fit(items)
    assert model.log_likelihood_ == direct.log_likelihood_ and "gating_coef" not in model.estimate_names_
    effects = pl.read_csv("run/tables/effects.csv")
    told = direct.covariate_effects(items, table.select("age"), method="ml")
    np.testing.assert_allclose(effects["Standard error"].to_numpy(), told.standard_errors[1], rtol=1e-8)
    found = pl.read_csv("run/tables/outcomes.csv")
    assert found["Outcome"].to_list() == ["income", "job", "job", "visits"]
    kinds = {"income": "auto", "job": "auto", "visits": "count"}
    numbers = json.loads(Path("run/summary.json").read_text())
    for name, kind in kinds.items():
        own = direct.distal_outcome(items, table[name].to_numpy(), method="ml", kind=kind)
        rows = found.filter(pl.col("Outcome") == name)
        for k in range(2):
            reach, p = 1.959963984540054 * own.standard_errors[k], own.estimates[k]
            odds = p / (1 - p) * np.exp(-reach / (p * (1 - p))) if own.levels else p
            low = odds / (1 + odds) if own.levels else p - reach
            np.testing.assert_allclose(rows[f"Class {k + 1}"].to_numpy(), own.estimates[k], rtol=1e-9)
            np.testing.assert_allclose(rows[f"Class {k + 1} (low)"].to_numpy(), low, rtol=1e-9)
        assert rows["Chi-squared"][0] == pytest.approx(own.test().statistic)
        assert [row["estimate"] for row in numbers["outcomes"][name]] == pytest.approx(own.estimates.ravel().tolist())
    assert "12 of 200 rows have no outcome: left out here." in said and "chi-squared" in said
    assert pl.read_csv("run/tables/outcome-differences.csv")["Outcome"].to_list() == ["income", "job", "visits"]
    page = Path("run/report.html").read_text("utf-8")
    assert "The classes were found first" in page and "three steps, maximum likelihood" in page
    assert CliRunner().invoke(app, ["report", "run"]).exit_code == 0
    assert Path("run/report.html").read_text("utf-8") == page
    items.write_csv("new.csv")  # neither covariates nor outcomes are needed to predict
    assert CliRunner().invoke(app, ["predict", "run", "new.csv", "--out", "new-classes.csv"]).exit_code == 0
    unsure = pl.read_csv("run/tables/unsure-rows.csv")
    assert unsure["person"].to_list() == [f"P{row - 1:03d}" for row in unsure["Row"]]


def test_populations_are_tested_for_invariance(table: pl.DataFrame) -> None:
    said = run("--population", "country", "--equal-items", "q1,q2,q3", "--invariance-tests")
    model = mj.load("run/model.majorant")
    assert model.populations_.free == (3,) and "free: q2" in said
    told = model.invariance_tests(table.select(*ITEMS, "country")).to_frame()
    found = pl.read_csv("run/tables/invariance-tests.csv")
    assert found["Model"].to_list() == list(told["model"])
    np.testing.assert_allclose(found["Log-likelihood"].to_numpy(), told["log_likelihood"], rtol=1e-12)
    assert found["p"][0] is None and (found["p"][1:] > 0).all()


def test_known_classes_are_read_from_words_and_stay(table: pl.DataFrame) -> None:
    said = run("--component-labels", "group", "--covariates", "age")
    assert 'classes are those of "group": 1 is "ill", 2 is "well"' in said and "odds ratio" in said
    labels = [{"ill": 0, "well": 1}.get(value, -1) for value in table["group"]]
    direct = mj.LatentClassAnalysis(2, random_state=0).fit(
        table.select(ITEMS), gating=table.select("age"), component_labels=labels
    )
    assert mj.load("run/model.majorant").log_likelihood_ == direct.log_likelihood_
    classes = pl.read_csv("run/assignments.csv")
    of_known = classes.filter(table["group"].is_not_null())
    assert (of_known["probability"] == 1.0).all()
    assert of_known["class"].to_list() == [1 if value == "ill" else 2 for value in table["group"].drop_nulls()]
    sizes = pl.read_csv("run/tables/class-sizes.csv")
    assert sizes["Known"].to_list() == [labels.count(0), labels.count(1)]
    assert "no more" not in said and CliRunner().invoke(app, ["report", "run"]).exit_code == 0


def test_levels_of_text_have_an_order_and_make_items_ordinal(table: pl.DataFrame) -> None:
    run("--levels", "never<rarely<often")
    model = mj.load("run/model.majorant")
    assert model.items_.kinds == ("ordinal",) * 4 and model.items_.levels[0] == tuple(LEVELS)
    ordered = table.select(pl.col(ITEMS).cast(pl.Enum(LEVELS)))
    direct = mj.LatentClassAnalysis(2, items="ordinal", random_state=0).fit(ordered)
    assert model.log_likelihood_ == pytest.approx(direct.log_likelihood_, rel=1e-12)
    page = Path("run/report.html").read_text("utf-8")
    assert CliRunner().invoke(app, ["report", "run"]).exit_code == 0
    assert Path("run/report.html").read_text("utf-8") == page
    named = ["--levels", "q2, q3 = often<rarely<never", "--set", "items={'q3': 'categorical'}"]
    run(*named, "--no-report", "--force")
    kinds, levels = (getattr(mj.load("run/model.majorant").items_, name) for name in ("kinds", "levels"))
    assert kinds == ("categorical", "ordinal", "categorical", "categorical")
    assert levels[1] == levels[2] == tuple(LEVELS[::-1]) and levels[0] == tuple(sorted(LEVELS))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--levels", "q1=never<rarley<often"], 'holds "rarely", which --levels does not list. Did you mean "rarley"?'),
        (["--levels", "visits=1<2"], "holds numbers, which have an order"),
        (["--levels", "a<b"], "no column of text has the levels"),
        (["--levels", "q1=never"], "two different levels or more"),
        (["--levels", "q1=never<"], "two different levels or more"),
        (["--levels", "=never<often"], 'a column "" that is not there'),
        (["--levels", "qq1=never<often"], 'a column "qq1" that is not there. Did you mean "q1"?'),
        (["--outcomes", "incme"], 'no column "incme"'),
        (["--outcomes", "income=poisson"], "Kinds: normal, count, categorical."),
        (["--outcomes", "income,income"], "named twice"),
        (["--outcomes", "q1"], '"q1" cannot be an outcome'),
        (["--method", "bch"], "--method is for covariates and outcomes"),
        (["--covariates", "age", "--method", "bhc"], 'got "bhc". Did you mean "bch"?'),
        (["--outcomes", "income", "--method", "one-step"], "not in one step"),
        (["--covariates", "age", "--method", "two-step", "--assignment", "modal"], "is for three steps"),
        (["--equal-items", "q1"], "Name them with --population"),
        (["--invariance-tests"], "Name them with --population"),
        (["--component-labels", "income"], "must number the known classes from 1"),
        (["--component-labels", "q2", "--features", "q1,q3"], "names 3 classes, more than the 2"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(table: pl.DataFrame, arguments: list[str], message: str) -> None:
    assert message in refused(*arguments)


def test_a_later_step_that_cannot_be_taken_is_told_and_leaves_the_classes(table: pl.DataFrame) -> None:
    table.with_columns(same=pl.lit(1.0)).write_csv("items.csv")
    said = " ".join(run("--outcomes", "same,income", "--no-report").split())
    assert 'outcome "same": y is 1.0 in every row: give an outcome that varies' in said
    assert "income" in json.loads(Path("run/summary.json").read_text())["outcomes"]


def test_other_models_take_no_options_of_latent_classes(table: pl.DataFrame) -> None:
    for option in (["--outcomes", "income"], ["--invariance-tests"], ["--equal-items", "all"]):
        done: Any = CliRunner().invoke(app, ["fit", "kmeans", "items.csv", "--k", "2", *option, "--out", "no"])
        assert f"takes no {option[0]}" in str(done.exception)


def test_a_page_counts_the_rows_of_the_fit(table: pl.DataFrame) -> None:
    table.with_columns(age=pl.when(pl.int_range(200) < 7).then(None).otherwise(pl.col("age"))).write_csv("items.csv")
    run("--covariates", "age")
    page = Path("run/report.html").read_text("utf-8")
    assert "<title>193 rows of items.csv" in page and re.search(r"<h1>193 rows", page)


def test_intervals_of_shares_have_two_ends(table: pl.DataFrame) -> None:
    run()
    sizes = re.search(r'id="class-sizes".*?</section>', Path("run/report.html").read_text("utf-8"), re.DOTALL)
    assert sizes is not None and len(re.findall(r">\d+\.\d to \d+\.\d<", sizes[0])) == 2


def test_help_says_which_options_belong_together() -> None:
    from majorant.cli.parameters import model_help

    told = model_help("latent-class-analysis")
    heads = ["What the classes depend on:", "What depends on the classes", "Several populations:", "Rows:"]
    places = [told.index(head) for head in heads]
    assert places == sorted(places)
    assert places[0] < told.index("--covariates A,B,C") < places[1] < told.index("--outcomes") < places[2]
    assert "--outcomes" not in model_help("kmeans") and "Several populations" not in model_help("kmeans")
