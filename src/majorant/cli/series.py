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
    is_date,
    is_numeric,
    labels_of,
    refuse_spoilt,
)
from majorant.cli.tables import SourceTable
from majorant.formulas import quoted
from majorant.summary import counted

if TYPE_CHECKING:
    from majorant.models.hidden_markov.formula import SeriesFormula
    from majorant.models.hidden_markov.times import Times


@dataclass(frozen=True)
class Series:
    """A table in order of time, sequence by sequence."""

    table: SourceTable  # the sorted rows
    numbers: NDArray[np.int64]  # number of each sorted row in the file, from 1
    sequences: NDArray[np.generic] | None  # name of each sorted row's sequence; None where all rows are one
    said: tuple[str, ...] = ()  # warnings about the times
    times: Times | None = None  # of the sorted rows, where they are known

    @property
    def codes(self) -> NDArray[np.intp]:
        """Number of each row's sequence."""
        names = np.zeros(len(self.numbers)) if self.sequences is None else self.sequences
        return np.asarray(np.unique(names, return_inverse=True)[1].reshape(-1), dtype=np.intp)


def in_order(table: SourceTable, columns: Columns) -> Series:
    """Sort a table by sequence and time, where columns say what these are."""
    n = table.frame.height
    codes, names = np.zeros(n, dtype=np.intp), None
    if columns.sequence is not None:
        names, empty = labels_of(table, columns.sequence)
        _refuse_empty(table, columns.sequence, empty, "sequence")
        codes = np.unique(names, return_inverse=True)[1].reshape(-1).astype(np.intp)
    if columns.time is None:
        order, times, said = np.argsort(codes, kind="stable"), None, _dates(table, columns)
    else:
        times = times_of(table, columns.time)
        order = np.lexsort((times.numbers, codes))
        times = replace(times, numbers=times.numbers[order])
        said = _gaps(table, columns, times.numbers, codes[order], order, times.unit)
    in_time = replace(table, frame=table.frame[order])
    return Series(in_time, order.astype(np.int64) + 1, None if names is None else names[order], said, times)


def _dates(table: SourceTable, columns: Columns) -> tuple[str, ...]:
    """Return a warning that rows are not put in the order of a column of dates; none if there is no such column."""
    dates = [name for name in table.frame.columns if name not in columns.all and is_date(table.frame[name])]
    as_one = "" if columns.sequence else ", all as one series"
    told = f'"{dates[0]}" is a date, but rows are taken in the order of the table{as_one}' if dates else ""
    other = "" if columns.sequence else ", and what tells several series apart with --sequence"
    return (f"{told}: name it with --time {dates[0]}{other}.",) if told else ()


def series_formula(text: str, series: Series, gating: str | None = None) -> SeriesFormula:
    """Return what a formula, and terms of the transitions, learn from rows in order of time."""
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
    from majorant.models.hidden_markov.emissions import REGRESSIONS

    formula = formula_of_series(estimator)
    if formula is None:
        return [] if estimator.emission not in REGRESSIONS else list(estimator.feature_names_in_[1:])
    return formula.columns_ahead


def gaps_ahead(before: Series, after: Series, time: str) -> tuple[str, ...]:
    """Return a sentence on long steps of time into rows to come."""
    from majorant.models.hidden_markov.ahead import check_later
    from majorant.models.hidden_markov.times import UnreadTimeError, read_times

    columns = [series.table.frame[time] for series in (before, after)]
    try:
        times = read_times([value for column in columns for value in column.to_list()])
    except (TypeError, UnreadTimeError):
        raise CommandError(
            f'"{time}" of {after.table.name} is of another kind than that of {before.table.name}.',
            "Write both in one way.",
        ) from None
    codes = np.concatenate([before.codes, after.codes])
    said = check_later(times.numbers, codes, len(columns[0]), columns[1].to_list())
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
        beside: dict[str, Any] = {
            "sequences": series.sequences,
            "covariates": covariates,
            "times": _times_in(series, columns),
        }
        return Matrix(design.to_numpy(), None, None, *rows, **beside)
    matrix = build_matrix(series.table, columns, True, False, is_new=is_new, keeps_empty=True)
    values = matrix.values
    if drop_missing:
        values = np.where(np.isnan(values).any(axis=1, keepdims=True), np.nan, values)
    own: dict[str, Any] = {"sequences": series.sequences, "times": _times_in(series, columns)}
    return replace(matrix, values=values, rows=series.numbers, **own)


def _times_in(series: Series, columns: Columns) -> NDArray[Any] | None:
    return None if columns.time is None else series.table.frame[columns.time].to_numpy()


def times_of(table: SourceTable, name: str) -> Times:
    """Return the times of a column."""
    check_there(table, name)
    column = table.frame[name]
    _refuse_empty(table, name, column.is_null().to_numpy(), "time")
    return _read(table, name, column)


def _read(table: SourceTable, name: str, column: pl.Series) -> Times:
    from majorant.models.hidden_markov.times import UnreadTimeError, read_times

    is_known = is_numeric(column) or column.dtype.is_temporal()
    try:
        return read_times(column.to_numpy() if is_known else column.cast(pl.String).to_list())
    except UnreadTimeError as error:
        holds = f'column "{name}" of {table.name} holds "{error.text[:40]}" in row {error.row + 1}'
        if error.beside:
            raise CommandError(
                f'{holds} beside "{error.beside[:40]}": one has the time zone Z (UTC), the other none.',
                "Write Z after all times or after none.",
            ) from None
        if error.meanings:
            first, second = error.meanings
            raise CommandError(
                f"{holds}, which may be {first} or {second}, and no other row tells which.",
                "Write dates as 2024-03-31.",
            ) from None
        raise CommandError(
            f"{holds}, which is read as no time.",
            "Times are numbers, dates (2024-03-31, 2024-03-31 18:30, 31/03/2024), months (2024-03) or quarters "
            "(2024Q1), all of one kind. Rows that are in order already need no --time.",
        ) from None


def with_gaps_filled(table: SourceTable, time: str | None, sequence: str | None) -> SourceTable:
    """Return a table with a row of empty cells for every time that lacks between others of its sequence, at its end."""
    from majorant.models.hidden_markov.times import lacking

    if time is None:
        raise CommandError("--fill-gaps needs times: name their column with --time.")
    series = in_order(table, Columns((), time=time, sequence=sequence))
    assert series.times is not None
    codes = series.codes
    try:
        found = lacking(series.times, codes)
    except ValueError as error:
        raise CommandError(
            f'the gaps of "{time}" cannot be filled: {error}.',
            "Its rows must be at even times, but for those that lack.",
        ) from None
    if found is None:
        return table
    added = {time: pl.Series(series.times.write(found[1])).cast(table.frame[time].dtype)}
    if sequence is not None:
        firsts = np.flatnonzero(np.diff(codes, prepend=-1))
        added[sequence] = series.table.frame[sequence][firsts[found[0]]]
    return replace(table, frame=pl.concat([table.frame, pl.DataFrame(added)], how="diagonal"))


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
    from majorant.models.hidden_markov.times import MOST_GAPS, length_of, long_steps

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
        ends = f"from {length_of(float(steps.min()), unit)} to {length_of(float(steps.max()), unit)}"
        return (
            f'"{columns.time}" is not evenly spaced: its steps are {ends}. The model takes every row for one step.',
        )
    widest = int(steps.argmax())
    after = int(order[inner[widest]]) + 1
    are = "is" if len(long) == 1 else "are"
    longest = f"{length_of(float(steps[widest]), unit)} after row {after}"
    return (
        f'{counted(len(long), "step")} of "{columns.time}" {are} longer than the usual {length_of(usual, unit)}: '
        f"{'' if len(long) == 1 else 'the longest is '}{longest}. The model takes every row for one step: add a row "
        "with empty cells for every time that lacks, as --fill-gaps does.",
    )
