"""Rows and columns of a table that a model uses, and their units."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from majorant.cli.categories import becomes_numbers
from majorant.cli.errors import CommandError, NoRowsLeftError, did_you_mean, listed
from majorant.cli.later import NO_LATER_STEPS, LaterSteps
from majorant.cli.tables import SourceTable
from majorant.cli.text_tables import is_number, options_for_numbers
from majorant.models.units import Standardisation
from majorant.summary import counted

Array = NDArray[np.float64]

_MOST_SEEN = 100_000
_SHORTEST_COUNT, _MOST_BEGINNINGS = 20, 0.1
"""Rows of the shortest column that can be seen to count them, and how often it may begin again, as a share of these."""
_NAMES_OF_IDS = ("", "id", "row", "index", "rownames", "unnamed: 0")
_FEW = 10
"""A numeric column has few cells of text if at most one in this many is text."""

_TEXT_TO_NUMBERS = (
    "Features must be numbers: write text as one column of 0 and 1 for each category, and a missing value as a "
    "category of its own."
)
BY_LEVELS = (
    "--categorical one-hot writes text as one column of 0 and 1 for each category; a missing value stays missing. "
    "Where it is to be a category of its own, write a word in its place."
)
BY_TERMS = '--formula reads text as levels, each told against the first: --formula "y ~ x + kind".'
_DATES = r"^\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([ T]|$)|^\d{1,2}[-/.]\d{1,2}[-/.]\d{4}([ T]|$)|^\d{1,2}:\d{2}(:\d{2})?$"


@dataclass(frozen=True)
class Columns:
    """The roles of the table's columns."""

    features: tuple[str, ...]  # columns that the model uses
    # column of the target, of the weights, and of the sample that each row is a region of
    target: str | None = None
    weights: str | None = None
    bag: str | None = None
    # columns of the time of each row, and of the sequence that it belongs to
    time: str | None = None
    sequence: str | None = None
    covariates: tuple[str, ...] = ()  # columns that the weights of the components depend on
    labels: str | None = None  # column of the components of rows where these are known
    later: LaterSteps = NO_LATER_STEPS  # what is computed after the fit, of columns of its own

    def of(self, formula: Any) -> Columns:
        """Return the columns of the table that a formula names, in the roles that it gives them."""
        return replace(self, features=tuple(name for name in formula.columns if name != self.target))

    @property
    def all(self) -> tuple[str, ...]:
        roles = (self.target, self.weights, self.bag, self.time, self.sequence)
        return (*self.features, *(name for name in roles if name is not None), *self.covariates)

    @property
    def beside(self) -> dict[str, str]:
        """Columns that no row needs, and what they are."""
        return self.later.roles | ({} if self.labels is None else {self.labels: "known class"})

    @property
    def of_new_rows(self) -> Columns:
        """The columns that predictions need."""
        return replace(self, target=None, weights=None, labels=None, later=NO_LATER_STEPS)


def feature_frame(features: tuple[str, ...], values: Array) -> pl.DataFrame:
    """Return the features as a data frame, so that the estimator gets their names."""
    return pl.DataFrame({name: values[:, i] for i, name in enumerate(features)})


@dataclass(frozen=True)
class Matrix:
    """The used rows of a table, in the table's own units."""

    values: Array  # (n, d): one column per feature
    target: NDArray[Any] | None  # (n,): the target: numbers, or names of classes
    weights: Array | None  # (n,): weight of each row
    rows: NDArray[np.int64]  # (n,): numbers of the rows in the table, from 1
    n_left_out: int  # rows with missing values that were left out
    bags: NDArray[Any] | None = None  # (n,): the sample that each row is a region of
    # the features as the model takes them, where they are not all numbers; some of `values` are then codes
    frame: pl.DataFrame | None = None
    sequences: NDArray[Any] | None = None  # (n,): the sequence of each row, where rows follow each other in time
    covariates: pl.DataFrame | None = None  # what the weights of the components depend on, numbers or text
    # (n,): the time of each row as in the table, where rows follow each other in time
    times: NDArray[Any] | None = None
    labels: NDArray[np.intp] | None = None  # (n,): the component of each row, -1 where it is not known
    n_without_covariate: int = 0  # rows left out that lack a covariate

    @property
    def given(self) -> dict[str, Any]:
        """Arguments of every method of the model that takes these rows."""
        every = {"groups": self.sequences, "gating": self.covariates, "component_labels": self.labels}
        return {name: value for name, value in every.items() if value is not None}

    @property
    def n_sequences(self) -> int | None:
        """Number of sequences, where rows are named as those of several."""
        return None if self.sequences is None else len(np.unique(self.sequences))

    @property
    def n_bags(self) -> int | None:
        """Number of samples, where rows are regions of them."""
        return None if self.bags is None else len(np.unique(self.bags))

    @property
    def ranges(self) -> tuple[Array, Array] | None:
        """Smallest and largest value of each feature; None where some are text, or have no value."""
        if self.frame is not None or np.isnan(self.values).all(axis=0).any():
            return None
        return np.nanmin(self.values, axis=0), np.nanmax(self.values, axis=0)

    def as_seen(self, columns: Columns, units: Standardisation | None) -> pl.DataFrame:
        """Return the features as the estimator takes them."""
        if self.frame is not None:
            return self.frame
        return feature_frame(columns.features, self.values if units is None else units.apply(self.values))


def choose_features(
    table: SourceTable,
    asked: Sequence[str],
    others: Sequence[str],
    labels: Collection[str | None] = (),
    passed_over: Collection[str] = (),
    ids: Collection[str] = (),
    by_levels: str = "",
) -> tuple[str, ...]:
    """Return the features asked for, or all numeric columns with a value but `others`; `labels` among them may be text.

    Where none is asked for, `ids` are left out too, unless there is nothing else. `by_levels` says
    how text may become numbers.
    """
    for name in (*asked, *others):
        if name in labels:
            check_there(table, name)
        else:
            check_column(table, name, is_optional=name in asked, by_levels=by_levels)
    repeated = sorted({name for name in asked if asked.count(name) > 1})
    if repeated:
        raise CommandError(f'"{repeated[0]}" is named twice.', "Name every feature once.")
    shared = [name for name in asked if name in others]
    if shared:
        raise CommandError(f'"{shared[0]}" cannot be a feature and have another role at once.')
    free = [c for c in table.frame.columns if c not in others and c not in passed_over]
    found = tuple(asked) or tuple(c for c in free if is_numeric(table.frame[c]) and not is_empty(table.frame[c]))
    if not asked:
        found = tuple(c for c in found if c not in ids) or found
    for name in () if asked else free:
        refuse_spoilt(table, name)
    if not found:
        commas = {c: options for c in table.frame.columns if (options := options_for_numbers(table.frame[c]))}
        read_by = " ".join(dict.fromkeys(commas.values()))
        advice = f"{listed(list(commas))} holds numbers that need {read_by}" if commas else "turn text into numbers"
        raise CommandError(
            f"{table.name} has no numeric columns.",
            f"Its columns are {listed(table.frame.columns)}; {advice}.",
            *(() if commas else (_advice_on_text([table.frame[c] for c in free], by_levels),)),
        )
    return found


def refuse_spoilt(
    table: SourceTable, name: str, advice: str = "If the column is text, name those to use with --features."
) -> None:
    """Raise CommandError for a numeric column in which a few cells, or cells with one text, are not numbers."""
    column = table.frame[name]
    wrong = _texts_among_numbers(column)
    n_given = len(column) - column.null_count()
    if not 0 < 2 * len(wrong) < n_given or options_for_numbers(column):
        return
    texts = column.gather(wrong)
    if len(wrong) > max(1, n_given / _FEW) and texts.n_unique() > 1:
        return
    text = str(texts[0])[:40]
    raise CommandError(
        f'column "{name}" of {table.name} is numeric save for {len(wrong)} of {counted(n_given, "cell")}: '
        f'row {wrong[0] + 1} holds "{text}".',
        f'Correct what is wrong. If "{text}" means a missing value, --na {shlex.quote(text)} says so. {advice}',
    )


def _texts_among_numbers(column: pl.Series) -> NDArray[np.intp]:
    """Return the positions of cells of a text column that are not numbers."""
    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return np.empty(0, dtype=np.intp)
    numbers = column.cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    return np.flatnonzero((numbers.is_null() & column.is_not_null()).to_numpy())


def check_there(table: SourceTable, name: str) -> None:
    """Raise CommandError for a column that the table does not have."""
    columns = table.frame.columns
    if name not in columns:
        raise CommandError(
            f'no column "{name}" in {table.name}.{did_you_mean(name, columns)}', f"Columns: {listed(columns)}."
        )


def check_column(table: SourceTable, name: str, is_optional: bool = False, by_levels: str = "") -> None:
    """Raise CommandError for a column that is missing or not numeric; the flags say what may be advised.

    `is_optional` suggests leaving it out, `by_levels` writing its levels as numbers.
    """
    check_there(table, name)
    column = table.frame[name]
    if not is_numeric(column):
        row, example = first_text(column) or (0, "")
        holds = f'{"dates" if is_date(column) else "text"} such as "{example[:40]}" in row {row}'
        if column.dtype.is_nested() or column.dtype in (pl.Object, pl.Binary):
            holds = f"{column.dtype}"
        if options := options_for_numbers(column):
            raise CommandError(
                f'column "{name}" of {table.name} is text: its numbers, such as "{example}", need {options}.',
                "A sign before three digits may be either the decimal one or that of thousands.",
            )
        what = f'column "{name}" of {table.name} is not numeric: it holds {holds}.'
        if is_optional and is_date(column):
            raise CommandError(what, "Leave it out with --features, or turn it into numbers, such as days.")
        if is_optional:
            advice = _advice_on_text([column], by_levels)
            raise CommandError(what, "Leave it out with --features, or turn it into numbers.", advice)
        raise CommandError(what, "Turn it into numbers; leave a cell empty if its value is missing.")


def _advice_on_text(columns: Sequence[pl.Series], by_levels: str) -> str:
    """Return how text may become numbers, by an option where that can do it."""
    can = any(becomes_numbers(column) and not is_date(column) for column in columns)
    return by_levels if can and by_levels else _TEXT_TO_NUMBERS


def first_text(column: pl.Series) -> tuple[int, str] | None:
    """Return the row, from 1, and the text of the first value that is not a number."""
    given = ((row, str(value)) for row, value in enumerate(column.head(_MOST_SEEN), 1) if value is not None)
    return next(((row, text) for row, text in given if not is_number(text)), None)


def is_numeric(column: pl.Series) -> bool:
    """Return whether the column holds numbers or truth values; one without a value may hold them."""
    return column.dtype.is_numeric() or column.dtype == pl.Boolean or is_empty(column)


def is_empty(column: pl.Series) -> bool:
    """Return whether no cell of the column has a value."""
    return column.null_count() == len(column)


def is_date(column: pl.Series) -> bool:
    """Return whether the column holds dates or times, be it as text."""
    known = column.drop_nulls()
    is_text = column.dtype == pl.String and not known.is_empty()
    return column.dtype.is_temporal() or (is_text and bool(known.str.contains(_DATES).all()))


def id_columns(frame: pl.DataFrame, names: Sequence[str], *, by_name: bool = False) -> list[str]:
    """Return the columns that number the rows: whole and all distinct with a name that says so, or counting up by one.

    A count may begin again, as within groups. `by_name` leaves counts out, as a target may depend on the day.
    """
    named = [name for name in names if name.lower().rstrip("_ ") in _NAMES_OF_IDS]
    named = [n for n in named if frame[n].dtype.is_integer() and frame[n].n_unique() == frame.height]
    return [name for name in names if name in named or (not by_name and _counts_up(frame[name]))]


def _counts_up(column: pl.Series) -> bool:
    """Return whether whole numbers count the rows from 0 or 1, nearly always to the last row or to a new beginning."""
    if len(column) < _SHORTEST_COUNT or not column.dtype.is_numeric() or column.null_count():
        return False
    values = column.cast(pl.Float64).to_numpy()
    steps = np.diff(values)
    begins = np.append(values[0], values[1:][steps != 1])
    return bool(len(begins) <= 1 + _MOST_BEGINNINGS * len(values) and ((begins == 0) | (begins == 1)).all())


def build_matrix(
    table: SourceTable,
    columns: Columns,
    allows_missing: bool,
    drop_missing: bool,
    has_labels: bool = False,
    is_new: bool = False,
    keeps_empty: bool = False,
) -> Matrix:
    """Return the values of the columns, after the checks that every fit and prediction needs.

    Parameters
    ----------
    table : SourceTable
        The table.
    columns : Columns
        The columns and their roles.
    allows_missing : bool
        Whether the model takes missing values in its features.
    drop_missing : bool
        Whether to leave out rows with missing values instead of refusing them.
    has_labels : bool
        Whether the target names classes, so that it may be text.
    is_new : bool
        Whether the model is fitted already, so that no column can be left out.
    keeps_empty : bool
        Whether rows without any feature are kept, as they advance time; otherwise they belong to no part.
    """
    labels = [name for name in (columns.target if has_labels else None, columns.bag) if name is not None]
    others = (*labels, columns.time, columns.sequence, *columns.covariates)
    numeric = [name for name in columns.all if name not in others]
    optional = () if is_new else columns.features
    for name in numeric:
        check_column(table, name, is_optional=name in optional)
    values = {name: table.frame[name].cast(pl.Float64).to_numpy().astype(np.float64) for name in numeric}
    _refuse_infinite(table, values, optional)
    complete = [name for name in numeric if not (allows_missing and name in columns.features)]
    missing = {name: np.isnan(values[name]) for name in complete}
    kept: dict[str, NDArray[Any]] = dict(values)
    for name in labels:
        kept[name], missing[name] = labels_of(table, name)
    incomplete = incomplete_rows(table, missing, drop_missing, optional)
    if columns.features and not keeps_empty:
        incomplete |= np.logical_and.reduce([np.isnan(values[name]) for name in columns.features])
        if incomplete.all():
            raise NoRowsLeftError(f"no row of {table.name} has a value in any of the columns.", "Fill them in.")
    kept = {name: column[~incomplete] for name, column in kept.items()}
    if columns.weights is not None:
        check_weights(table, columns.weights, kept[columns.weights])
    return Matrix(
        np.column_stack([kept[name] for name in columns.features]),
        None if columns.target is None else kept[columns.target],
        None if columns.weights is None else kept[columns.weights],
        np.flatnonzero(~incomplete) + 1,
        int(incomplete.sum()),
        None if columns.bag is None else kept[columns.bag],
    )


def choose_items(
    table: SourceTable, asked: Sequence[str], others: Sequence[str], labels: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the requested columns, or all but `others`, of which the `labels` may be text, as any item may."""
    for name in (*asked, *others):
        if name in asked or name in labels:
            check_there(table, name)
        else:
            check_column(table, name)
    passed_over = {*others, *id_columns(table.frame, table.frame.columns)}
    free = (c for c in table.frame.columns if c not in passed_over and not is_empty(table.frame[c]))
    return tuple(asked) or tuple(free)


def item_matrix(table: SourceTable, columns: Columns, drop_missing: bool, is_new: bool = False) -> Matrix:
    """Return the rows of columns that may hold text; the frame holds it, the values its numbers in sorted order."""
    frame = table.frame
    texts = {name: _as_text(frame[name]) for name in columns.features if not is_numeric(frame[name])}
    codes = [
        (text if text.dtype == pl.Enum else text.cast(pl.Enum(text.drop_nulls().unique().sort()))).to_physical()
        for text in texts.values()
    ]
    coded = replace(table, frame=frame.with_columns(codes))
    matrix = build_matrix(coded, columns, not drop_missing, drop_missing, is_new=is_new)
    kept = [text.gather(matrix.rows - 1) for text in texts.values()]
    return replace(matrix, frame=feature_frame(columns.features, matrix.values).with_columns(kept))


def _as_text(column: pl.Series) -> pl.Series:
    """Return text without an order of its levels, unless the column has one."""
    return column if column.dtype == pl.Enum else column.cast(pl.String)


def incomplete_rows(
    table: SourceTable,
    missing: Mapping[str, NDArray[np.bool_]],
    drop_missing: bool,
    optional: Collection[str],
    option: str = "--features",
) -> NDArray[np.bool_]:
    """Return the mask of rows with a missing value; raise CommandError unless they may be dropped."""
    incomplete: NDArray[np.bool_] = np.logical_or.reduce([np.zeros(table.frame.height, dtype=bool), *missing.values()])
    empty = [name for name, where in missing.items() if where.all()]
    lacking = empty or [name for name, where in missing.items() if where.any()]
    optional = [table.source_of(name) for name in optional]
    names = list(dict.fromkeys(map(table.source_of, lacking)))
    columns = _left_out(names, optional, option)
    if incomplete.any() and not drop_missing and not (optional and incomplete.all()):
        rows = "or leave those rows out with --drop-missing"
        raise CommandError(
            f"values are missing in {counted(int(incomplete.sum()), 'row')} of {table.name}, in {_quoted(names)}.",
            f"Fill them in, {f'{columns}, ' if columns else ''}{rows}.",
        )
    if incomplete.all():
        raise (NoRowsLeftError if drop_missing else CommandError)(
            f"every row of {table.name} lacks a value, in {_quoted(names)}.",
            f"Fill them in{f', or {columns}' if columns else ''}.",
        )
    return incomplete


def _left_out(names: Sequence[str], optional: Collection[str], option: str) -> str:
    """Return the advice to leave out optional columns among some; "" if all are needed."""
    free = [name for name in names if name in optional]
    what = "those columns" if len(free) == len(names) else _quoted(free)
    return f"leave {what} out {'of' if option == '--formula' else 'with'} {option}" if free else ""


def _quoted(names: Sequence[str]) -> str:
    return listed([f'"{name}"' for name in names])


def labels_of(table: SourceTable, name: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the names of classes or bags (whole numbers as integers), and the mask of missing ones."""
    check_there(table, name)
    column = table.frame[name]
    if column.dtype.is_nested() or column.dtype == pl.Object:
        raise CommandError(
            f'column "{name}" of {table.name} holds {column.dtype}, which names neither classes nor bags.'
        )
    if column.dtype.is_float():
        _refuse_infinite(table, {name: column.fill_null(0.0).cast(pl.Float64).to_numpy()}, ())
        if bool((column.drop_nulls() % 1 == 0).all()):
            column = column.cast(pl.Int64)
    missing = column.is_null().to_numpy()
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return column.fill_null(0 if column.dtype.is_numeric() else False).to_numpy(), missing
    return np.array(column.cast(pl.String).fill_null("").to_list(), dtype=np.str_), missing


def _refuse_infinite(table: SourceTable, values: dict[str, Array], optional: Collection[str]) -> None:
    infinite = {name: np.isinf(column) for name, column in values.items()}
    names = [name for name, where in infinite.items() if where.any()]
    if names:
        rows = int(np.logical_or.reduce(list(infinite.values())).sum())
        columns = _left_out(names, optional, "--features")
        raise CommandError(
            f"values are infinite in {counted(rows, 'row')} of {table.name}, in {_quoted(names)}.",
            f"Correct them in the table{f', or {columns}' if columns else ''}.",
        )


def check_weights(table: SourceTable, name: str, weights: Array) -> None:
    """Raise CommandError for weights that are negative, or all zero."""
    if (weights < 0).any() or not weights.any():
        raise CommandError(
            f'the weights in column "{name}" of {table.name} must be at least 0 and not all 0; '
            f"the smallest is {weights.min():g}."
        )
