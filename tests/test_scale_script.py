"""The benchmark of streams and clusters runs, and what it says on paper is what it simulates."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = str(Path(__file__).parent.parent / "benchmarks" / "scale.py")


def test_the_formula_is_what_is_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(SCRIPT)["plan"]()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    for line in lines:
        seconds = list(map(float, re.findall(r"([\d.]+) s", line)))
        assert len(seconds) == 4
        for formula, simulated in (seconds[:2], seconds[2:]):
            assert abs(formula / simulated - 1) < 0.15


@pytest.mark.parametrize(("remembers", "tasks"), [(False, 8 / 7), (True, 15 / 7)])
def test_a_busy_scheduler_hears_of_every_task(remembers: bool, tasks: float) -> None:
    plant = runpy.run_path(SCRIPT)["Plant"](10**6, 1000, 10**3, speed=1e12, sums=0.0, remembers=remembers)
    hears = plant.simulated(np.random.default_rng(0)) / (plant.task * plant.partitions)
    assert hears == pytest.approx(tasks, rel=0.02)


@pytest.mark.parametrize("model", ["kmeans", "regression"])
def test_passes_of_a_stream_and_of_memory(model: str, tmp_path: Path) -> None:
    script = runpy.run_path(SCRIPT)
    table = tmp_path / "table"
    table.mkdir()
    script["write"](table, 3000)
    for where in ("stream", "cached", "memory"):
        assert script["passes"](str(table), model, where, "1")["rows_per_cpu_second"] > 0
    assert script["fit"](str(table), model, "cached")["peak_mb"] > 0


def test_predictions_in_a_process_of_their_own(tmp_path: Path) -> None:
    script = runpy.run_path(SCRIPT)
    script["write"](tmp_path, 3000)
    assert script["child"]("prepare", str(tmp_path), "4000")["file_mb"] > 0
    made = script["child"]("predict", str(tmp_path), "4000")
    assert made["peak_mb"] >= made["before_mb"] > 0
    assert (tmp_path / "predicted.parquet").exists()


def test_a_worker_that_is_killed() -> None:
    """In a process of its own, as its workers import the script."""
    pytest.importorskip("distributed")
    done = subprocess.run(
        [sys.executable, SCRIPT, "--quick", "--only", "kills"], check=True, capture_output=True, text=True
    )
    assert re.search(r"1 fits of 2e\+04 rows, a worker killed in [01]: 1 right answers", done.stdout)


def test_what_is_compared_with_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """More iterations lower the objective from the given centres; a peer that is not there is the caller's to name."""
    da = pytest.importorskip("dask.array")
    monkeypatch.setattr(sys, "path", list(sys.path))
    script = runpy.run_path(str(Path(SCRIPT).with_name("scale_peers.py")))
    x = script["chunk"](0, 3000)[0]
    start = x[: script["K"]].copy()
    fit = script["ours"](da.from_array(x, chunks=(1000, -1)), start)
    values = [script["objective"](3000, centres) for centres in (start, fit(2), fit(6))]
    assert values[0] > values[1] > values[2] > 0
