"""The command ``majorant predict``: parts of the rows of a new table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from majorant.cli.assignments import assigned, assigned_rows
from majorant.cli.beside import beside, kept_columns
from majorant.cli.errors import CommandError, NoRowsLeftError, listed, refusals
from majorant.cli.formulas import complete_rows
from majorant.cli.matrix import Columns, Matrix
from majorant.cli.messages import heard
from majorant.cli.parts import read_parts, writing_parts
from majorant.cli.rows import matrix_for
from majorant.cli.runs import Recipe, read_run
from majorant.cli.series import formula_of_series, in_order, series_matrix, with_gaps_filled
from majorant.cli.tables import SourceTable, check_writable_ending, is_same_file
from majorant.registry import card_of
from majorant.summary import counted


def predict_and_write(
    folder: Path,
    table_path: Path,
    out: Path,
    drop_missing: bool,
    force: bool,
    *,
    keep: Sequence[str] = (),
    given: Mapping[str, Any] | None = None,
) -> tuple[str, tuple[str, ...]]:
    """Write the parts of a new table's rows, with its ids and the columns to `keep`.

    Returns what was done, and warnings, in sentences. The table is read as that of the fit, but for what is `given`.
    """
    check_writable_ending(out)
    check_new(out, force)
    if is_same_file(out, table_path):
        raise CommandError(f"{out} is the table itself, which --force does not replace.", "Choose another --out.")
    estimator, recipe = read_run(folder)
    is_by_bag = recipe.columns.bag is not None
    n_rows = n_left_out = n_far = 0
    lost, said = list[str](), tuple[str, ...]()
    none_left: NoRowsLeftError | None = None
    reading = replace(recipe.reading, **(given or {}))
    parts = read_parts(table_path, reading, whole=is_by_bag or card_of(estimator).in_order)
    with closing(parts), writing_parts(out) as writer:
        for before, table in parts:
            if recipe.fill_gaps:
                table = with_gaps_filled(table, recipe.columns.time, recipe.columns.sequence)
            n_rows += table.frame.height
            try:
                with heard() as warned:
                    found, n_without, lost, told, far = _predicted(estimator, recipe, table, before, drop_missing)
            except NoRowsLeftError as error:
                none_left, n_without = error, table.frame.height
            else:
                n_far += far
                series = [name for name in (recipe.columns.sequence, recipe.columns.time) if name is not None]
                said = tuple(dict.fromkeys([*said, *told, *warned]))
                ids = [name for name in recipe.ids if name in table.frame.columns]
                writer.write(beside(found, kept_columns(table, ids, keep, series), before))
            n_left_out += n_without
        if writer.n_rows == 0 and none_left is not None:
            raise none_left
        check_new(out, force)  # another process may have written it meanwhile
    if n_far:
        rows = f"{counted(n_far, 'row')} of {n_rows} {'lies' if n_far == 1 else 'lie'}"
        said = (*said, f"{rows} far outside the rows of the fit, where what the model says has no support.")
    if is_by_bag:
        bags = f"{counted(writer.n_rows, 'bag')} of {counted(n_rows - n_left_out, 'row')}"
        return f"{out}, {bags}, {n_left_out} left out", said
    without = f", without the view{'s' * (len(lost) > 1)} {listed(lost)}" if lost else ""
    return f"{out}, {counted(writer.n_rows, 'row')}, {n_left_out} left out{without}", said


def check_new(out: Path, force: bool) -> None:
    """Raise CommandError for a file that is there already and must not be replaced."""
    if out.exists() and not force:
        raise CommandError(f"{out} is there already.", "Choose another --out, or let --force replace it.")


def _predicted(
    estimator: Any, recipe: Any, table: SourceTable, before: int, drop_missing: bool
) -> tuple[dict[str, Any], int, list[str], tuple[str, ...], int]:
    """Return predictions for a table's rows, and what is to tell of them.

    These are the number of rows left out, views that the table lacks, warnings, and the number of rows far outside.
    """
    lost, said = list[str](), tuple[str, ...]()
    formula = getattr(estimator, "formula_", None)
    if formula is not None:
        columns = Columns(formula.predictors(table.frame.columns))
        _check_columns(table, columns)
        used = complete_rows(table, columns.features, drop_missing)
        found = used.told(lambda: assigned(estimator, used.frame, used.rows + before, is_new=True))
        return found, used.n_left_out, lost, said, 0
    columns = recipe.columns.of_new_rows
    table = recipe.categories.apply(table)
    is_series = card_of(estimator).in_order
    if (views := getattr(estimator, "views", None)) is not None:
        from majorant.cli.views import with_lost_views

        table, lost = with_lost_views(table, views)
        drop_missing = drop_missing and not lost
    if is_series:
        matrix, frame, said = series_of(estimator, recipe, table, drop_missing)
    else:
        _check_columns(table, columns)
        matrix = matrix_for(estimator, table, columns, drop_missing, leaves_out=drop_missing, is_new=True)
    frame = matrix.as_seen(columns, recipe.standardisation)
    card, name, target = card_of(estimator), recipe.columns.target, None
    if card.kind == "regression" and name in table.frame.columns:
        target = table.frame[name][matrix.rows - 1].cast(pl.Float64, strict=False)
    with refusals(card):
        found = assigned_rows(estimator, frame, matrix, True, before, target)
    return found, matrix.n_left_out, lost, said, recipe.n_far(matrix.values)


def series_of(
    estimator: Any, recipe: Recipe, table: SourceTable, drop_missing: bool
) -> tuple[Matrix, pl.DataFrame, tuple[str, ...]]:
    """Return the rows of a new table in order of time, as the estimator takes them, and warnings about their times."""
    columns, formula = recipe.columns.of_new_rows, formula_of_series(estimator)
    _check_columns(table, columns if formula is None else replace(columns, features=tuple(formula.columns)))
    series = in_order(table, columns)
    matrix = series_matrix(series, columns, drop_missing, is_new=True, formula=formula)
    return matrix, matrix.as_seen(columns, recipe.standardisation), series.said


def _check_columns(table: SourceTable, columns: Columns) -> None:
    missing = [f'"{name}"' for name in columns.all if name not in table.frame.columns]
    if len(missing) > 1:
        raise CommandError(
            f"{table.name} lacks {len(missing)} of the {len(columns.all)} columns that the model was fitted to: "
            f"{listed(missing)}.",
            f"Columns: {listed(table.frame.columns)}.",
        )
