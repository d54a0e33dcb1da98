"""The job behind ``majorant predict``: the parts of a new table's rows."""

from __future__ import annotations

from pathlib import Path

from majorant.cli.assignments import assigned
from majorant.cli.errors import CommandError, listed
from majorant.cli.formulas import complete_rows
from majorant.cli.matrix import Columns, build_matrix
from majorant.cli.runs import read_run
from majorant.cli.settings import allows_missing
from majorant.cli.tables import SourceTable, check_writable_ending, is_same_file, read_table, write_table
from majorant.cli.views import view_matrix, with_lost_views
from majorant.summary import counted


def predict_and_write(folder: Path, table_path: Path, out: Path, drop_missing: bool, force: bool) -> str:
    """Write the parts of a new table's rows; the sentence says what was done."""
    check_writable_ending(out)
    if out.exists() and not force:
        raise CommandError(f"{out} is there already.", "Choose another --out, or let --force replace it.")
    if is_same_file(out, table_path):
        raise CommandError(f"{out} is the table itself, which --force does not replace.", "Choose another --out.")
    estimator, recipe = read_run(folder)
    table = read_table(table_path)
    lost: list[str] = []
    formula = getattr(estimator, "formula_", None)
    if formula is not None:
        columns = Columns(formula.predictors(table.frame.columns))
        _check_columns(table, columns)
        used = complete_rows(table, columns.features, drop_missing, option=None)
        found = used.told(lambda: assigned(estimator, used.frame, used.rows, is_new=True))
        n_left_out = used.n_left_out
    else:
        columns = Columns(recipe.columns.features, bag=recipe.columns.bag)
        views = getattr(estimator, "views", None)
        if views is not None:
            table, lost = with_lost_views(table, views)
        _check_columns(table, columns)
        keeps_missing = allows_missing(estimator) and not drop_missing
        if views is not None:
            matrix = view_matrix(table, columns, views, drop_missing and not lost, is_new=True)
        else:
            matrix = build_matrix(table, columns, keeps_missing, drop_missing, is_new=True)
        found = assigned(estimator, matrix.as_seen(columns, recipe.standardisation), matrix.rows, True, matrix.bags)
        n_left_out = matrix.n_left_out
    try:
        write_table(found, out)
    except OSError as error:
        raise CommandError(f"{out} cannot be written: {error.strerror}.") from error
    if "bag" in found:
        bags = f"{counted(len(found['bag']), 'bag')} of {counted(table.frame.height - n_left_out, 'row')}"
        return f"{out}, {bags}, {n_left_out} left out"
    without = f", without the view{'s' * (len(lost) > 1)} {listed(lost)}" if lost else ""
    return f"{out}, {counted(len(found['row']), 'row')}, {n_left_out} left out{without}"


def _check_columns(table: SourceTable, columns: Columns) -> None:
    missing = [f'"{name}"' for name in columns.features if name not in table.frame.columns]
    if len(missing) > 1:
        raise CommandError(
            f"{table.name} lacks {len(missing)} of the {len(columns.features)} columns that the model was fitted to: "
            f"{listed(missing)}.",
            f"Columns: {listed(table.frame.columns)}.",
        )
