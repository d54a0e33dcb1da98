"""A cache of costly blocks in a memory-mapped file, for all passes after the first."""

from __future__ import annotations

import mmap
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from majorant.data.chunks import Block, OfSource, Source

ALIGNED = 64
"""Alignment of arrays in bytes."""

WINDOW = 1 << 25
"""Bytes after which pages that a pass no longer needs are returned to the system."""


class Scratch(OfSource):
    """Another source's blocks, written to a file by the first complete pass.

    Later passes give the same numbers out, as views of the file's pages. The file has no name, or loses it when it is
    closed: the system deletes it with the last block, whatever becomes of the process.

    Parameters
    ----------
    source : Source
        Of dense blocks, the same ones in every pass.
    folder : Path
        Where the file is made.
    """

    def __init__(self, source: Source, folder: Path) -> None:
        self.source = source
        self.folder = folder
        self._blocks: list[Block] | None = None
        self._pages: mmap.mmap | None = None

    def blocks(self) -> Iterator[Block]:
        return self._written() if self._blocks is None else self._read(self._blocks)

    def _written(self) -> Iterator[Block]:
        kept: list[tuple[Block, list[_Place]]] = []
        with tempfile.TemporaryFile(prefix="majorant-", dir=self.folder) as file:
            for block in self.source.blocks():
                arrays = [*block.columns, *([] if block.weights is None else [block.weights])]
                if not kept:
                    self._check_room(sum(a.nbytes for a in arrays) / len(block))
                kept.append((_outline(block), [_Place(file, array) for array in arrays]))
                yield block
            file.flush()
            self._pages = pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._blocks = []
        for block, places in kept:
            columns = [place.view(pages) for place in places]
            weights = None if len(columns) == len(block.columns) else columns.pop()
            self._blocks.append(Block(block.first, tuple(columns), weights, block.memory, block.chunk))

    def _read(self, blocks: list[Block]) -> Iterator[Block]:
        begin = end = 0
        for block in blocks:
            if end - begin > 2 * WINDOW:  # the later half may still be in the hands of threads
                self._give_back(begin, WINDOW)
                begin += WINDOW
            yield replace(block, derived={})
            end += sum(ALIGNED + column.nbytes for column in block.columns)
        self._give_back(begin, 0)

    def _give_back(self, begin: int, length: int) -> None:
        """Release the pages of a mapped file, which count as memory of the process until then."""
        pages = self._pages
        if pages is not None and hasattr(mmap, "MADV_DONTNEED"):
            length = min(length or len(pages), len(pages) - begin)
            if length > 0:
                pages.madvise(mmap.MADV_DONTNEED, begin, length)

    def _check_room(self, row_bytes: float) -> None:
        needed, free = row_bytes * self.n_units, shutil.disk_usage(self.folder).free
        if needed > free:
            raise OSError(
                f"the rows take {needed / 2**30:.1f} GB in a scratch file, and {self.folder} has {free / 2**30:.1f} GB "
                "free: name another folder in cache, or leave cache out"
            )


class _Place:
    """The place of an array that is appended to a file."""

    def __init__(self, file: BinaryIO, array: Any) -> None:
        self._at = -(-file.tell() // ALIGNED) * ALIGNED
        self._dtype, self._shape = array.dtype, array.shape
        file.seek(self._at)
        file.write(np.ascontiguousarray(array).data)

    def view(self, pages: mmap.mmap) -> Any:
        count = int(np.prod(self._shape))
        return np.frombuffer(pages, self._dtype, count, self._at).reshape(self._shape)


def _outline(block: Block) -> Block:
    """Return a block without its numbers."""
    return Block(block.first, (None,) * len(block.columns), None, block.memory, block.chunk)


def cached(source: Source, folder: Path | None) -> Source:
    """Return the source, its blocks kept in a file of a folder if there is one."""
    return source if folder is None else Scratch(source, folder)


def cached_as(other: Source, source: Source) -> Source:
    """Return the source, its blocks kept if those of the other one are, in the same folder."""
    return cached(source, other.folder if isinstance(other, Scratch) else None)
