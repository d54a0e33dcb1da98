"""How is a table read from a file, and written to one?"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from majorant.cli.errors import CommandError
from majorant.persistence import replacing

READABLE = ".csv, .tsv, .parquet, .arrow, .feather or .npz"
_SEPARATORS = (",", ";", "\t", "|")
_LONGEST_HEADER = 1_000_000
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
    """

    path: Path
    frame: pl.DataFrame
    checksum: str

    @property
    def name(self) -> str:
        return self.path.name


def read_table(path: Path) -> SourceTable:
    """Read a table, by the ending of its name.

    Raises
    ------
    CommandError
        If there is no such file, it cannot be read, or it has no rows.
    """
    if path.is_dir():
        raise CommandError(f"{path} is a folder; a table is one file, {READABLE}.")
    try:
        # unbuffered: polars reads from where the file itself stands, not from where Python's buffer does
        with path.open("rb", buffering=0) as stream:
            frame = _parsed(path, stream)
            stream.seek(0)
            checksum = hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        raise CommandError(f"there is no file {path}.", "Check the path of the table.") from None
    except OSError as error:
        raise CommandError(f"{path} cannot be opened: {error.strerror}.") from error
    if frame.width == 0 or frame.height == 0:
        raise CommandError(f"{path} has no rows.", "A table needs a line of column names and at least one row.")
    return SourceTable(path, frame, checksum)


def _parsed(path: Path, stream: FileIO) -> pl.DataFrame:
    ending = path.suffix.lower()
    if ending not in _READERS:
        raise CommandError(f'a table cannot be read from "{path.name}".', f"The name must end in {READABLE}.")
    if not stream.read(1):
        raise CommandError(f"{path} is empty.", "A table needs a line of column names and at least one row.")
    stream.seek(0)
    try:
        return _READERS[ending](stream)
    except CommandError as error:
        raise CommandError(f"{path} {error}") from error
    except (pl.exceptions.PolarsError, OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        reason, advice = _explained(str(error).strip().split("\n")[0])
        raise CommandError(f"{path} cannot be read as {ending[1:]}: {reason}.", advice) from error


def _explained(reason: str) -> tuple[str, str]:
    """What a reader's complaint means, and what to do."""
    if "more fields" in reason:
        return "a line has more fields than the first one", "Put text that holds the separator in double quotes."
    if "utf-8" in reason.lower():
        return "it is not UTF-8 text", "Save it again with the encoding UTF-8."
    return reason.rstrip("."), "Check that the file is complete and that its ending says what it is."


def _read_text(stream: FileIO) -> pl.DataFrame:
    first = stream.readline(_LONGEST_HEADER)
    separator = max(_SEPARATORS, key=lambda character: first.count(character.encode()))
    stream.seek(0)
    frame = pl.read_csv(
        stream, separator=separator, infer_schema_length=None, null_values=_MISSING, try_parse_dates=False
    )
    for name in frame.columns:
        original, renamed, _ = name.rpartition("_duplicated_")
        if renamed and original in frame.columns:
            raise CommandError(f'has two columns "{original}": rename one of them.')
    return frame.with_columns([_number_if_it_is_one(frame[c]) for c in frame.columns if frame[c].dtype == pl.String])


def _number_if_it_is_one(column: pl.Series) -> pl.Series:
    """Text such as " 3" or "inf" is a number too, where the whole column agrees."""
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
    with np.load(stream, allow_pickle=False) as arrays:
        if "X" not in arrays.files:
            raise CommandError(f'has no array "X"; it has {", ".join(arrays.files) or "none"}.')
        values = arrays["X"]
        if values.ndim != 2 or values.dtype.kind not in "biuf":
            raise CommandError(f'must hold "X" as numbers with two dimensions; it is {values.dtype}, {values.shape}.')
        names = arrays["names"].tolist() if "names" in arrays.files else [f"x{i + 1}" for i in range(values.shape[1])]
    if len(names) != values.shape[1] or len(set(names)) != len(names) or not all(isinstance(n, str) for n in names):
        raise CommandError(f'must hold "names" as {values.shape[1]} different texts, one a column of "X".')
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


def check_writable_ending(path: Path) -> None:
    """Refuse a name that `write_table` cannot write."""
    if path.suffix.lower() not in (".csv", ".tsv", ".parquet"):
        raise CommandError(f'a table cannot be written to "{path.name}".', "Name it .csv, .tsv or .parquet.")


def write_table(columns: Mapping[str, Any], path: Path) -> None:
    """Write columns by the ending of the name; the file appears whole or not at all."""
    frame = pl.DataFrame(dict(columns))
    with replacing(path) as stream:
        if path.suffix.lower() == ".parquet":
            frame.write_parquet(stream)
        else:
            frame.write_csv(stream, separator="\t" if path.suffix.lower() == ".tsv" else ",")
