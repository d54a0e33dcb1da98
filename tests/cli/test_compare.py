"""``majorant compare``: runs side by side, and nothing said that their data does not allow."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import adjusted_rand_score

import majorant as mj
from majorant.cli.settings import known_models
from majorant.registry import ESTIMATORS

Majorant = Callable[..., Any]


@pytest.fixture
def blobs(tmp_path: Path) -> Path:
    """Sixty rows about three centres, with a class and a number that follow them."""
    random = np.random.default_rng(0)
    group = np.arange(60) % 3
    x = np.array([[0.0, 0], [5, 0], [0, 5]])[group] + random.normal(size=(60, 2))
    columns = {"a": x[:, 0], "b": x[:, 1], "kind": np.array(["u", "v", "w"])[group], "y": x @ [1.0, 2.0] + group}
    path = tmp_path / "blobs.csv"
    pl.DataFrame(columns).write_csv(path)
    return path


def fitted(majorant: Majorant, out: str, model: str, *options: str, table: str = "blobs.csv") -> None:
    done = majorant("fit", model, table, "--out", out, "--quiet", "--no-report", *options)
    assert done.status == 0, done.err


AB = ("--features", "a,b")


def test_two_models_of_the_same_rows(majorant: Majorant, blobs: Path) -> None:
    fitted(majorant, "one", "kmeans", *AB, "--k", "3")
    fitted(majorant, "two", "gaussian-mixture", *AB, "--k", "2")
    out = majorant("compare", "one", "two").out
    assert "Both were fitted to the same data, blobs.csv." in out
    said = "Their objectives (SSE and log-likelihood) are of different models: they cannot be compared."
    assert said in " ".join(out.split())
    labels = [pl.read_csv(f"{run}/assignments.csv")[part] for run, part in (("one", "cluster"), ("two", "component"))]
    assert f"Agreement over 60 rows: adjusted Rand index {adjusted_rand_score(*labels):.3f}" in out
    assert max(map(len, out.splitlines())) <= 80


def test_better_objective_and_criteria_are_named(majorant: Majorant, blobs: Path) -> None:
    for k in (2, 3):
        fitted(majorant, f"k{k}", "gaussian-mixture", *AB, "--k", str(k))
    numbers = [json.loads(Path(f"k{k}/summary.json").read_text()) for k in (2, 3)]
    out = " ".join(majorant("compare", "k2", "k3").out.split())
    gain = numbers[1]["search"]["best"] - numbers[0]["search"]["best"]
    assert gain > 0 and f"The second has the higher, better log-likelihood, by {gain:.3f}" in out
    for name in ("bic", "aic", "icl"):
        first, second = (n["criteria"][name] for n in numbers)
        which = "first" if first < second else "second"
        assert f"{name.upper()} prefers the {which}, by {abs(first - second):.2f}." in out
    found = mj.load("k3/model.majorant").search_
    assert re.search(rf"runs at the best [0-9]+ of [0-9]+ {found.n_hits} of {found.n_starts} ", out)
    turned = " ".join(majorant("compare", "k3", "k2").out.split())
    assert "The first has the higher, better log-likelihood" in turned
    assert "They have the same log-likelihood." in majorant("compare", "k2", "k2").out


def test_a_lower_sum_of_squares_is_the_better(majorant: Majorant, blobs: Path) -> None:
    fitted(majorant, "k2", "kmeans", *AB, "--k", "2")
    fitted(majorant, "k4", "kmeans", *AB, "--k", "4")
    assert "The second has the lower, better SSE" in majorant("compare", "k2", "k4").out


def test_criteria_are_those_of_the_model(majorant: Majorant, blobs: Path) -> None:
    fitted(majorant, "lines", "regression-mixture", *AB, "--target", "y", "--k", "2", "--k", "2")
    fitted(majorant, "rows", "kmeans", *AB, "--k", "2")
    from majorant import load

    criteria = json.loads(Path("lines/summary.json").read_text())["criteria"]
    model = load(Path("lines/model.majorant"))
    assert criteria == {"bic": model.bic_, "aic": model.aic_, "icl": model.icl_}
    assert json.loads(Path("rows/summary.json").read_text())["criteria"] == {}
    out = majorant("compare", "lines", "rows").out
    assert "Both read the same table, but differ in target." in out
    assert "Their objectives (log-likelihood and SSE) are of different models" in " ".join(out.split())
    assert "BIC prefers" not in out and "Agreement over 60 rows" in out


def test_regressions_of_one_target_are_compared_whatever_explains_it(majorant: Majorant, blobs: Path) -> None:
    runs = {
        "one": [*AB[:1], "a", "--target", "y"],
        "both": ["--formula", "y ~ a + b"],
        "scaled": [*AB, "--target", "y", "--standardise"],
        "few": ["--formula", "y ~ gaps"],
        "other": [*AB[:1], "y", "--target", "a"],
    }
    pl.read_csv(blobs).with_columns(gaps=pl.when(pl.int_range(60) < 7).then(None).otherwise("b")).write_csv("t.csv")
    for name, options in runs.items():
        fitted(majorant, name, "regression-mixture", *options, "--k", "2", "--drop-missing", table="t.csv")
    best = {name: json.loads(Path(f"{name}/summary.json").read_text())["search"]["best"] for name in runs}
    for second in ("both", "scaled"):
        out = " ".join(majorant("compare", "one", second).out.split())
        assert "Both were fitted to the same rows of y, of t.csv." in out and "BIC prefers the" in out
        assert f"better log-likelihood, by {best[second] - best['one']:.3f}." in out
    for second, what in (("few", "rows"), ("other", "target")):
        out = " ".join(majorant("compare", "one", second).out.split())
        assert f"but differ in {what}. Objectives on different data cannot be compared." in out


def test_other_units_or_another_table_are_told(majorant: Majorant, blobs: Path) -> None:
    fitted(majorant, "one", "kmeans", *AB, "--k", "3")
    fitted(majorant, "units", "kmeans", *AB, "--k", "3", "--standardise")
    out = " ".join(majorant("compare", "one", "units").out.split())
    assert "differ in units. Objectives on different data cannot be compared." in out
    assert "better SSE" not in out and "Agreement over 60 rows" in out
    fitted(majorant, "mixture", "gaussian-mixture", *AB, "--k", "3")
    out = " ".join(majorant("compare", "units", "mixture").out.split())
    assert "differ in units. Their objectives (SSE and log-likelihood) are of different models" in out
    pl.read_csv(blobs).head(50).write_csv("other.csv")
    fitted(majorant, "other", "kmeans", *AB, "--k", "3", table="other.csv")
    out = " ".join(majorant("compare", "one", "other").out.split())
    assert "The two tables differ" in out and "Agreement" not in out and "better SSE" not in out


def test_classes_are_matched_by_prediction_and_representations_not_at_all(majorant: Majorant, blobs: Path) -> None:
    fitted(majorant, "classes", "prototype", *AB, "--target", "kind")
    fitted(majorant, "clusters", "kmeans", *AB, "--k", "3")
    fitted(majorant, "latents", "harmonium", *AB, "--k", "2")
    out = majorant("compare", "classes", "clusters").out
    assert "Agreement over 60 rows" in out and "first: class" in out
    out = " ".join(majorant("compare", "classes", "latents").out.split())
    assert "Only the first puts rows into parts: there is nothing to match." in out
    assert "Neither puts rows into parts" in majorant("compare", "latents", "latents").out


def test_rows_that_only_one_run_used_are_left_out(majorant: Majorant, blobs: Path) -> None:
    frame = pl.read_csv(blobs).with_columns(pl.when(pl.int_range(60) < 7).then(None).otherwise("b").alias("b"))
    frame.write_csv("holes.csv")
    fitted(majorant, "all", "kmeans", "--features", "a", "--k", "2", table="holes.csv")
    fitted(majorant, "some", "kmeans", *AB, "--k", "2", "--drop-missing", table="holes.csv")
    assert "Agreement over 53 rows" in majorant("compare", "all", "some").out


def test_what_is_no_run_is_refused(majorant: Majorant, blobs: Path) -> None:
    fitted(majorant, "one", "kmeans", *AB, "--k", "3")
    done = majorant("compare", "one", "two")
    assert done.status == 2 and "two is not a run: there is nothing of that name." in done.words
    Path("one/assignments.csv").unlink()
    done = majorant("compare", "one", "one")
    assert done.status == 2 and "one has no assignments.csv any more. Fit the model again." in done.words


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"criteria": [1]}', '{"criteria": {"bic": "x"}}'])
def test_a_summary_that_is_gone_or_damaged_takes_the_criteria_along(
    majorant: Majorant, blobs: Path, content: str
) -> None:
    fitted(majorant, "one", "gaussian-mixture", *AB, "--k", "2")
    Path("one/summary.json").write_text(content)
    done = majorant("compare", "one", "one")
    assert done.status == 0 and "BIC" not in done.out and "They have the same log-likelihood." in done.out


VIEWS = """[tags]
kind = "bernoulli"
columns = ["t*"]

[sizes]
kind = "gaussian"
columns = ["a", "b"]
"""

OTHERS = {
    "penalty": ("latent-svc", ["--target", "kind"], ["--set", "alpha=0.1"], "alpha"),
    "penalty of a representation": ("harmonium", ["--set", "l2=1.0"], ["--set", "l2=2.0"], "l2"),
    "temperature": ("gaussian-mixture", ["--k", "2"], ["--k", "2", "--set", "beta=0.5"], "beta"),
    "trimming": ("regression-mixture", ["--target", "y"], ["--target", "y", "--set", "trim=0.1"], "trim"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_objectives_under_other_penalties_are_not_compared(majorant: Majorant, blobs: Path, case: str) -> None:
    model, one, other, name = OTHERS[case]
    fitted(majorant, "one", model, *AB, *one)
    fitted(majorant, "two", model, *AB, *(one if "--target" in one and "--target" not in other else []), *other)
    out = " ".join(majorant("compare", "one", "two").out.split())
    assert f"Their objectives differ in {name}, which is part of it: they cannot be compared." in out
    assert "better" not in out and "prefers" not in out


def test_objectives_of_other_views_are_not_compared(majorant: Majorant, blobs: Path) -> None:
    table = pl.read_csv(blobs).with_columns(t1=(pl.col("a") > 1).cast(int), t2=(pl.col("b") > 1).cast(int))
    table.select("a", "b", "t1", "t2").write_csv("views.csv")
    for name, text in (("bits", VIEWS), ("numbers", VIEWS.replace("bernoulli", "gaussian"))):
        Path(f"{name}.toml").write_text(text)
        fitted(majorant, name, "harmonium", "--views", f"{name}.toml", "--set", "l2=1.0", table="views.csv")
    out = " ".join(majorant("compare", "bits", "numbers").out.split())
    assert "Their objectives differ in views, which is part of it" in out and "better" not in out


def test_bags_are_not_matched_with_rows(majorant: Majorant, blobs: Path) -> None:
    table = pl.read_csv(blobs).with_columns(bag=pl.int_range(60) // 2, label=pl.int_range(60) // 2 % 2)
    table.write_csv("bags.csv")
    fitted(majorant, "bags", "latent-svc", *AB, "--target", "label", "--bag", "bag", table="bags.csv")
    fitted(majorant, "rows", "kmeans", *AB, "--k", "2", table="bags.csv")
    out = " ".join(majorant("compare", "bags", "rows").out.split())
    assert "One run is about rows, the other about bags of rows: there is nothing to match." in out
    assert "Agreement" not in out
    assert "Agreement over 30" in majorant("compare", "bags", "bags").out


@pytest.mark.parametrize("model", known_models())
def test_what_sets_an_objective_is_a_parameter(model: str) -> None:
    card = known_models()[model]
    assert set(card.objective_set_by) <= set(ESTIMATORS[model]().get_params(deep=False))


def test_what_weights_depend_on_is_told(majorant: Majorant, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(60, 2))
    pl.DataFrame({"x": rows[:, 0], "y": rows[:, 1]}).write_csv(tmp_path / "t.csv")
    for name, gating in (("plain", []), ("gated", ["--gating", "x"])):
        settings = ["--set", "n_init=2", "--no-report", "--out", name]
        run = majorant("fit", "regression-mixture", "t.csv", "--formula", "y ~ 1", "--k", "2", *gating, *settings)
        assert run.status == 0
    line = next(line for line in majorant("compare", "plain", "gated").out.splitlines() if "features" in line)
    assert line.split("  ")[-1].strip() == "y ~ 1, weights by x" and "y ~ 1  " in line


def test_several_runs_are_one_table(majorant: Majorant, blobs: Path) -> None:
    names = ["k2", "k3", "k4", "means"]
    for k in (2, 3, 4):
        fitted(majorant, f"k{k}", "gaussian-mixture", *AB, "--k", str(k))
    fitted(majorant, "means", "kmeans", *AB, "--k", "3")
    out = majorant("compare", *names).out
    told = [json.loads(Path(f"{name}/summary.json").read_text()) for name in names]
    assert re.search(r"\n +run +model +size +log-likelihood", f"\n{out}")
    for number, (name, own) in enumerate(zip(names, told, strict=True), 1):
        assert re.search(rf"\n +{number} +{name} +{own['model']['title']} ", f"\n{out}")
        assert name == "means" or f"{own['criteria']['bic']:.2f}" in out
    flat = " ".join(out.split())
    assert "Of all runs: table blobs.csv; features 2; standardised no." in flat
    assert "k2 and means: Their objectives (log-likelihood and SSE) are of different models" in flat
    for criterion in ("bic", "aic", "icl"):
        (best, winner), (second, next_best), _ = sorted(
            (own["criteria"][criterion], name) for name, own in zip(names[:3], told[:3], strict=True)
        )
        by = f"{winner} has the best {criterion.upper()}; the next, {next_best}, is worse by {second - best:.3f}."
        assert by in flat
    parts = [pl.read_csv(f"{name}/assignments.csv").to_series(1) for name in names]
    matrix = [[f"{adjusted_rand_score(one, other):.3f}" for other in parts] for one in parts]
    shown = [line.split() for line in out.splitlines() if re.match(r" +\d +\w+ +[01]\.\d{3}", line)]
    assert shown == [[str(i), name, *own] for i, (name, own) in enumerate(zip(names, matrix, strict=True), 1)]
    assert max(map(len, out.splitlines())) <= 80


def test_runs_of_other_tables_and_one_alone(majorant: Majorant, blobs: Path) -> None:
    for name, k in (("one", "2"), ("two", "3")):
        fitted(majorant, name, "kmeans", *AB, "--k", k)
    pl.read_csv(blobs).head(40).write_csv("fewer.csv")
    fitted(majorant, "fewer", "kmeans", *AB, "--k", "2", table="fewer.csv")
    flat = " ".join(majorant("compare", "one", "fewer", "two").out.split())
    assert "one and fewer: The two tables differ: objectives and rows cannot be compared." in flat
    assert "two has the best SSE; the next, one, is worse by" in flat
    alone = majorant("compare", "one")
    assert alone.status == 2 and "two runs or more; got one alone" in alone.err
