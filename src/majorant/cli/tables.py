"""Reading of tables from files."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import os
import re
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from majorant.cli.errors import CommandError, did_you_mean, printable
from majorant.summary import counted

READABLE = ".csv, .tsv (also packed, as .csv.gz), .parquet, .arrow, .feather or .npz"
_SEPARATORS = (",", ";", "\t", "|")
_LONGEST_HEADER = 1_000_000
_GZIP = b"\x1f\x8b"
_WORKBOOKS = (".xlsx", ".xls", ".xlsm", ".ods")
_NO_TEXT = {
    b"PAR1": "a parquet file: name it .parquet",
    b"PK\x03\x04": "a workbook or an archive: save its sheet as CSV",
}
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
_MISSING = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"]


@dataclass(frozen=True)
class SourceTable:
    """A table and the file that it came from.

    Attributes
    ----------
    path : Path
        As given by the user.
    frame : polars.DataFrame
        Its columns.
    checksum : str
        SHA-256 of the file.
    part : str
        The rows of the file that are meant, in words; empty if all.
    """

    path: Path
    frame: pl.DataFrame
    checksum: str
    part: str = ""

    @property
    def name(self) -> str:
        return printable(self.path.name) + self.part


def read_table(path: Path) -> SourceTable:
    """Read a table, in the format of its extension.

    Raises
    ------
    CommandError
        If there is no such file, it cannot be read, or it has no rows.
    """
    try:
        if path.is_dir():
            raise CommandError(f"{path} is a folder; a table is one file, {READABLE}.")
        # unbuffered: polars reads from where the file itself stands, not from where Python's buffer does
        with path.open("rb", buffering=0) as stream:
            frame = _parsed(path, stream)
            stream.seek(0)
            checksum = hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        raise CommandError(_not_there(path), "Check the path of the table.") from None
    except OSError as error:
        raise CommandError(f"{path} cannot be opened: {error.strerror}.") from error
    if frame.width == 0 or frame.height == 0:
        raise CommandError(f"{path} has no rows.", "A table needs a line of column names and at least one row.")
    return SourceTable(path, frame, checksum)


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


def _parsed(path: Path, stream: FileIO) -> pl.DataFrame:
    endings = [suffix.lower() for suffix in path.suffixes]
    ending = "".join(endings[-1:])
    if ending == ".gz" and _READERS.get("".join(endings[-2:-1])) is _read_text:
        ending = endings[-2]
    if ending in _WORKBOOKS:
        raise CommandError(f'a table cannot be read from "{path.name}".', "Save the sheet as CSV, and give that file.")
    if ending not in _READERS:
        raise CommandError(f'a table cannot be read from "{path.name}".', f"The name must end in {READABLE}.")
    if not stream.read(1):
        raise CommandError(f"{path} is empty.", "A table needs a line of column names and at least one row.")
    stream.seek(0)
    try:
        return _READERS[ending](stream)
    except CommandError as error:
        raise CommandError(f"{path} {error}") from error
    except MemoryError as error:
        raise CommandError(f"{path} is too large for this machine's memory, or damaged.") from error
    except _DAMAGE as error:
        reason, advice = _explained(str(error).strip().split("\n")[0])
        with suppress(*_DAMAGE, csv.Error):
            stream.seek(0)
            reason = _first_long_line(stream) if "more fields" in reason else reason
        raise CommandError(f"{path} cannot be read as {ending[1:]}: {reason}.", advice) from error


def _explained(reason: str) -> tuple[str, str]:
    """Return the meaning of a reader's error message, and what to do."""
    if "more fields" in reason:
        return "a line has more fields than the first one", "Put text that holds the separator in double quotes."
    if "utf-8" in reason.lower():
        return "it is not UTF-8 text", "Save it again with the encoding UTF-8."
    if reason.startswith('could not parse `"'):
        return "a double quote is opened and not closed", "Close it, or write it twice where it is meant as a sign."
    return reason.rstrip("."), "Check that the file is complete and that its ending says what it is."


def _read_text(stream: FileIO) -> pl.DataFrame:
    start = stream.read(4)
    stream.seek(0)
    if start in _NO_TEXT:
        raise CommandError(f"is {_NO_TEXT[start]}.")
    header = _header(stream)
    if "\r" in re.sub('"[^"]*"', "", header):
        raise CommandError("ends its lines with CR alone: save it again with LF or CRLF.")
    separator = _separator(header)
    names = next(csv.reader([header], delimiter=separator), [])
    if names and all(map(is_number, names)) and not all(name.strip().isdecimal() for name in names):
        raise CommandError(f"has numbers such as {names[0].strip()} in its first line: put column names above it.")
    if names[:1] == ["sep="]:
        raise CommandError(f'begins with "{header}": take that line out.')
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise CommandError(f'has two columns "{repeated}": rename one of them.')
    frame = pl.read_csv(
        _whole(stream), separator=separator, infer_schema_length=None, null_values=_MISSING, try_parse_dates=False
    )
    if frame.width == 1 and len(words := header.split()) > 1 and _holds_words(frame.to_series(), len(words)):
        raise CommandError("has spaces between its columns: separate them by commas, semicolons, tabs or |.")
    return frame.with_columns([_number_if_it_is_one(frame[c]) for c in frame.columns if frame[c].dtype == pl.String])


def _separator(header: str) -> str:
    unquoted = re.sub('"[^"]*"', "", header)
    return max(_SEPARATORS, key=unquoted.count)


def is_number(text: str) -> bool:
    """Return whether a text is a number, as Python writes it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _holds_words(column: pl.Series, number: int) -> bool:
    """Return whether every text has `number` words, separated by spaces."""
    return column.dtype == pl.String and bool((column.drop_nulls().str.count_matches(r"\S+") == number).all())


def _first_long_line(stream: FileIO) -> str:
    """Describe the first line that has more fields than there are column names."""
    header = _header(stream)
    with io.TextIOWrapper(io.BufferedReader(_unpacked(stream)), encoding="utf-8-sig", newline="") as text:
        lines = csv.reader(text, delimiter=_separator(header))
        expected = 0
        for line in lines:
            expected = expected or len(line)
            if len(line) > expected:
                return (
                    f"line {lines.line_num} has {counted(len(line), 'field')}, "
                    f"and the line of column names {expected} ({header[:40]})"
                )
    return "a line has more fields than the first one"


def _unpacked(stream: FileIO) -> Any:
    is_packed = stream.read(2) == _GZIP
    stream.seek(0)
    return gzip.GzipFile(fileobj=stream) if is_packed else stream


def _whole(stream: FileIO) -> Any:
    """Return the text, decompressed here, as some versions of polars do not notice truncated files."""
    source = _unpacked(stream)
    return source if source is stream else io.BytesIO(source.read())


def _header(stream: FileIO) -> str:
    """Return the first line that is not blank; a name in quotes may hold line breaks."""
    source = _unpacked(stream)
    header = b""
    while len(header) < _LONGEST_HEADER and (line := source.readline(_LONGEST_HEADER)):
        header += line if header or line.strip() else b""
        if header and header.count(b'"') % 2 == 0:
            break
    stream.seek(0)
    return header[:_LONGEST_HEADER].decode("utf-8-sig").rstrip("\r\n")


def _number_if_it_is_one(column: pl.Series) -> pl.Series:
    """Convert text such as " 3" or "inf" to numbers if the whole column allows it."""
    if column.null_count() == len(column):
        return column
    numbers = column.str.strip_chars().cast(pl.Float64, strict=False)
    return numbers if numbers.null_count() == column.null_count() else column


def _read_parquet(stream: FileIO) -> pl.DataFrame:
    return pl.read_parquet(stream)


def _read_arrow(stream: FileIO) -> pl.DataFrame:
    is_file_format = stream.read(6) == b"ARROW1"
    stream.seek(0)
    return pl.read_ipc(stream) if is_file_format else pl.read_ipc_stream(stream)


def _read_arrays(stream: FileIO) -> pl.DataFrame:
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


_READERS: dict[str, Callable[[FileIO], pl.DataFrame]] = {
    ".csv": _read_text,
    ".txt": _read_text,
    ".tsv": _read_text,
    ".tab": _read_text,
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


def check_writable_ending(path: Path) -> None:
    """Raise CommandError if tables cannot be written with the extension."""
    if path.suffix.lower() not in (".csv", ".tsv", ".parquet"):
        raise CommandError(f'a table cannot be written to "{path.name}".', "Name it .csv, .tsv or .parquet.")
