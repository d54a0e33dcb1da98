"""What a table's columns are: numbers, dates, text, ids, constants, copies of each other."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np
import polars as pl

from majorant._cells import code_for_missing
from majorant._numbers import few_of
from majorant.cli.errors import listed
from majorant.cli.matrix import Columns, Matrix, id_columns, is_date, is_empty, is_numeric
from majorant.cli.tables import SourceTable
from majorant.cli.text_tables import options_for_numbers
from majorant.report.sections.columns import LEFT_OUT, ColumnUse

NAMES_ROWS = "another in every row"
SAME = 0.999
"""Correlation from which on two columns say the same."""
MOST_PAIRS = 5
"""Columns up to which it is named what others say too."""
SKEWED = 3.0
"""Skewness, in standard deviations cubed, of a column in which few rows lie far out."""
MOST_COMPARED, MOST_ROWS = 300, 20_000
"""Columns and rows up to which correlations are computed."""
MOST_OF_THE_VARIANCE = 0.8
"""Share of the variance beyond which one column decides the clusters."""


def column_uses(table: SourceTable, columns: Columns, ids: Sequence[str]) -> tuple[ColumnUse, ...]:
    """Return what became of each column of a table, in its order; `ids` were named by the user."""
    frame = table.frame
    roles = dict.fromkeys(columns.features, "feature") | dict.fromkeys(columns.covariates, "covariate")
    for role in ("target", "weights", "bag", "time", "sequence"):
        name = getattr(columns, role)
        roles |= {} if name is None else {name: role}
    roles |= columns.beside | dict.fromkeys(ids, "id")
    like_ids = id_columns(frame, frame.columns)
    copies = _copies(table, [name for name in columns.features if name in frame.columns])
    found = []
    for name in frame.columns:
        is_left_out = name not in roles
        notes = []
        if name in like_ids and roles.get(name, LEFT_OUT) in (LEFT_OUT, "feature"):
            notes.append("looks like an id" + ("" if is_left_out else "; leave it out if it is one"))
        notes += _notes(frame[name], is_left_out=is_left_out)
        if name in copies:
            notes.append(copies[name])
        n_empty = 0 if is_left_out else frame[name].null_count()
        found.append(ColumnUse(name, roles.get(name, LEFT_OUT), tuple(notes), n_empty, table.sources.get(name, "")))
    return tuple(found)


def _notes(column: pl.Series, *, is_left_out: bool) -> list[str]:
    """Say what is to know of one column."""
    known = column.drop_nulls()
    if known.is_empty():
        return ["empty"]
    if is_date(column):
        return ["a date"]
    if not is_numeric(column):
        options = options_for_numbers(column)
        if options:
            return [f"text whose numbers need {options}"]
        n_levels = known.n_unique() if not (column.dtype.is_nested() or column.dtype == pl.Object) else 0
        return (
            [f"text, {NAMES_ROWS if n_levels == len(known) else 'another in almost every row'}"]
            if (n_levels > max(20, 0.9 * len(known)))
            else ["text" if n_levels != 1 else "text, one value"]
        )
    if is_left_out or column.dtype == pl.Boolean:
        return []
    if known.min() == known.max():
        return ["constant"]
    skewness = known.cast(pl.Float64).skew() if known.n_unique() > 20 else None
    if skewness is not None and abs(skewness) > SKEWED:
        positive = "; its logarithm may serve better" if skewness > 0 and bool((known > 0).all()) else ""
        return [f"skewed, few rows lie far out{positive}"]
    return []


def _copies(table: SourceTable, names: Sequence[str]) -> dict[str, str]:
    """Say of columns that are nearly a linear function of an earlier one which one it is; not of levels of a column."""
    frame = table.frame
    numeric = [name for name in names if is_numeric(frame[name]) and not is_empty(frame[name])][:MOST_COMPARED]
    if len(numeric) < 2 or frame.height < 3:
        return {}
    values = frame.select(numeric).cast(pl.Float64).gather_every(-(-frame.height // MOST_ROWS)).to_numpy()
    values = values[np.isfinite(values).all(axis=1)]
    if len(values) < 3:
        return {}
    centred = values - values.mean(axis=0)
    norms = np.sqrt((centred**2).sum(axis=0))
    unit = np.divide(centred, norms, out=np.zeros_like(centred), where=norms > 0)
    correlations = np.tril(unit.T @ unit, -1)
    sources = np.array([table.source_of(name) for name in numeric])
    alike = (np.abs(correlations) >= SAME) & (sources[:, None] != sources)
    first = {int(j): int(alike[j].argmax()) for j in np.flatnonzero(alike.any(axis=1))}
    are_many = len(set(first.values())) > MOST_PAIRS
    said = {}
    for j, i in first.items():
        sign = "above " if correlations[j, i] > 0 else "below -"
        other = "a column before it" if are_many else f'"{numeric[i]}"'
        said[numeric[j]] = f"says what {other} says (correlation {sign}{SAME:g})"
    return said


def column_lines(uses: Sequence[ColumnUse]) -> list[str]:
    """Return sentences for the screen: what was left out and why, and notes on what was used."""
    by_reason: dict[str, list[str]] = {}
    for use in uses:
        if use.is_left_out and use.notes:
            by_reason.setdefault("; ".join(use.notes), []).append(use.name or '""')
    lines = [f"left out, {reason}: {listed(names)}" for reason, names in by_reason.items()]
    names = next(
        (use.name for use in uses if use.is_left_out and any(NAMES_ROWS in note for note in use.notes)),
        None,
    )
    if names is not None:
        shown = shlex.quote(names) if names else '""'
        lines.append(f"--id {shown} writes the names of the rows beside the results")
    noted: dict[str, list[str]] = {}
    for use in uses:
        if not use.is_left_out and use.use == "feature":
            for note in use.notes:
                if note != "text":
                    noted.setdefault(note, []).append(f'"{use.name}"')
    lines += [f"{few_of(names)}: {note}" for note, names in noted.items()]
    empty = list(dict.fromkeys(f'{use.n_empty} in "{use.source or use.name}"' for use in uses if use.n_empty))
    return [*lines, f"empty cells: {few_of(empty)}"] if empty else lines


def of_codes(table: SourceTable, names: Sequence[str]) -> list[str]:
    """Return a sentence on numbers that seem to be codes for missing cells; none if there are none."""
    met: dict[int, list[str]] = {}
    for name in names:
        values = table.frame[name].drop_nulls().unique()
        code = code_for_missing(values.to_list()) if values.dtype.is_numeric() or values.dtype == pl.String else None
        if code is not None:
            met.setdefault(code, []).append(f'"{name}"')
    return [
        f"{code} stands in {listed(own)}: if it means a missing cell, read the table with --na {code}."
        for code, own in met.items()
    ]


def of_constant_columns(columns: Columns, matrix: Matrix) -> list[str]:
    """Return a warning that names columns with one value in every row."""
    constant = (matrix.values.min(axis=0) == matrix.values.max(axis=0)).nonzero()[0]
    names = few_of([f'"{columns.features[j]}"' for j in constant])
    columns_of, they = ("column", "It does") if len(constant) == 1 else ("columns", "They do")
    return [f"Constant {columns_of}: {names}. {they} not distinguish clusters."] if names else []


def of_one_column(columns: Columns, matrix: Matrix) -> list[str]:
    """Return a warning about a column that has most of the variance, and so dominates the sum of squares."""
    values = matrix.values / max(float(np.abs(matrix.values).max()), np.finfo(float).tiny)
    means = np.average(values, axis=0, weights=matrix.weights)
    variances = np.average((values - means) ** 2, axis=0, weights=matrix.weights)
    first = int(variances.argmax())
    if len(variances) == 1 or not variances[first] > MOST_OF_THE_VARIANCE * variances.sum():
        return []
    share = int(100 * variances[first] / variances.sum())
    return [
        f'"{columns.features[first]}" has {share} % of the variance of all {len(variances)} columns, so it decides the '
        "clusters almost alone: with --standardise every column counts alike."
    ]
