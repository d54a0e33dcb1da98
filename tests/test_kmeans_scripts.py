"""The scripts behind the k-means page run to their end, on small tables."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

Patch = pytest.MonkeyPatch
Capture = pytest.CaptureFixture[str]

ROOT = Path(__file__).parents[1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small tables under the names that the scripts look for."""
    if not (ROOT / "experiments").is_dir():
        pytest.skip("the scripts are in the repository alone")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # the scripts set them: put back
        monkeypatch.setenv(name, "1")
    random = np.random.default_rng(0)
    np.savez(
        tmp_path / "d31.npz", X=np.repeat(random.uniform(0, 30, (31, 2)), 6, axis=0) + random.normal(size=(186, 2))
    )
    np.savez(tmp_path / "cloud.npz", X=random.normal(size=(150, 10)) * np.arange(1.0, 11.0))
    (tmp_path / "best_known.csv").write_text(
        "dataset,k,sse,source\nd31,3,1e9,made up\nd31,3,1e9,published MEAN\nabsent,2,1.0,made up\n"
    )
    return tmp_path


def output(
    script: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    monkeypatch.syspath_prepend(ROOT / script.split("/")[0])
    runpy.run_path(str(ROOT / script), run_name="__main__")
    return capsys.readouterr().out


def test_paper_tables(folder: Path, monkeypatch: Patch, capsys: Capture) -> None:
    arguments = ["--data", str(folder), "--quick", "--trials", "1", "--figures", str(folder / "figures")]
    text = output("experiments/gmm_kmeans.py", arguments, monkeypatch, capsys)
    for start in ("forgy", "random partition", "k-means++"):
        means = {
            method: float(re.search(rf"^D31 +{re.escape(start)} +{method}  +(\S+) \+-", text, re.MULTILINE)[1])  # type: ignore[index]
            for method in ("k-means", "G-MM", "G-MM hot")
        }
        assert all(mean > 0 for mean in means.values())
    assert len(re.findall(r"^Cloud .*paper .* / ", text, re.MULTILINE)) == 12  # starts times methods
    assert len(re.findall(r"^Cloud +\S.* \+- +\S+ +\S+ \+- +\S+ +paper", text, re.MULTILINE)) >= 3  # iterations
    assert len(re.findall(r"^D31 .*1: \S+ \(\S+\)$", text, re.MULTILINE)) == 3
    drawn = {path.name for path in (folder / "figures").iterdir()}
    assert drawn == {"figure_2_D31.svg", "figure_2_Cloud.svg", "figure_5.svg"}


def test_benchmark_beside_peers(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = output("benchmarks/kmeans.py", [str(folder), "--seeds", "1"], monkeypatch, capsys)
    assert "1 rows; rows hit" in text  # neither the mean nor the file that is not there
    assert re.search(r"^majorant +1 of 1", text, re.MULTILINE)
    assert "is below the best known" in text
