"""The command ``majorant report``: write the page of a run again."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from majorant._atomic import replacing
from majorant.cli.columns import column_uses
from majorant.cli.errors import CommandError
from majorant.cli.formulas import complete_rows, takes_the_others
from majorant.cli.later import NO_LATER_STEPS, known_classes
from majorant.cli.matrix import Matrix
from majorant.cli.rows import matrix_for
from majorant.cli.runs import FIGURE, FIGURES, REPORT, TABLES, Recipe, list_files, read_run
from majorant.cli.series import formula_of_series, in_order, series_matrix, with_gaps_filled
from majorant.cli.tables import SourceTable, read_table
from majorant.registry import card_of
from majorant.report import Run, report
from majorant.report.sections.columns import ColumnUse


def rewrite_report(folder: Path) -> Path:
    """Write report.html of a run again, from its model and its table.

    Missing tables and figures are written; existing ones are kept, as the user may have changed them.
    """
    estimator, recipe = read_run(folder)
    table = recipe.categories.apply(_same_table(folder, recipe))
    formula = getattr(estimator, "formula_", None)
    if card_of(estimator).in_order:
        if recipe.fill_gaps:
            table = with_gaps_filled(table, recipe.columns.time, recipe.columns.sequence)
        series, own = in_order(table, recipe.columns), formula_of_series(estimator)
        matrix = series_matrix(series, recipe.columns, recipe.drop_missing, formula=own)
    elif formula is not None:
        weights = recipe.columns.weights
        needed = [*formula.columns, *([] if weights is None else [weights])]
        matrix = complete_rows(table, needed, drop_missing=True).matrix(formula, weights)
    else:
        has_labels = card_of(estimator).kind == "classification"
        matrix = matrix_for(
            estimator, table, recipe.columns, recipe.drop_missing, leaves_out=True, has_labels=has_labels
        )
    path = folder / REPORT
    try:
        columns = recipe.columns if formula is None else recipe.columns.of(formula)
        frame = table.frame.select([*(n for n in table.frame.columns if n not in recipe.ids), *recipe.ids])
        has_columns = (
            formula is None or "--formula" not in recipe.command or takes_the_others(formula.text)
        ) and getattr(estimator, "views", None) is None
        uses = column_uses(replace(table, frame=frame), columns, recipe.ids) if has_columns else ()
        rows, later = table.frame[matrix.rows - 1], recipe.columns.later
        if recipe.columns.labels is not None:
            matrix = replace(matrix, labels=known_classes(rows[recipe.columns.labels])[0])
        found: Mapping[str, Any] = {}
        if later != NO_LATER_STEPS:
            found, _ = later.results(estimator, matrix.as_seen(recipe.columns, None), rows, matrix.weights)
        write_report(path, estimator, recipe, matrix, uses, rows.select(recipe.ids), found)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
    return path


def write_report(
    path: Path,
    estimator: Any,
    recipe: Recipe,
    matrix: Matrix,
    columns: Sequence[ColumnUse],
    ids: pl.DataFrame,
    later: Mapping[str, Any],
) -> None:
    """Write the page of a run, and those of its tables that do not exist yet."""
    units = recipe.standardisation
    run = Run(
        estimator,
        matrix.values if units is None else units.apply(matrix.values),
        recipe.columns.features,
        recipe.table_name,
        recipe.command,
        raw=None if units is None else matrix.values,
        standardised=units is not None,
        n_left_out=matrix.n_left_out,
        n_without_covariate=matrix.n_without_covariate,
        created=datetime.date.fromisoformat(recipe.created),
        rows=matrix.rows,
        weights=matrix.weights,
        selection=recipe.selection,
        y=matrix.target,
        bags=matrix.bags,
        target_name=recipe.columns.target or "y",
        frame=matrix.frame,
        given=matrix.given,
        times=matrix.times,
        columns=columns,
        ids=ids.to_dict(as_series=False),
        later=later,
    )
    made = report(run)
    with replacing(path) as stream:
        stream.write(made.html.encode("utf-8"))
    files: dict[str, str] = {f"{FIGURES}/{name}.svg": text for name, text in made.figures.items()}
    for name, table in made.tables.items():
        files |= {f"{TABLES}/{name}.csv": table.to_csv(), f"{TABLES}/{name}.tex": table.to_latex()}
    missing = {name: text for name, text in files.items() if not (path.parent / name).exists()}
    if missing:
        list_files(path.parent, list(missing))
    for name, text in missing.items():
        (path.parent / name).parent.mkdir(exist_ok=True)
        with replacing(path.parent / name) as stream:
            stream.write(text.encode("utf-8"))
    is_drawn = "class-profile" in made.tables and estimator.regular_ and find_spec("matplotlib") is not None
    if is_drawn and not (path.parent / FIGURE).exists():
        _draw_profile(path.parent / FIGURE, run)


def _draw_profile(path: Path, run: Run) -> None:
    """Write the figure of the profiles of the classes."""
    from matplotlib.figure import Figure

    from majorant.plot.profile import class_profile, make_room

    rows = {**({} if run.weights is None else {"sample_weight": run.weights}), **run.given}
    with warnings.catch_warnings(), replacing(path) as stream:
        warnings.simplefilter("ignore")
        figure = Figure(figsize=(7.0, 4.0), layout="constrained")
        make_room(class_profile(run.estimator, run.frame, ax=figure.add_subplot(), **rows))
        figure.savefig(stream, format="pdf", metadata={"CreationDate": None})


def _same_table(folder: Path, recipe: Recipe) -> SourceTable:
    """Read the table of the run; raise CommandError if it is missing or has changed."""
    path = Path(folder / recipe.table_path).resolve()
    if not path.is_file():
        raise CommandError(
            f"the table of this run, {recipe.table_name}, is no longer at {path}.",
            "A report shows the table's rows: put it back there, or fit again.",
        )
    table = read_table(path, recipe.reading)
    if table.checksum != recipe.checksum:
        raise CommandError(
            f"{path} has changed since the fit.", "A report shows the table's rows: restore the file, or fit again."
        )
    return replace(table, frame=recipe.reading.with_levels(table.frame))
