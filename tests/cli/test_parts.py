"""Predictions for tables that need not fit into memory: part by part, and the same as all at once."""

from __future__ import annotations

import gc
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import majorant as mj
from majorant.cli.parts import read_parts, writing_parts

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


@pytest.mark.parametrize("ending", ["csv", "tsv", "xlsx", "parquet"])
def test_whatever_is_kept_can_be_written(ending: str, majorant: Majorant) -> None:
    few, hours = TABLE[:60], [timedelta(hours=i) for i in range(59)]
    odd = few.with_columns(pl.Series("long", [*hours, None]), pl.lit(b"x").alias("raw"), pl.struct("a").alias("both"))
    odd.write_parquet("odd.parquet")
    kept = "long" if ending in ("xlsx", "parquet") else "long,raw,both"
    assert majorant("fit", "kmeans", "odd.parquet", "--features", "a,b", "--k", "3", "--out", "run").status == 0
    answer = majorant("predict", "run", "odd.parquet", "--keep", kept, "--out", f"kept.{ending}")
    assert (answer.status, answer.err) == (0, "")
    if ending in ("csv", "tsv"):
        found = pl.read_csv(f"kept.{ending}", separator="," if ending == "csv" else "\t")
        assert found["long"].to_list() == [*map(str, hours), None]
        assert found["raw"][0] == "b'x'" and found["both"][0] == str({"a": few["a"][0]})


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


def pending() -> list[Any]:
    """The files of Parquet that are being read."""
    return [f for f in gc.get_objects() if isinstance(f, pq.ParquetFile) and not f.closed]


def raising(error: Exception) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


@pytest.mark.usefixtures("many_parts")
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(28, "No space left on device"), "p.parquet cannot be written: No space left on device"),
        (OSError("the stream is closed"), "p.parquet cannot be written: the stream is closed"),
    ],
)
def test_an_output_that_cannot_be_written(
    error: Exception, told: str, majorant: Majorant, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted(majorant)
    TABLE.write_parquet("new.parquet")
    monkeypatch.setattr(pq.ParquetWriter, "write_table", raising(error))
    answer = majorant("predict", "run", "new.parquet", "--out", "p.parquet")
    assert answer.status != 0 and told in answer.words
    assert not pending() and not list(Path().glob("*p.parquet*"))


def test_assignments_that_cannot_be_written_are_told_of_the_run(
    majorant: Majorant, monkeypatch: pytest.MonkeyPatch
) -> None:
    TABLE[:300].write_csv("few.csv")
    monkeypatch.setattr("majorant.cli.parts.pl.DataFrame.write_csv", raising(OSError(28, "No space left on device")))
    answer = majorant("fit", "kmeans", "few.csv", "--k", "3", "--out", "run")
    assert answer.status != 0 and "run cannot be written: No space left on device" in answer.words
    assert ".tmp" not in answer.words and not Path("run").exists()


def test_an_error_of_the_system_in_the_block_is_not_of_the_output(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="of something else"), writing_parts(tmp_path / "p.csv"):
        raise OSError("of something else")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("reader", ["stream", "parts"])
def test_memory_that_runs_out_is_no_damaged_file(reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new.parquet"
    TABLE.write_parquet(path)
    rows = mj.open_rows(path)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", raising(pa.ArrowMemoryError("malloc failed")))
    with pytest.raises(MemoryError, match="malloc failed"):
        mj.KMeans(2, random_state=0).fit(rows) if reader == "stream" else list(read_parts(path))
