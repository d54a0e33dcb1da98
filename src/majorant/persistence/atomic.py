"""Atomic replacement of files: a file is never half written."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` if the block succeeds and is deleted if it fails.

    Parameters
    ----------
    path : path-like
        The file to write. The new one is written beside it, so the folder must be writable.

    Yields
    ------
    binary file

    Raises
    ------
    IsADirectoryError, FileNotFoundError
        If `path` is a folder, or there is no folder to write it to.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder; name a file in it", os.fspath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder to write to", str(target.parent))
    beside = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with beside.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
