"""What a fit says while it runs: nothing, unless it is asked."""

from __future__ import annotations

import logging
import sys

logger = logging.getLogger("majorant")


def report_start(number: int, source: str, objective: float, result: str, verbose: int) -> None:
    """Log one start that has ended; with `verbose` also show it on stderr, on one line if that is a terminal."""
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
    """Leave the line that `report_start` wrote over and over on a terminal."""
    if verbose and sys.stderr.isatty():
        sys.stderr.write("\n")
        sys.stderr.flush()
