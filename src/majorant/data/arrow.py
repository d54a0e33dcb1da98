"""Tables in files: Parquet by row groups, Arrow and Feather by record batches, one file or many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._numbers import briefly
from majorant.data.chunks import block_rows
from majorant.data.storage import Piece, StoredRows, UnchangedFile, unreadable

TURNED = 2048
"""Rows at a time that are converted from columns to rows, so that they stay in cache."""

MOST_ROWS = 65536
"""Most rows, about, of a piece in which a row group is read."""

_OTHER_COLUMNS = "name others in columns"
_LABELS_APART = (
    "the target of a stream is numbers. Write labels as whole numbers, or leave target out, name the features in "
    "columns, and give fit the labels as y, an array in memory"
)
_WEIGHTS = "sample_weight is a column of numbers"


class ArrowRows(StoredRows):
    """Columns of files of one kind, one after the other; row groups and record batches are chunks.

    Parameters
    ----------
    paths : sequence of Path
        They must agree in the types of the columns.
    columns : sequence of str, optional
        By default all but the target and the weights.
    target, sample_weight : str, optional
    """

    def __init__(
        self,
        paths: Sequence[Path],
        columns: Sequence[str] | None = None,
        target: str | None = None,
        sample_weight: str | None = None,
    ) -> None:
        pa = _pyarrow()
        self._paths = tuple(paths)
        if isinstance(columns, str):
            raise TypeError(f"columns must be a sequence of names; got {briefly(columns)}: write [{columns!r}]")
        n_units = 0
        others = [name for name in (target, sample_weight) if name is not None]
        for path in self._paths:
            with _opened(path) as file:
                schema = _schema(path, file)
                n_units += file.metadata.num_rows if path.suffix == ".parquet" else _count_rows(file)
            if path is self._paths[0]:
                x_names = [n for n in schema.names if n not in others] if columns is None else list(columns)
                if not x_names:
                    raise ValueError(f"{path.name} has no columns to read")
                self._wanted = [*x_names, *others]
                advice = dict.fromkeys(x_names, _OTHER_COLUMNS) | {target: _LABELS_APART, sample_weight: _WEIGHTS}
                self._types = [
                    _number_type(pa, path, schema, name, self._wanted, advice[name]) for name in self._wanted
                ]
            else:
                self._refuse_other_columns(path, schema, f"in {self._paths[0].name}", f"in {path.name}")
        single = all(kind in (pa.float32(), pa.float16()) for kind in self._types[: len(x_names)])
        super().__init__(n_units, len(x_names), np.float32 if single else np.float64, x_names)
        self.own_target, self.own_weights = target is not None, sample_weight is not None
        self._files = [UnchangedFile(path) for path in self._paths]

    def pieces(self) -> Iterator[Piece]:
        chunk = 0
        for path, unchanged in zip(self._paths, self._files, strict=True):
            unchanged.check()
            with _opened(path) as file:
                self._refuse_other_columns(path, _schema(path, file), "when it was opened", "now")
                is_parquet = path.suffix == ".parquet"
                for number in range(file.num_row_groups if is_parquet else file.num_record_batches):
                    if is_parquet:
                        rows = block_rows(self.n_features * self.dtype.itemsize)
                        size = max(MOST_ROWS // rows, 1) * rows
                        batches = file.iter_batches(size, [number], columns=self._wanted, use_threads=False)
                    else:
                        batches = [file.get_batch(number).select(self._wanted)]
                    for batch in batches:
                        yield self._piece(chunk, batch)
                    chunk += 1

    def _piece(self, chunk: int, batch: Any) -> Piece:
        x = np.empty((batch.num_rows, self.n_features), dtype=self.dtype)
        columns = [_numbers(batch.column(name)) for name in self._wanted[: self.n_features]]
        for a in range(0, len(x), TURNED):
            for j, column in enumerate(columns):
                x[a : a + TURNED, j] = column[a : a + TURNED]
        others = iter(self._wanted[self.n_features :])
        target = _numbers(batch.column(next(others))) if self.own_target else None
        return Piece(chunk, x, target, _numbers(batch.column(next(others))) if self.own_weights else None)

    def _refuse_other_columns(self, path: Path, schema: Any, then: str, now: str) -> None:
        """Refuse a file without one of the columns, which pyarrow would silently leave out."""
        for name, kind in zip(self._wanted, self._types, strict=True):
            found = [schema.field(i).type for i in schema.get_all_field_indices(name)]
            if found != [kind]:
                other = " and ".join(map(str, found)) or "no such column"
                raise ValueError(f"column {name!r} of {path.name} was {kind} {then} and is {other} {now}")


def _number_type(pa: Any, path: Path, schema: Any, name: str, wanted: Sequence[str], advice: str) -> Any:
    """Return the type of a column that can be read as numbers, and is named once."""
    if name not in schema.names:
        raise ValueError(f"no column {name!r} in {path.name}; its columns are {', '.join(schema.names)}")
    if schema.names.count(name) > 1:
        raise ValueError(f"{path.name} has two columns {name!r}: rename one of them, or name others in columns")
    if list(wanted).count(name) > 1:
        raise ValueError(f"column {name!r} is named twice: name every column once")
    kind = schema.field(name).type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise TypeError(f"column {name!r} of {path.name} holds {kind}, not numbers: {advice}")
    return kind


def _numbers(column: Any) -> NDArray[Any]:
    """Return a column as numbers, NaN where one is missing."""
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    if values.dtype == object:  # booleans of which some are missing
        values = np.array([np.nan if v is None else v for v in values])
    return values


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError('reading Parquet and Arrow files needs pyarrow: pip install "majorant[cli]"') from error
    return pa


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file; raise ValueError where pyarrow finds it damaged, then or later."""
    pa = _pyarrow()
    try:
        if path.suffix == ".parquet":
            opened = pa.parquet.ParquetFile(path, pre_buffer=False)
        else:
            opened = pa.ipc.open_file(pa.memory_map(str(path)))
        with opened as file:
            yield file
    except MemoryError:  # pyarrow's own is an ArrowException too
        raise
    except pa.ArrowException as error:
        raise unreadable(path) from error
    except OSError as error:
        if error.errno is not None:  # the system's own, such as a file that went
            raise
        raise unreadable(path) from error


def _schema(path: Path, file: Any) -> Any:
    return file.schema_arrow if path.suffix == ".parquet" else file.schema


def _count_rows(file: Any) -> int:
    return sum(file.get_batch(i).num_rows for i in range(file.num_record_batches))
