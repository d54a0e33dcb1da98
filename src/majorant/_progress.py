"""What a running fit tells its user, and whether Ctrl-C keeps the best solution so far."""

from __future__ import annotations

import logging
import math
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeVar

logger = logging.getLogger("majorant")

LOOK = 0.2
"""Seconds between two updates of a line that replaces itself."""
LONG_PASS = 2.0
"""Shortest duration, in seconds, of a pass that gets its own line without a terminal."""

T = TypeVar("T", bound=Sized)


@dataclass
class Watch:
    """A fit, or several that belong together, as their user follows them."""

    after: float = 0.0  # seconds before anything is shown
    # seconds between two lines of progress where lines cannot be replaced, as in the log of a batch job
    between_lines: float = 10.0
    is_silent: bool = False  # whether nothing is shown
    keeps_best: bool = False  # whether Ctrl-C ends the search and keeps the best solution so far, instead of the fit
    is_stopped: bool = False  # whether that happened
    _began: float = field(default_factory=time.monotonic)
    _shown: float = -1e9
    _best: str = ""
    _stage: str = ""
    _stage_began: float = field(default_factory=time.monotonic)
    _notebook: Any = None

    def begin_stage(self, stage: str) -> None:
        """Name what is done now."""
        now = time.monotonic()
        if self._best and now - self._stage_began >= LONG_PASS and self._is_due(now):
            ended = f"{self._stage or 'search'}: best {self._best}, {duration(now - self._stage_began)}"
            self.write(ended, stays=True)
        self._stage, self._best, self._stage_began = stage, "", now
        self.tell()

    def tell(self, what: str = "", best: float | None = None) -> None:
        """Show where the current stage is, and the best objective that it reached."""
        now = time.monotonic()
        self._best = self._best if best is None else f"{best:.8g}"
        parts = [self._stage, what, self._best and f"best {self._best}", duration(now - self._began)]
        line = ", ".join(part for part in parts if part)
        if self._is_due(now) and now - self._shown >= (LOOK if is_replaced() else self.between_lines):
            self._shown = now
            self.write(line)

    def _is_due(self, now: float) -> bool:
        """Return whether the fit has taken long enough to be told of; a log hears of it later than a screen."""
        after = self.after if is_replaced() else max(self.after, self.between_lines)
        return not self.is_silent and now - self._began >= after

    def write(self, line: str, *, stays: bool = False) -> None:
        """Write a line that the next one replaces, where that is possible, or one that stays."""
        if in_notebook():
            display = import_module("IPython.display").display
            self._notebook = self._notebook or display({"text/plain": ""}, raw=True, display_id=True)
            self._notebook.update({"text/plain": line}, raw=True)
        elif sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}{chr(10) * stays}")
        else:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Erase the line on a terminal that told where the fit was."""
        if self._shown >= 0 and sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


WATCH: ContextVar[Watch | None] = ContextVar("majorant_watch", default=None)
"""How the fits of this context are followed; None: not at all."""


def in_notebook() -> bool:
    """Return whether output goes to cells of a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell is not None and hasattr(shell, "kernel")


def is_replaced() -> bool:
    """Return whether a line can replace the one before it."""
    return sys.stderr.isatty() or in_notebook()


def duration(seconds: float) -> str:
    """Write a duration in the unit that suits it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def watched_by(watch: Watch) -> Iterator[Watch]:
    """Let a watch follow the fits of a block."""
    token = WATCH.set(watch)
    try:
        yield watch
    finally:
        WATCH.reset(token)
        watch.end()


@contextmanager
def fit_watched(verbose: int) -> Iterator[None]:
    """Follow one fit as its parameter `verbose` says, unless it is part of something that is followed already."""
    if WATCH.get() is not None or not verbose:
        yield
        return
    with watched_by(Watch(between_lines=math.inf)):  # every start has its line
        yield


def begin_stage(stage: str) -> None:
    """Name what is done now."""
    if (watch := WATCH.get()) is not None:
        watch.begin_stage(stage)


def tell(what: str, best: float | None = None) -> None:
    """Show where a search is and its best objective, if somebody follows it."""
    if (watch := WATCH.get()) is not None:
        watch.tell(what, best)


def report_start(
    number: int, source: str, objective: float, result: str, verbose: int, best: float | None = None
) -> None:
    """Log one finished start; show it with `verbose`, and tell the best objective so far to whoever follows the fit."""
    logger.debug("start %d, %s: objective %.10g, %s", number, source, objective, result)
    watch = WATCH.get()
    if verbose:
        (watch or Watch()).write(f"start {number}, {source}: objective {objective:.10g}")
    elif watch is not None:
        watch.tell(f"start {number}", objective if best is None else best)


def end_of_starts(verbose: int) -> None:
    """End the line that `report_start` overwrites on a terminal."""
    if verbose and sys.stderr.isatty():
        sys.stderr.write("\n")
        sys.stderr.flush()


@contextmanager
def kept_when_stopped(has_best: Callable[[], bool]) -> Iterator[None]:
    """Let Ctrl-C end a search and keep its best solution, where the user wants that and there is one.

    A second Ctrl-C ends the fit.
    """
    try:
        yield
    except KeyboardInterrupt:
        watch = WATCH.get()
        if watch is None or not watch.keeps_best or watch.is_stopped or not has_best():
            raise
        watch.is_stopped = True


def is_stopped() -> bool:
    """Return whether the user stopped the search, so that no further start is to be made."""
    watch = WATCH.get()
    return watch is not None and watch.is_stopped


def watched(blocks: Iterable[T], n_rows: int, number: int) -> Iterator[T]:
    """Yield the blocks of a pass; show rows per second and the remaining time to whoever follows the fit."""
    if WATCH.get() is None:
        yield from blocks
        return
    began, done = time.monotonic(), 0
    for block in blocks:
        yield block
        done += len(block)
        speed = done / max(time.monotonic() - began, 1e-9)
        tell(f"pass {number}: {done / n_rows:.0%}, {speed:,.0f} rows a second, {(n_rows - done) / speed:.0f} s left")
    report_pass(number, n_rows, time.monotonic() - began)


def report_pass(number: int, n_rows: int, seconds: float) -> None:
    """Report the end of a long pass where lines cannot be replaced."""
    watch = WATCH.get()
    if watch is None or watch.is_silent or is_replaced() or seconds < LONG_PASS:
        return
    watch.write(f"pass {number}: {n_rows:,} rows in {seconds:.1f} s, {n_rows / seconds:,.0f} a second")
