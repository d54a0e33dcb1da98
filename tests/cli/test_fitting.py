"""What fit does with columns, rows, weights, folders and options."""

from __future__ import annotations

import functools
import gzip
import json
import os
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import majorant as mj
from majorant.cli import outcome
from majorant.cli.request import FitRequest
from majorant.cli.settings import joined_names, parsed_names
from majorant.models.units import Standardisation
from majorant.persistence import load, load_with_extra

Majorant = Callable[..., Any]
FIT = ["fit", "kmeans", "plants.csv", "--k", "2", "--out", "run"]


def test_left_out_columns_and_rows_are_named(majorant: Majorant, table: Path) -> None:
    answer = majorant(*FIT, "--drop-missing")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.startswith(
        "Table    plants.csv, 11 rows used, 1 of 12 left out for empty cells\n"
        "Columns  left out, looks like an id: id\n"
        "         left out, text: name\n"
        '         empty cells: 1 in "width"\n'
        "Model    k-means, 2 clusters, 2 features\n"
    )
    page = Path("run/report.html").read_text("utf-8")
    assert "2 columns used, 2 left out. One row left out for empty cells." in page and ">1 row left out<" in page
    rows = pl.read_csv("run/assignments.csv")["row"].to_list()
    assert rows == [1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12]
    assert "1 row" in majorant("predict", "run", "plants.csv", "--out", "p.csv").err
    again = majorant("predict", "run", "plants.csv", "--out", "p.csv", "--drop-missing")
    assert again.out == "Wrote    p.csv, 11 rows, 1 left out\n"
    assert pl.read_csv("p.csv").equals(pl.read_csv("run/assignments.csv"))


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow", "feather", "npz"])
def test_every_kind_of_table_gives_the_same_run(majorant: Majorant, tmp_path: Path, ending: str) -> None:
    X = np.random.default_rng(1).normal(size=(30, 2))
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    path = tmp_path / f"t.{ending}"
    writers: dict[str, Callable[[], object]] = {
        "csv": lambda: frame.write_csv(path, separator=";"),
        "tsv": lambda: frame.write_csv(path, separator="\t"),
        "parquet": lambda: frame.write_parquet(path),
        "arrow": lambda: frame.write_ipc_stream(path),
        "feather": lambda: frame.write_ipc(path),
        "npz": lambda: np.savez(path, X=X, names=np.array(["a", "b"])),
    }
    writers[ending]()
    assert majorant("fit", "kmeans", path.name, "--k", "3", "--out", "run", "--no-report", "--quiet") == (0, "", "")
    expected = mj.KMeans(3, random_state=0).fit(X)
    model = load("run/model.majorant")
    np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
    assert list(model.feature_names_in_) == ["a", "b"]


def test_text_that_is_a_number_counts_as_one(majorant: Majorant, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,b,"c, d"\n1, 2,true\n2,NA,false\n3, 4.5,true\n')
    answer = majorant("fit", "kmeans", "t.csv", "--features", 'b,"c, d"', "--k", "2", "--drop-missing", "--out", "run")
    assert answer.status == 0
    assert load_with_extra("run/model.majorant")[1]["features"] == ["b", "c, d"]


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b'"height, cm";"weight, kg"\n1;2\n2;3\n9;9\n', ["height, cm", "weight, kg"]),
        (b'"a\nb";c\n1;2\n2;3\n9;9\n', ["a\nb", "c"]),
        (b"a,a_duplicated_0\n1,2\n2,3\n9,9\n", ["a", "a_duplicated_0"]),
        (b"\xef\xbb\xbfa,b\r\n1,2\r\n2,3\r\n9,9\r\n", ["a", "b"]),
        (gzip.compress(b"a;b\n1;2\n2;3\n9;9\n"), ["a", "b"]),
    ],
    ids=["commas in names", "a line break in a name", "a name like polars's own", "a byte order mark", "packed"],
)
def test_headers(majorant: Majorant, tmp_path: Path, content: bytes, names: list[str]) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    assert majorant("fit", "kmeans", "t.csv", "--k", "2", "--out", "run", "--no-report").status == 0
    assert json.loads(Path("run/summary.json").read_text("utf-8"))["features"] == names


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux alone")
def test_a_file_name_that_is_no_text(majorant: Majorant, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"t\xff.csv")
    path.write_text("a,b\n1,2\n2,3\n9,9\n")
    answer = majorant("fit", "kmeans", path.name, "--k", "2", "--out", "run")
    assert answer.status == 0 and answer.out.startswith("Table    t?.csv, 3 rows used")


def test_row_names_without_a_header(majorant: Majorant, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('"",a\n1,2.5\n2,3\n3,9\n')
    answer = majorant("fit", "kmeans", "t.csv", "--k", "2", "--out", "run")
    assert (answer.status, answer.err) == (0, "")
    assert 'left out, looks like an id: ""' in answer.out


def test_weights_count_as_repeats(majorant: Majorant, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    X, w = rng.normal(size=(20, 2)), rng.integers(1, 4, size=20)
    pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "w": w}).write_csv("weighted.csv")
    repeated = np.repeat(X, w, axis=0)
    pl.DataFrame({"a": repeated[:, 0], "b": repeated[:, 1]}).write_csv("repeated.csv")
    options = ["--k", "3", "--standardise", "--no-report", "--set", "n_init=30"]
    assert majorant("fit", "kmeans", "weighted.csv", "--weights", "w", "--out", "a", *options).status == 0
    assert majorant("fit", "kmeans", "repeated.csv", "--out", "b", *options).status == 0
    a, b = load("a/model.majorant"), load("b/model.majorant")
    assert a.inertia_ == pytest.approx(b.inertia_)
    np.testing.assert_allclose(a.cluster_centers_, b.cluster_centers_, atol=1e-9)


def test_an_existing_run_is_replaced_only_by_force(majorant: Majorant, table: Path) -> None:
    options = ["--features", "height"]
    assert majorant(*FIT, *options).status == 0
    Path("run/notes.txt").write_text("mine")
    before = Path("run/model.majorant").read_bytes()
    refused = majorant(*FIT, *options)
    assert refused.status == 2
    assert refused.err.startswith("majorant: run is there already and is not empty.\n")
    assert Path("run/model.majorant").read_bytes() == before
    assert majorant(*FIT, "--features", "height,id", "--force", "--no-report").status == 0
    # the report was the earlier run's
    assert sorted(p.name for p in Path("run").iterdir()) == [
        "assignments.csv",
        "model.majorant",
        "notes.txt",
        "summary.json",
    ]
    assert Path("run/notes.txt").read_text() == "mine" and Path("run/model.majorant").read_bytes() != before


def test_a_folder_in_the_place_of_a_file_is_told_before_anything_is_replaced(majorant: Majorant, table: Path) -> None:
    assert majorant(*FIT, "--features", "height,id", "--no-report").status == 0
    before = (table.parent / "run" / "model.majorant").read_bytes()
    (table.parent / "run" / "report.html").mkdir()
    answer = majorant(*FIT, "--features", "height", "--force")
    assert (answer.status, answer.words[:49]) == (2, "majorant: run/report.html is a folder; a run writ")
    assert (table.parent / "run" / "model.majorant").read_bytes() == before


def test_an_empty_folder_is_used(majorant: Majorant, table: Path) -> None:
    Path("run").mkdir()
    assert majorant(*FIT, "--features", "height", "--no-report").status == 0
    assert sorted(p.name for p in Path().iterdir()) == ["plants.csv", "run"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("boom"), KeyboardInterrupt()])
def test_nothing_is_left_when_writing_fails(
    majorant: Majorant, table: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(outcome, "write_json", fail)
    answer = majorant(*FIT[:-1], "deep/er/run", "--features", "height")
    assert answer.status == {OSError: 2, RuntimeError: 1, KeyboardInterrupt: 130}[type(error)]
    assert answer.out == ""
    assert [p.name for p in table.parent.iterdir()] == ["plants.csv"]


def test_settings_reach_the_model(majorant: Majorant, table: Path) -> None:
    settings = [
        "--set",
        "tol=1e-6",
        "--set",
        "init=random",
        "--set",
        "n_init=4",
        "--set",
        "n_jobs=None",
        "--random-state",
        "7",
    ]
    assert majorant(*FIT, "--features", "height", "--no-report", *settings).status == 0
    parameters = load("run/model.majorant").get_params()
    assert {k: parameters[k] for k in ("tol", "init", "n_init", "n_jobs", "random_state", "n_clusters")} == {
        "tol": 1e-6,
        "init": "random",
        "n_init": 4,
        "n_jobs": None,
        "random_state": 7,
        "n_clusters": 2,
    }
    content = json.loads(Path("run/summary.json").read_text())
    command = content["command"].replace("\\\n", "")
    assert shlex.split(command)[1:4] == ["fit", "kmeans", "plants.csv"]
    assert majorant(*shlex.split(command)[1:], "--force").status == 0
    again = json.loads(Path("run/summary.json").read_text())
    assert {**content, "seconds": 0} == {**again, "seconds": 0}


def test_warnings_of_the_model_become_look_out(majorant: Majorant, table: Path) -> None:
    answer = majorant(*FIT, "--features", "height", "--no-report", "--set", "init=[[1.0],[9.0]]", "--set", "n_init=5")
    assert answer.status == 0 and answer.err == ""
    assert "\nWarning: " in answer.out
    assert json.loads(Path("run/summary.json").read_text())["look_out"]


def test_a_column_that_has_most_of_the_variance_is_named(majorant: Majorant, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    columns = {"a": random.normal(size=60), "b": 1e3 * random.normal(size=60), "c": np.full(60, 7.0)}
    pl.DataFrame(columns | {"w": np.where(np.arange(60) < 30, 1.0, 0.0)}).write_csv(tmp_path / "t.csv")
    fit = ["fit", "kmeans", "t.csv", "--k", "2", "--no-report", "--force", "--out", "run", "--features"]
    words = 'Warning: "b" has 99 % of the variance of all 3 columns'
    for options in (["a,b,c"], ["a,b,c", "--weights", "w"]):
        assert words in " ".join(majorant(*fit, *options).out.split())
        assert "--standardise" in json.loads(Path("run/summary.json").read_text())["look_out"][0]
    for options in (["a,b", "--standardise"], ["b"], ["a,w"]):
        answer = majorant(*fit, *options)
        assert answer.status == 0 and "variance" not in answer.out
        assert not json.loads(Path("run/summary.json").read_text())["look_out"]


def test_constant_columns_are_named(majorant: Majorant, tmp_path: Path) -> None:
    a = np.random.default_rng(0).normal(size=60)
    pl.DataFrame({"a": a, "year": np.full(60, 2013), "b": a + 1e-9, "c": np.full(60, 0.1)}).write_csv("t.csv")
    for options in ([], ["--standardise"]):
        out = majorant("fit", "kmeans", "t.csv", "--k", "2", "--no-report", "--force", "--out", "run", *options).out
        assert 'Warning: Constant columns: "year", "c". They do not distinguish clusters.' in out


def test_models_and_version(majorant: Majorant) -> None:
    assert re.search(r"^Models, by their name in .*:\n(.*\n)+kmeans +k-means: ", majorant("models").out)
    assert majorant("--version").out == f"majorant {mj.__version__}\n"


def test_demo_keeps_what_is_there(majorant: Majorant, tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "wine.csv").write_text("mine")
    answer = majorant("demo")
    assert answer.status == 2 and "is there already and is another table." in answer.err
    assert (tmp_path / "demo" / "wine.csv").read_text() == "mine"
    answer = majorant("demo", "--out", "other")
    assert answer.status == 0 and answer.out.count("od280/od315") == 1
    assert majorant("demo", "--out", "other").status == 2
    assert majorant("demo", "--out", "other", "--force").status == 0


def test_commands_are_written_for_a_shell() -> None:
    request = FitRequest("kmeans", Path("my table.csv"), Path("run"), features=("a b", "c,d"), settings=("x=[1, 2]",))
    arguments = shlex.split(request.command().replace("\\\n", ""))
    assert arguments[3] == "my table.csv" and 'a b,"c,d"' in arguments and "x=[1, 2]" in arguments
    assert parsed_names(joined_names(request.features)) == request.features
    assert max(map(len, request.command().splitlines())) <= 80


def test_standardisation_of_constant_and_missing_values() -> None:
    values = np.array([[1e8 + 1, 5.0, np.nan], [1e8 + 3, 5.0, 1.0], [1e8 + 5, 5.0, 3.0]])
    units = Standardisation.of(values)
    seen = units.apply(values)
    np.testing.assert_allclose(seen[:, 0], [-(1.5**0.5), 0.0, 1.5**0.5], rtol=1e-6)
    np.testing.assert_array_equal(seen[:, 1], 0.0)
    np.testing.assert_allclose(seen[1:, 2], [-1.0, 1.0])


def write_labelled(path: Path, labels: list[str]) -> None:
    lines = ["size,weight,kind"]
    for i, label in enumerate(labels):
        lines.append(f"{5 * (i % 3) + 0.01 * i},{i % 2},{label}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("names", "read"), [(["red", "green", "blue"], str), (["3", "1", "2"], int), (["true", "false", "true"], bool)]
)
def test_a_classification_of_text_numbers_or_truth_values(
    majorant: Majorant, tmp_path: Path, names: list[str], read: type
) -> None:
    write_labelled(tmp_path / "t.csv", [names[i % 3] for i in range(30)])
    answer = majorant("fit", "prototype", "t.csv", "--target", "kind", "--features", "size", "--k", "2", "--out", "run")
    assert answer.status == 0, answer.err
    assert "prototype classification, 2 poses, 1 feature" in answer.out and "pose 2" in answer.out
    model = mj.load("run/model.majorant")
    assert len(model.classes_) == len(set(names))
    found = pl.read_csv("run/assignments.csv")
    assert found.columns[:4] == ["row", "prediction", "probability", "pose"]
    assert found["prediction"].to_list() == pl.read_csv("t.csv")["kind"].to_list()
    assert type(found["prediction"][0]) is read
    report = Path("run/report.html").read_text(encoding="utf-8")
    assert 'id="confusion"' in report and 'id="prototypes"' in report
    assert majorant("report", "run").status == 0
    assert Path("run/report.html").read_text(encoding="utf-8") == report
    assert majorant("predict", "run", "t.csv", "--out", "p.csv").status == 0
    assert pl.read_csv("p.csv").equals(found)


def test_classes_that_are_missing_or_are_no_classes(majorant: Majorant, tmp_path: Path) -> None:
    write_labelled(tmp_path / "t.csv", ["a", "", "b", "a", "b", ""] * 4)
    fit = ["fit", "prototype", "t.csv", "--target", "kind", "--k", "1", "--out", "run"]
    answer = majorant(*fit)
    assert answer.status == 2 and 'values are missing in 8 rows of t.csv, in "kind"' in answer.words
    assert majorant(*fit, "--drop-missing").status == 0
    assert majorant("fit", "prototype", "t.csv", "--target", "size", "--out", "x").words.startswith(
        "majorant: prototype classification refused: Unknown label type: continuous"
    )
    assert 'no column "kinds" in t.csv. Did you mean "kind"?' in majorant(*fit[:4], "kinds", *fit[5:-1], "x").words
    assert majorant("fit", "prototype", "t.csv", "--out", "x").words == (
        "majorant: prototype classification predicts a column: name it with --target."
    )


def test_a_bound_costs_a_tenth_of_the_fit_or_is_left_out_in_words(majorant: Majorant, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    pl.DataFrame(random.normal(size=(3000, 12)), schema=[f"x{j}" for j in range(12)]).write_csv("noise.csv")
    pl.DataFrame({"x": [0.0, 0.1, 5.0, 5.1, 9.0, 9.2]}).write_csv("clear.csv")
    said = majorant("fit", "kmeans", "noise.csv", "--k", "6", "--out", "noise").out
    assert "Provable bound: none; a tenth of the time of the fit is too little to find one (" in " ".join(said.split())
    page = Path("noise/report.html").read_text(encoding="utf-8")
    assert "none; a tenth of the time of the fit is too little to find one" in page and 'id="certificate"' not in page
    said = majorant("fit", "kmeans", "clear.csv", "--k", "3", "--out", "clear").out
    assert "proved optimal" in " ".join(said.split())
    pl.DataFrame({"x": np.arange(300.0)}).write_csv("line.csv")
    said = " ".join(majorant("fit", "kmeans", "line.csv", "--k", "7", "--out", "line").out.split())
    page = Path("line/report.html").read_text(encoding="utf-8")
    assert "Provable bound: needless, as the rows lie on a line, where dynamic programming finds the best" in said
    assert "known to be within" not in page and 'id="certificate"' not in page


def test_a_bound_that_takes_no_time_limit_is_the_quick_one(majorant: Majorant, monkeypatch: pytest.MonkeyPatch) -> None:
    efforts = []
    certify = mj.GaussianMixture.certify

    @functools.wraps(certify)
    def recorded(self: mj.GaussianMixture, *rows: Any, **keywords: Any) -> Any:
        efforts.append(keywords.get("effort"))
        return certify(self, *rows, **keywords)

    monkeypatch.setattr(mj.GaussianMixture, "certify", recorded)
    pl.DataFrame({"x": [0.0, 0.1, 0.3, 5.0, 5.1, 5.4, 5.2, 0.2]}).write_csv("t.csv")
    assert majorant("fit", "gaussian-mixture", "t.csv", "--k", "2", "--out", "run").status == 0
    assert efforts == ["fast"]


def test_numbers_of_clusters_are_compared_by_the_silhouette(majorant: Majorant, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = np.repeat([[0.0, 0], [9, 0], [0, 9]], 20, axis=0) + random.normal(size=(60, 2))
    pl.DataFrame({"a": rows[:, 0], "b": rows[:, 1]}).write_csv("t.csv")
    answer = majorant("fit", "kmeans", "t.csv", "--k", "1:6", "--out", "run")
    assert answer.status == 0 and "The mean silhouette prefers 3 clusters" in answer.out
    assert re.search(r"clusters +silhouette +SSE", answer.out)
    kept = json.loads(Path("run/summary.json").read_text())["selection"]
    assert kept["criterion"] == "silhouette" and kept["candidates"][kept["best"]]["size"] == 3
    page = Path("run/report.html").read_text()
    assert "The mean silhouette prefers 3 clusters" in page and "Higher is better" in page
    table = pl.read_csv("run/tables/criterion.csv")
    assert table.columns == ["Clusters", "silhouette", "SSE", "stability", "gap"]
    assert table["SSE"].is_sorted(descending=True)


@pytest.mark.parametrize(
    ("model", "used"),
    [
        (["gaussian-mixture"], {"drop": 38, "fit": 39}),
        (["latent-class-analysis"], {"drop": 38, "fit": 39}),
        (["kmeans"], {"drop": 38}),
        (["regression-mixture", "--target", "y"], {"drop": 37}),
        (["harmonium", "--target", "y", "--set", "l2=1"], {"drop": 37}),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_what_becomes_of_gaps_is_chosen_for_targets_too(
    majorant: Majorant, tmp_path: Path, model: list[str], used: dict[str, int]
) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 3)).round(2) + np.repeat([[0.0], [5.0]], 20, axis=0)
    frame = pl.DataFrame(rows, schema=["a", "b", "y"]).with_row_index()
    frame = frame.with_columns(
        a=pl.when(pl.col("index").is_in([3, 7])).then(None).otherwise("a"),
        b=pl.when(pl.col("index") == 7).then(None).otherwise("b"),
        y=pl.when(pl.col("index") == 12).then(None).otherwise("y"),
    )
    columns = ["a", "b", "y"] if "--target" in model else ["a", "b"]
    frame.select(columns).write_csv(tmp_path / "t.csv")
    fit = ["fit", model[0], "t.csv", *model[1:], "--k", "2", "--no-report", "--force"]
    for how in ("drop", "fit", "fail"):
        answer = majorant(*fit, "--missing", how, "--out", how)
        if how in used:
            rows = f"t.csv, {used[how]} rows used, {40 - used[how]} of 40 left out for empty cells"
            assert rows in answer.out, (how, answer)
            following = " ".join(answer.out.partition("Next     majorant ")[2].split())
            assert majorant(*following.replace("NEW.csv", "t.csv").split(), "--force").status == 0, following
        else:
            assert answer.status == 2 and ("values are missing" if how == "fail" else "needs every value") in answer.err
