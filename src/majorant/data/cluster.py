"""Rows in a Dask collection: partitions stay on their workers, functions of blocks go there, and sums come back.

A partition is a chunk. Sums over partitions are added as the binary tree of `added`, some levels in one task, so they
are the same to the last bit for any number of workers and whatever the order in which these finish, and those of the
same chunks in memory or in a file. What a task caches with a partition for the next pass is a value of that task, not
a mutation of shared state: when a worker dies Dask recomputes its partitions and their caches, and the answer
stays the same.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, S, added, block_rows
from majorant.data.storage import Piece, StoredRows, is_dask

FAN = 8
"""Number of sums that one task adds: a power of two, so that the binary tree of sums does not change."""

LOOK = 10.0
"""Seconds between checks for workers that can run pending tasks."""

PATIENCE = 300.0
"""Seconds without any worker after which a fit ends: Dask itself would wait forever."""


class ClusterError(RuntimeError):
    """Error of a partition that cannot be computed, or of a cluster that lost data."""


@contextmanager
def _alive() -> Iterator[None]:
    """Raise a ClusterError where a cluster has lost data for good."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.client import ClosedClientError
    from distributed.comm import CommClosedError

    try:
        yield
    except KilledWorker as error:
        _lost("several workers died at the same partition, which may need more memory than one has", error)
    except (CancelledError, ClosedClientError, CommClosedError) as error:
        _lost("the client lost its scheduler, or its rows were cancelled", error)


def _lost(what: str, error: BaseException) -> NoReturn:
    raise ClusterError(
        f"the cluster cannot continue: {what}. The estimator is unchanged; under majorant.checkpoint the next fit "
        "resumes from here"
    ) from error


class DaskRows(StoredRows):
    """A Dask array or data frame without a cluster: partitions are made one after the other in every pass.

    Parameters
    ----------
    X : dask.array.Array of two dimensions, or dask.dataframe.DataFrame
    """

    def __init__(self, X: Any) -> None:
        names, dtype = _header(X)
        if len(X.shape) == 2 and not names and len(X.chunks[1]) > 1:
            X = X.rechunk({1: -1})
        self._made = _partitions(X, dtype)
        width = len(names) if names else int(X.shape[1])
        self._lengths = self._counted("X", self._made, _known_lengths(X))
        super().__init__(sum(self._lengths), width, dtype, names or None)
        if self.n_units == 0:
            raise ValueError("X has no rows")

    def _counted(self, name: str, made: Sequence[Any], known: Sequence[int] | None) -> list[int]:
        """Return rows of each partition."""
        import dask

        return list(known) if known is not None else list(dask.compute(*(dask.delayed(len)(p) for p in made)))

    def _take(self, name: str, column: Any) -> list[Any]:
        """Return partitions of a column that goes with X, cut as X is."""
        if not is_dask(column):
            raise TypeError(
                f"X is a Dask collection, so {name} must be one too; got {type(column).__name__}: "
                "dask.array.from_array(column, chunks=...) makes one, with the chunks of X"
            )
        column = _one_column(name, column)
        known = _known_lengths(column)
        if known is not None and list(known) != self._lengths and sum(known) == self.n_units:
            column = column.rechunk((tuple(self._lengths),))
            known = self._lengths
        made = _partitions(column, np.float64)
        lengths = self._counted(name, made, known)
        if lengths != self._lengths:
            at = next((i for i, (a, b) in enumerate(zip(self._lengths, lengths, strict=False)) if a != b), len(lengths))
            counts = [f"{sum(n)} rows in {len(n)} partitions" for n in (self._lengths, lengths)]
            raise ValueError(f"X has {counts[0]} and {name} {counts[1]}, which differ from partition {at} on")
        return made

    def aim(self, y: Any) -> None:
        if y is None:
            raise ValueError("y is needed: a Dask array or series with the partitions of X")
        self._made, self.own_target = self._joined("target", self._take("y", y)), True

    def weigh(self, sample_weight: Any) -> None:
        if sample_weight is not None:
            self._made = self._joined("weights", self._take("sample_weight", sample_weight))
            self.own_weights = True
            super().weigh(None)

    def put_beside(self, name: str, column: Any) -> None:
        self._made = self._joined(name, self._take(name, column))
        self.beside_names = (*self.beside_names, name)

    def _joined(self, name: str, column: list[Any]) -> list[Any]:
        import dask

        return [dask.delayed(_join)(part, name, c) for part, c in zip(self._made, column, strict=True)]

    def pieces(self) -> Iterator[Piece]:
        import dask

        chunk = 0
        for number, part in enumerate(self._made):
            with _named(number):
                (piece,) = dask.compute(part)
            if len(piece):
                yield replace(piece, chunk=chunk)
                chunk += 1


class ClusterRows(DaskRows):
    """A Dask array or data frame on the cluster of a client, whose workers keep the partitions.

    Parameters
    ----------
    X : dask.array.Array of two dimensions, or dask.dataframe.DataFrame
    """

    def __init__(self, X: Any, client: Any) -> None:
        self._client = client
        self._beside: list[Any] = []
        self._may_keep = True
        super().__init__(X)

    def __reduce__(self) -> tuple[Any, ...]:
        return _elsewhere, ()  # what travels to a worker has no need of the rows

    def for_one_fit(self) -> Self:
        apart = super().for_one_fit()
        apart._beside, apart._may_keep = [], True
        return apart

    def _counted(self, name: str, made: Sequence[Any], known: Sequence[int] | None) -> list[int]:
        futures = self._client.compute(list(made))
        if name == "X":
            self._made = futures
        else:
            made[:] = futures  # type: ignore[index]
        lengths = []
        for number, counted in enumerate(self._client.map(len, futures, pure=False)):
            with _named(number, name), _alive():
                lengths.append(int(self._result(counted)))
        return lengths

    def _joined(self, name: str, column: list[Any]) -> list[Any]:
        return list(self._client.map(_join, self._made, [name] * len(column), column, pure=False))

    @property
    def _whole(self) -> list[tuple[Any, int, int]]:
        """Partitions that have rows, with the number of each and of its first row."""
        firsts = np.concatenate([[0], np.cumsum(self._lengths)])[:-1]
        full = [(p, int(a)) for p, n, a in zip(self._made, self._lengths, firsts, strict=True) if n]
        return [(part, chunk, first) for chunk, (part, first) in enumerate(full)]

    @_alive()
    def map_sum(self, f: Callable[[Block], S]) -> S:
        """Run `Chunks.map_sum` on the workers that hold the rows."""
        client, sent = self._client, self._sent(f)
        parts, chunks, firsts = map(list, zip(*self._whole, strict=True))
        beside = self._beside or [None] * len(parts)
        options = {"sent": sent, "unit": self._unit, "pure": False}
        seen = client.map(_visit, parts, chunks, firsts, beside, **options)
        level = seen
        if self._may_keep:  # what lies beside a partition should not travel with its sum
            level = client.map(_told, seen, pure=False)
        while True:
            level = [client.submit(_merge, level[i : i + FAN], pure=False) for i in range(0, len(level), FAN)]
            if len(level) == 1:
                break
        total, self._may_keep = self._result(level[0])
        self._beside = seen if self._may_keep else []
        return total  # type: ignore[no-any-return]

    @_alive()
    def map_rows(self, f: Callable[[Block], NDArray[Any]], out: NDArray[Any]) -> None:
        """Run `Chunks.map_rows` where the rows are, partition by partition."""
        sent, whole = self._sent(f), self._whole
        beside = self._beside or [None] * len(whole)
        made = [
            self._client.submit(_rows, *at, kept, sent=sent, unit=self._unit, pure=False)
            for at, kept in zip(whole, beside, strict=True)
        ]
        for number, (_, _, first) in enumerate(whole):
            rows = self._result(made[number])
            out[first : first + len(rows)] = rows
            made[number] = None

    def blocks(self) -> Iterator[Block]:
        for part, chunk, first in self._whole:
            at = 0
            while True:
                with _alive():
                    task = self._client.submit(_block, part, chunk, first, at, self._unit, pure=False)
                    block = self._result(task)
                if block is None:
                    break
                yield block
                at += 1

    def _result(self, task: Any) -> Any:
        """Return the result of a task; for a while there may be no workers."""
        last_seen = time.monotonic()
        while True:
            try:
                return task.result(timeout=LOOK)
            except TimeoutError:
                if task.status == "error":  # its own
                    raise
            if self._client.scheduler_info()["workers"]:
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > PATIENCE:
                _lost(f"no worker was available for {PATIENCE:.0f} s", TimeoutError())

    def _sent(self, f: Callable[[Block], Any]) -> Any:
        """Return a function as a task of its own, so that it goes to a worker once, and again if that dies."""
        import cloudpickle

        return self._client.submit(_Sent, cloudpickle.dumps(f), pure=False)


@dataclass(frozen=True)
class _Sent:
    """A function that is sent to workers."""

    pickled: bytes

    def opened(self) -> Callable[[Block], Any]:
        import cloudpickle

        f: Callable[[Block], Any] = cloudpickle.loads(self.pickled)
        return f


@dataclass(frozen=True)
class _Seen:
    """The result of a visit of a partition, and what it cached with it."""

    value: Any
    memories: list[dict[str, Any]] | None


def _blocks(part: Piece, chunk: int, first: int, unit: float, memories: list[dict[str, Any]]) -> Iterator[Block]:
    """Return the blocks of a partition; `memories` grows to one each."""
    rows = len(part) if part.is_whole else block_rows(part.x.shape[1] * part.x.itemsize)
    for number, a in enumerate(range(0, len(part), rows)):
        own = part.part(slice(a, a + rows))
        if number == len(memories):
            memories.append({})
        columns = (own.x,) if own.target is None else (own.x, own.target)
        weights = None if own.weights is None else own.weights / unit
        yield Block(first + a, (*columns, *own.beside), weights, memories[number], chunk)


def _visit(part: Piece, chunk: int, first: int, beside: _Seen | None, *, sent: _Sent, unit: float) -> _Seen:
    memories = [] if beside is None or beside.memories is None else copy.deepcopy(beside.memories)
    f = sent.opened()
    value = added((chunk, f(block)) for block in _blocks(part, chunk, first, unit, memories))
    return _Seen(value, memories if any(memories) else None)


def _told(seen: _Seen) -> tuple[Any, bool]:
    return seen.value, seen.memories is not None


def _merge(seen: Sequence[_Seen | tuple[Any, bool]]) -> tuple[Any, bool]:
    told = [_told(s) if isinstance(s, _Seen) else s for s in seen]
    return added((i, value) for i, (value, _) in enumerate(told)), any(keeps for _, keeps in told)


def _rows(part: Piece, chunk: int, first: int, beside: _Seen | None, *, sent: _Sent, unit: float) -> NDArray[Any]:
    memories = [] if beside is None or beside.memories is None else copy.deepcopy(beside.memories)
    f = sent.opened()
    return np.concatenate([f(block) for block in _blocks(part, chunk, first, unit, memories)])


def _block(part: Piece, chunk: int, first: int, at: int, unit: float) -> Block | None:
    return next((b for i, b in enumerate(_blocks(part, chunk, first, unit, [])) if i == at), None)


def _elsewhere() -> None:
    """Raise an error: a placeholder for rows in a function sent to workers."""


def _join(part: Piece, name: str, column: Any) -> Piece:
    if name in ("target", "weights"):
        return replace(part, **{name: column.x[:, 0]})
    return replace(part, beside=(*part.beside, column.x[:, 0]), is_whole=part.is_whole or name == "groups")


def _piece(values: Any, dtype: Any) -> Piece:
    """Return a partition as numbers."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy(dtype=dtype, na_value=np.nan)
    values = np.asarray(values)
    if values.dtype.kind not in "fiub":
        raise TypeError(f"it holds {values.dtype}, not numbers")
    columns = values.shape[1] if values.ndim == 2 else 1
    return Piece(0, np.ascontiguousarray(values.reshape(len(values), columns), dtype=dtype))


def rows_of_dask(X: Any) -> DaskRows:
    """Return the rows of a Dask collection, on the cluster of the running client if there is one."""
    try:
        from distributed import get_client

        client = get_client()
    except (ImportError, ValueError):  # not installed, or none is running
        return DaskRows(X)
    return ClusterRows(X, client)


def _header(X: Any) -> tuple[list[str], Any]:
    """Return names of the columns of a data frame, and the type of number."""
    if getattr(X, "ndim", None) != 2 or not hasattr(X, "to_delayed"):
        raise ValueError(f"X must have two dimensions (rows, columns); got a Dask {type(X).__name__}")
    if not hasattr(X, "columns"):
        if X.dtype.kind not in "fiub":
            raise TypeError(f"X must hold numbers; it holds {X.dtype}")
        return [], X.dtype
    for name, kind in X.dtypes.items():
        if getattr(kind, "kind", "O") not in "fiub":
            raise TypeError(f"column {name!r} of X holds {kind}, not numbers: choose others")
    return [str(name) for name in X.columns], np.float32 if all(k == np.float32 for k in X.dtypes) else np.float64


def _one_column(name: str, column: Any) -> Any:
    """Return a column as a Dask array or series of one dimension."""
    if getattr(column, "ndim", None) == 2 and column.shape[1] == 1:
        column = column[column.columns[0]] if hasattr(column, "columns") else column[:, 0]
    if getattr(column, "ndim", None) != 1 or getattr(column.dtype, "kind", "O") not in "fiub":
        raise TypeError(f"{name} must be one column of numbers; got a Dask {type(column).__name__}")
    return column


def _known_lengths(X: Any) -> Sequence[int] | None:
    """Return rows of each partition where Dask knows them."""
    chunks = getattr(X, "chunks", None)
    if chunks is None or np.isnan(chunks[0]).any():
        return None
    return [int(n) for n in chunks[0]]


def _partitions(X: Any, dtype: Any) -> list[Any]:
    import dask

    single = np.float32 if np.dtype(dtype) == np.float32 else np.float64
    return [dask.delayed(_piece)(part, single) for part in np.ravel(np.asarray(X.to_delayed(), dtype=object))]


@contextmanager
def _named(number: int, name: str = "X") -> Iterator[None]:
    """Add the number of a partition to an error raised while it was computed."""
    try:
        yield
    except ClusterError:
        raise
    except Exception as error:
        raise ClusterError(f"partition {number} of {name} raised {type(error).__name__}: {error}") from error
