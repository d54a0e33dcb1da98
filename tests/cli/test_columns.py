"""What the screen, summary.json and the page say of a table's columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from majorant.persistence import load


def table() -> pl.DataFrame:
    """Sixty birds of three groups, numbered anew in each."""
    random = np.random.default_rng(0)
    size = random.normal(size=60) + np.repeat([0.0, 5.0, 10.0], 20)
    return pl.DataFrame(
        {
            "sample": np.tile(np.arange(1, 21), 3),
            "bird": [f"N{i}" for i in range(60)],
            "seen": [f"2007-11-{1 + i % 28:02d}" for i in range(60)],
            "sex": ["m", "f"] * 30,
            "size": size,
            "inches": size / 2.54,
            "year": np.full(60, 2013),
            "income": np.exp(4 * random.normal(size=60)),
        }
    )


def test_every_column_is_told(majorant: Callable[..., Any], tmp_path: Path) -> None:
    table().write_csv(tmp_path / "birds.csv")
    answer = majorant("fit", "kmeans", "birds.csv", "--k", "3", "--standardise", "--out", "run")
    assert answer.status == 0
    said = " ".join(answer.out.split("Model ")[0].split())
    for sentence in (
        "left out, looks like an id: sample",
        "left out, text, another in every row: bird",
        "left out, a date: seen",
        "left out, text: sex",
        '"inches": the same as "size" (correlation above 0.999)',
        '"year": constant',
        '"income": skewed, few rows lie far out; its logarithm may serve better',
    ):
        assert sentence in said
    assert load("run/model.majorant").n_features_in_ == 4
    uses = {c["name"]: c["use"] for c in json.loads(Path("run/summary.json").read_text("utf-8"))["columns"]}
    assert [name for name, use in uses.items() if use == "feature"] == ["size", "inches", "year", "income"]
    page = Path("run/report.html").read_text("utf-8")
    assert "4 columns used, 4 left out." in page and "looks like an id" in page
    assert majorant("report", "run").status == 0
    assert Path("run/report.html").read_text("utf-8") == page


def test_a_column_that_is_named_is_used(majorant: Callable[..., Any], tmp_path: Path) -> None:
    table().write_csv(tmp_path / "birds.csv")
    answer = majorant("fit", "kmeans", "birds.csv", "--k", "3", "--features", "sample,size", "--out", "run")
    assert '"sample": looks like an id; --features can leave it out' in " ".join(answer.out.split())
    assert list(load("run/model.majorant").feature_names_in_) == ["sample", "size"]
