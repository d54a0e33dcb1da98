"""Samples in blocks, which a fit reads only through `Chunks.map_sum`.

Data are cut into consecutive blocks of rows, once and for all: sums run over the same blocks in the same order whatever
the number of threads, so a result is the same to the last bit for any ``n_jobs``. Data that come in chunks (row groups
of a file, partitions of a cluster) are summed block by block within a chunk, and chunk by chunk as a binary tree: one
order for a file, for memory and for any number of workers.
"""

from __future__ import annotations

import operator
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Protocol, Self, TypeVar, cast

import joblib
import numpy as np
from numpy.typing import NDArray

from majorant._progress import report_pass, watched
from majorant._validation import check_integer

BLOCK_BYTES = 1 << 22
"""Approximate size of a block of wide rows in bytes; blocks of narrow rows have the largest number of rows."""


class Additive(Protocol):
    """Result of a pass over the data: a value that is summed over blocks."""

    def __add__(self, other: Any, /) -> Self: ...


S = TypeVar("S", bound=Additive)
R = TypeVar("R")


@dataclass
class Block:
    """Consecutive units.

    Attributes
    ----------
    first : int
        Number of the first unit.
    columns : tuple of arrays
        Row-aligned arrays (dense, or CSR matrices); what they mean is the family's business.
    weights : ndarray of shape (n_units,), or None
        Weight of each unit in every sum; None: one each.
    memory : dict
        A cache of policies and families for these units, kept from one pass to the next.
    chunk : int
        Number of the chunk that the units are in; blocks of one chunk follow each other.
    derived : dict
        A cache of what is made of the columns. It lives as long as they do: of rows in memory from one pass to the
        next, of a stream in one pass.
    """

    first: int
    columns: tuple[Any, ...]
    weights: NDArray[np.float64] | None = None
    memory: dict[str, Any] = field(default_factory=dict)
    chunk: int = 0
    derived: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.columns[0].shape[0])

    @property
    def at(self) -> slice:
        """Slice of these units among all."""
        return slice(self.first, self.first + len(self))

    @property
    def weight(self) -> float:
        """Sum of the weights."""
        return float(len(self)) if self.weights is None else float(self.weights.sum())

    def total(self, values: NDArray[Any]) -> float:
        """Return the weighted sum of one number per unit."""
        if self.weights is None:
            return float(values.sum(dtype=np.float64))
        return float(self.weights @ values.astype(np.float64, copy=False))

    def take(self, rows: NDArray[Any]) -> Block:
        """Return some of these units (a mask, or positions in ascending order), with a memory of their own.

        They are no longer consecutive: `first` and `at` do not apply to them.
        """
        weights = None if self.weights is None else self.weights[rows]
        return Block(self.first, tuple(column[rows] for column in self.columns), weights, chunk=self.chunk)

    def seen(self, columns: tuple[Any, ...]) -> Block:
        """Return these units, weights and caches with other columns."""
        return replace(self, columns=columns)

    def noise(self, seed: int, draw: int, width: int) -> NDArray[np.float64]:
        """Return uniforms in (0, 1), one row per unit.

        A function of (seed, draw, unit) alone: how the units are cut into blocks cannot matter.
        """
        words = self.first * width
        bits = np.random.Philox(key=np.array([seed, draw], dtype=np.uint64))
        bits.advance(words // 4)  # one Philox step makes four words
        stream = np.random.Generator(bits)
        stream.random(words % 4)
        return np.maximum(stream.random((len(self), width)), 2.0**-54)


class Source(Protocol):
    """Row-aligned arrays that can be read in consecutive pieces."""

    @property
    def n_units(self) -> int: ...

    @property
    def total_weight(self) -> float: ...

    @property
    def n_blocks(self) -> int:
        """Number of blocks, possibly approximate."""
        ...

    def blocks(self) -> Iterator[Block]:
        """Iterate over the blocks in order, the same ones at every call."""
        ...


class RemoteSource(Source, Protocol):
    """A source whose rows stay where they are: functions of blocks travel to them, and sums come back."""

    def map_sum(self, f: Callable[[Block], S]) -> S: ...

    def map_rows(self, f: Callable[[Block], NDArray[Any]], out: NDArray[Any]) -> None: ...


class OfSource:
    """Base of views of a source: number and weight of rows are the source's."""

    source: Source

    @property
    def n_units(self) -> int:
        """Number of units."""
        return self.source.n_units

    @property
    def total_weight(self) -> float:
        """Sum of the units' weights."""
        return self.source.total_weight

    @property
    def n_blocks(self) -> int:
        """Number of blocks, possibly approximate."""
        return self.source.n_blocks


@dataclass(frozen=True)
class Mapped(OfSource):
    """Another source's rows with columns that are functions of its blocks, or blocks where weights are theirs too."""

    source: Source
    columns: Callable[[Block], tuple[Any, ...] | Block]

    def blocks(self) -> Iterator[Block]:
        for block in self.source.blocks():
            yield _seen(block, self.columns)


@dataclass(frozen=True)
class Joined(OfSource):
    """Another source's rows in fewer blocks: of a chunk, blocks are joined until they have `rows` rows."""

    source: Source
    rows: int

    def blocks(self) -> Iterator[Block]:
        for _, chunk in groupby(self.source.blocks(), key=lambda block: block.chunk):
            waiting: list[Block] = []
            for block in chunk:
                waiting.append(block)
                if sum(map(len, waiting)) >= self.rows:
                    yield _joined(waiting)
                    waiting = []
            if waiting:
                yield _joined(waiting)


def _joined(blocks: Sequence[Block]) -> Block:
    first = blocks[0]
    if len(blocks) == 1:
        return first
    columns = tuple(np.concatenate(own) for own in zip(*(block.columns for block in blocks), strict=True))
    weights = None if first.weights is None else np.concatenate([block.weights for block in blocks])
    return replace(first, columns=columns, weights=weights, derived={})


def block_rows(row_bytes: int, most: int = 8192) -> int:
    """Return rows of a block, a function of the width of a row alone."""
    return int(np.clip(BLOCK_BYTES // max(row_bytes, 1), 64, most))


class InMemory:
    """Arrays in memory, cut into cache-sized blocks that are views of them.

    Parameters
    ----------
    *columns : array or CSR matrix
        Row-aligned.
    weights : ndarray of shape (n_units,), optional
    rows : int, optional
        Rows of a block; by default a function of the width of a row.
    edges : array of int, optional
        First row of each block, in place of `rows`.
    """

    def __init__(
        self,
        *columns: Any,
        weights: NDArray[np.float64] | None = None,
        rows: int | None = None,
        edges: NDArray[np.intp] | None = None,
    ) -> None:
        lengths = {int(c.shape[0]) for c in columns}
        if len(lengths) != 1:
            raise ValueError(f"columns must have the same number of rows; got {sorted(lengths)}")
        self.n_units = lengths.pop()
        if weights is not None and weights.shape != (self.n_units,):
            raise ValueError(f"weights must have shape ({self.n_units},); got {weights.shape}")
        self.total_weight = float(self.n_units) if weights is None else float(weights.sum())
        rows = block_rows(sum(_row_bytes(c) for c in columns)) if rows is None else rows
        first = list(range(0, max(self.n_units, 1), rows)) if edges is None else edges.tolist()
        self._blocks = [
            Block(a, tuple(c[a:b] for c in columns), None if weights is None else weights[a:b])
            for a, b in zip(first, [*first[1:], self.n_units], strict=True)
        ]

    @property
    def n_blocks(self) -> int:
        return len(self._blocks)

    def blocks(self) -> Iterator[Block]:
        return iter(self._blocks)


@dataclass(frozen=True)
class _Part(OfSource):
    """The units of a source in a mask, made anew at every pass unless they are `kept`."""

    source: Source
    mask: NDArray[np.bool_]
    kept: bool = False

    @property
    def n_units(self) -> int:
        return int(self.mask.sum())

    @cached_property
    def total_weight(self) -> float:
        return float(sum(block.weight for block in self.blocks()))

    def blocks(self) -> Iterator[Block]:
        return iter(self._list) if self.kept else self._taken()

    @cached_property
    def _list(self) -> list[Block]:
        return list(self._taken())

    def _taken(self) -> Iterator[Block]:
        first = 0
        for block in self.source.blocks():
            rows = self.mask[block.at]
            if rows.any():
                taken = replace(block.take(rows), first=first)  # numbered among the units of the mask
                first += len(taken)
                yield taken


def _row_bytes(column: Any) -> int:
    if hasattr(column, "indptr"):
        return int(12 * column.nnz / max(column.shape[0], 1)) + 8
    return int(column.nbytes // max(column.shape[0], 1))


class Chunks(OfSource):
    """The data of a fit, as units that can be mapped over and summed.

    Parameters
    ----------
    *columns : arrays, or one `Source`
        Row-aligned arrays in memory, or where else the rows come from.
    weights : ndarray of shape (n_units,), optional
        Weight of each unit (arrays in memory only; other sources bring their own).
    n_jobs : int, optional
        Threads that work on blocks at a time, as in scikit-learn: None means 1 unless a joblib context says otherwise,
        -1 all processors. The result does not depend on it.
    rows : int, optional
        Rows of a block, for arrays in memory.

    Attributes
    ----------
    source : Source
        Where the rows are.
    n_jobs : int
        Threads.
    n_passes : int
        Passes made so far.
    """

    def __init__(
        self,
        *columns: Any,
        weights: NDArray[np.float64] | None = None,
        n_jobs: int | None = None,
        rows: int | None = None,
    ) -> None:
        self.source: Source
        if len(columns) == 1 and hasattr(columns[0], "blocks"):
            if weights is not None or rows is not None:
                raise ValueError("weights and rows are for arrays in memory: a source brings its own")
            self.source = columns[0]
        else:
            self.source = InMemory(*columns, weights=weights, rows=rows)
        self.n_jobs = effective_threads(n_jobs)
        self.n_passes = 0

    def part(self, mask: NDArray[np.bool_], *, kept: bool = False) -> Chunks:
        """Return the units of a mask as data of their own; their blocks are copies, made anew at every pass or kept."""
        if self._travelling(lambda block: 0)[0] is not None:
            raise TypeError("rows on a cluster cannot be parted into folds: take a sample of them into memory")
        return Chunks(_Part(self.source, mask, kept), n_jobs=self.n_jobs)

    def joined(self, rows: int) -> Chunks:
        """Return the same units in blocks of up to about so many rows, where these are here."""
        is_elsewhere = self._travelling(lambda block: 0)[0] is not None
        return self if is_elsewhere else Chunks(Joined(self.source, rows), n_jobs=self.n_jobs)

    def map_sum(self, f: Callable[[Block], S]) -> S:
        """Return ``f(block_0) + f(block_1) + ...``, added in order within a chunk; chunks as a binary tree.

        Blocks run on threads or, of a `RemoteSource`, where they are; `f` must not depend on the order in which blocks
        are visited, nor be anything but its value: it may run in another process.
        """
        self.n_passes += 1
        remote, travelling = self._travelling(f)
        if remote is not None:
            began = time.monotonic()
            total = remote.map_sum(travelling)
            report_pass(self.n_passes, self.n_units, time.monotonic() - began)
            return total
        blocks = self.source.blocks()
        if not isinstance(self.source, InMemory):
            blocks = watched(blocks, self.n_units, self.n_passes)

        def visit(block: Block) -> tuple[int, S]:
            return block.chunk, f(block)

        if self.n_jobs == 1 or self.n_blocks == 1:
            return added(map(visit, blocks))
        with ThreadPoolExecutor(self.n_jobs) as pool:
            return added(_ordered(pool, visit, blocks, ahead=2 * self.n_jobs))

    def _travelling(self, f: Callable[[Block], S]) -> tuple[RemoteSource | None, Callable[[Block], S]]:
        """Return the remote source below all maps, and `f` of its blocks; None where the rows are here."""
        source = self.source
        while isinstance(source, Mapped):
            f, source = _after(f, source.columns), source.source
        return (cast(RemoteSource, source) if hasattr(source, "map_sum") else None), f

    def map_rows(
        self, f: Callable[[Block], NDArray[Any]], shape: tuple[int, ...], dtype: Any = np.float64
    ) -> NDArray[Any]:
        """Return the values of `f` for every unit in one array, shape ``(n_units, *shape)``: one pass.

        `f` returns the units of its block in their order; it must not depend on the order in which blocks are visited.
        """
        out = np.empty((self.n_units, *shape), dtype=dtype)
        remote, travelling = self._travelling(f)
        if remote is not None:
            self.n_passes += 1
            remote.map_rows(travelling, out)
            return out

        def write(block: Block) -> int:
            out[block.at] = f(block)
            return 0

        self.map_sum(write)
        return out


def _after(f: Callable[[Block], S], columns: Callable[[Block], tuple[Any, ...] | Block]) -> Callable[[Block], S]:
    return lambda block: f(_seen(block, columns))


def _seen(block: Block, columns: Callable[[Block], tuple[Any, ...] | Block]) -> Block:
    made = columns(block)
    return made if isinstance(made, Block) else replace(block, columns=made, derived={})


def added(results: Iterable[tuple[int, S]]) -> S:
    """Sum blocks, given as (number of the chunk, value) in order; chunks are added as a binary tree.

    Neighbours are added in pairs, then their sums, and so on: a power of two of chunks in a row may be added apart.

    Examples
    --------
    >>> added((chunk, f"{chunk}") for chunk in (0, 0, 1, 2, 3, 4))
    '001234'
    """
    waiting: list[tuple[int, S]] = []  # sums of 2**level chunks, the levels falling
    for _, group in groupby(results, key=itemgetter(0)):
        total, level = reduce(operator.add, (value for _, value in group)), 0
        while waiting and waiting[-1][0] == level:
            total, level = waiting.pop()[1] + total, level + 1
        waiting.append((level, total))
    if not waiting:
        raise ValueError("the data have no rows")
    total = waiting.pop()[1]
    while waiting:
        total = waiting.pop()[1] + total
    return total


def _ordered(pool: ThreadPoolExecutor, f: Callable[[Block], R], blocks: Iterator[Block], ahead: int) -> Iterator[R]:
    """Yield results in order, with at most `ahead` blocks under way, so that a stream never fills memory."""
    waiting = deque(pool.submit(f, block) for block in islice(blocks, ahead))
    while waiting:
        result = waiting.popleft().result()
        waiting.extend(pool.submit(f, block) for block in islice(blocks, 1))
        yield result


def effective_threads(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` means here."""
    if n_jobs is not None:
        check_integer("n_jobs", n_jobs)
        if n_jobs == 0:
            raise ValueError("n_jobs must not be 0: 1 is one thread, -1 all processors")
    threads = int(joblib.effective_n_jobs(n_jobs))
    return 1 if threads <= 1 else min(threads, os.cpu_count() or 1)  # counting processors takes time
