"""Text that a spreadsheet would compute stands in CSV as text."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

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
    polars: Any = pytest.importorskip("polars")
    path = tmp_path / "p.parquet"
    write_table({"label": LABELS}, path)
    assert polars.read_parquet(path)["label"].to_list() == LABELS


def test_tables_of_the_report_hold_no_formula() -> None:
    table = Table("labels", [Column("=head", LABELS)])
    rows = list(csv.reader(io.StringIO(table.to_csv())))
    assert [row[0] if row else "" for row in rows] == ["'=head", *SAFE]
