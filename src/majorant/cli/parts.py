"""Reading and writing of tables in parts, so that they need not fit into memory."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from majorant._atomic import remove_abandoned, replacing
from majorant._frames import unlike_formula
from majorant.cli.errors import CommandError
from majorant.cli.tables import SourceTable, check_writable_ending, read_table
from majorant.cli.text_tables import AS_USUAL, Reading

PART_BYTES = 1 << 22
"""Approximate size of a part of a Parquet file in memory, in bytes."""


def read_parts(path: Path, reading: Reading = AS_USUAL, *, whole: bool = False) -> Generator[tuple[int, SourceTable]]:
    """Yield the parts of a table with the number of rows before each: several of a Parquet file, otherwise one.

    Parameters
    ----------
    reading : Reading
        How the table is read.
    whole : bool
        Whether the table is to be one part, whatever its format.
    """
    if whole or path.suffix.lower() not in (".parquet", ".pq") or not path.is_file() or path.stat().st_size == 0:
        yield 0, read_table(path, reading)
        return
    import pyarrow as pa
    import pyarrow.parquet

    before = 0
    try:
        with pa.parquet.ParquetFile(path, pre_buffer=False) as file:  # it would hold all that is to be read
            n, width = file.metadata.num_rows, len(file.schema_arrow.names)
            if n == 0 or width == 0:
                raise CommandError(f"{path} has no rows.", "A table needs at least one row and one column.")
            rows = min(max(PART_BYTES // (8 * width), 1024), 1 << 18)
            for batch in file.iter_batches(rows, use_threads=False):
                frame = pl.from_arrow(batch)
                assert isinstance(frame, pl.DataFrame)
                frame = reading.without_codes(frame)
                where = "" if frame.height == n else f" (rows {before + 1} to {before + frame.height})"
                yield before, SourceTable(path, frame, "", where)
                before += frame.height
    except MemoryError:  # pyarrow's own is an ArrowException too
        raise
    except pa.ArrowException as error:
        raise _unreadable(path, error) from error
    except OSError as error:
        if error.errno is not None:
            raise CommandError(f"{path} cannot be opened: {error.strerror}.") from error
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> CommandError:
    reason = str(error).strip().split("\n")[0].rstrip(".")
    return CommandError(
        f"{path} cannot be read as parquet: {reason}.",
        "Check that the file is complete and that its ending says what it is.",
    )


class PartWriter:
    """Writer of columns in parts, in the format of the file's extension; a part is a row group of a Parquet file."""

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self._stream, self._path, self._ending = stream, path, path.suffix.lower()
        self._parquet: Any = None
        self._sheet: list[pl.DataFrame] = []
        self.n_rows = 0

    def write(self, columns: Mapping[str, Any]) -> None:
        """Append rows."""
        try:
            self.append(columns)
        except OSError as error:
            raise _unwritable(self._path, error) from error

    def append(self, columns: Mapping[str, Any]) -> None:
        """Append to a file; unlike `write`, raise OSError to the caller."""
        frame = pl.DataFrame(dict(columns))
        if self._ending == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet

            table = frame.to_arrow()
            if self._parquet is None:
                self._parquet = pa.parquet.ParquetWriter(self._stream, table.schema)
            self._parquet.write_table(table.cast(self._parquet.schema), row_group_size=max(frame.height, 1))
        elif self._ending == ".xlsx":
            check_writable_ending(self._path, self.n_rows + frame.height)
            self._sheet.append(frame)
        else:
            separator = "\t" if self._ending == ".tsv" else ","
            frame = frame.with_columns(map(_as_text, (one for one in frame if not _is_plain(one.dtype))))
            frame = frame.with_columns(pl.col(pl.String).map_elements(unlike_formula, return_dtype=pl.String))
            frame.columns = [unlike_formula(name) for name in frame.columns]
            frame.write_csv(self._stream, separator=separator, include_header=self.n_rows == 0)
        self.n_rows += frame.height

    def close(self) -> None:
        if self._parquet is not None:
            self._parquet.close()
        if self._sheet:
            _write_sheets(self._stream, {"results": pl.concat(self._sheet)})


@contextmanager
def writing_parts(path: Path) -> Iterator[PartWriter]:
    """Yield a writer of a file that appears complete or not at all."""
    of_block: OSError | None = None
    remove_abandoned(path)
    try:
        with replacing(path) as stream:
            writer = PartWriter(stream, path)
            try:
                yield writer
            except OSError as error:
                of_block = error
                raise
            finally:
                writer.close()
    except OSError as error:
        if error is of_block:
            raise
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> CommandError:
    return CommandError(f"{path} cannot be written: {error.strerror or error}.")


def write_table(columns: Mapping[str, Any], path: Path) -> None:
    """Write columns in the format of the file's extension; the file appears complete or not at all."""
    with replacing(path) as stream, closing(PartWriter(stream, path)) as writer:
        writer.append(columns)


def write_workbook(tables: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Write tables as sheets of a workbook; the file appears complete or not at all."""
    with replacing(path) as stream:
        _write_sheets(stream, {name: pl.DataFrame(dict(columns), strict=False) for name, columns in tables.items()})


def _write_sheets(stream: BinaryIO, sheets: Mapping[str, pl.DataFrame]) -> None:
    import xlsxwriter

    options = {"strings_to_formulas": False, "strings_to_urls": False, "nan_inf_to_errors": True, "in_memory": True}
    with xlsxwriter.Workbook(stream, options) as workbook:
        for name, frame in sheets.items():
            frame.with_columns(pl.col(pl.Float64).fill_nan(None)).write_excel(workbook, name)


def _is_plain(dtype: pl.DataType) -> bool:
    """Return whether polars writes such cells as text."""
    return not (dtype.is_nested() or dtype in (pl.Duration, pl.Binary, pl.Object))


def _as_text(column: pl.Series) -> pl.Series:
    return pl.Series(column.name, [None if cell is None else str(cell) for cell in column.to_list()], dtype=pl.String)
