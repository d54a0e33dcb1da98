"""Text that a spreadsheet would compute stands in CSV as text; and workbooks of a fit."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import majorant as mj
from majorant._frames import unlike_formula
from majorant.cli.parts import write_table
from majorant.report.table import Column, Table

LABELS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "-1.5", "+3", "plain", "a=b", ""]
SAFE = ["'=1+1", "'+cmd|' /C calc'!A0", "'-2+3", "'@SUM(A1)", "'\tx", "-1.5", "+3", "plain", "a=b", ""]


def test_only_what_looks_like_a_formula_is_quoted() -> None:
    assert [unlike_formula(text) for text in LABELS] == SAFE


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_predictions_hold_no_formula(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"p{ending}"
    write_table({"row": list(range(len(LABELS))), "=label": LABELS}, path)
    rows = list(csv.reader(io.StringIO(path.read_text()), delimiter="\t" if ending == ".tsv" else ","))
    assert rows[0] == ["row", "'=label"]
    assert [row[1] for row in rows[1:]] == SAFE


def test_a_parquet_file_holds_labels_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    write_table({"label": LABELS}, path)
    assert pl.read_parquet(path)["label"].to_list() == LABELS


def test_tables_of_the_report_hold_no_formula() -> None:
    table = Table("labels", [Column("=head", LABELS)])
    rows = list(csv.reader(io.StringIO(table.to_csv())))
    assert [row[0] if row else "" for row in rows] == ["'=head", *SAFE]


def _rows(path: Path) -> Any:
    draws = np.random.default_rng(0)
    part = np.arange(90) % 3
    table = pl.DataFrame(
        {
            "customer": [f"C{i:03d}" for i in range(90)],
            "spend": np.array([0.0, 6.0, 12.0])[part] + draws.normal(size=90),
            "visits": np.array([0.0, 6.0, 0.0])[part] + draws.normal(size=90),
            "town": np.array(["=Rome", "Oslo", "Bern"])[part],
            "likes": (draws.random(90) < 0.5).astype(int),
        }
    )
    table.write_csv(path)
    return table


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("kmeans", ["--features", "spend,visits", "--k", "3"]),
        ("gaussian-mixture", ["--features", "spend,visits", "--k", "2:3"]),
        ("regression-mixture", ["--formula", "visits ~ spend", "--k", "2"]),
        ("latent-class-analysis", ["--features", "town,likes", "--k", "2"]),
        ("hmm", ["--features", "spend,visits", "--k", "2"]),
    ],
)
def test_a_fit_writes_a_workbook(majorant: Any, tmp_path: Path, model: str, options: list[str]) -> None:
    pytest.importorskip("fastexcel")
    table = _rows(tmp_path / "shop.csv")
    more = ["--id", "customer", "--workbook", "--quiet", "--no-report", "--out", "run"]
    assert majorant("fit", model, "shop.csv", *options, *more).status == 0
    sheets = pl.read_excel("run/results.xlsx", sheet_id=0)
    kept = sheets["assignments"].select(table.columns)
    assert kept.select(pl.selectors.string()).equals(table.select(pl.selectors.string()))
    np.testing.assert_allclose(kept["spend"], table["spend"], rtol=1e-12)
    fitted = mj.load("run/model.majorant")
    part = next(name for name in ("cluster", "component", "class", "state") if name in sheets["assignments"].columns)
    sizes = sheets["assignments"][part].value_counts().sort(part)["count"].to_list()
    assert sizes == np.bincount(pl.read_csv("run/assignments.csv")[part])[1:].tolist()
    told = {name: frame for name, frame in fitted.summary().tables.items() if name != "fit"}
    assert set(sheets) == {"assignments", *told}
    for name, frame in told.items():
        assert sheets[name].shape == frame.shape
        for head in set(frame.columns) & set(sheets[name].columns):
            if sheets[name][head].dtype.is_float():
                np.testing.assert_allclose(sheets[name][head], frame[head].astype(float), rtol=1e-12)


def test_a_workbook_that_cannot_be_written_is_told_before_the_fit(
    majorant: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _rows(tmp_path / "shop.csv")
    monkeypatch.setattr("majorant.cli.tables.MOST_EXCEL_ROWS", 89)
    done = majorant("fit", "kmeans", "shop.csv", "--workbook", "--out", "run")
    assert done.status == 2 and "a sheet has at most 89 rows, not 90" in done.err and not Path("run").exists()
