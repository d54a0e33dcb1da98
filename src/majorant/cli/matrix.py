"""Which columns and rows of a table does the model see, and in which units?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from majorant.cli.errors import CommandError, did_you_mean, listed
from majorant.cli.tables import SourceTable
from majorant.summary import counted

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Columns:
    """What each column of the table is for.

    Attributes
    ----------
    features : tuple of str
        What the model sees.
    target, weights : str or None
        What it predicts, and how much each row counts.
    """

    features: tuple[str, ...]
    target: str | None = None
    weights: str | None = None

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.features, *(name for name in (self.target, self.weights) if name is not None))


@dataclass(frozen=True)
class Matrix:
    """The used rows of a table, in the table's own units.

    Attributes
    ----------
    values : array of shape (n, d)
        One column a feature.
    target, weights : array of shape (n,) or None
        The other columns.
    rows : array of shape (n,)
        Which rows of the table these are, counted from 1.
    n_left_out : int
        Rows with missing values that were left out.
    """

    values: Array
    target: Array | None
    weights: Array | None
    rows: NDArray[np.int64]
    n_left_out: int


@dataclass(frozen=True)
class Standardisation:
    """Mean and standard deviation of every feature (1 for a constant one)."""

    means: Array
    scales: Array

    @classmethod
    def of(cls, values: Array, weights: Array | None = None) -> Standardisation:
        """Those of some rows; what is missing does not count."""
        present = ~np.isnan(values)
        shares = present * (np.ones(len(values)) if weights is None else weights / weights.max())[:, None]
        shares = shares / shares.sum(axis=0)
        known = np.where(present, values, 0.0)
        means = (shares * known).sum(axis=0)
        scales = np.sqrt((shares * (known - means) ** 2).sum(axis=0))
        constant = scales <= 1e-12 * np.maximum(np.abs(known).max(axis=0), np.finfo(float).tiny)
        return cls(means, np.where(constant, 1.0, scales))

    def apply(self, values: Array) -> Array:
        """The rows with mean 0 and standard deviation 1."""
        return (values - self.means) / self.scales


def choose_features(table: SourceTable, asked: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """The features asked for, or all numeric columns but `others`."""
    for name in (*asked, *others):
        check_column(table, name)
    repeated = sorted({name for name in asked if asked.count(name) > 1})
    if repeated:
        raise CommandError(f'"{repeated[0]}" is asked for twice.', "Name every feature once.")
    shared = [name for name in asked if name in others]
    if shared:
        raise CommandError(f'"{shared[0]}" cannot be a feature and the target or the weights at once.')
    found = tuple(asked) or tuple(c for c in table.frame.columns if is_numeric(table.frame[c]) and c not in others)
    if not found:
        commas = [c for c in table.frame.columns if has_decimal_commas(table.frame[c])]
        advice = f"turn the decimal commas of {listed(commas)} into points" if commas else "turn text into numbers"
        raise CommandError(
            f"{table.name} has no numeric columns.", f"Its columns are {listed(table.frame.columns)}; {advice}."
        )
    return found


def check_column(table: SourceTable, name: str) -> None:
    """Refuse a column that the table does not have or that is no number."""
    columns = table.frame.columns
    if name not in columns:
        raise CommandError(
            f'no column "{name}" in {table.name}.{did_you_mean(name, columns)}', f"Columns: {listed(columns)}."
        )
    column = table.frame[name]
    if not is_numeric(column):
        example = next((str(v) for v in column.drop_nulls().head(1000) if not _is_number(v)), None)
        holds = "no values" if example is None else f'text such as "{example[:40]}"'
        if column.dtype not in (pl.String, pl.Categorical, pl.Enum) and example is not None:
            holds = f"{column.dtype}"
        if has_decimal_commas(column):
            raise CommandError(
                f'column "{name}" of {table.name} has decimal commas, such as "{example}".', "Write them as points."
            )
        raise CommandError(
            f'column "{name}" of {table.name} is not numeric: it holds {holds}.',
            "Leave it out with --features, or turn it into numbers (one column of 0 and 1 for each category).",
        )


def has_decimal_commas(column: pl.Series) -> bool:
    """Whether a column of text holds numbers that are written with a comma for the point."""
    if column.dtype != pl.String or column.null_count() == len(column):
        return False
    texts = column.drop_nulls().str.strip_chars()
    return bool(texts.str.contains(r"^[-+]?\d*(,\d+)?$").all() and texts.str.contains(r"\d,\d").any())


def is_numeric(column: pl.Series) -> bool:
    """Whether the column holds numbers or truth values."""
    return column.dtype.is_numeric() or column.dtype == pl.Boolean


def row_number_columns(table: SourceTable, features: Sequence[str]) -> list[str]:
    """Features that look like row numbers: whole, all different, and named so."""
    named = [name for name in features if name.lower().rstrip("_ ") in ("id", "row", "index", "rownames", "unnamed: 0")]
    named += [name for name in features if name == ""]
    return [n for n in named if table.frame[n].dtype.is_integer() and table.frame[n].n_unique() == table.frame.height]


def build_matrix(table: SourceTable, columns: Columns, allows_missing: bool, drop_missing: bool) -> Matrix:
    """The values of the columns, after the checks that every fit and prediction needs.

    Parameters
    ----------
    table : SourceTable
        Where they are.
    columns : Columns
        Which ones.
    allows_missing : bool
        Whether the model takes missing values in its features.
    drop_missing : bool
        Whether to leave out rows with missing values instead of refusing them.
    """
    for name in columns.all:
        check_column(table, name)
    values = {name: table.frame[name].cast(pl.Float64).to_numpy().astype(np.float64) for name in columns.all}
    _refuse_infinite(table, values)
    complete = [name for name in columns.all if not (allows_missing and name in columns.features)]
    missing = {name: np.isnan(values[name]) for name in complete}
    incomplete = np.logical_or.reduce([np.zeros(table.frame.height, dtype=bool), *missing.values()])
    if incomplete.any() and not drop_missing:
        names = [f'"{name}"' for name, where in missing.items() if where.any()]
        raise CommandError(
            f"values are missing in {counted(int(incomplete.sum()), 'row')} of {table.name}, in {listed(names)}.",
            "Fill them in, leave those columns out with --features, or leave those rows out with --drop-missing.",
        )
    if incomplete.all():
        raise CommandError(f"every row of {table.name} lacks a value.", "Leave columns out with --features.")
    kept = {name: column[~incomplete] for name, column in values.items()}
    if columns.weights is not None:
        _check_weights(table, columns.weights, kept[columns.weights])
    return Matrix(
        np.column_stack([kept[name] for name in columns.features]),
        None if columns.target is None else kept[columns.target],
        None if columns.weights is None else kept[columns.weights],
        np.flatnonzero(~incomplete) + 1,
        int(incomplete.sum()),
    )


def _is_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def _refuse_infinite(table: SourceTable, values: dict[str, Array]) -> None:
    infinite = {name: np.isinf(column) for name, column in values.items()}
    names = [f'"{name}"' for name, where in infinite.items() if where.any()]
    if names:
        rows = int(np.logical_or.reduce(list(infinite.values())).sum())
        raise CommandError(
            f"values are infinite in {counted(rows, 'row')} of {table.name}, in {listed(names)}.",
            "Correct them in the table, or leave those columns out with --features.",
        )


def _check_weights(table: SourceTable, name: str, weights: Array) -> None:
    if (weights < 0).any() or not weights.any():
        raise CommandError(
            f'the weights in column "{name}" of {table.name} must be at least 0 and not all 0; '
            f"the smallest is {weights.min():g}."
        )
