"""Steps of time that are longer than the usual one: a chain takes every row for one step."""

from __future__ import annotations

import re
import warnings
from datetime import UTC
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
DATE = re.compile(r"(\d{4})-?(\d\d)(?:-?(\d\d))?((?:\D.*)?)")


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
        dates = compact_dates(values)
        return values.astype(np.float64) if dates is None else dates.astype(np.float64)
    entries = values.tolist() if values.dtype.kind != "M" else []
    if values.dtype.kind == "O" and all(hasattr(v, "ordinal") for v in entries):  # periods of pandas
        return np.array([v.ordinal for v in entries], dtype=np.float64)
    quarters = [QUARTER.fullmatch(v) if isinstance(v, str) else None for v in entries]
    if entries and all(quarters):
        return np.array([4 * int(q[1]) + int(q[2]) for q in quarters if q], dtype=np.float64)
    try:
        plain = np.array([_plain(v) for v in entries], dtype="datetime64[us]") if entries else values
        return plain.astype("datetime64[us]").astype(np.float64)
    except (ValueError, TypeError):
        return None


def compact_dates(numbers: NDArray[Any]) -> NDArray[np.datetime64] | None:
    """Return numbers such as 20240131 or 202401 as days or months; None where one is none of the years 1900 to 2099."""
    ends = (numbers.min(), numbers.max()) if len(numbers) else (0, 0)
    unit = next((u for u, size in (("M", 1), ("D", 100)) if 190001 * size <= ends[0] and ends[1] < 210000 * size), None)
    if unit is None or (numbers != np.floor(numbers)).any():
        return None
    try:
        return np.array([_plain(str(v)) for v in numbers.astype(np.int64).tolist()], dtype=f"datetime64[{unit}]")
    except ValueError:
        return None


def _plain(time: Any) -> Any:
    """Return a date of text with dashes, which numpy takes for a year without, and one of a time zone in UTC."""
    if isinstance(time, str):
        found = DATE.fullmatch(time)
        return time if found is None else "-".join(part for part in found.groups()[:3] if part) + found[4]
    return time.astimezone(UTC).replace(tzinfo=None) if getattr(time, "tzinfo", None) is not None else time
