"""Atomic replacement of files: a file is never half written."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def draft_of(path: Path, ending: str = "tmp") -> Path:
    """Name something beside `path` that this process makes to take its place."""
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(6)}.{ending}")


def abandoned(path: Path, ending: str = "tmp") -> list[Path]:
    """Find drafts of `path` whose process was ended before they took its place."""
    begin = f".{path.name}."
    try:
        names = [beside.name for beside in path.parent.iterdir()]
    except OSError:
        return []
    names = [name for name in names if name.startswith(begin) and name.endswith(f".{ending}")]
    processes = {name: name.removeprefix(begin).partition("-")[0] for name in names}
    return [path.parent / name for name, number in processes.items() if number.isdecimal() and not _runs(int(number))]


def remove_abandoned(path: str | os.PathLike[str]) -> None:
    """Remove what processes that were ended left beside a file or folder that they were writing."""
    for draft in abandoned(Path(path)):
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    if os.name != "posix":  # elsewhere the question could end the process
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


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
    OSError
        If it is a device or a pipe, in whose place a file would stand.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder; name a file in it", os.fspath(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "this is a device or a pipe, not a file that can be replaced", os.fspath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder to write to", str(target.parent))
    beside = draft_of(target)
    try:
        with beside.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
