"""The main job, in real processes: demo, fit, predict, report."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_wine

import majorant as mj
from majorant.persistence import load, load_with_extra

Process = Callable[..., Any]
FILES = ["assignments.csv", "figures", "model.majorant", "report.html", "summary.json", "tables"]


@pytest.fixture(scope="module")
def demo(process: Process, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A finished demo: its folder and what it printed."""
    folder = tmp_path_factory.mktemp("work")
    done = process("demo", cwd=folder)
    assert (done.status, done.err) == (0, "")
    return folder, done.out


def test_demo_writes_a_run(demo: tuple[Path, str]) -> None:
    folder, _ = demo
    assert sorted(p.name for p in folder.iterdir()) == ["demo"]
    assert sorted(p.name for p in (folder / "demo").iterdir()) == ["run", "wine.csv"]
    assert sorted(p.name for p in (folder / "demo" / "run").iterdir()) == FILES
    table = pl.read_csv(folder / "demo" / "wine.csv")
    np.testing.assert_array_equal(table.to_numpy(), load_wine().data)
    page = (folder / "demo" / "run" / "report.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>") and "wine.csv" in page and "--standardise" in page


def test_the_screen_says_what_was_found(demo: tuple[Path, str]) -> None:
    _, out = demo
    lines = out.splitlines()
    assert lines[0].startswith("$ majorant fit kmeans demo/wine.csv --k 3 --standardise")
    assert "Table    wine.csv, 178 rows used, 0 left out" in lines
    assert "Model    k-means, 3 clusters, 13 features, standardised" in lines
    assert any(line.startswith("Best SSE 1277.93, reached by") for line in lines)
    assert "  Features in standard deviations from their mean." in lines
    assert "Next     majorant predict demo/run NEW.csv --out predicted.csv" in lines
    assert sum(line.split()[:1] == ["proline"] for line in lines) == 1  # no result twice
    assert lines[-1] == "Open demo/run/report.html in a browser."
    assert max(map(len, lines)) <= 80


def test_the_model_is_the_one_of_python(demo: tuple[Path, str]) -> None:
    X = load_wine().data
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = mj.KMeans(3, random_state=0).fit(X)
    again = load(demo[0] / "demo" / "run" / "model.majorant")
    np.testing.assert_allclose(again.cluster_centers_, model.cluster_centers_, rtol=1e-9, atol=1e-9)
    assert list(again.feature_names_in_) == [f"{name} (standardised)" for name in load_wine().feature_names]


def test_the_model_of_standardised_columns_takes_the_table(demo: tuple[Path, str]) -> None:
    run = demo[0] / "demo" / "run"
    model, wines = load(run / "model.majorant"), pd.read_csv(demo[0] / "demo" / "wine.csv")
    labels = pl.read_csv(run / "assignments.csv")["cluster"].to_numpy() - 1
    told = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    units = told["standardisation"]
    rows = (wines[told["features"]] - units["means"]) / units["scales"]
    turned = wines.assign(note="text")[["note", *wines.columns[::-1]]]
    again = load(run / "model.majorant")
    again.save(demo[0] / "again.majorant")
    arrow = pl.from_pandas(wines).to_arrow()
    for table in (wines, pl.from_pandas(wines), arrow, turned, rows.add_suffix(" (standardised)")):
        np.testing.assert_array_equal(model.predict(table), labels)
        np.testing.assert_array_equal(load(demo[0] / "again.majorant").predict(table), labels)
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_array_equal(model.predict(wines[told["features"]].to_numpy()), labels)
    with pytest.raises(ValueError, match="lacks columns of the fit: alcohol"):
        model.predict(wines.drop(columns="alcohol"))
    wines.to_parquet(demo[0] / "demo" / "wine.parquet")
    with pytest.raises(ValueError, match=r"alcohol \(standardised\)"):
        model.predict(mj.open_rows(demo[0] / "demo" / "wine.parquet"))
    (demo[0] / "demo" / "wine.parquet").unlink()
    alone = mj.KMeans(3, random_state=0).fit(wines[told["features"]])
    assert model.fit(wines[told["features"]]) is model and not hasattr(model, "units_")
    np.testing.assert_array_equal(model.labels_, alone.labels_)


@pytest.mark.parametrize(
    "model",
    ["kmeans", "kmedoids", "gaussian-mixture", "regression-mixture", "latent-class-analysis", "hmm", "harmonium"],
)
def test_a_loaded_model_takes_the_table_with_other_columns(
    majorant: Callable[..., Any], tmp_path: Path, model: str
) -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal([50, 3, 0], 1.0, (60, 3)), columns=["a", "b", "y"])
    frame["name"] = [f"row {i}" for i in range(60)]
    frame.to_csv("t.csv", index=False)
    target = ["--target", "y"] if model == "regression-mixture" else []
    done = majorant("fit", model, "t.csv", "--features", "a,b", *target, "--k", "2", "--out", "run", "--no-report")
    assert done.status == 0
    fitted = mj.load(tmp_path / "run" / "model.majorant")
    told = fitted.transform if model == "harmonium" else fitted.predict
    expected = told(frame[["a", "b"]])
    for table in (frame, pl.from_pandas(frame[frame.columns[::-1]])):
        np.testing.assert_array_equal(told(table), expected)
    with pytest.raises(ValueError, match="X lacks columns of the fit: b"):
        told(frame.drop(columns="b"))


@pytest.mark.parametrize(
    "model", ["kmeans", "gaussian-mixture", "regression-mixture", "discriminative-latent-classes", "harmonium"]
)
def test_models_of_standardised_columns_predict_alike_in_python_and_on_the_command_line(
    majorant: Callable[..., Any], tmp_path: Path, model: str
) -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal([50, 3], [9, 0.1], (90, 2)), columns=["a", "b"])
    frame["y"] = np.where(frame["a"] > 50, 1, 0) if model == "discriminative-latent-classes" else random.normal(size=90)
    frame.to_csv("t.csv", index=False)
    target = ["--target", "y"] if model in ("regression-mixture", "discriminative-latent-classes") else []
    done = majorant("fit", model, "t.csv", "--features", "a,b", *target, "--k", "2", "--standardise", "--out", "run")
    assert (done.status, done.err) == (0, "")
    assert majorant("predict", "run", "t.csv", "--out", "p.csv").status == 0
    assert majorant("report", "run").status == 0
    fitted = mj.load(tmp_path / "run" / "model.majorant")
    assert list(fitted.feature_names_in_) == ["a (standardised)", "b (standardised)"]
    found = (fitted.transform if model == "harmonium" else fitted.predict)(frame)
    written = pl.read_csv("p.csv").drop("row").to_numpy()
    if model == "harmonium":
        np.testing.assert_allclose(found, written[:, : found.shape[1]], atol=1e-6)
    else:
        first = 0 if model in ("discriminative-latent-classes", "regression-mixture") else 1
        np.testing.assert_allclose(found + first, written[:, 0], atol=1e-6)
    rows, y = frame[["a", "b"]], frame["y"] if target else None
    standard = ((rows - fitted.units_.means) / fitted.units_.scales).add_suffix(" (standardised)")
    page = fitted.report(standard, y).html
    for table in (frame, rows):
        assert fitted.report(table, y).html == page
        if model != "harmonium":
            first, second = Figure().subplots(2)
            assert fitted.plot(table, y, ax=first).get_xlabel() in ("a (standardised)", "b (standardised)")
            assert mj.plot.profiles(fitted, table, second).get_xlabel() == "part"


def test_assignments_hold_one_row_a_row(demo: tuple[Path, str]) -> None:
    run = demo[0] / "demo" / "run"
    model, extra = load_with_extra(run / "model.majorant")
    with (run / "assignments.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [int(r["row"]) for r in rows] == list(range(1, 179))
    assert [int(r["cluster"]) - 1 for r in rows] == model.labels_.tolist()
    assert sum(float(r["distance"]) ** 2 for r in rows) == pytest.approx(model.inertia_)
    assert extra["table_path"] == "../wine.csv"


def test_summary_json_holds_the_screen(demo: tuple[Path, str]) -> None:
    run = demo[0] / "demo" / "run"
    content = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    model = load(run / "model.majorant")
    assert content["search"]["best"] == pytest.approx(model.inertia_)
    assert content["search"]["starts"] == model.search_.n_starts
    assert content["search"]["hits"] == model.search_.n_hits
    assert content["table"]["rows_used"] == 178
    assert len(content["summary"]["blocks"]["clusters"]["tables"]["clusters"]) == 3
    assert content["command"].startswith("majorant fit kmeans demo/wine.csv --k 3")


def test_predict_repeats_the_assignments(process: Process, demo: tuple[Path, str], tmp_path: Path) -> None:
    run = demo[0] / "demo" / "run"
    done = process("predict", str(run), str(demo[0] / "demo" / "wine.csv"), "--out", "p.csv", cwd=tmp_path)
    assert (done.status, done.err, done.out) == (0, "", "Wrote    p.csv, 178 rows, 0 left out\n")
    ours, theirs = pl.read_csv(tmp_path / "p.csv"), pl.read_csv(run / "assignments.csv")
    assert ours.columns == theirs.columns
    np.testing.assert_allclose(ours.to_numpy(), theirs.to_numpy())


def test_report_is_written_again(process: Process, demo: tuple[Path, str], tmp_path: Path) -> None:
    run = demo[0] / "demo" / "run"
    before = (run / "report.html").read_bytes()
    (run / "report.html").unlink()
    done = process("report", str(run), cwd=tmp_path)
    assert (done.status, done.err) == (0, "")
    assert (run / "report.html").read_bytes() == before


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_keeps_the_best_so_far(command: list[str], tmp_path: Path, number: signal.Signals) -> None:
    rows = np.random.default_rng(0).normal(size=(3000, 4))
    np.savez(tmp_path / "big.npz", X=rows)
    endless = ["--set", "n_init=1000000", "--set", "verbose=1"]
    arguments = ["fit", "kmeans", "big.npz", "--k", "20", *endless, "--out", "deep/run"]
    running = subprocess.Popen(
        [*command, *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    while not running.stderr.readline().startswith("start 1, "):  # until a start has ended
        assert running.poll() is None
    os.kill(running.pid, number)
    out, err = running.communicate(timeout=60)
    *starts, last = err.splitlines()
    assert (running.returncode, last) == (130, "majorant: stopped.")
    assert "Warning: The search was stopped before its end" in out
    kept = mj.load(tmp_path / "deep" / "run" / "model.majorant")
    assert kept.search_.is_stopped and kept.search_.n_starts >= 1 + sum(line.startswith("start ") for line in starts)
    assert "stopped before its end" in (tmp_path / "deep" / "run" / "report.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("interruptible")
def test_stopping_before_a_start_has_ended_leaves_nothing(
    majorant: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez(tmp_path / "big.npz", X=np.random.default_rng(0).normal(size=(300, 4)))

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("majorant.solvers.swap._descend", interrupted)
    answer = majorant("fit", "kmeans", "big.npz", "--k", "3", "--out", "deep/run")
    assert (answer.status, answer.out, answer.err) == (130, "", "majorant: stopped.\n")
    assert [p.name for p in tmp_path.iterdir()] == ["big.npz"]


def test_help_is_plain(process: Process, tmp_path: Path) -> None:
    done = process("--help", cwd=tmp_path)  # how long it takes: benchmarks/footprint.py
    assert done.status == 0 and "demo" in done.out and "╭" not in done.out


def test_terminals_without_blocks_get_plain_characters(command: list[str], tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*command, "demo"], cwd=tmp_path, capture_output=True, env=environment, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"SSE" in done.stdout and b"?" not in done.stdout and done.stdout.isascii()


def test_a_closed_pipe_is_no_fault(command: list[str], tmp_path: Path) -> None:
    line = " ".join([*command, "models", "|", "true"])
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_typer_one_line_says_what_to_install(command: list[str], tmp_path: Path) -> None:
    code = "import sys; sys.modules['typer'] = None; from majorant.cli import main; raise SystemExit(main(['models']))"
    done = subprocess.run([command[0], "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == 'majorant: the command line needs a few more packages: pip install "majorant[cli]"\n'
