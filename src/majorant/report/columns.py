"""Columns that the tables of several sections have: numbers, intervals, the parts of a model, bars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from majorant.report import numbers
from majorant.report.charts.marks import N_COLOURS, legend_mark
from majorant.report.html import LONGEST_NAME_IN_PROSE, escaped, shortened
from majorant.report.table import Column

Write = int | Callable[[Any], str]
"""Decimals of a number, or what writes it."""
INTERVAL = "95\u202f% interval"


def number_column(head: str, values: Iterable[Any], write: Write = 0, css: str = "number", **more: Any) -> Column:
    """Return a column of numbers; None and NaN are a dash on the page and an empty cell in the copies."""
    known = [None if value is None or value != value else value for value in values]
    texts = [numbers.DASH if value is None else _written(value, write) for value in known]
    return Column(head, known, texts=texts, css=css, **more)


def name_column(head: str, names: Sequence[str], longest: int = LONGEST_NAME_IN_PROSE) -> Column:
    """Return a column of names, long ones shortened on the page."""
    return Column(head, names, markup=[escaped(shortened(name, longest)) for name in names])


def _written(value: Any, write: Write) -> str:
    return numbers.fixed(value, write) if isinstance(write, int) else write(value)


def shares_column(head: str, shares: Iterable[float], decimals: int = 1, css: str = "number", **more: Any) -> Column:
    """Return a column of shares, as per cents."""
    return number_column(head, shares, lambda share: numbers.percent_in_column(share, decimals), css, **more)


def part_column(head: str, parts: Sequence[int], k: int) -> Column:
    """Return the column that numbers parts from 1, with the mark of each where there are no more than colours."""
    markup = [f"{legend_mark(j) if k <= N_COLOURS else ''}{j + 1}" for j in parts]
    return Column(head, [j + 1 for j in parts], markup=markup)


def bar_column(shares: Sequence[float], colours: Sequence[str] = ()) -> Column:
    """Return a column of bars whose lengths are these shares of its width; no bar for zero."""
    bars = [
        f'<span class="bar fill-{colour}" style="width:{100 * share:.1f}%"></span>' if share else ""
        for share, colour in zip(shares, colours or ["mid"] * len(shares), strict=True)
    ]
    return Column("", [None] * len(shares), markup=bars, css="bar-cell", where="page")


def interval_columns(
    head: str, estimates: Any, low: Any, high: Any, write: Callable[[float, int], str], *, shown: str | None = None
) -> list[Column]:
    """Return the column of an estimate and those of its interval, which LaTeX has in brackets behind the estimate.

    Parameters
    ----------
    estimates, low, high : array of shape (rows,)
        NaN where there is none.
    write : callable
        Writes a number of a row.
    shown : str, optional
        CSS classes of a column of intervals on the page; none by default.
    """
    values, a, b = (np.asarray(part, dtype=np.float64).tolist() for part in (estimates, low, high))
    texts = [numbers.DASH if v != v else write(v, i) for i, v in enumerate(values)]
    ends = [
        (write(x, i), write(y, i)) if x == x and y == y else None for i, (x, y) in enumerate(zip(a, b, strict=True))
    ]
    printed = [f"{text} ({end[0]}, {end[1]})" if end else text for text, end in zip(texts, ends, strict=True)]
    columns = [Column(head, values, texts=texts, css="number", printed=printed)]
    if shown is not None:
        told = [f"{end[0]} to {end[1]}" if end else numbers.DASH for end in ends]
        columns.append(Column(INTERVAL, told, css=f"number {shown}".strip(), where="page"))
    return [*columns, *(Column(f"{head} ({end})", own, where="csv") for end, own in (("low", a), ("high", b)))]


def once(values: Sequence[str]) -> list[str]:
    """Return names for a table in print, where one that repeats the name above it is left out."""
    return [value if i == 0 or values[i - 1] != value else "" for i, value in enumerate(values)]
