"""Columns of a table as formulas use them, checked against those of the fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from majorant._cells import refuse_repeated_names
from majorant._frames import column_names

Kind = Literal["numbers", "levels", "logicals"]
"""Kind of values of a column; logicals are 0 and 1 in a response, and levels in explanatory terms."""
KINDS: tuple[Kind, ...] = ("numbers", "levels", "logicals")

_MOST_NAMED = 5


class RowError(ValueError):
    """Error for a row that a formula cannot be evaluated for.

    Parameters
    ----------
    what, after : str
        Text of the sentence before and after the row's number.
    row : int
        Number of the row, from 0.
    """

    def __init__(self, what: str, row: int, after: str) -> None:
        super().__init__(f"{what} in row {row} (rows count from 0){after}")
        self.what, self.row, self.after = what, row, after


def table_of(data: Any) -> nw.DataFrame[Any]:
    """Return a data frame of any library with columns named by text: 0 becomes ``0``."""
    data = nw.to_native(data, pass_through=True)
    names = [] if hasattr(data, "collect") else [str(name) for name in column_names(data) or []]
    refuse_repeated_names(names, "the table")
    if nw.dependencies.is_pandas_dataframe(data):
        data = data if names == list(data.columns) else data.set_axis(names, axis=1)
    try:
        return nw.from_native(data, eager_only=True)
    except TypeError:
        hint = ": collect() it" if hasattr(data, "collect") else ""
        raise TypeError(
            f"a formula names columns, so data must be a data frame such as those of pandas or polars; "
            f"got a {type(data).__module__.split('.')[0]} {type(data).__name__}{hint}"
        ) from None


def is_table(data: Any) -> bool:
    """Return whether X names its columns: a data frame of any library, or a dict, which `table_of` refuses."""
    known = (nw.DataFrame, nw.LazyFrame, Mapping)
    return isinstance(data, known) or any(
        test(data) for test in (nw.dependencies.is_into_dataframe, nw.dependencies.is_polars_lazyframe)
    )


def columns_for(
    table: nw.DataFrame[Any],
    names: Sequence[str],  # columns of the table that are needed
    kinds: Mapping[str, Kind] | None = None,  # kinds at the fit; by default any kind is allowed
    *,
    explain: bool = False,  # whether logicals are levels
) -> tuple[dict[str, Any], dict[str, Kind]]:
    """Return columns in the form for formulas: numbers as float64, levels as categoricals, logicals as either."""
    refuse_missing(table, names)
    columns: dict[str, Any] = {}
    found: dict[str, Kind] = {}
    for name in names:
        series = table[name]
        found[name] = _kind_of(series) if kinds is None else kinds[name]
        if found[name] == "levels":
            columns[name] = _levels(series)
        elif found[name] == "logicals":
            columns[name] = _logicals(series, explain)
        elif _kind_of(series) != "levels":
            columns[name] = series.cast(nw.Float64).to_numpy().astype(np.float64)
        else:
            raise TypeError(f"column {name!r} held numbers at the fit and holds {series.dtype} now")
    return columns, found


def canonical_order(columns: Mapping[str, Any]) -> NDArray[np.intp]:
    """Return an order of the rows that depends on their values only."""
    keys = [np.unique(np.asarray(values), return_inverse=True)[1] for values in columns.values()]
    return np.lexsort(keys)


def _kind_of(series: nw.Series[Any]) -> Kind:
    dtype = series.dtype
    if dtype == nw.Boolean:
        return "logicals"
    if dtype.is_numeric():
        return "numbers"
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return "levels"
    raise TypeError(
        f"column {series.name!r} holds {dtype}, which is neither numbers nor levels: turn it into numbers or text"
    )


def _levels(series: nw.Series[Any]) -> Any:
    """Return a categorical with levels in the order of the column's type, or else sorted."""
    import pandas as pd

    native, dtype = series.to_native(), series.dtype
    if isinstance(dtype, nw.Enum):
        declared = list(dtype.categories)
    elif dtype == nw.Categorical and nw.dependencies.is_pandas_like_series(native):
        declared = list(native.cat.categories)
    else:  # levels of other libraries are in the order in which a process met them
        return pd.Categorical(series.to_list())
    present = set(series.unique().to_list())
    return pd.Categorical(series.to_list(), categories=[level for level in declared if level in present])


def _logicals(series: nw.Series[Any], explain: bool) -> Any:
    import pandas as pd

    values = np.asarray(series.to_numpy())
    wrong = np.flatnonzero(~np.isin(values, [0, 1])) if _kind_of(series) != "levels" else np.arange(1)
    if len(wrong):
        raise RowError(
            f"column {series.name!r} held true and false at the fit and is {values[wrong[0]]}", int(wrong[0]), ""
        )
    return pd.Categorical(values.astype(bool), categories=[False, True]) if explain else values.astype(np.float64)


def missing_rows(table: nw.DataFrame[Any], names: Sequence[str]) -> dict[str, NDArray[np.bool_]]:
    """Return in which rows each column has no value."""
    found = {}
    for name in names:
        series = table[name]
        where = series.is_null()
        found[name] = (where | series.is_nan() if series.dtype.is_float() else where).to_numpy()
    return found


def complete_rows(table: nw.DataFrame[Any], names: Sequence[str]) -> NDArray[np.bool_]:
    """Return which rows have a value in each of some columns."""
    lacking: NDArray[np.bool_] = np.logical_or.reduce(
        [np.zeros(len(table), dtype=bool), *missing_rows(table, names).values()]
    )
    return ~lacking


def refuse_missing(table: nw.DataFrame[Any], names: Sequence[str]) -> None:
    """Raise ValueError for columns with missing values."""
    missing = {name: np.flatnonzero(where) for name, where in missing_rows(table, names).items() if where.any()}
    if missing:
        first = [f"{name!r} ({len(rows)}, first in row {rows[0]})" for name, rows in missing.items()]
        more = f" and {len(first) - _MOST_NAMED} more columns" if len(first) > _MOST_NAMED else ""
        raise ValueError(
            f"values are missing in {', '.join(first[:_MOST_NAMED])}{more}; rows count from 0: "
            "fill them in, or leave those rows out"
        )
