"""The command line interface: the command ``majorant``."""

from __future__ import annotations

import errno
import gc
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

__all__ = ["STOPPED", "main"]

_LIBRARIES = ("typer", "rich", "polars", "pyarrow")
_RARELY_USED = ("scipy.stats", "pandas")
_FAULT = 1
_WRONG = 2
STOPPED = 130
_ADVICE = "This is a fault of majorant: please report it with what --debug shows."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments after ``majorant``; by default those of the process.

    Returns
    -------
    int
        Exit status: 0 for success, 2 for wrong usage or bad data, 130 when stopped (with what was found, if a start
        had ended), 1 for a fault of majorant's own.
    """
    try:
        return _main(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:  # while libraries were being loaded
        return _stopped()


def _main(arguments: list[str]) -> int:
    if any(find_spec(library) is None for library in _LIBRARIES):
        print('majorant: the command line needs a few more packages: pip install "majorant[cli]"', file=sys.stderr)
        return _WRONG
    _prepare_process()
    # --debug is understood anywhere, not only before the command
    rest = [argument for argument in arguments if argument != "--debug"]
    return _reported(lambda: _run(rest), debug=len(rest) < len(arguments))


def _run(arguments: Sequence[str]) -> int:
    from majorant.cli.app import run

    return run(arguments)


class _UntilUsed(ModuleType):
    """A library that is imported when something in it is first asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


def load_scikit_learn() -> None:
    """Import scikit-learn without what it imports and few commands use: that is half of the time until a fit begins."""
    late = {name: _UntilUsed(name) for name in _RARELY_USED if name not in sys.modules}
    sys.modules.update(late)
    try:
        import_module("sklearn.base")
    finally:
        for name in late:
            del sys.modules[name]


def _prepare_process() -> None:
    gc.set_threshold(100_000)  # what libraries make when they are imported stays: looking through it often takes time
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    if threading.current_thread() is threading.main_thread():
        # a polite request to end cleans up as Ctrl-C does
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def _reported(command: Callable[[], int], debug: bool) -> int:
    from majorant.cli.errors import CommandError

    try:
        status = command()
    except CommandError as error:
        if debug:
            traceback.print_exc()
        print(error.text(), file=sys.stderr)
        return _WRONG
    except KeyboardInterrupt:
        status = STOPPED
    except BrokenPipeError:
        # the reader of our output went away, as "head" does: nothing is wrong
        sys.stderr.close()
        return 0
    except Exception as error:
        if debug:
            traceback.print_exc()
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            print(f"majorant: the output cannot be written: {error.strerror}.", file=sys.stderr)
            return _WRONG
        reason = " ".join(str(error).split())
        print(CommandError(f"unexpected {type(error).__name__}: {reason}", _ADVICE).text(), file=sys.stderr)
        return _FAULT
    return _stopped() if status == STOPPED else status


def _stopped() -> int:
    print("majorant: stopped.", file=sys.stderr)
    return STOPPED
