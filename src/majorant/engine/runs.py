"""Batches of runs: arrays of parameters and sums whose leading axis is the run.

Many runs are stepped together, as the time for small tables is spent in Python rather than in arithmetic. Parameters
may be an array, a tuple or a dataclass of arrays, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import repeat
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Batch = TypeVar("Batch")


def n_runs(batch: Any) -> int:
    """Count the runs of a batch."""
    sizes = {len(array) for array in arrays(batch)}
    if len(sizes) != 1:
        raise ValueError(f"all arrays of a batch need the same leading axis, the run; got lengths {sorted(sizes)}")
    return sizes.pop()


def arrays(batch: Any) -> list[NDArray[Any]]:
    """List the arrays of a batch."""
    if isinstance(batch, np.ndarray):
        return [batch]
    kind: Any = type(batch)
    parts = batch if isinstance(batch, tuple) else [getattr(batch, name) for name in _parts(kind)]
    return [array for part in parts for array in arrays(part)]


def taken(batch: Batch, runs: Any) -> Batch:
    """Select runs by a list of positions, a mask or a slice, keeping the leading axis."""
    return mapped(lambda array: array[runs], batch)


def put(batch: Batch, runs: NDArray[Any], other: Batch) -> Batch:
    """Replace some runs by those of another batch."""

    def placed(array: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
        out = array.copy()
        out[runs] = new
        return out

    return mapped(placed, batch, other)


def split(batch: Batch) -> list[Batch]:
    """Split a batch into batches of one run."""
    return list(_split(batch))


def _split(batch: Any) -> Iterable[Any]:
    if isinstance(batch, np.ndarray):
        return [batch[i : i + 1] for i in range(len(batch))]
    if isinstance(batch, tuple):
        return zip(*map(_split, batch), strict=False)
    kind: Any = type(batch)
    names = _parts(kind)
    if names:
        return map(kind, *(_split(getattr(batch, name)) for name in names))
    return repeat(batch)  # None, and what is the same for all runs


def stacked(batches: Sequence[Batch]) -> Batch:
    """Join batches along the runs."""
    first: Any = batches[0]
    if isinstance(first, np.ndarray):
        return cast(Batch, np.concatenate(cast(Any, batches)))
    if isinstance(first, tuple):
        return cast(Batch, tuple(map(stacked, zip(*cast(Any, batches), strict=True))))
    kind: Any = type(first)
    names = _parts(kind)
    if names:
        return cast(Batch, kind(*(stacked([getattr(batch, name) for batch in batches]) for name in names)))
    return batches[0]


def mapped(f: Callable[..., Any], first: Batch, *others: Batch) -> Batch:
    """Apply a function to each array of a batch, with the corresponding arrays of other batches."""
    return cast(Batch, _mapped(f, first, *others))


def _mapped(f: Callable[..., Any], first: Any, *others: Any) -> Any:
    if isinstance(first, np.ndarray):
        return f(first, *others)
    if isinstance(first, tuple):
        return tuple(_mapped(f, *parts) for parts in zip(first, *others, strict=True))
    kind: Any = type(first)
    names = _parts(kind)
    if names:
        return kind(*(_mapped(f, getattr(first, n), *(getattr(o, n) for o in others)) for n in names))
    return first  # None, and what is the same for all runs


@cache
def _parts(kind: Any) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass; none for other types."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
