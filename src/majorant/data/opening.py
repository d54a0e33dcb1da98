"""The opening of a path or a function as a stream of rows, read block by block."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from majorant._numbers import briefly
from majorant._validation import did_you_mean
from majorant.data.arrow import ArrowRows
from majorant.data.chunks import Chunks
from majorant.data.storage import IteratedRows, NpyRows, StoredRows, unreadable

_TABLES = (".csv", ".tsv", ".gz", ".npy", ".npz", ".arrow", ".feather", ".ipc", ".xlsx", ".json", ".jsonl")


def open_rows(
    source: str | Path | Callable[[], Iterable[Any]],
    columns: Sequence[str] | None = None,
    *,
    target: str | None = None,
    sample_weight: str | None = None,
    cache: str | Path | None = None,
    n_jobs: int | None = None,
) -> Chunks:
    """Open rows that are to be read block by block, for data larger than memory.

    Parameters
    ----------
    source : str, path or callable
        A ``.npy`` file (two-dimensional), ``.parquet``, ``.arrow`` or ``.feather``; a folder of Parquet files, read in
        the order of their names, folders in it included; or a function without arguments that returns, at every call
        and each time the same, an iterable of arrays (rows, columns) or of tuples (X, y) or (X, y, weights).
    columns : sequence of str, optional
        The columns to read, in this order (of tables); by default all but those named next.
    target, sample_weight : str, optional
        Columns (of tables) that hold the target and the weights of the rows: fits then take them from there.
    cache : "disk", str or path, optional
        Where a fit keeps the rows as it needs them, decoded and in its units, so that passes after the first ones read
        them at about the speed of memory: "disk" is the system's temporary folder, or name another folder (one on a
        disk: some systems keep their temporary folder in memory). A fit takes 8 bytes a number there, twice that for
        lines, in files without a name that are gone when it ends in whatever way. By default every pass reads the
        source.
    n_jobs : int, optional
        Threads that work on blocks at a time.

    Returns
    -------
    Chunks
        To be given to ``fit`` and ``predict`` as X.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError
        If there is no such file, no such column, or it holds anything but numbers; or no such folder for `cache`.
    OSError
        By a fit, if that folder has no room for the rows.

    Notes
    -----
    Row groups, record batches and a function's arrays are chunks: sums run within each and then over all of them in
    one order, so equal chunks give equal answers to the last bit wherever they are kept.

    Examples
    --------
    >>> import numpy as np, tempfile, pathlib, majorant as mj
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.npy"
    >>> np.save(path, np.random.default_rng(0).normal(size=(1000, 3)))
    >>> rows = mj.open_rows(path)
    >>> mj.KMeans(2, random_state=0).fit(rows).labels_.shape
    (1000,)
    >>> def parts():
    ...     for seed in range(10):
    ...         yield np.random.default_rng(seed).normal(size=(100, 3))
    >>> mj.KMeans(2, random_state=0).fit(mj.open_rows(parts)).labels_.shape
    (1000,)
    """
    rows = _rows_of(source, columns, target, sample_weight)
    rows.cache = _cache_folder(cache)
    return Chunks(rows, n_jobs=n_jobs)


def _cache_folder(cache: str | Path | None) -> Path | None:
    if cache is None:
        return None
    if not isinstance(cache, str | Path) or cache == "":
        raise TypeError(f'cache must be "disk", a folder, or None; got {briefly(cache)}')
    folder = Path(tempfile.gettempdir()) if cache == "disk" else Path(cache)
    if not folder.is_dir():
        raise FileNotFoundError(
            f'no folder {folder}: cache is "disk" or names a folder that is there.{did_you_mean(cache, ["disk"])}'
        )
    return folder


def _rows_of(
    source: str | Path | Callable[[], Iterable[Any]],
    columns: Sequence[str] | None,
    target: str | None,
    sample_weight: str | None,
) -> StoredRows:
    named = {"columns": columns, "target": target, "sample_weight": sample_weight}
    without = next((name for name, value in named.items() if value is not None), None)
    if callable(source):
        if without is not None:
            raise ValueError(
                f"a function's arrays have no column names: leave {without} out; give tuples (X, y, weights)"
            )
        return IteratedRows(source)
    if not isinstance(source, str | Path) or source == "":
        raise TypeError(
            f"source must be the path of a file or folder, or a function that gives arrays; got {briefly(source)}"
            if isinstance(source, str)
            else f"source must be a path, or a function that gives arrays anew at every call; got "
            f"{type(source).__name__}: rows in memory are given to fit as they are, and what can be run through only "
            "once needs a function that makes it again"
        )
    path = Path(source)
    if path.is_dir():
        there = sorted(
            file
            for file in path.rglob("*")
            if file.is_file() and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
        )
        files = [file for file in there if file.suffix == ".parquet"]
        others = [file.name for file in there if file.suffix in _TABLES]
        if not files:
            raise FileNotFoundError(f"no file in {path} ends in .parquet: of a folder, Parquet files are read")
        if others:
            raise ValueError(
                f"{path} holds {others[0]} besides Parquet files, whose rows would be ignored: move it, or write it as "
                "Parquet"
            )
        return ArrowRows(files, columns, target, sample_weight)
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    if path.suffix == ".npy":
        if without is not None:
            raise ValueError(f"a .npy file has no column names: leave {without} out")
        return NpyRows(_mapped_npy(path), path)
    if path.suffix in (".parquet", ".arrow", ".feather"):
        return ArrowRows([path], columns, target, sample_weight)
    raise ValueError(f"{path.name}: rows are read from .npy, .parquet, .arrow or .feather files")


def _mapped_npy(path: Path) -> Any:
    try:
        return np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:  # its words would have the reader switch a guard off
        raise unreadable(path) from error
