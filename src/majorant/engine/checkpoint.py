"""Checkpoints of long fits: loops record their state in a journal, if there is one.

A fit is a function of the data, the parameters and `random_state`. It is resumed by running it again from the beginning
and skipping iterations of long loops that are in the journal. Loops are identified by their order and their starts.
"""

from __future__ import annotations

import errno
import hashlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from functools import partial
from inspect import isroutine
from typing import Any

import numpy as np

from majorant._progress import is_stopped
from majorant._validation import levels_to_user

JOURNAL: ContextVar[Journal | None] = ContextVar("majorant_journal", default=None)
"""The journal of the fits of this context; None: nothing is kept."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Disk errors that do not end a fit."""

IMMATERIAL = ("copy_x", "n_jobs", "verbose", "verbose_interval")
"""Parameters that do not change results."""


class CheckpointError(ValueError):
    """Error for a checkpoint of another fit: other data, parameters or starts."""


class Entry:
    """One fit or one loop in the journal.

    Attributes
    ----------
    state : dict or None
        State from which the loop resumes; None if there is none.
    is_lost : bool
        Whether the state was of a type that files cannot hold.
    """

    def __init__(self, journal: Journal, identity: Mapping[str, Any]) -> None:
        self._journal, self.identity = journal, dict(identity)
        self.state: dict[str, Any] | None = None
        self.is_lost = False

    def keep(self, state: dict[str, Any]) -> None:
        """Record the state of a loop after an iteration, and write the file every few iterations."""
        self.state = state
        self._journal.count()

    def check(self, name: str, found: float) -> None:
        """Raise CheckpointError if a number differs from the one of this name in the state."""
        assert self.state is not None
        if self.state[name] != found:
            raise self._journal.refused(
                f"of other data: the {name} at its parameters was {self.state[name]!r}, and here it is {found!r}"
            )


class Journal:
    """The record of fits and loops, in the order in which they begin.

    Parameters
    ----------
    name : str
        Name of the journal in errors.
    every : int
        Number of iterations between two writes.
    write : callable
        Writes all entries.
    tells : bool
        Whether a warning says that nothing of a fit could be kept.

    Attributes
    ----------
    is_in_fit : bool
        Whether a fit is running, so that a new one is part of it.
    """

    def __init__(self, name: str, every: int, write: Callable[[list[Entry]], None], *, tells: bool = True) -> None:
        self._name, self._every, self._write, self.tells = name, every, write, tells
        self.entries: list[Entry] = []
        self._known = self._position = self._iterations = 0
        self._is_written, self.is_in_fit = True, False

    def recall(self, identities: list[tuple[dict[str, Any], dict[str, Any] | None]]) -> None:
        """Load entries of an earlier run, as (identity, state)."""
        for identity, state in identities:
            entry = Entry(self, identity)
            entry.state = state
            self.entries.append(entry)
        self._known = len(self.entries)

    def enter(self, **identity: Any) -> Entry:
        """Return the next entry: a new one, or that of the earlier run, which must belong to the same fit."""
        if is_stopped():  # what follows belongs to the best so far: a search that goes on comes to another
            return Entry(self, identity)
        number, self._position = self._position, self._position + 1
        if number >= self._known:
            self.entries.append(Entry(self, identity))
            self._is_written = False
            return self.entries[-1]
        known = self.entries[number].identity
        if known != identity:
            raise self.refused(_difference(known, identity))
        return self.entries[number]

    def count(self) -> None:
        """Count one more iteration."""
        self._iterations, self._is_written = self._iterations + 1, False
        if self._iterations >= self._every:
            self.write()

    def write(self) -> None:
        """Write entries that are not written yet; where the disk is full, warn and leave them for the next time."""
        if self._is_written:
            return
        self._iterations = 0
        try:
            self._write(self.entries)
            self._is_written = True
        except OSError as error:
            if error.errno not in FULL:
                raise
            warnings.warn(
                f"{self._name} could not be written ({error.strerror}): the fit continues, and until there is room it "
                "can be resumed only from the file's earlier contents",
                stacklevel=levels_to_user(),
            )

    def has_kept_since(self, fit: Entry) -> bool:
        """Return whether the state of any loop since the beginning of a fit was kept."""
        self.write()
        loops = self.entries[self.entries.index(fit) + 1 : self._position]
        return any("loop" in entry.identity and not entry.is_lost for entry in loops)

    def refused(self, reason: str) -> CheckpointError:
        return CheckpointError(f"{self._name} is {reason}; name another file, or delete this one to start again")


def entered(**identity: Any) -> Entry | None:
    """Return the journal's entry of a new loop, or None without a journal; `identity` identifies the loop."""
    journal = JOURNAL.get()
    return None if journal is None else journal.enter(**{name: _described(value) for name, value in identity.items()})


@contextmanager
def fit_entered(model: str, parameters: Mapping[str, Any]) -> Iterator[None]:
    """Record a fit in the journal; warn if it ended and none of its state could be kept."""
    journal = JOURNAL.get()
    if journal is None:
        yield
        return
    if journal.tells and parameters.get("random_state", 0) is None:
        raise ValueError("random_state=None draws other numbers in every fit: set a whole number under a checkpoint")
    described = {name: _described(value) for name, value in parameters.items() if name not in IMMATERIAL}
    first = journal.enter(model=model, parameters=described)
    is_within, journal.is_in_fit = journal.is_in_fit, True
    try:
        yield
    finally:
        journal.is_in_fit = is_within
    if journal.tells and not is_within and not journal.has_kept_since(first):
        warnings.warn(
            f"nothing of this {model} can be kept in a checkpoint: it was fitted from its beginning, to the rows "
            "given now, and will be every time; take it out of the block, or see majorant.checkpoint for the fits "
            "that are kept",
            stacklevel=levels_to_user(),
        )


def digest(value: Any) -> str:
    """Return a digest that identifies the parameters from which a loop starts."""
    told = hashlib.sha256()
    _tell(value, told)
    return told.hexdigest()[:16]


def _tell(value: Any, told: Any) -> None:
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        told.update(f"{value!r};".encode())
        return
    told.update(f"{type(value).__name__};".encode())
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        told.update(f"{value.dtype.str}{value.shape};".encode())
        told.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, np.ndarray):
        _tell([value.shape, value.ravel().tolist()], told)
    elif isinstance(value, list | tuple):
        told.update(f"{len(value)};".encode())
        for item in value:
            _tell(item, told)
    elif isinstance(value, Mapping):
        _tell([[key, item] for key, item in value.items()], told)
    elif isinstance(value, set | frozenset):
        _tell(sorted(digest(item) for item in value), told)  # the order of a set differs between processes
    elif isinstance(value, slice):
        _tell([value.start, value.stop, value.step], told)
    elif isinstance(value, np.random.RandomState):
        _tell(value.get_state(legacy=True), told)
    elif isinstance(value, np.random.Generator):
        _tell(value.bit_generator.state, told)
    elif callable(value) and (isroutine(value) or isinstance(value, type | partial)):
        name = getattr(value, "__qualname__", type(value).__name__)
        raise ValueError(
            f"the function {name} cannot be distinguished from another one: a fit under a checkpoint takes no "
            "functions as parameters; fit with one of the named choices, or without the checkpoint"
        )
    elif is_dataclass(value):
        _tell({f.name: getattr(value, f.name) for f in fields(value)}, told)
    else:
        _tell(vars(value) if hasattr(value, "__dict__") else repr(value), told)


def _described(value: Any) -> str:
    plain = value is None or isinstance(value, bool | int | float | str)
    return repr(value) if plain else f"{type(value).__name__} {digest(value)}"


def _difference(known: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """Describe how the identity of an entry differs from the expected one."""
    if known.get("model") != given.get("model"):
        names = [entry.get("model", "a loop of a fit") for entry in (known, given)]
        return f"of another fit: it has {names[0]} where {names[1]} is fitted"
    if "model" in known:
        was, now = known["parameters"], given["parameters"]
        changed = [name for name in {**was, **now} if was.get(name) != now.get(name)]
        told = [f"{name} was {was.get(name, 'not there')} and is {now.get(name, 'not there')}" for name in changed]
        return f"of other parameters of {known['model']}: {', '.join(told)}"
    return "of other data or starts: the fit begins where the one in the checkpoint did not"
