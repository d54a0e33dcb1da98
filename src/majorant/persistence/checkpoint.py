"""The file of checkpoints of a running fit, replaced every few iterations, from which it resumes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from majorant._atomic import remove_abandoned, replacing
from majorant._validation import check_integer
from majorant.engine.checkpoint import JOURNAL, Entry, Journal
from majorant.persistence.archive import read_archive, write_archive
from majorant.persistence.codec import Decoder, Encoder
from majorant.persistence.errors import FAULTS_OF_A_FILE, SavedModelError, UnsavableError

FORMAT = 1
_KIND = "majorant checkpoint"


@contextmanager
def checkpoint(path: str | os.PathLike[str], *, every: int = 10) -> Iterator[None]:
    """Write the fits of a ``with`` block to a file, and resume them from it if it exists.

    The parameters of the running loop are written every few iterations and when the block ends, also by an error; the
    file is complete at any time. Run again, the same lines resume from the file, with results bitwise equal to those of
    an uninterrupted fit: starts are made again, finished iterations are skipped, and one pass over the data checks that
    it is the same. Iterations of an exploring bound policy are repeated.

    Checkpoints are written of fits of all mixtures, round by round of their search, of ``DiscriminativeLatentClasses``
    and ``LatentPrototypeClassifier``, and of ``KMeans`` where rows are streamed or ``algorithm="lloyd"``. Others begin
    anew, on whatever rows they are given, and a warning says so where nothing could be written.

    Parameters
    ----------
    path : path-like
        The file. It is not deleted after the fits.
    every : int, default=10
        Iterations between two writes.

    Raises
    ------
    CheckpointError
        A ValueError: the file belongs to other data, parameters or another fit.
    SavedModelError
        A ValueError: the file is damaged or not a checkpoint.
    ValueError
        If `path` is a folder; if a fit has ``random_state=None`` or a function among its parameters, so that it
        cannot be resumed.

    Warns
    -----
    UserWarning
        A fit could not be written.

    Examples
    --------
    >>> import numpy as np, tempfile, pathlib, majorant as mj
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "fit.checkpoint"
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> with mj.checkpoint(path):
    ...     first = mj.KMeans(3, algorithm="lloyd", random_state=0).fit(X)
    >>> with mj.checkpoint(path):
    ...     again = mj.KMeans(3, algorithm="lloyd", random_state=0).fit(X)
    >>> bool((first.cluster_centers_ == again.cluster_centers_).all())
    True
    """
    check_integer("every", every, low=1)
    name = os.fspath(path)
    if not name or Path(path).is_dir():
        raise ValueError(
            f"path must name a file that keeps the fit; got {f'the folder {name}' if name else repr(name)}"
        )
    remove_abandoned(path)
    journal = Journal(name, every, lambda entries: _write(path, entries))
    if Path(path).exists():
        journal.recall(_read(path))
    token = JOURNAL.set(journal)
    try:
        yield
    finally:
        JOURNAL.reset(token)
        journal.write()


@contextmanager
def kept_in_memory(path: Path | None) -> Iterator[Callable[[Path], None]]:
    """Keep where the fits of a block are, after the state in a file if there is one; yield what writes it to a file."""
    journal = Journal(os.fspath(path or ""), sys.maxsize, lambda _: None, tells=False)
    if path is not None:
        journal.recall(_read(path))
    token = JOURNAL.set(journal)
    try:
        yield lambda file: _write(file, journal.entries)
    finally:
        JOURNAL.reset(token)


def _write(path: str | os.PathLike[str], entries: list[Entry]) -> None:
    encoder = Encoder()
    kept = [[encoder.encode(entry.identity, "what is fitted"), _state(encoder, entry)] for entry in entries]
    with replacing(path) as stream:
        write_archive(stream, {"kind": _KIND, "format": FORMAT, "entries": kept}, encoder.arrays)


def _state(encoder: Encoder, entry: Entry) -> Any:
    """Return the state of a loop; None if its parameters cannot be saved, so that it is repeated."""
    n_arrays = len(encoder.arrays)
    try:
        return encoder.encode(entry.state, "a parameter")
    except UnsavableError:
        for name in list(encoder.arrays)[n_arrays:]:
            del encoder.arrays[name]
        entry.is_lost = True
        return None


def _read(path: str | os.PathLike[str]) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
    try:
        with Path(path).open("rb") as stream:
            meta, arrays = read_archive(stream)
        if not isinstance(meta, dict) or (meta.get("kind"), meta.get("format")) != (_KIND, FORMAT):
            raise SavedModelError("its meta.json does not describe a checkpoint of this version")
        decoder = Decoder(arrays)
        return [(decoder.decode(identity), decoder.decode(state)) for identity, state in meta["entries"]]
    except (*FAULTS_OF_A_FILE, ImportError) as error:
        raise SavedModelError(
            f"{os.fspath(path)} is not a checkpoint from which a fit can be resumed: {error}. Name another file, or "
            "delete this one to start again"
        ) from error
