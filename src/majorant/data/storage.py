"""Stored rows, read block by block: memory-mapped arrays, files, blocks that a function returns."""

from __future__ import annotations

import copy
import mmap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, column_or_1d

from majorant._cells import refuse_what_is_no_number
from majorant._frames import column_names
from majorant._validation import check_sample_weight
from majorant.data.chunks import Block, Chunks, Mapped, Source, block_rows

STREAM_BYTES = 1 << 26
"""Memory-mapped arrays larger than this are streamed; smaller ones are read into memory."""

READ_BYTES = 1 << 22
"""Rows are read from a file in pieces of about this size."""


@dataclass(frozen=True)
class Piece:
    """Consecutive rows as they are read: of one chunk, which may take several pieces."""

    chunk: int
    x: NDArray[Any]  # (n_rows, n_features)
    # (n_rows,): where they come with the rows
    target: NDArray[Any] | None = None
    weights: NDArray[Any] | None = None
    beside: tuple[NDArray[Any], ...] = ()  # (n_rows,): what else does
    is_whole: bool = False  # whether these rows are not to be cut into blocks

    def __len__(self) -> int:
        return len(self.x)

    def part(self, at: slice) -> Piece:
        """Return some of the rows."""
        target, weights = (c if c is None else c[at] for c in (self.target, self.weights))
        return Piece(self.chunk, self.x[at], target, weights, tuple(c[at] for c in self.beside), self.is_whole)

    def followed_by(self, other: Piece) -> Piece:
        """Join two pieces; the chunk is that of the second."""
        columns = zip((self.x, self.target, self.weights), (other.x, other.target, other.weights), strict=True)
        x, target, weights = (None if a is None or b is None else np.concatenate([a, b]) for a, b in columns)
        assert x is not None
        beside = tuple(np.concatenate(pair) for pair in zip(self.beside, other.beside, strict=True))
        return Piece(other.chunk, x, target, weights, beside, other.is_whole)


class StoredRows:
    """Rows read in consecutive pieces, the same ones in every pass.

    Attributes
    ----------
    dtype : numpy dtype
        float32 or float64: what the pieces are given out as.
    names : tuple of str, or None
        Column names, where the file has them.
    target, weights : ndarray of shape (n_units,), or None
        Where they are given apart from the rows.
    has_target, has_weights : bool
        Whether blocks have a second column, the target, and weights.
    cache : Path, or None
        The folder in which a fit may keep what it makes of the rows, for its passes.
    beside_names : tuple of str
        Names of columns that follow the target in blocks; see `put_beside`.
    """

    def __init__(self, n_units: int, n_features: int, dtype: Any, names: Sequence[str] | None = None) -> None:
        self.n_units, self.n_features = n_units, n_features
        self.dtype = np.dtype(np.float32 if np.dtype(dtype) == np.float32 else np.float64)
        self.names = None if names is None else tuple(names)
        self.target: NDArray[np.float64] | None = None
        self.weights: NDArray[np.float64] | None = None
        self.own_target = self.own_weights = False
        self.cache: Path | None = None
        self.beside_names: tuple[str, ...] = ()
        self._apart: tuple[NDArray[np.float64], ...] = ()
        self._total: float | None = None
        self._unit = 1.0
        self._memory: list[dict[str, Any]] = []
        self._files: list[UnchangedFile] = []

    @property
    def has_target(self) -> bool:
        return self.own_target or self.target is not None

    @property
    def has_weights(self) -> bool:
        return self.own_weights or self.weights is not None

    @property
    def total_weight(self) -> float:
        if self.weights is not None:
            return float(self.weights.sum())
        if not self.own_weights:
            return float(self.n_units)
        if self._total is None:
            self._total = self._weighed().total
        return self._total / self._unit

    @property
    def n_blocks(self) -> int:
        return max(2, len(self._memory))  # known after the first pass; more than one in any case

    def for_one_fit(self) -> Self:
        """Return the same rows without weights or memory of a fit: fits that share a file must not share them."""
        apart = copy.copy(self)
        apart.target = apart.weights = None
        apart._memory, apart._unit = [], 1.0
        apart.beside_names, apart._apart = (), ()
        return apart

    def weigh(self, sample_weight: Any) -> None:
        """Set the weights of a fit, or check the weights stored with the rows."""
        if sample_weight is None:
            self._total = self._weighed().total if self.own_weights else None
            return
        if self.own_weights:
            raise ValueError("the rows were opened with a column of weights: leave sample_weight out, or that column")
        self.weights = check_sample_weight(sample_weight, self.n_units)

    def aim(self, y: Any) -> None:
        """Set the target of a fit, if it is not a column of the rows."""
        if y is None:
            if not self.own_target:
                raise ValueError("the rows come without a target: open them with target=, or give y")
            return
        if self.own_target:
            raise ValueError("the rows were opened with a target column: leave y out, or that column")
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64), warn=True)
        if len(y) != self.n_units:
            raise ValueError(f"X has {self.n_units} rows and y has {len(y)}")
        self.target = y

    def put_beside(self, name: str, column: Any) -> None:
        """Add one number per row, which blocks hold as a column after the target.

        Rows of a group, where `name` is "groups", come in one block: of those next to each other in two chunks the
        second one has them all.
        """
        self.beside_names = (*self.beside_names, name)
        self._apart = (*self._apart, np.asarray(column, dtype=np.float64))

    def all_beside(self, name: str) -> NDArray[np.float64]:
        """Return one number per row, in memory."""
        at = 1 + self.has_target + self.beside_names.index(name)
        return Chunks(self).map_rows(lambda block: block.columns[at], ())

    def all_of_target(self) -> NDArray[np.float64]:
        """Return the target of every row, in memory."""
        if self.target is not None:
            return self.target
        return Chunks(self).map_rows(lambda block: block.columns[1], ())

    def weights_of_one(self) -> float:
        """Give weights out in units of their average, none where all are equal; that unit."""
        if self.weights is not None:
            if self.weights.min() == self.weights.max():
                unit, self.weights = float(self.weights[0]), None
            else:
                unit = float(self.weights.sum()) / self.n_units
                self.weights = self.weights / unit
            return unit
        if not self.own_weights:
            return 1.0
        self._unit = self.total_weight / self.n_units
        return self._unit

    def _weighed(self) -> _Weighed:
        def visit(block: Block) -> _Weighed:
            assert block.weights is not None
            bad = np.flatnonzero(~(np.isfinite(block.weights) & (block.weights >= 0)))
            if len(bad):
                raise ValueError(
                    f"weights must be finite and not negative; row {block.first + bad[0]} has {block.weights[bad[0]]:g}"
                )
            return _Weighed(float(block.weights.sum()))

        seen = Chunks(self).map_sum(visit)
        if seen.total == 0:
            raise ValueError("the weight is zero for every row: at least one must be positive")
        return seen

    def pieces(self) -> Iterator[Piece]:
        """Iterate over pieces whose concatenation is the data, chunk after chunk."""
        raise NotImplementedError

    def blocks(self) -> Iterator[Block]:
        first = number = 0
        for piece in self._cut():
            if number == len(self._memory):
                self._memory.append({})
            yield self._block(piece, first, self._memory[number])
            first, number = first + len(piece), number + 1
        if first != self.n_units:
            raise self._changed(first)
        for file in self._files:
            file.check(of_any_size=True)

    def _cut(self) -> Iterator[Piece]:
        """Return pieces of a block each, however the rows were read: the last one of a chunk may be shorter."""
        if "groups" in self.beside_names:
            yield from self._chunk_by_chunk()
            return
        rows = block_rows(self.n_features * self.dtype.itemsize)
        rest: Piece | None = None
        for piece in self.pieces():
            if rest is not None and rest.chunk != piece.chunk:
                yield rest
                rest = None
            whole = piece if rest is None else rest.followed_by(piece)
            end = len(whole) - len(whole) % rows
            for a in range(0, end, rows):
                yield whole.part(slice(a, a + rows))
            rest = whole.part(slice(end, None)) if end < len(whole) else None
        if rest is not None:
            yield rest

    def _chunk_by_chunk(self) -> Iterator[Piece]:
        """Return one piece per chunk; a group that continues in the next chunk is moved there whole."""
        first, rest = 0, None
        for piece in self.pieces():
            if rest is not None and rest.chunk != piece.chunk:
                end = len(rest) - self._torn_off(first, first + len(rest))
                if end:
                    yield rest.part(slice(0, end))
                first, rest = first + end, rest.part(slice(end, None)) if end < len(rest) else None
            rest = piece if rest is None else rest.followed_by(piece)
        if rest is not None:
            yield rest

    def _torn_off(self, first: int, end: int) -> int:
        """Count the rows before `end` that belong to the group of the row at `end`."""
        if not self._apart or end >= self.n_units:
            return 0
        groups = self._apart[self.beside_names.index("groups")]
        others = np.flatnonzero(groups[first:end] != groups[end])
        return end - first - (int(others[-1]) + 1 if len(others) else 0)

    def _block(self, piece: Piece, first: int, memory: dict[str, Any]) -> Block:
        at = slice(first, first + len(piece))
        target = piece.target if self.target is None else self.target[at]
        weights = piece.weights if self.weights is None else self.weights[at]
        if self.weights is None and weights is not None:
            weights = np.asarray(weights, dtype=np.float64) / self._unit
        x = np.ascontiguousarray(piece.x, dtype=self.dtype)
        columns = (x,) if target is None else (x, np.asarray(target, dtype=np.float64))
        beside = piece.beside or tuple(c[at] for c in self._apart)
        return Block(first, (*columns, *beside), weights, memory, piece.chunk)

    def _changed(self, n_rows: int) -> ValueError:
        return ValueError(f"the data had {self.n_units} rows when they were opened and have {n_rows} now")


@dataclass(frozen=True)
class _Weighed:
    """The sum of checked weights."""

    total: float

    def __add__(self, other: _Weighed) -> _Weighed:
        return _Weighed(self.total + other.total)


class NpyRows(StoredRows):
    """A memory-mapped array, or the .npy file at `path`, of which it is a map.

    A map alone is read as it is: its file may have been replaced.
    """

    def __init__(self, array: np.memmap[Any, Any], path: Path | None = None) -> None:
        if array.ndim != 2:
            raise ValueError(f"the array must have two dimensions (rows, columns); it has shape {array.shape}")
        if array.dtype.kind not in "fiub":
            raise TypeError(f"the array must hold numbers; it holds {array.dtype}")
        if array.shape[1] == 0:
            raise ValueError(f"the array has no columns; it has shape {array.shape}")
        super().__init__(array.shape[0], array.shape[1], array.dtype)
        self._array = array
        self._files = [] if path is None else [UnchangedFile(path)]

    def pieces(self) -> Iterator[Piece]:
        array = self._array
        row_bytes = max(array.dtype.itemsize * self.n_features, 1)
        per_block = block_rows(self.n_features * self.dtype.itemsize)
        rows = max(READ_BYTES // row_bytes // per_block, 1) * per_block
        if not self._files or not array.flags.c_contiguous:
            for number, a in enumerate(range(0, self.n_units, rows)):
                yield Piece(number, array[a : a + rows])
                self._give_back(a * row_bytes, rows * row_bytes)
            return
        with self._files[
            0
        ].open() as file:  # keeps pages out of this process, and a file that shrank is no fault of memory
            file.seek(array.offset)
            for number, a in enumerate(range(0, self.n_units, rows)):
                m = min(rows, self.n_units - a)
                values = np.fromfile(file, dtype=array.dtype, count=m * self.n_features)
                if len(values) < m * self.n_features:
                    raise self._changed(a + len(values) // self.n_features)
                yield Piece(number, values.reshape(m, self.n_features))

    def _give_back(self, begin: int, length: int) -> None:
        """Release pages of a map that nobody wrote to, which count as memory of the process until then."""
        array = self._array
        pages: Any = array.base
        is_whole = isinstance(pages, mmap.mmap) and array.mode == "r" and array.flags.c_contiguous
        if is_whole and hasattr(mmap, "MADV_DONTNEED"):
            begin += array.offset % mmap.ALLOCATIONGRANULARITY
            begin, end = (-(-at // mmap.PAGESIZE) * mmap.PAGESIZE for at in (begin, begin + length))
            if begin < min(end, len(pages)):
                pages.madvise(mmap.MADV_DONTNEED, begin, min(end, len(pages)) - begin)


class UnchangedFile:
    """A file that every pass reads anew, refused where it was written to in between."""

    def __init__(self, path: Path) -> None:
        self.path, self._before = path, path.stat()

    def check(self, *, of_any_size: bool = False) -> None:
        """Raise an error if the file was written to.

        Before a pass, one of another size is let through: its columns or its number of rows tell more.
        """
        now, before = self.path.stat(), self._before
        is_candidate = of_any_size or now.st_size == before.st_size
        if is_candidate and (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise ValueError(f"{self.path.name} was written to after it had been opened: open it again")

    def open(self) -> BinaryIO:
        """Open it for reading."""
        self.check()
        return self.path.open("rb")


class IteratedRows(StoredRows):
    """Arrays that a function returns for every pass: X (rows, n_features), or tuples (X, y) and (X, y, weights).

    X is an array or a data frame, each a chunk.
    """

    def __init__(self, factory: Callable[[], Iterable[Any]]) -> None:
        self._factory = factory
        counted, first, names = 0, None, None
        for named, parts in _called(factory):
            if first is None:
                first, names = parts, named
            counted += len(parts[0])
        if first is None or counted == 0:
            raise ValueError("the function gives no rows: it must return an iterable of arrays at every call")
        x, target, weights = first
        super().__init__(counted, x.shape[1], x.dtype, names)
        self.own_target, self.own_weights = target is not None, weights is not None

    def pieces(self) -> Iterator[Piece]:
        for number, (names, (x, target, weights)) in enumerate(_called(self._factory)):
            if names != (None if self.names is None else list(self.names)):
                raise ValueError(
                    f"part {number} has {_told(names)} and the first one {_told(self.names)}: give the same columns, "
                    "in the same order, in all"
                )
            if x.shape[1] != self.n_features:
                raise ValueError(f"array {number} has {x.shape[1]} columns and the first one had {self.n_features}")
            if (target is not None, weights is not None) != (self.own_target, self.own_weights):
                raise ValueError(f"array {number} and the first one differ in whether y and weights come with X")
            if len(x):
                yield Piece(number, x, target, weights)


_Parts = tuple[NDArray[Any], NDArray[Any] | None, NDArray[Any] | None]
"""X, y and weights."""


def _called(factory: Callable[[], Iterable[Any]]) -> Iterator[tuple[list[str] | None, _Parts]]:
    """Read what a function gives: names of columns, and arrays."""
    given = factory()
    if not isinstance(given, Iterable):
        raise TypeError(f"the function must return an iterable of arrays at every call; got {type(given).__name__}")
    # What makes parts when they are asked for may fill the same memory anew, and parts are kept until others come.
    is_kept = isinstance(given, list | tuple | np.ndarray)
    return ((_names(part), _parts(part, copy=not is_kept)) for part in given)


def _names(given: Any) -> list[str] | None:
    """Return column names of X, if it is a data frame."""
    x = given[0] if isinstance(given, tuple) and given else given
    columns = column_names(x)
    return None if columns is None else [str(name) for name in columns]


def _told(names: Sequence[str] | None) -> str:
    return "no column names" if names is None else f"the columns {', '.join(names)}"


def _parts(given: Any, *, copy: bool) -> _Parts:
    """Return X, y and weights of what a function gave."""
    parts: list[NDArray[Any] | None] = []
    for part in given if isinstance(given, tuple) else (given,):
        refuse_what_is_no_number(part, "an array of the function")
        parts.append(None if part is None else np.array(part) if copy else np.asarray(part))
    x, *others = parts or (None,)
    if x is None or x.ndim != 2 or x.shape[1] == 0 or x.dtype.kind not in "fiub" or len(others) > 2:
        what = "nothing" if x is None else f"{x.dtype} of shape {x.shape}"
        raise TypeError(
            f"the function must give arrays (rows, columns) of numbers, or tuples (X, y, weights); got {what}"
        )
    target, weights = [*others, None, None][:2]
    for name, column in (("y", target), ("weights", weights)):
        if column is not None and (column.shape != x.shape[:1] or column.dtype.kind not in "fiub"):
            raise TypeError(
                f"{name} must be {len(x)} numbers, one per row of X; got {column.dtype} of shape {column.shape}"
            )
    return x, target, weights


def unreadable(path: Path) -> ValueError:
    return ValueError(
        f"{path.name} cannot be read as a {path.suffix} file of numbers: it is damaged or of another format"
    )


def mapped(source: Source, f: Callable[[Any], Any]) -> Source:
    """Return `source` with `f` applied to the first column of every block."""
    return Mapped(source, lambda block: (f(block.columns[0]), *block.columns[1:]))


def is_dask(value: Any) -> bool:
    """Return whether it is a Dask collection, found out without importing Dask."""
    return type(value).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(value, "__dask_graph__")


def stored_rows(X: Any) -> StoredRows | None:
    """Return the rows of X if they are to be streamed, None if X is for memory."""
    if isinstance(X, Chunks):
        if isinstance(X.source, StoredRows):
            return X.source.for_one_fit()
        raise TypeError("Chunks of arrays in memory: pass the array itself as X")
    if is_dask(X):
        from majorant.data.cluster import rows_of_dask

        return rows_of_dask(X)
    if isinstance(X, np.memmap) and X.nbytes > STREAM_BYTES and X.ndim == 2:
        return NpyRows(X)
    return None
