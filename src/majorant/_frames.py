"""Data frames out, made with whichever library the user has; and the names of rows of those that come in."""

from __future__ import annotations

import copy
import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from majorant._numbers import briefly

_MOST_ROWS_SHOWN = 200


def data_frame(columns: Mapping[str, Sequence[Any] | Any]) -> Any:
    """Return a data frame of the given columns: pandas if it is installed, otherwise polars.

    It shows every column, and up to 200 rows, on a terminal and in notebooks.
    """
    for library, shown_whole in (("pandas", _whole_pandas), ("polars", _whole_polars)):
        if find_spec(library) is not None:
            return shown_whole()({name: list(values) for name, values in columns.items()})
    raise ImportError('a data frame needs pandas or polars: pip install "majorant[cli]"')


@cache
def _whole_pandas() -> Any:
    """Return the class of data frames of pandas that show every column; files of them are of pandas itself."""
    import pandas

    def whole() -> Any:
        shown = {"max_rows": _MOST_ROWS_SHOWN, "max_columns": None, "max_colwidth": None, "precision": 4}
        shown["width"] = shutil.get_terminal_size((120, 24)).columns  # of a file: 120
        return pandas.option_context(*(x for name, value in shown.items() for x in (f"display.{name}", value)))

    class DataFrame(pandas.DataFrame):  # type: ignore[misc]
        @property
        def _constructor(self) -> Any:
            return DataFrame

        def __repr__(self) -> str:
            with whole():
                return str(super().__repr__())

        def _repr_html_(self) -> Any:
            with whole():
                return super()._repr_html_()

        def __reduce__(self) -> Any:
            return copy.copy, (pandas.DataFrame(self),)

    return DataFrame


@cache
def _whole_polars() -> Any:
    """Return the class of data frames of polars that show every column; files of them are of polars itself."""
    import polars

    def whole() -> Any:
        return polars.Config(tbl_rows=_MOST_ROWS_SHOWN, tbl_cols=-1, tbl_width_chars=-1, fmt_str_lengths=100)

    class DataFrame(polars.DataFrame):
        def __str__(self) -> str:
            with whole():
                return super().__str__()

        __repr__ = __str__

        def _repr_html_(self, **options: Any) -> str:
            with whole():
                return super()._repr_html_(**options)

        def __reduce__(self) -> Any:
            return copy.copy, (polars.DataFrame(self),)

    return DataFrame


def unlike_formula(text: str) -> str:
    """Return text for a cell of CSV, quoted where a spreadsheet would take it for a formula and compute it."""
    if text[:1] not in ("=", "+", "-", "@", "\t", "\r"):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def column_names(table: Any) -> list[Any] | None:
    """Return the names of a table's columns, None for what has none; those of Arrow are not its `columns`."""
    names = getattr(table, "columns", None)
    names = names if hasattr(table, "iloc") else getattr(table, "column_names", names)
    return None if names is None else list(names)


def whole_table(rows: Any) -> Any:
    """Return a record batch of Arrow as a table, whose names scikit-learn reads; anything else as it is."""
    arrow = sys.modules.get("pyarrow")  # whoever has such a batch has imported it
    return arrow.Table.from_batches([rows]) if arrow is not None and isinstance(rows, arrow.RecordBatch) else rows


def row_names(table: Any) -> Any:
    """Return the index of a pandas data frame or column; None for anything else."""
    pandas = sys.modules.get("pandas")  # whoever has such a table has imported it
    index = getattr(table, "index", None)
    return index if pandas is not None and isinstance(index, pandas.Index) else None


def check_row_names(tables: Mapping[str, Any]) -> None:
    """Refuse tables of equally many rows whose row names differ: rows would be paired by position.

    Parameters
    ----------
    tables : mapping of str to object
        What belongs together, by the words that name it; a mapping among them holds tables too. All but data frames and
        columns of pandas is passed over.
    """
    views = [table for table in tables.values() if isinstance(table, Mapping)]
    every = {**tables, **{f"view {name!r}": part for view in views for name, part in view.items()}}
    named = [(what, names) for what, table in every.items() if (names := row_names(table)) is not None]
    for what, names in named[1:]:
        first, expected = named[0]
        if len(names) != len(expected) or names is expected or names.equals(expected):
            continue
        at = int(np.flatnonzero(np.asarray(names != expected))[0])
        if set(names) == set(expected):
            problem = f"the rows of {what} are those of {first} in another order"
            change = f"reorder {what} by .loc[index of {first}], or give its values alone, .to_numpy()"
        else:
            problem = f"the rows of {what} have other names than those of {first}"
            change = f"choose the same rows of both, or give the values of {what} alone, .to_numpy()"
        shown = f"row {at} is {briefly(names[at])} in {what} and {briefly(expected[at])} in {first}"
        raise ValueError(
            f"{problem}: {shown}. Rows are paired by position: {change} where they already are in the order of {first}"
        )


def check_square_names(table: Any, what: str) -> None:
    """Refuse a square data frame whose columns are its rows in another order."""
    rows, columns = row_names(table), getattr(table, "columns", None)
    if rows is None or columns is None or rows.equals(columns) or set(rows) != set(columns):
        return
    at = int(np.flatnonzero(np.asarray(rows != columns))[0])
    raise ValueError(
        f"the columns of {what} are its rows in another order: row {at} is {briefly(rows[at])}, column {at} "
        f"{briefly(columns[at])}. Row i and column i must be the same: reorder {what} by .loc[:, {what}.index], or "
        "give its values alone, .to_numpy(), where they already are"
    )


def check_entry_names(given: Any, names: Any, what: str, unit: str, order: str) -> None:
    """Refuse a column of pandas with one entry for each unit (bag, sequence) whose names are not those of the units.

    Parameters
    ----------
    names : ndarray
        Names of the units, in their order.
    what, unit, order : str
        Words for the column, for a unit, and for the order of the units: "in sorted order".
    """
    found, pandas = row_names(given), sys.modules.get("pandas")
    if found is None or pandas is None or len(found) != len(names) or found.equals(pandas.RangeIndex(len(found))):
        return
    wrong = np.flatnonzero(np.asarray(pandas.Index(np.asarray(found)) != pandas.Index(np.asarray(names))))
    if len(wrong):
        at = int(wrong[0])
        raise ValueError(
            f"the rows of {what} are not named as the {unit}s are, {order}: entry {at} is of {found[at]!s}, {unit} "
            f"{at} is {names[at]!s}. Reorder {what} by .loc[names of the {unit}s], or give its values alone"
        )
