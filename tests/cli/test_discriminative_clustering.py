"""Discriminative clustering by the command line: which features set a cluster apart, and what is proved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from majorant.persistence import load

Majorant = Callable[..., Any]
FIT = ["fit", "discriminative-clustering", "t.csv", "--out", "run"]


@pytest.fixture
def table(tmp_path: Path) -> pl.DataFrame:
    """Two groups told apart by one feature, beside two that say nothing."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(60, 3))
    rows[:30, 1] += 9
    frame = pl.DataFrame(np.round(rows, 3), schema=["weight", "height", "age"])
    frame.write_csv(tmp_path / "t.csv")
    return frame


@pytest.mark.parametrize("settings", [[], ["--set", "kernel=rbf", "--set", "alpha=0.001"], ["--standardise"]])
def test_a_run(majorant: Majorant, table: pl.DataFrame, settings: list[str]) -> None:
    answer = majorant(*FIT, "--k", "2", *settings)
    assert (answer.status, answer.err) == (0, "")
    assert "Best information share" in answer.out
    assert "Provable bound: no clustering into 2 clusters" in " ".join(answer.out.split())
    found = pl.read_csv("run/assignments.csv")
    assert found.columns == ["row", "cluster", "probability", "uncertainty", "probability_1", "probability_2"]
    assert found["cluster"].to_list()[:30] == [found["cluster"][0]] * 30 and found["cluster"].n_unique() == 2
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert "report of a discriminative clustering" in page and '<section id="certificate"' in page
    assert "height" in page[page.index('<section id="profiles"') :].split("</h2>")[1].split("</svg>")[0]
    assert "has its best centre" not in page and "counts rows by their weights" not in page
    assert load("run/model.majorant").n_active_clusters_ == 2
    assert majorant("predict", "run", "t.csv", "--out", "p.csv").status == 0
    assert pl.read_csv("p.csv")["cluster"].equals(found["cluster"])


def test_one_cluster(majorant: Majorant, table: pl.DataFrame) -> None:
    answer = majorant(*FIT, "--k", "1")
    assert (answer.status, answer.err) == (0, "")
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert "Every row lies at the centre" not in page and "best centre at the mean" not in page


def test_a_kernel_that_there_is_not(majorant: Majorant, table: pl.DataFrame) -> None:
    answer = majorant(*FIT, "--set", "kernel=rbv")
    assert answer.status != 0 and "Did you mean 'rbf'?" in answer.words
