"""The benchmark beside peers runs, with whatever is installed, and its lines say what was measured."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from .test_kmeans_scripts import output

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    if not (ROOT / "benchmarks").is_dir():
        pytest.skip("the scripts are in the repository alone")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # the scripts set them: put back
        monkeypatch.setenv(name, "1")


def test_quick_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = output("benchmarks/peers.py", ["--quick", "--seeds", "1"], monkeypatch, capsys)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    head, cells = rows[0], np.array(rows[2:])
    assert head[:3] == ["data", "model", "method"] and cells.shape[1] == len(head)
    for model, peer in (("k-means", "scikit-learn, n_init=10"), ("Gaussian mixture", "scikit-learn, n_init=10")):
        assert {"majorant", peer} <= {row[2] for row in cells if row[1].startswith(model)}
    by_data = {tuple(row[:2]) for row in cells}
    assert len(by_data) == 5
    for data in by_data:
        there = cells[(cells[:, :2] == data).all(axis=1)]
        assert "1 of 1" in there[:, 4], "some run is the best"
        assert there[there[:, 2] == "majorant", -1] == "1"
        assert (there[:, 5].astype(float) > 0).all()
    if shutil.which("Rscript") is None:
        assert "Left out: R's methods: there is no Rscript" in text
    else:
        assert "R kmeans, nstart=10" in cells[:, 2]
