"""Progress of a fit on stderr, shown only if `verbose` is set."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from contextvars import ContextVar
from typing import TypeVar

logger = logging.getLogger("majorant")

VERBOSE: ContextVar[int] = ContextVar("majorant_verbose", default=0)
"""The parameter `verbose` of the fit in this context."""

LOOK = 0.2
"""Seconds between two updates of a pass on a terminal."""

LONG_PASS = 2.0
"""Shortest duration, in seconds, of a pass that gets its own line without a terminal."""

T = TypeVar("T", bound=Sized)


def report_start(number: int, source: str, objective: float, result: str, verbose: int) -> None:
    """Log one finished start; with `verbose` also show it on stderr, on one line if that is a terminal."""
    logger.debug("start %d, %s: objective %.10g, %s", number, source, objective, result)
    if not verbose:
        return
    line = f"start {number}, {source}: objective {objective:.10g}"
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")
    else:
        sys.stderr.write(line + "\n")
    sys.stderr.flush()


def end_of_starts(verbose: int) -> None:
    """End the line that `report_start` overwrites on a terminal."""
    if verbose and sys.stderr.isatty():
        sys.stderr.write("\n")
        sys.stderr.flush()


def watched(blocks: Iterable[T], n_rows: int, number: int) -> Iterator[T]:
    """Yield the blocks of a pass; with `verbose`, show rows per second and the remaining time on stderr."""
    if not VERBOSE.get():
        yield from blocks
        return
    began = shown = time.monotonic()
    done = 0
    for block in blocks:
        yield block
        done += len(block)
        now = time.monotonic()
        if sys.stderr.isatty() and now - shown >= LOOK:
            speed = done / (now - began)
            left = f"{done / n_rows:.0%}, {speed:,.0f} rows a second, {(n_rows - done) / speed:.0f} s left"
            sys.stderr.write(f"\r\x1b[Kpass {number}: {left}")
            sys.stderr.flush()
            shown = now
    report_pass(number, n_rows, time.monotonic() - began)


def report_pass(number: int, n_rows: int, seconds: float) -> None:
    """Report the end of a pass, with `verbose`: on a terminal its line is erased, elsewhere a long pass gets a line."""
    if not VERBOSE.get():
        return
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    elif seconds >= LONG_PASS:
        sys.stderr.write(f"pass {number}: {n_rows:,} rows in {seconds:.1f} s, {n_rows / seconds:,.0f} a second\n")
    sys.stderr.flush()
