"""Times of rows: read as numbers of equal units, written as they were given; what lacks between them, what follows."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._validation import levels_to_user
from majorant.engine.mixture import Array
from majorant.summary import counted

LONG = 1.5
"""A step of time is long if it is longer than this times the usual one."""
MOST_GAPS = 0.1
"""Share of long steps beyond which times are not evenly spaced at all."""
UNEVEN = 0.25
"""Largest distance of a step from a whole number of usual ones, as a share of these, for which gaps can be filled."""
MOST_ADDED = 20
"""Largest number of rows that filling gaps adds, for each row that is there."""
DAY = 86_400e6
"""Microseconds of a day."""
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]

QUARTER = re.compile(r"(\d{4})([- ]?[Qq])([1-4])")
MONTH = re.compile(r"(\d{4})(-?)(\d\d|(?<=-)\d)")
YEAR = re.compile(r"\d{4}")
DATE = re.compile(
    r"(\d{4})(-?)(\d\d|(?<=-)\d)\2(\d\d|(?<=-)\d)(?:([T ])(\d\d(?::\d\d(?::\d\d(?:[.]\d{1,6})?)?)?))?(Z?)"
)
LOCAL = re.compile(r"(\d\d?)([/.])(\d\d?)\2(\d{4})(?:([T ])(\d\d:\d\d(?::\d\d)?))?")
"""Day, month and year, or month, day and year."""


class UnreadTimeError(ValueError):
    """Raised for text that is no time, or may be two.

    Attributes
    ----------
    meanings : tuple of str
        The days that the text may be; empty where it is no time.
    beside : str
        The first time, if one of the two has the zone Z and the other none.
    """

    def __init__(self, row: int, text: str, meanings: tuple[str, ...] = (), beside: str = "") -> None:
        self.row, self.text, self.meanings, self.beside = row, text, meanings, beside
        if beside:
            super().__init__(f"time holds both {beside!r} and {text!r}: write Z (UTC) after all times or after none")
            return
        said = f"may be {' or '.join(meanings)}" if meanings else "does not sort as time does"
        super().__init__(
            f"time holds the text {text!r}, which {said}: give numbers, dates (pandas.to_datetime), or text such as "
            "'2024-01-31' or '2024Q1'"
        )


@dataclass(frozen=True)
class Times:
    """Times of rows."""

    numbers: Array  # (n_rows,): in equal units: dates are days, or months where all are at one place of their month
    unit: str  # "day", also of durations, "month", "quarter", or nothing
    write: Callable[[Array], NDArray[Any]]  # returns numbers as the user gave times


def read_times(values: Any) -> Times:
    """Return times: numbers, dates, periods of pandas, or text."""
    given = np.asarray(values)
    if given.dtype.kind in "iuf":
        return _of_numbers(given)
    if given.dtype.kind == "M":
        return _of_dates(given, lambda found: found.astype(given.dtype))
    if given.dtype.kind == "m":
        numbers = given.astype("timedelta64[us]").astype(np.float64) / DAY
        return Times(numbers, "day", lambda n: (n * DAY).round().astype("timedelta64[us]").astype(given.dtype))
    entries = given.tolist()
    if entries and all(isinstance(v, Real) for v in entries):
        return _of_numbers(np.array(entries))
    if entries and all(isinstance(v, str) for v in entries):
        return _of_texts([v.strip() for v in entries])
    if entries and all(hasattr(v, "ordinal") for v in entries):  # periods of pandas
        period, freq = type(entries[0]), entries[0].freq
        numbers = np.array([v.ordinal for v in entries], dtype=np.float64)
        return Times(
            numbers, "", lambda n: np.array([period(ordinal=int(v), freq=freq) for v in n.round()], dtype=object)
        )
    if entries and all(hasattr(v, "total_seconds") for v in entries):
        return read_times(np.array(entries, dtype="timedelta64[us]"))
    if not all(hasattr(v, "year") and hasattr(v, "isoformat") for v in entries):
        raise TypeError("entries are of several kinds")
    if entries and all(getattr(v, "tzinfo", None) for v in entries):
        return _of_zone(entries)
    kind = "datetime64[us]" if hasattr(entries[0], "hour") else "datetime64[D]"
    return _of_dates(np.array(entries, dtype="datetime64[us]"), lambda found: found.astype(kind))


def _of_zone(entries: Sequence[Any]) -> Times:
    """Return dates with a time zone, that of the first: by its days where all begin one, or else by what has passed."""
    zone = entries[0].tzinfo
    local = np.array([v.astimezone(zone).replace(tzinfo=None) for v in entries], dtype="datetime64[us]")
    by_day = bool((local == local.astype("datetime64[D]")).all())
    passed = np.array([v.astimezone(UTC).replace(tzinfo=None) for v in entries], dtype="datetime64[us]")

    def write(found: NDArray[np.datetime64]) -> NDArray[Any]:
        plain = found.astype("datetime64[us]").tolist()
        if not by_day:
            out = [t.replace(tzinfo=UTC).astimezone(zone) for t in plain]
        elif hasattr(zone, "localize"):  # pytz, whose zones have the first offset of their history otherwise
            out = list(map(zone.localize, plain))
        else:
            out = [t.replace(tzinfo=zone) for t in plain]
        return np.array([*out, None], dtype=object)[:-1]

    return _of_dates(local if by_day else passed, write)


def _of_numbers(given: NDArray[Any]) -> Times:
    """Return numbers; those such as 20240131 or 202401 of the years 1900 to 2099 as days or months."""
    numbers = given.astype(np.float64)
    whole = bool((numbers == np.floor(numbers)).all())
    ends = (numbers.min(), numbers.max()) if len(numbers) else (0, 0)
    sizes = ((MONTH, 1), (DATE, 100))
    form = next((form for form, size in sizes if 190001 * size <= ends[0] and ends[1] < 210000 * size), None)
    if whole and form is not None:
        try:
            read = _of_texts([str(v) for v in numbers.astype(np.int64).tolist()], [form])
            return replace(read, write=lambda n: read.write(n).astype(np.int64).astype(given.dtype))
        except UnreadTimeError:  # numbers that are no dates
            pass
    return Times(numbers, "", lambda n: n.round().astype(np.int64) if whole and (n == n.round()).all() else n)


def _of_dates(given: NDArray[Any], write: Callable[[NDArray[np.datetime64]], NDArray[Any]]) -> Times:
    """Return dates in days; in months where all are one day of the month, or the last."""
    at, days = given.astype("datetime64[us]"), given.astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    place, day = days - months.astype(days.dtype), np.timedelta64(1, "D")
    is_last = bool(((days + day).astype("datetime64[M]") > months).all())
    if len(at) and (is_last or (place == place[0]).all()) and (at == days).all() and (months != months[0]).any():

        def of_months(numbers: Array) -> NDArray[Any]:
            found = numbers.round().astype(np.int64).astype("datetime64[M]")
            ends = (found + np.timedelta64(1, "M")).astype("datetime64[D]") - day
            first = found.astype("datetime64[D]")
            return write((ends if is_last else np.minimum(first + place[0], ends)).astype("datetime64[us]"))

        return Times(months.astype(np.float64), "month", of_months)
    numbers = at.astype(np.int64) / DAY
    return Times(numbers, "day", lambda n: write((n * DAY).round().astype(np.int64).astype("datetime64[us]")))


def _of_texts(texts: Sequence[str], forms: Sequence[re.Pattern[str]] = (QUARTER, MONTH, DATE, LOCAL, YEAR)) -> Times:
    """Return times of one form; its signs are those of the first."""
    wrong = []
    for form in forms:
        found = [form.fullmatch(text) for text in texts] if form.fullmatch(texts[0]) else [None]
        if all(found):
            return READERS[form]([one for one in found if one])
        wrong.append(found.index(None))
    row = max(wrong)
    raise UnreadTimeError(row, texts[row])


def _quarters(found: Sequence[re.Match[str]]) -> Times:
    numbers = np.array([4 * int(one[1]) + int(one[3]) - 1 for one in found], dtype=np.float64)
    sign = found[0][2]
    return Times(numbers, "quarter", lambda n: np.array([f"{int(v) // 4}{sign}{int(v) % 4 + 1}" for v in n.round()]))


def _months(found: Sequence[re.Match[str]]) -> Times:
    numbers = [12 * int(one[1]) + int(one[3]) - 1 for one in found]
    wrong = next((one[0] for one in found if not 1 <= int(one[3]) <= 12), None)
    if wrong is not None:
        raise UnreadTimeError([one[0] for one in found].index(wrong), wrong)
    sign, width = found[0][2], min(len(one[3]) for one in found)
    texts = lambda n: np.array([f"{int(v) // 12}{sign}{int(v) % 12 + 1:0{width}d}" for v in n.round()])  # noqa: E731
    return Times(np.array(numbers, dtype=np.float64), "month", texts)


def _years(found: Sequence[re.Match[str]]) -> Times:
    numbers = np.array([int(one[0]) for one in found], dtype=np.float64)
    return Times(numbers, "", lambda n: np.array([f"{int(v):04d}" for v in n.round()]))


def _iso_dates(found: Sequence[re.Match[str]]) -> Times:
    texts = [f"{one[1]}-{one[3]:0>2}-{one[4]:0>2}{'T' + one[6] if one[6] else ''}" for one in found]
    sign, zone, clock = found[0][2], found[0][7], _clock([(one[5], one[6]) for one in found])
    other = next((row for row, one in enumerate(found) if one[7] != zone), None)
    if other is not None:
        raise UnreadTimeError(other, found[other][0], beside=found[0][0])
    width = min(len(part) for one in found for part in (one[3], one[4]))

    def write(dates: NDArray[np.datetime64]) -> NDArray[Any]:
        days = [[int(part) for part in day.split("-")] for day in np.datetime_as_string(dates, unit="D").tolist()]
        told = [f"{year:04d}{sign}{month:0{width}d}{sign}{day:0{width}d}" for year, month, day in days]
        return np.array([day + hour + zone for day, hour in zip(told, clock(dates), strict=True)])

    return _of_dates(_parsed(texts, [one[0] for one in found]), write)


def _local_dates(found: Sequence[re.Match[str]]) -> Times:
    """Return dates with the day first, or the month; those with dots have the day first."""
    given = [one[0] for one in found]
    first, second = ([int(one[place]) for one in found] for place in (1, 3))
    day_first, month_first = max(second) <= 12, found[0][2] == "/" and max(first) <= 12
    if day_first and month_first and first != second:
        row = next(i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)
        a, b = first[row], second[row]
        raise UnreadTimeError(row, given[row], (f"{a} {MONTHS[b - 1]}", f"{b} {MONTHS[a - 1]}"))
    clock, order = _clock([(one[5], one[6]) for one in found]), (4, 3, 1) if day_first else (4, 1, 3)
    texts = ["-".join(f"{one[i]:0>2}" for i in order) + ("T" + one[6] if one[6] else "") for one in found]
    sign, is_padded = found[0][2], all(len(one[1]) == len(one[3]) == 2 for one in found)

    def write(dates: NDArray[np.datetime64]) -> NDArray[Any]:
        out = []
        for day, hour in zip(np.datetime_as_string(dates, unit="D"), clock(dates), strict=True):
            year, *parts = day.split("-")
            parts = parts[::-1] if day_first else parts
            out.append(sign.join([*(parts if is_padded else (str(int(p)) for p in parts)), year]) + hour)
        return np.array(out)

    return _of_dates(_parsed(texts, given), write)


READERS = {QUARTER: _quarters, MONTH: _months, YEAR: _years, DATE: _iso_dates, LOCAL: _local_dates}


def _clock(hours: Sequence[tuple[str | None, str | None]]) -> Callable[[NDArray[np.datetime64]], Sequence[str]]:
    """Return what writes the time of day as the given ones, with what separates it from the day."""
    sign = next((sign for sign, hour in hours if hour), None)
    if sign is None:
        return lambda dates: [""] * len(dates)
    longest = max((hour or "" for _, hour in hours), key=len)
    unit: Any = "us" if "." in longest else ("h", "m", "s")[longest.count(":")]
    return lambda dates: [sign + text[11:] for text in np.datetime_as_string(dates, unit=unit)]


def _parsed(texts: Sequence[str], given: Sequence[str]) -> NDArray[np.datetime64]:
    try:
        return np.array(texts, dtype="datetime64[us]")
    except ValueError:
        for row, text in enumerate(texts):
            try:
                np.datetime64(text, "us")
            except ValueError:
                raise UnreadTimeError(row, given[row]) from None
        raise


def long_steps(times: Array, codes: NDArray[np.intp]) -> tuple[NDArray[np.intp], Array, NDArray[np.intp]]:
    """Return the rows that steps lead from, these steps, and which of them are long, of rows in order of time."""
    inner = np.flatnonzero(codes[1:] == codes[:-1])
    steps = times[inner + 1] - times[inner]
    long = np.flatnonzero(steps > LONG * np.median(steps)) if len(steps) else inner
    return inner, steps, long


def warn_of_gaps(times: Times, order: NDArray[np.intp], codes: NDArray[np.intp]) -> None:
    """Warn where steps between rows of a sequence are longer than the usual one."""
    inner, steps, long = long_steps(times.numbers[order], codes[order])
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


def times_ahead(times: Times, codes: NDArray[np.intp], n_steps: int) -> NDArray[Any] | None:
    """Return the times that follow each sequence, of rows in order; None where steps are not even.

    Returns
    -------
    ndarray of shape (n_sequences, n_steps) or None
    """
    _, steps, long = long_steps(times.numbers, codes)
    if not len(steps) or len(long) > MOST_GAPS * len(steps):
        return None
    last = times.numbers[np.append(np.flatnonzero(np.diff(codes)), len(codes) - 1)]
    ahead = last[:, None] + float(np.median(steps)) * np.arange(1, n_steps + 1)
    return times.write(ahead.ravel()).reshape(ahead.shape)


def length_of(step: float, unit: str) -> str:
    """Return a length of time in words."""
    if unit != "day":
        return _counted(step, unit) if unit else f"{step:g}"
    sizes = ((1.0, "day"), (1 / 24, "hour"), (1 / 1440, "minute"), (1 / 86400, "second"))
    size, name = next((one for one in sizes if step >= 0.999 * one[0]), sizes[-1])
    if step < 0.999 * size:
        return f"{step / size:.3g} seconds"
    return _counted(step / size, name)


def _counted(number: float, noun: str) -> str:
    rounded = round(number, 2)
    return f"{rounded:g} {noun}{'' if rounded == 1 else 's'}"


def lacking(times: Times, codes: NDArray[np.intp]) -> tuple[NDArray[np.intp], Array] | None:
    """Return the sequences and times of the rows that lack between others, of rows in order; None where none does."""
    numbers = times.numbers
    inner, steps, _ = long_steps(numbers, codes)
    if not len(steps):
        return None
    usual = float(np.median(steps))
    many = steps / usual
    whole = np.round(many)
    odd = np.flatnonzero((np.abs(many - whole) > UNEVEN) | (whole < 1))
    if len(odd):
        one, other = length_of(float(steps[odd[0]]), times.unit), length_of(usual, times.unit)
        raise ValueError(f"steps of {one} and {other} are no multiples of each other")
    added = whole.astype(np.int64) - 1
    if added.sum() > MOST_ADDED * len(numbers):
        raise ValueError(f"{added.sum():,} rows lack beside the {len(numbers):,} that are there")
    at = np.repeat(inner, added)
    place = np.arange(len(at)) - np.repeat(np.cumsum(added) - added, added) + 1
    between = numbers[at] + place * np.repeat(steps / whole, added)
    return (codes[at], between) if len(at) else None


def labels_of(times: NDArray[Any]) -> list[str]:
    """Return times as short text."""
    if times.dtype.kind == "M":
        is_of_days = bool((times == times.astype("datetime64[D]")).all())
        return [t.replace("T", " ") for t in np.datetime_as_string(times, unit="D" if is_of_days else "m")]
    return [f"{t:g}" if isinstance(t, float) else str(t) for t in times.tolist()]
