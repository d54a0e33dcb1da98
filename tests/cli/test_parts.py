"""Predictions for tables that need not fit into memory: part by part, and the same as all at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

Majorant = Callable[..., Any]
N = 3000
TABLE = pl.DataFrame({"a": np.random.default_rng(0).normal(size=N), "b": np.random.default_rng(1).normal(size=N)})


@pytest.fixture
def many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 1024 rows."""
    monkeypatch.setattr("majorant.cli.parts.PART_BYTES", 1)


def fitted(majorant: Majorant) -> None:
    TABLE[:300].write_csv("few.csv")
    assert majorant("fit", "kmeans", "few.csv", "--k", "3", "--standardise", "--out", "run").status == 0


@pytest.mark.usefixtures("many_parts")
@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_parts_are_the_whole(ending: str, majorant: Majorant) -> None:
    fitted(majorant)
    TABLE.write_parquet("new.parquet", row_group_size=700)
    TABLE.write_csv("new.csv")
    answer = majorant("predict", "run", "new.parquet", "--out", f"parts.{ending}")
    assert (answer.status, answer.err) == (0, "") and "3000 rows, 0 left out" in answer.out.replace(",000", "000")
    assert majorant("predict", "run", "new.csv", "--out", f"whole.{ending}").status == 0
    read = pl.read_parquet if ending == "parquet" else pl.read_csv
    assert read(f"parts.{ending}").equals(read(f"whole.{ending}"))
    if ending == "parquet":
        groups = pq.ParquetFile("parts.parquet").metadata
        assert [groups.row_group(i).num_rows for i in range(groups.num_row_groups)] == [1024, 1024, 952]
    else:
        assert Path(f"parts.{ending}").read_bytes() == Path(f"whole.{ending}").read_bytes()


@pytest.mark.usefixtures("many_parts")
def test_a_part_in_which_nothing_is_left(majorant: Majorant) -> None:
    fitted(majorant)
    row = pl.int_range(pl.len())
    TABLE.with_columns(a=pl.when(row.is_between(1024, 2047) | (row == 2999)).then(None).otherwise("a")).write_parquet(
        "new.parquet"
    )
    refused = majorant("predict", "run", "new.parquet", "--out", "p.parquet")
    assert refused.status != 0 and not Path("p.parquet").exists()
    assert "missing in 1024 rows of new.parquet (rows 1025 to 2048)" in refused.words.replace("1,024", "1024")
    answer = majorant("predict", "run", "new.parquet", "--out", "p.parquet", "--drop-missing")
    assert answer.status == 0 and "1975 rows, 1025 left out" in answer.out.replace(",", "", 1).replace("1,", "1")
    assert pl.read_parquet("p.parquet")["row"].to_list() == [*range(1, 1025), *range(2049, 3000)]
    TABLE.with_columns(a=pl.lit(None, dtype=pl.Float64)).write_parquet("none.parquet")
    none = majorant("predict", "run", "none.parquet", "--out", "q.parquet", "--drop-missing")
    assert none.status != 0 and "lacks a value" in none.words and not Path("q.parquet").exists()


@pytest.mark.usefixtures("many_parts")
def test_a_file_that_is_damaged_in_its_middle(majorant: Majorant) -> None:
    fitted(majorant)
    TABLE.write_parquet("new.parquet", row_group_size=1000, compression="zstd")
    content = Path("new.parquet").read_bytes()
    at = len(content) // 2
    Path("new.parquet").write_bytes(content[:at] + b"\xff" * 2000 + content[at + 2000 :])
    answer = majorant("predict", "run", "new.parquet", "--out", "p.parquet")
    assert answer.status != 0 and "cannot be read as parquet" in answer.words
    assert not list(Path().glob("*p.parquet*"))


def test_no_more_than_a_part_is_in_memory(majorant: Majorant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what Arrow reads and writes: a file of 5 MB in parts of 64 kB."""
    fitted(majorant)
    pl.concat([TABLE] * 100).write_parquet("new.parquet", row_group_size=10_000, compression="uncompressed")
    monkeypatch.setattr("majorant.cli.parts.PART_BYTES", 1 << 16)
    pool = pa.proxy_memory_pool(before := pa.default_memory_pool())
    pa.set_memory_pool(pool)
    try:
        assert majorant("predict", "run", "new.parquet", "--out", "p.parquet").status == 0
    finally:
        pa.set_memory_pool(before)
    assert pq.ParquetFile("p.parquet").metadata.num_rows == 100 * N
    assert Path("new.parquet").stat().st_size > 4_000_000 > 3 * pool.max_memory() > 0


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(rows: int, majorant: Majorant) -> None:
    fitted(majorant)
    TABLE[:rows].write_parquet("new.parquet")
    answer = majorant("predict", "run", "new.parquet", "--out", "p.parquet")
    assert (answer.status == 0) == (rows > 0)
    assert ("has no rows" in answer.words) == (rows == 0)
