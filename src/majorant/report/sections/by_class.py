"""Columns of a table that has an estimate and its interval for each class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from majorant.report import numbers
from majorant.report.table import Column


def known(values: Any) -> list[float | None]:
    """Return numbers, None where they are none."""
    return [None if np.isnan(value) else float(value) for value in values]


def interval_columns(
    head: str,
    estimates: Any,
    low: Any,
    high: Any,
    written: Callable[[float, int], str],
    *,
    shown: str | None = None,
) -> list[Column]:
    """Return the column of an estimate and those of its interval, which LaTeX has in brackets behind the estimate.

    Parameters
    ----------
    head : str
    estimates, low, high : array of shape (rows,)
        NaN where there is none.
    written : callable
        Writes a number of a row.
    shown : str, optional
        CSS classes of a column of intervals on the page; none by default.
    """
    values, a, b = (known(part) for part in (estimates, low, high))
    texts = [numbers.DASH if v is None else written(v, i) for i, v in enumerate(values)]
    ends = [
        "" if x is None or y is None else (written(x, i), written(y, i))
        for i, (x, y) in enumerate(zip(a, b, strict=True))
    ]
    printed = [f"{text} ({end[0]}, {end[1]})" if end else text for text, end in zip(texts, ends, strict=True)]
    columns = [Column(head, values, texts, css="number", printed=printed)]
    if shown is not None:
        told = [f"{end[0]} to {end[1]}" if end else numbers.DASH for end in ends]
        columns.append(Column("95\u202f% interval", told, css=f"number {shown}".strip(), where="page"))
    return columns + [
        Column(f"{head} ({end})", own, ["" if v is None else written(v, i) for i, v in enumerate(own)], where="csv")
        for end, own in (("low", a), ("high", b))
    ]


def once(values: Sequence[str]) -> list[str]:
    """Return names for a table in print, where one that repeats the name above it is left out."""
    return [value if i == 0 or values[i - 1] != value else "" for i, value in enumerate(values)]
