"""What the cells of a table may not be: masked, dates, several values in one, or not there yet."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._numbers import briefly, counted

CODES = (-9, -99, -999, -9999, 999, 9999)
"""Numbers that files often have where a cell is missing."""


def code_for_missing(values: Iterable[Any]) -> int | None:
    """Return the number among the different values of a column that seems to be a code for a missing cell."""
    found = {str(value).removesuffix(".0"): value for value in values if value == value}
    others = [value for text, value in found.items() if text not in set(map(str, CODES))]
    for code in CODES:
        if str(code) not in found or not others:
            continue
        if any(isinstance(value, str) for value in others):
            return code
        if min(others) >= 0 if code < 0 else max(map(abs, others)) < code / 5:
            return code
    return None


def refuse_masked(values: Any, name: str) -> None:
    """Raise an error for masked cells, whose numbers would be taken as if they were there."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        found = counted(int(np.ma.getmaskarray(values).sum()), "masked cell")
        raise ValueError(
            f"{name} is a masked array with {found}: make them NaN where the model takes missing cells, "
            f"{name}.astype(float).filled(numpy.nan), or leave those rows out"
        )


def refuse_unread(values: Any, name: str) -> None:
    """Raise TypeError for what holds no rows yet: a plan of polars and, for X, a path or rows that can be read once."""
    if type(values).__name__ == "LazyFrame":
        raise TypeError(f"{name} is a LazyFrame, which holds no rows yet: give {name}.collect()")
    if name == "X" and isinstance(values, str | os.PathLike):
        raise TypeError(
            f"X is {os.fspath(values)!r}, not a table: majorant.open_rows opens .npy, .parquet, .arrow and .feather "
            "files; read others with polars or pandas"
        )
    if name == "X" and isinstance(values, Iterator):
        raise TypeError(
            f"X is a {type(values).__name__}, which gives its rows only once: give "
            "majorant.open_rows(a function that returns one)"
        )


def without_na(values: Any) -> Any:
    """Return arrays, lists and pandas tables of objects with NaN where pandas' NA is, which is no float."""
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return values
    if isinstance(values, pandas.DataFrame | pandas.Series):
        of_objects = any(str(dtype) == "object" for _, dtype in _column_types(values))
        return values.mask(values.isna()) if of_objects else values
    try:
        table = np.asarray(values) if isinstance(values, list | tuple) else values
    except (ValueError, TypeError, OverflowError):  # no table, as others say
        return values
    if not isinstance(table, np.ndarray) or table.dtype != object:
        return values
    lost = np.array([cell is pandas.NA for cell in table.ravel()], dtype=bool).reshape(table.shape)
    return np.where(lost, np.nan, table) if lost.any() else values


def refuse_repeated_names(names: Iterable[Any], table: str) -> None:
    """Raise ValueError for columns of one name: which of them is meant, no one knows."""
    for name, n in Counter(names).items():
        if n > 1:
            raise ValueError(f"{table} has {n} columns named {name!r}: rename one of them, or leave it out")


_DATES = (date, time, timedelta, np.datetime64, np.timedelta64)


def refuse_what_is_no_number(values: Any, name: str) -> None:
    """Raise an error for dates, durations, masked cells, which would be taken as numbers, and columns of one name.

    Tables may be arrays, data frames with any names of columns, or lists; arrays of objects are searched cell by cell.
    """
    refuse_unread(values, name)
    for part in values if isinstance(values, list | tuple) else (values,):
        refuse_masked(part, name)
    if isinstance(values, list | tuple):
        try:
            values = np.asarray(values)
        except (ValueError, TypeError, OverflowError):  # no table, as others say
            return
    of_objects, types = False, list(_column_types(values))
    for column, dtype in types:
        of_objects |= str(dtype).lower() == "object"
        if str(_levels_of(dtype)).lower().startswith(("date", "timedelta", "duration", "time", "period")):
            where = name if column is None else f"column {column!r} of {name}"
            raise TypeError(
                f"{where} holds dates or durations ({dtype}), not numbers: give days since a date, for example"
            )
        if str(dtype).lower().startswith(("struct", "list", "array(")):
            where = name if column is None else f"column {column!r} of {name}"
            raise TypeError(f"{where} holds several values a cell ({dtype}): write each as a column of its own")
    refuse_repeated_names([column for column, _ in types], name)
    if of_objects:
        _refuse_odd_objects(np.asarray(values, dtype=object), name)


def _column_types(table: Any) -> Iterable[tuple[Any, Any]]:
    """Return names and types of the columns of a data frame or an Arrow table; None and the type of anything else."""
    if hasattr(table, "columns") and np.iterable(getattr(table, "dtypes", None)):  # one type for a column of Dask
        return zip(table.columns, table.dtypes, strict=True)
    if hasattr(table, "column_names") and hasattr(table, "schema"):
        return zip(table.column_names, table.schema.types, strict=True)
    return [(None, getattr(table, "dtype", ""))]


def _levels_of(dtype: Any) -> Any:
    """Return the type of the levels of pandas' categories and of Arrow's dictionaries; others as they are."""
    dtype = getattr(dtype, "pyarrow_dtype", dtype)
    return getattr(getattr(dtype, "categories", None), "dtype", getattr(dtype, "value_type", dtype))


def _refuse_odd_objects(table: NDArray[np.object_], name: str) -> None:
    """Raise an error for dates, durations and whole numbers too large among objects."""
    cells = table.ravel().tolist()
    kinds = set(map(type, cells))
    dates = tuple(kind for kind in kinds if issubclass(kind, _DATES) or hasattr(kind, "freqstr"))  # pandas' periods

    def where(at: int) -> str:
        row, *column = np.unravel_index(at, table.shape)
        return ", ".join([f"row {row}", *(f"column {j}" for j in column)])

    if dates:
        at = next(i for i, cell in enumerate(cells) if isinstance(cell, dates))
        raise TypeError(
            f"{where(at)} of {name} is {briefly(cells[at])}, a date or duration, not a number: give days since a date, "
            "for example"
        )
    huge = (i for i, cell in enumerate(cells) if type(cell) is int and abs(cell) > sys.float_info.max)
    if int in kinds and (at := next(huge, -1)) >= 0:
        raise ValueError(f"{where(at)} of {name} is a whole number that is too large for a float64")
