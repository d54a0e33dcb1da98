"""Rows in order of time: the columns of ``--time`` and ``--sequence``, gaps, and rows of equal times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from majorant.cli.errors import CommandError
from majorant.cli.formulas import formula_refusals
from majorant.cli.matrix import (
    Columns,
    Matrix,
    build_matrix,
    check_there,
    feature_frame,
    is_numeric,
    labels_of,
    refuse_spoilt,
)
from majorant.cli.tables import SourceTable
from majorant.formulas import quoted
from majorant.summary import counted

if TYPE_CHECKING:
    from majorant.models.hidden_markov.formula import SeriesFormula
from majorant.models.hidden_markov.gaps import MOST_GAPS, compact_dates, long_steps

QUARTER = r"^\s*(\d{4})[- ]?[Qq]([1-4])\s*$"
MONTH = r"^\s*(\d{4})-(\d{1,2})\s*$"
DAY = 86_400e6
"""Microseconds of a day."""


@dataclass(frozen=True)
class Series:
    """A table in order of time, sequence by sequence.

    Attributes
    ----------
    table : SourceTable
        The sorted rows.
    numbers : array of int
        Number of each sorted row in the file, from 1.
    sequences : array or None
        Name of each sorted row's sequence; None where all rows are one.
    said : tuple of str
        Warnings about the times.
    """

    table: SourceTable
    numbers: NDArray[np.int64]
    sequences: NDArray[np.generic] | None
    said: tuple[str, ...] = ()


def in_order(table: SourceTable, columns: Columns) -> Series:
    """Sort a table by sequence and time, where columns say what these are.

    Raises
    ------
    CommandError
        If a column is missing or has empty cells, times cannot be read, or are equal within a sequence.
    """
    n = table.frame.height
    codes, names = np.zeros(n, dtype=np.intp), None
    if columns.sequence is not None:
        names, empty = labels_of(table, columns.sequence)
        _refuse_empty(table, columns.sequence, empty, "sequence")
        codes = np.unique(names, return_inverse=True)[1].reshape(-1).astype(np.intp)
    if columns.time is None:
        order, said = np.argsort(codes, kind="stable"), tuple[str, ...]()
    else:
        times, unit = times_of(table, columns.time)
        order = np.lexsort((times, codes))
        said = _gaps(table, columns, times[order], codes[order], order, unit)
    in_time = replace(table, frame=table.frame[order])
    return Series(in_time, order.astype(np.int64) + 1, None if names is None else names[order], said)


def series_formula(text: str, series: Series, gating: str | None = None) -> SeriesFormula:
    """Return what a formula, and terms of the transitions, learn from rows in order of time.

    Raises
    ------
    CommandError
        If the formula or the table cannot be used.
    """
    from majorant.models.hidden_markov.formula import SeriesFormula

    with formula_refusals(series.numbers, series.table.name):
        learned = SeriesFormula.learn(text, series.table.frame, series.sequences, gating=gating)[0]
    if learned.formula.groups is not None:
        raise CommandError(
            f"the formula {text!r} names the sequences after |.", f"Write --sequence {learned.formula.groups} instead."
        )
    for name in learned.columns:
        refuse_spoilt(series.table, name, f"If it holds categories, write C({quoted(name)}).")
    return learned


def formula_of_series(estimator: Any) -> SeriesFormula | None:
    """Return the formula of a fitted model of series; None where the table's columns are its features."""
    return getattr(estimator, "formula_of_fit_", None)


def needed_ahead(estimator: Any) -> list[str]:
    """Return the columns of the rows to come that a forecast needs."""
    formula = formula_of_series(estimator)
    if formula is None:
        return [] if estimator.emission != "regression" else list(estimator.feature_names_in_[1:])
    return formula.columns_ahead


def gaps_ahead(before: Series, after: Series, time: str) -> tuple[str, ...]:
    """Return a sentence on long steps of time into rows to come.

    Raises
    ------
    CommandError, ValueError
        If their times are of another kind, or not later.
    """
    from majorant.models.hidden_markov.ahead import check_later

    (times, unit), (later, kind) = times_of(before.table, time), times_of(after.table, time)
    if unit != kind:
        raise CommandError(
            f'"{time}" of {after.table.name} holds {f"{kind}s" if kind else "numbers"}, that of {before.table.name} '
            f"{f'{unit}s' if unit else 'numbers'}.",
            "Write both in one way.",
        )
    parts = [s.sequences if s.sequences is not None else np.zeros(s.table.frame.height) for s in (before, after)]
    codes = np.concatenate([np.unique(part, return_inverse=True)[1] for part in parts])
    both = np.concatenate([times, later])
    said = check_later(both, both, codes, len(times), after.table.frame[time].to_list())
    return () if said is None else (said,)


def series_matrix(
    series: Series,
    columns: Columns,
    drop_missing: bool,
    *,
    is_new: bool = False,
    formula: SeriesFormula | None = None,
) -> Matrix:
    """Return the sorted rows; rows with a missing cell stay, and with `drop_missing` only advance time."""
    from majorant.models.hidden_markov.sequences import sequences_of

    if formula is not None:
        frame = series.table.frame
        with formula_refusals(series.numbers, series.table.name):
            sequences = sequences_of(frame, None, series.sequences)[1]
            design, gating = formula.design(frame, sequences), formula.gating(frame, sequences)
        covariates = None if gating is None else feature_frame(tuple(gating.columns), gating.to_numpy())
        rows = series.numbers, 0
        return Matrix(design.to_numpy(), None, None, *rows, sequences=series.sequences, covariates=covariates)
    matrix = build_matrix(series.table, columns, True, False, is_new=is_new, keeps_empty=True)
    values = matrix.values
    if drop_missing:
        values = np.where(np.isnan(values).any(axis=1, keepdims=True), np.nan, values)
    return replace(matrix, values=values, rows=series.numbers, sequences=series.sequences)


def times_of(table: SourceTable, name: str) -> tuple[NDArray[np.float64], str]:
    """Return the times of a column as numbers, and their unit: days, months, quarters, or none.

    Raises
    ------
    CommandError
        If a cell is empty, or is no number, date, month or quarter.
    """
    check_there(table, name)
    column = table.frame[name]
    _refuse_empty(table, name, (column.is_null() | _is_nan(column)).to_numpy(), "time")
    if is_numeric(column):
        dates = compact_dates(column.to_numpy())
        if dates is None:
            return column.cast(pl.Float64).to_numpy(), ""
        return dates.astype(np.float64), "day" if np.datetime_data(dates.dtype)[0] == "D" else "month"
    if column.dtype.is_temporal():
        return column.cast(pl.Datetime("us")).to_physical().cast(pl.Float64).to_numpy() / DAY, "day"
    text = column.cast(pl.String)
    kinds = []
    for pattern, per_year, unit in ((QUARTER, 4, "quarter"), (MONTH, 12, "month")):
        kinds.append(~text.str.contains(pattern))
        if not kinds[-1].any():
            year, part = (text.str.extract(pattern, group).cast(pl.Float64).to_numpy() for group in (1, 2))
            return per_year * year + part - 1, unit
    instants = text.str.strip_chars().str.replace("T", " ", literal=True).str.replace(r"Z$", "")
    for form in ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S%.f"):
        found = instants.str.to_datetime(form, strict=False, time_unit="us")
        kinds.append(found.is_null())
        if found.null_count() == 0:
            return found.to_physical().cast(pl.Float64).to_numpy() / DAY, "day"
    row = int(min(kinds, key=pl.Series.sum).arg_max() or 0)
    raise CommandError(
        f'column "{name}" of {table.name} holds "{text[row][:40]}" in row {row + 1}, which is read as no time.',
        "Times are numbers, dates (2024-03-31, 2024-03-31 18:30), months (2024-03) or quarters (2024Q1), all of one "
        "kind. Rows that are in order already need no --time.",
    )


def _is_nan(column: pl.Series) -> pl.Series:
    return column.is_nan() if column.dtype.is_float() else column.is_null()


def _refuse_empty(table: SourceTable, name: str, empty: NDArray[np.bool_], what: str) -> None:
    if empty.any():
        raise CommandError(
            f'column "{name}" of {table.name} has no {what} in row {int(empty.argmax()) + 1}.',
            "Fill it in; a row may lack values, but not its place.",
        )


def _gaps(
    table: SourceTable,
    columns: Columns,
    times: NDArray[np.float64],
    codes: NDArray[np.intp],
    order: NDArray[np.intp],
    unit: str,
) -> tuple[str, ...]:
    """Return a sentence on steps of time that are longer than the usual one; refuse steps of no length."""
    inner, steps, long = long_steps(times, codes)
    assert columns.time is not None
    if (steps == 0).any():
        one, other = sorted(order[[inner[steps == 0][0], inner[steps == 0][0] + 1]] + 1)
        raise CommandError(
            f'rows {one} and {other} of {table.name} have the same "{columns.time}", '
            f"{table.frame[columns.time][int(one) - 1]}{'' if columns.sequence is None else ', in one sequence'}.",
            "Name the column that tells sequences apart with --sequence."
            if columns.sequence is None
            else "Correct one of them; or leave --time out, which takes rows in the order of the table.",
        )
    if not len(steps):
        return ()
    usual = float(np.median(steps))
    if not len(long):
        return ()
    if len(long) > MOST_GAPS * len(steps):
        ends = f"from {_length(float(steps.min()), unit)} to {_length(float(steps.max()), unit)}"
        return (
            f'"{columns.time}" is not evenly spaced: its steps are {ends}. The model takes every row for one step.',
        )
    widest = int(steps.argmax())
    after = int(order[inner[widest]]) + 1
    are = "is" if len(long) == 1 else "are"
    longest = f"{_length(float(steps[widest]), unit)} after row {after}"
    return (
        f'{counted(len(long), "step")} of "{columns.time}" {are} longer than the usual {_length(usual, unit)}: '
        f"{'' if len(long) == 1 else 'the longest is '}{longest}. The model takes every row for one step: add a row "
        "with empty cells for every time that lacks.",
    )


def _length(steps: float, unit: str) -> str:
    """Return a length of time in words."""
    if unit == "day":
        for size, name in ((1.0, "day"), (1 / 24, "hour"), (1 / 1440, "minute"), (1 / 86400, "second")):
            if steps >= 0.999 * size or name == "second":
                return _counted(steps / size, name)
    return _counted(steps, unit) if unit else f"{steps:g}"


def _counted(number: float, noun: str) -> str:
    rounded = round(number, 2)
    return f"{rounded:g} {noun}{'' if rounded == 1 else 's'}"
