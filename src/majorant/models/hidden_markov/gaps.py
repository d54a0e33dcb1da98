"""Steps of time that are longer than the usual one: a chain takes every row for one step."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._validation import levels_to_user
from majorant.summary import counted

LONG = 1.5
"""A step of time is long if it is longer than this times the usual one."""
MOST_GAPS = 0.1
"""Share of long steps beyond which times are not evenly spaced at all."""
QUARTER = re.compile(r"(\d{4})-?Q([1-4])")


def long_steps(
    times: NDArray[np.float64], codes: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.intp]]:
    """Return the rows that steps lead from, these steps, and which of them are long, of rows in order of time."""
    inner = np.flatnonzero(codes[1:] == codes[:-1])
    steps = times[inner + 1] - times[inner]
    long = np.flatnonzero(steps > LONG * np.median(steps)) if len(steps) else inner
    return inner, steps, long


def warn_of_gaps(time: Any, order: NDArray[np.intp], codes: NDArray[np.intp]) -> None:
    """Warn where steps between rows of a sequence are longer than the usual one."""
    times = as_numbers(time)
    if times is None:
        return
    inner, steps, long = long_steps(times[order], codes[order])
    if not len(long):
        return
    told = "Every row is taken for one step"
    if len(long) > MOST_GAPS * len(steps):
        said = f"times are not evenly spaced. {told}."
    else:
        widest = int(steps.argmax())
        times_as_long, are = f"{steps[widest] / np.median(steps):.3g} times as long", "is" if len(long) == 1 else "are"
        said = (
            f"{counted(len(long), 'step')} of time {are} longer than the usual one, up to {times_as_long}, after row "
            f"{order[inner[widest]]}. {told}: add a row without cells (NaN) for every time that lacks."
        )
    warnings.warn(said[0].upper() + said[1:], UserWarning, stacklevel=levels_to_user())


def as_numbers(time: Any) -> NDArray[np.float64] | None:
    """Return times as numbers of equal units: quarters as such, dates in days; None where they cannot be read."""
    values = np.asarray(time)
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    if values.dtype.kind == "O" and all(hasattr(v, "ordinal") for v in values.tolist()):  # periods of pandas
        return np.array([v.ordinal for v in values.tolist()], dtype=np.float64)
    quarters = [QUARTER.fullmatch(v) if isinstance(v, str) else None for v in values.tolist()]
    if all(quarters):
        return np.array([4 * int(q[1]) + int(q[2]) for q in quarters if q], dtype=np.float64)
    try:
        return values.astype("datetime64[us]").astype(np.float64)
    except (ValueError, TypeError):
        return None
