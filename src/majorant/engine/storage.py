"""Rows that stay where they are: memory-mapped arrays, .npy files, Parquet and Arrow files, read block by block."""

from __future__ import annotations

import copy
import mmap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from majorant.engine.chunks import Block, Chunks, Source, block_rows

STREAM_BYTES = 1 << 26
"""Memory-mapped arrays larger than this are streamed; smaller ones are read into memory."""

READ_BYTES = 1 << 22
"""Rows are read from a file in pieces of about this size."""


class StoredRows:
    """Rows read in consecutive pieces, the same ones in every pass.

    Attributes
    ----------
    n_units, n_features : int
    dtype : numpy dtype
        float32 or float64: what the pieces are given out as.
    names : tuple of str, or None
        Column names, where the file has them.
    weights : ndarray of shape (n_units,), or None
    """

    def __init__(self, n_units: int, n_features: int, dtype: Any, names: Sequence[str] | None = None) -> None:
        self.n_units, self.n_features = n_units, n_features
        self.dtype = np.dtype(np.float32 if np.dtype(dtype) == np.float32 else np.float64)
        self.names = None if names is None else tuple(names)
        self.weights: NDArray[np.float64] | None = None
        self._memory: list[dict[str, Any]] = []

    @property
    def total_weight(self) -> float:
        return float(self.n_units) if self.weights is None else float(self.weights.sum())

    @property
    def n_blocks(self) -> int:
        return max(2, len(self._memory))  # known after the first pass; more than one in any case

    def for_one_fit(self) -> Self:
        """The same rows without weights or memory: fits that share a file must not share those."""
        apart = copy.copy(self)
        apart.weights, apart._memory = None, []
        return apart

    def pieces(self) -> Iterator[NDArray[Any]]:
        """Arrays (rows, n_features) whose concatenation is the data."""
        raise NotImplementedError

    def blocks(self) -> Iterator[Block]:
        first, number = 0, 0
        for piece in self.pieces():
            rows = block_rows(self.n_features * self.dtype.itemsize)
            for a in range(0, len(piece), rows):
                x = np.ascontiguousarray(piece[a : a + rows], dtype=self.dtype)
                if number == len(self._memory):
                    self._memory.append({})
                weights = None if self.weights is None else self.weights[first : first + len(x)]
                yield Block(first, (x,), weights, self._memory[number])
                first, number = first + len(x), number + 1
        if first != self.n_units:
            raise self._changed(first)

    def _changed(self, n_rows: int) -> ValueError:
        return ValueError(f"the data had {self.n_units} rows when they were opened and have {n_rows} now")


class NpyRows(StoredRows):
    """A two-dimensional .npy file, or a memory-mapped array."""

    def __init__(self, array: np.memmap[Any, Any]) -> None:
        if array.ndim != 2:
            raise ValueError(f"the array must have two dimensions (rows, columns); it has shape {array.shape}")
        if array.dtype.kind not in "fiub":
            raise TypeError(f"the array must hold numbers; it holds {array.dtype}")
        if array.shape[1] == 0:
            raise ValueError(f"the array has no columns; it has shape {array.shape}")
        super().__init__(array.shape[0], array.shape[1], array.dtype)
        self._array = array
        # Reading the file keeps pages out of this process; a view, or pages that were written to, go by the mapping.
        owner: Any = array.base
        self._readable = isinstance(owner, mmap.mmap) and array.mode == "r" and array.flags.c_contiguous

    def pieces(self) -> Iterator[NDArray[Any]]:
        array = self._array
        row_bytes = max(array.dtype.itemsize * self.n_features, 1)
        per_block = block_rows(self.n_features * self.dtype.itemsize)
        rows = max(READ_BYTES // row_bytes // per_block, 1) * per_block
        if not self._readable or array.filename is None:
            for a in range(0, self.n_units, rows):
                yield array[a : a + rows]
            return
        with Path(array.filename).open("rb") as file:
            file.seek(array.offset)
            for a in range(0, self.n_units, rows):
                m = min(rows, self.n_units - a)
                values = np.fromfile(file, dtype=array.dtype, count=m * self.n_features)
                if len(values) < m * self.n_features:
                    raise self._changed(a + len(values) // self.n_features)
                yield values.reshape(m, self.n_features)


class ArrowRows(StoredRows):
    """Columns of a Parquet file (by row groups) or of an Arrow/Feather file (by record batches)."""

    def __init__(self, path: Path, columns: Sequence[str] | None = None) -> None:
        pa = _pyarrow()
        self._path = path
        if isinstance(columns, str):
            raise TypeError(f"columns must be a sequence of names; got {columns!r}: write [{columns!r}]")
        with _opened(path) as file:
            schema = _schema(path, file)
            n_units = file.metadata.num_rows if path.suffix == ".parquet" else _count_rows(file)
        names = list(schema.names) if columns is None else list(columns)
        for name in names:
            if name not in schema.names:
                raise ValueError(f"no column {name!r} in {path.name}; its columns are {', '.join(schema.names)}")
            if schema.names.count(name) > 1:
                raise ValueError(f"{path.name} has two columns {name!r}: rename one of them, or name others in columns")
            if names.count(name) > 1:
                raise ValueError(f"column {name!r} is asked for twice: name every column once")
            kind = schema.field(name).type
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
                raise TypeError(f"column {name!r} of {path.name} holds {kind}, not numbers: name others in columns")
        if not names:
            raise ValueError(f"{path.name} has no columns to read")
        single = all(schema.field(name).type in (pa.float32(), pa.float16()) for name in names)
        super().__init__(n_units, len(names), np.float32 if single else np.float64, names)
        self._types = [schema.field(name).type for name in names]

    def pieces(self) -> Iterator[NDArray[Any]]:
        names = list(self.names or ())
        with _opened(self._path) as file:
            self._refuse_other_columns(_schema(self._path, file))
            if self._path.suffix == ".parquet":
                batches = (
                    batch for g in range(file.num_row_groups) for batch in file.iter_batches(65536, [g], columns=names)
                )
            else:
                batches = (file.get_batch(i).select(names) for i in range(file.num_record_batches))
            for batch in batches:
                yield np.column_stack([self._numbers(c) for c in batch])

    def _refuse_other_columns(self, schema: Any) -> None:
        """pyarrow reads what is there of the names it is given, so a column that went would not be missed."""
        for name, kind in zip(self.names or (), self._types, strict=True):
            found = [schema.field(i).type for i in schema.get_all_field_indices(name)]
            if found != [kind]:
                now = " and ".join(map(str, found)) or "no such column"
                raise ValueError(f"column {name!r} of {self._path.name} was {kind} when it was opened and is {now} now")

    def _numbers(self, column: Any) -> NDArray[Any]:
        """A column as numbers, NaN where one is missing."""
        values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        if values.dtype == object:  # booleans of which some are missing
            values = np.array([np.nan if v is None else v for v in values])
        return values.astype(self.dtype)


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError('reading Parquet and Arrow files needs pyarrow: pip install "majorant[cli]"') from error
    return pa


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The file, open; whatever pyarrow finds damaged in it, then or later, is one ValueError."""
    pa = _pyarrow()
    try:
        if path.suffix == ".parquet":
            opened = pa.parquet.ParquetFile(path)
        else:
            opened = pa.ipc.open_file(pa.memory_map(str(path)))
        with opened as file:
            yield file
    except pa.ArrowException as error:
        raise _unreadable(path) from error
    except OSError as error:
        if error.errno is not None:  # the system's own, such as a file that went
            raise
        raise _unreadable(path) from error


def _schema(path: Path, file: Any) -> Any:
    return file.schema_arrow if path.suffix == ".parquet" else file.schema


def _mapped_npy(path: Path) -> Any:
    try:
        return np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:  # its words would have the reader switch a guard off
        raise _unreadable(path) from error


def _unreadable(path: Path) -> ValueError:
    return ValueError(
        f"{path.name} cannot be read as a {path.suffix} file of numbers: it is damaged or of another format"
    )


def _count_rows(file: Any) -> int:
    return sum(file.get_batch(i).num_rows for i in range(file.num_record_batches))


class _Mapped:
    """Another source's rows, seen through a function."""

    def __init__(self, source: Source, f: Callable[[Any], Any]) -> None:
        self._source, self._f = source, f
        self.n_units, self.total_weight = source.n_units, source.total_weight

    @property
    def n_blocks(self) -> int:
        return self._source.n_blocks

    def blocks(self) -> Iterator[Block]:
        for block in self._source.blocks():
            yield Block(block.first, (self._f(block.columns[0]), *block.columns[1:]), block.weights, block.memory)


def mapped(source: Source, f: Callable[[Any], Any]) -> Source:
    """`source` with `f` applied to the first column of every block."""
    return _Mapped(source, f)


def open_rows(path: str | Path, columns: Sequence[str] | None = None, *, n_jobs: int | None = None) -> Chunks:
    """Open a file whose rows are to be read block by block, for data larger than memory.

    Parameters
    ----------
    path : str or path
        A ``.npy`` file (two-dimensional), ``.parquet``, ``.arrow`` or ``.feather``.
    columns : sequence of str, optional
        The columns to read, in this order (not for .npy); by default all.
    n_jobs : int, optional
        Threads that work on blocks at a time.

    Returns
    -------
    Chunks
        To be given to ``fit`` and ``predict`` as X.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError
        If there is no such file, no such column, or it holds anything but numbers.

    Examples
    --------
    >>> import numpy as np, tempfile, pathlib, majorant as mj
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.npy"
    >>> np.save(path, np.random.default_rng(0).normal(size=(1000, 3)))
    >>> rows = mj.open_rows(path)
    >>> mj.KMeans(2, random_state=0).fit(rows).labels_.shape
    (1000,)
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    if path.suffix == ".npy":
        if columns is not None:
            raise ValueError("a .npy file has no column names: leave columns out")
        return Chunks(NpyRows(_mapped_npy(path)), n_jobs=n_jobs)
    if path.suffix in (".parquet", ".arrow", ".feather"):
        return Chunks(ArrowRows(path, columns), n_jobs=n_jobs)
    raise ValueError(f"{path.name}: rows are read from .npy, .parquet, .arrow or .feather files")


def stored_rows(X: Any) -> StoredRows | None:
    """The rows of X if they are to be streamed, None if X is for memory."""
    if isinstance(X, Chunks):
        if isinstance(X.source, StoredRows):
            return X.source.for_one_fit()
        raise TypeError("Chunks of arrays in memory: pass the array itself as X")
    if isinstance(X, np.memmap) and X.nbytes > STREAM_BYTES and X.ndim == 2:
        return NpyRows(X)
    return None
