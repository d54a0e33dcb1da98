"""Reading of tables from files."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.util import find_spec
from io import FileIO
from pathlib import Path

import numpy as np
import polars as pl
from polars import selectors

from majorant.cli.errors import CommandError, did_you_mean, listed, printable
from majorant.cli.text_tables import AS_USUAL, Reading, as_numbers, first_long_line, read_text, refuse_repeated

READABLE = ".csv, .tsv (also packed, as .csv.gz), .xlsx, .ods, .parquet, .arrow, .feather or .npz"
NEEDS_EXCEL = 'pip install "majorant[excel]"'
STDIN = Path("-")
"""The table that comes by standard input."""
_NAME_OF_STDIN = Path("standard input")
MOST_EXCEL_ROWS = 1_048_575
"""Rows of a sheet below its header."""
WRITABLE = (".csv", ".tsv", ".xlsx", ".parquet")
_DAMAGE = (
    pl.exceptions.PolarsError,
    OSError,
    EOFError,
    ValueError,
    KeyError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True)
class SourceTable:
    """A table and the file that it came from."""

    path: Path  # as given by the user
    frame: pl.DataFrame  # its columns
    checksum: str  # SHA-256 of the file
    part: str = ""  # the rows of the file that are meant, in words; empty if all
    sources: Mapping[str, str] = field(default_factory=dict)  # the file's column that a column of 0 and 1 was made of

    def source_of(self, name: str) -> str:
        """Return the column of the file that a column comes from."""
        return self.sources.get(name, name)

    @property
    def name(self) -> str:
        return printable(self.path.name) + self.part


def read_table(path: Path, reading: Reading = AS_USUAL) -> SourceTable:
    """Read a table, in the format of its extension; "-" is standard input."""
    try:
        if path.is_dir():
            raise CommandError(f"{path} is a folder; a table is one file, {READABLE}.")
        with _opened(path) as stream:
            named = path
            if path == STDIN:
                named, path = _named(stream), _NAME_OF_STDIN
            frame = reading.without_codes(_parsed(path, named.suffixes, stream, reading))
            stream.seek(0)
            checksum = hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        raise CommandError(_not_there(path), "Check the path of the table.") from None
    except OSError as error:
        raise CommandError(f"{path} cannot be opened: {error.strerror}.") from error
    if frame.width == 0 or frame.height == 0:
        raise CommandError(f"{path} has no rows.", "A table needs a line of column names and at least one row.")
    return SourceTable(path, frame.with_columns(selectors.float().fill_nan(None)), checksum)


@contextmanager
def _opened(path: Path) -> Iterator[FileIO]:
    """Open a table, unbuffered: polars reads from where the file itself stands, not from where Python's buffer does."""
    if path != STDIN:
        with path.open("rb", buffering=0) as stream:
            yield stream
        return
    with tempfile.TemporaryFile(buffering=0) as copied:
        shutil.copyfileobj(sys.stdin.buffer, copied)
        copied.seek(0)
        yield copied


def _named(stream: FileIO) -> Path:
    """Name standard input by what it holds: text, unless it begins as another format."""
    start = stream.read(8)
    stream.seek(0)
    endings = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"\xff\xff\xff\xff": ".arrow", b"PK\x03\x04": ".xlsx"}
    ending = next((ending for opening, ending in endings.items() if start.startswith(opening)), ".csv")
    return _NAME_OF_STDIN.with_suffix(ending)


def _not_there(path: Path) -> str:
    """Return the message for a missing file, with a file or folder of similar name."""
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}."
    with suppress(OSError):
        names = sorted(other.name for other in path.parent.iterdir())
        near = [name for name in names if get_close_matches(_stem(path.name), [_stem(name)])]  # all .csv look alike
        return f"there is no file {path}.{did_you_mean(path.name, near)}"
    return f"there is no file {path}."


def _stem(name: str) -> str:
    return name.partition(".")[0].lower()


def _parsed(path: Path, suffixes: Sequence[str], stream: FileIO, reading: Reading) -> pl.DataFrame:
    endings = [suffix.lower() for suffix in suffixes]
    ending = "".join(endings[-1:])
    if ending == ".gz" and _READERS.get("".join(endings[-2:-1])) is read_text:
        ending = endings[-2]
    if ending not in _READERS:
        raise CommandError(f'a table cannot be read from "{path.name}".', f"The name must end in {READABLE}.")
    if not stream.read(1):
        raise CommandError(f"{path} is empty.", "A table needs a line of column names and at least one row.")
    stream.seek(0)
    try:
        return _READERS[ending](stream, reading)
    except CommandError as error:
        raise CommandError(f"{path} {error.sentences[0]}", *error.sentences[1:]) from error
    except MemoryError as error:
        raise CommandError(f"{path} is too large for this machine's memory, or damaged.") from error
    except _DAMAGE as error:
        reason, advice = _explained(str(error).strip().split("\n")[0])
        with suppress(*_DAMAGE, csv.Error):
            stream.seek(0)
            reason = first_long_line(stream, reading) if "more fields" in reason else reason
        raise CommandError(f"{path} cannot be read as {ending[1:]}: {reason}.", advice) from error


def _explained(reason: str) -> tuple[str, str]:
    """Return the meaning of a reader's error message, and what to do."""
    if "more fields" in reason:
        return "a line has more fields than the first one", (
            "Put text that holds the separator in double quotes; lines above the column names are passed over with "
            "--skip-rows."
        )
    if "utf-8" in reason.lower():
        return "it is not UTF-8 text", "Name its encoding, such as --encoding cp1252, or save it again as UTF-8."
    if reason.startswith('could not parse `"'):
        return "a double quote is opened and not closed", "Close it, or write it twice where it is meant as a sign."
    if "more than one occurrence" in reason:
        return reason, "Rename one of them."
    return reason.rstrip("."), "Check that the file is complete and that its ending says what it is."


def _read_workbook(stream: FileIO, reading: Reading) -> pl.DataFrame:
    """Read a sheet of a workbook."""
    try:
        import fastexcel
    except ImportError as error:
        raise CommandError("is a workbook, which is read by fastexcel; it is not there.", NEEDS_EXCEL) from error
    content = stream.read()
    try:
        book = fastexcel.read_excel(content)
        names = book.sheet_names
    except fastexcel.FastExcelError as error:
        raise CommandError("is no workbook, or is damaged.", "Check that its ending says what it is.") from error
    sheet = reading.sheet or names[0]
    if sheet not in names and sheet.isdecimal() and 0 < int(sheet) <= len(names):
        sheet = names[int(sheet) - 1]
    if sheet not in names:
        raise CommandError(f'has no sheet "{sheet}".', f"Sheets: {listed(names)}.")
    frame = pl.read_excel(
        io.BytesIO(content),
        sheet_name=sheet,
        engine="calamine",
        read_options={"header_row": reading.skip_rows},
        infer_schema_length=None,
        raise_if_empty=False,
    )
    unnamed = [name for name in frame.columns if name.startswith("__UNNAMED__")]
    header = book.load_sheet(sheet, header_row=None, skip_rows=reading.skip_rows, n_rows=1, dtypes="string").to_polars()
    refuse_repeated([name for name in (header.row(0) if header.height else ()) if name is not None])
    for name in unnamed:
        if frame[name].null_count() < frame.height:
            raise CommandError(f"has values in column {frame.columns.index(name) + 1}, which has no name: give it one.")
    return as_numbers(frame.drop(unnamed), reading)


def _read_parquet(stream: FileIO, reading: Reading) -> pl.DataFrame:
    return pl.read_parquet(stream)


def _read_arrow(stream: FileIO, reading: Reading) -> pl.DataFrame:
    from pyarrow import ArrowException, ipc

    is_file_format = stream.read(6) == b"ARROW1"
    stream.seek(0)
    with suppress(ArrowException):  # what is damaged is told below
        refuse_repeated((ipc.open_file if is_file_format else ipc.open_stream)(stream).schema.names)
    stream.seek(0)
    return pl.read_ipc(stream) if is_file_format else pl.read_ipc_stream(stream)


def _read_arrays(stream: FileIO, reading: Reading) -> pl.DataFrame:
    loaded = np.load(stream, allow_pickle=False)
    if not isinstance(loaded, np.lib.npyio.NpzFile):
        raise CommandError("holds one array without a name: save it with numpy.savez(path, X=...).")
    with loaded as arrays:
        if "X" not in arrays.files:
            raise CommandError(f'has no array "X"; it has {", ".join(arrays.files) or "none"}.')
        values = arrays["X"]
        if not isinstance(values, np.ndarray):
            raise CommandError('holds an "X" that is not an array: save it with numpy.savez(path, X=...).')
        if values.ndim != 2 or values.dtype.kind not in "biuf":
            raise CommandError(f'must hold "X" as numbers with two dimensions; it is {values.dtype}, {values.shape}.')
        if values.dtype.kind == "f" and values.dtype.itemsize > 8:
            values = values.astype(np.float64)
        names = [f"x{i + 1}" for i in range(values.shape[1])]
        if "names" in arrays.files:
            names = np.atleast_1d(arrays["names"]).tolist()
    if len(names) != values.shape[1] or len(set(names)) != len(names) or not all(isinstance(n, str) for n in names):
        raise CommandError(f'must hold "names" as {values.shape[1]} different texts, one per column of "X".')
    return pl.DataFrame({name: np.ascontiguousarray(values[:, i]) for i, name in enumerate(names)})


_READERS: dict[str, Callable[[FileIO, Reading], pl.DataFrame]] = {
    ".csv": read_text,
    ".txt": read_text,
    ".tsv": read_text,
    ".tab": read_text,
    **dict.fromkeys((".xlsx", ".xlsm", ".xls", ".ods"), _read_workbook),
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
    ".ipc": _read_arrow,
    ".npz": _read_arrays,
}


def is_same_file(path: Path, other: Path) -> bool:
    """Return whether both paths exist and are the same file."""
    return os.path.exists(path) and os.path.exists(other) and path.samefile(other)  # noqa: PTH110  # no errors


def check_writable_ending(path: Path, n_rows: int = 0) -> None:
    """Raise CommandError if tables, of so many rows, cannot be written with the extension."""
    if path.suffix.lower() not in WRITABLE:
        raise CommandError(f'a table cannot be written to "{path.name}".', "Name it .csv, .tsv, .xlsx or .parquet.")
    if path.suffix.lower() == ".xlsx" and find_spec("xlsxwriter") is None:
        raise CommandError("a workbook is written by xlsxwriter, which is not there.", NEEDS_EXCEL)
    if path.suffix.lower() == ".xlsx" and n_rows > MOST_EXCEL_ROWS:
        raise CommandError(f"a sheet has at most {MOST_EXCEL_ROWS} rows, not {n_rows}.", "Write .csv or .parquet.")
