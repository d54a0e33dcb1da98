"""The second half of ``majorant fit``: the run's folder and what the terminal shows."""

from __future__ import annotations

import copy
import datetime
import math
import os
import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import majorant
from majorant._numbers import plural_of
from majorant._progress import Watch, begin_stage, watched_by
from majorant.cli import messages
from majorant.cli.assignments import assigned_rows
from majorant.cli.beside import beside
from majorant.cli.errors import CommandError, printable
from majorant.cli.fit import FittedRun, fit
from majorant.cli.later import known_classes, later_numbers
from majorant.cli.parts import write_table, write_workbook
from majorant.cli.request import FitRequest, program_of
from majorant.cli.runs import (
    ASSIGNMENTS,
    CHECKPOINT,
    FIGURES,
    MODEL,
    REPORT,
    SUMMARY,
    TABLES,
    WORKBOOK,
    Recipe,
    Writer,
    with_feature_names,
    write_json,
    write_run,
)
from majorant.cli.series import formula_of_series, needed_ahead
from majorant.cli.settings import find_model, joined_names
from majorant.cli.tables import SourceTable
from majorant.models.units import OwnColumns
from majorant.persistence import UnsavableError, save
from majorant.persistence.checkpoint import kept_in_memory
from majorant.summary import Table, counted

_WHAT = {
    REPORT: "the full report, open it in a browser",
    MODEL: "the fitted model",
    ASSIGNMENTS: "one row for each row used",
    WORKBOOK: "the same and the tables above, for Excel",
    SUMMARY: "every number on this screen",
    TABLES: "the report's tables, as CSV and as LaTeX",
    FIGURES: "the report's pictures, as files",
    CHECKPOINT: "the same command with --resume goes on from here",
}

_SOON = 2.0
"""Seconds that a fit takes before its progress is shown."""


def fit_and_write(request: FitRequest, table: SourceTable) -> FittedRun:
    """Fit a model to the table of a checked request, write the run's folder, and print the results.

    Ctrl-C ends the search, and the best solution so far is written; a second one ends the command.
    """
    known = request.out / CHECKPOINT if request.resume else None
    watch = Watch(after=_SOON, is_silent=request.quiet, keeps_best=True)
    with watched_by(watch), kept_in_memory(known) as write_checkpoint:
        run = fit(request, find_model(request.model), table)
        begin_stage("report")
        checkpoint = {CHECKPOINT: write_checkpoint} if run.is_stopped else {}
        write_run(request.out, {**_writers(run), **checkpoint}, force=request.force or request.resume)
    if not request.quiet:
        print("\n".join(screen(run)))
    return run


def screen(run: FittedRun) -> list[str]:
    """Return the lines on the terminal about a run."""
    search = run.estimator.search_
    standardised = run.standardisation is not None
    lines = messages.table_lines(run)
    if run.columns.labels is not None:
        lines += messages.labelled("Known", known_classes(run.table.frame[run.columns.labels])[1])
    selection = run.selection
    chosen = counted(run.size, run.card.part) if selection is None else selection.describe(selection.best)
    if hasattr(run.estimator, "n_allowed_"):
        from majorant.models.harmonium.summary import components_in_words

        chosen = components_in_words(run.estimator)
    lines += messages.model_lines(run.card.title, chosen, len(run.columns.features), standardised)
    if hasattr(run.estimator, "items_"):
        lines += messages.labelled("Items", run.estimator.items_.sentence)
    if hasattr(run.estimator, "views_"):
        lines += messages.view_lines(run.estimator.views_, _in_no_view(run))
    if selection is not None:
        lines += messages.selection_lines(selection, run.seconds)
    lines += messages.starts_lines(search, run.seconds if selection is None else None)
    if selection is not None:
        lines += messages.matrix_lines(selection)
    certificate = getattr(run.estimator, "certificate_", None)
    lines += ["", *messages.result_lines(search, "" if certificate is None else certificate.sentence)]
    if selection is None:
        lines += messages.criteria_lines(run.estimator, run.criteria)
    if hasattr(run.estimator, "n_allowed_"):
        lines += messages.penalised_lines(run.estimator)
    if run.r2 is not None:
        lines += messages.explained_lines(run.request.target or "y", run.r2)
    for name in ("transitions", plural_of(run.card.part)):
        block = run.summary.block_of(name)
        if block is not None:
            lines += messages.parts_lines(block, standardised)
    for name in ("gating", "intervals") if run.card.kind == "regression" else ():
        block = run.summary.block_of(name)
        if block is not None:
            heading = filter(None, (block.heading.capitalize(), block.note))
            lines += ["", f"  {', '.join(heading)}", *messages.parts_lines(block, False)[1:]]
    if run.effects is not None:
        lines += ["", str(run.effects)]
    for name, outcome in run.later.get("outcomes", {}).items():
        lines += ["", f"  {name}", str(outcome)]
    if "invariance_tests" in run.later:
        lines += ["", str(run.later["invariance_tests"])]
    if run.look_out:
        lines += ["", *messages.look_out_lines(run.look_out, run.table.frame.columns)]
    out = run.request.out
    whats = _WHAT if run.matrix.bags is None else {**_WHAT, ASSIGNMENTS: "one row for each bag, with its region"}
    if standardised:
        whats = {**whats, MODEL: "the fitted model, of standardised columns"}
    folders = [name for name in (TABLES, FIGURES) if not run.request.no_report and (out / name).is_dir()]
    written = {*_writers(run), *folders, *([CHECKPOINT] if run.is_stopped else [])}
    lines += ["", *messages.wrote_lines({out / name: what for name, what in whats.items() if name in written})]
    program = shlex.join(program_of(run.card.name))
    drop = " --drop-missing" if run.needs_complete_rows else ""
    keep = f" --keep {shlex.quote(joined_names(run.request.keep))}" if run.request.keep else ""
    predict = f"{program} predict {shlex.quote(str(out))} NEW.csv{keep} --out predicted.csv{drop}"
    lines += ["", f"Next     {predict}"]  # on one line, to be pasted
    if run.card.in_order:
        table = shlex.quote(str(run.request.table))
        future = " --future FUTURE.csv" if needed_ahead(run.estimator) else ""
        lines.append(f"         {program} forecast {shlex.quote(str(out))} {table}{future} --out forecast.csv")
    return lines


def _in_no_view(run: FittedRun) -> list[str] | None:
    """Return the columns that the file of views leaves out; None without such a file."""
    if run.views is None:
        return None
    return [name for name in run.table.frame.columns if name not in run.columns.all]


def _writers(run: FittedRun) -> Mapping[str, Writer]:
    """Return the writer of each file of the run."""
    recipe = _recipe(run)
    writers: dict[str, Writer] = {
        MODEL: lambda path: _save(run, path, recipe),
        ASSIGNMENTS: lambda path: write_table(_assigned(run), path),
        SUMMARY: lambda path: write_json(path, numbers(run)),
    }
    if run.request.workbook:
        writers[WORKBOOK] = lambda path: write_workbook(_sheets(run), path)
    if not run.request.no_report:
        from majorant.cli.report import write_report

        writers[REPORT] = lambda path: write_report(
            path, run.estimator, recipe, run.matrix, run.column_uses, run.ids_of_rows, run.later
        )
    return writers


def _assigned(run: FittedRun) -> dict[str, Any]:
    with messages.heard():  # the fit has told of the same rows
        found = assigned_rows(run.estimator, run.frame, run.matrix, is_new=False)
    return beside(found, run.kept)


def _sheets(run: FittedRun) -> dict[str, Mapping[str, Any]]:
    """Return the tables of a workbook by the names of its sheets, that of the search last."""
    search, *others = run.summary.blocks
    tables = [item for block in (*others, search) for item in block.content if isinstance(item, Table)]
    return {"assignments": _assigned(run)} | {
        table.name: {column.name or table.name: column.values for column in table.columns} for table in tables
    }


def _save(run: FittedRun, path: Path, recipe: Recipe) -> None:
    try:
        estimator = run.estimator
        by_formula = hasattr(estimator, "formula_") or formula_of_series(estimator) is not None
        if hasattr(estimator, "feature_names_in_") and not by_formula:
            estimator = copy.copy(with_feature_names(estimator, recipe.feature_names))
            estimator.units_ = recipe.standardisation or OwnColumns()
        save(estimator, path, extra=recipe.to_state())
    except UnsavableError as error:
        raise CommandError(f"the model cannot be saved: {error}.") from error


def _recipe(run: FittedRun) -> Recipe:
    request = run.request
    return Recipe(
        run.columns,
        run.standardisation,
        request.missing == "drop",
        printable(os.path.relpath(request.table.absolute(), request.out.absolute())),
        run.table.name,
        run.table.checksum,
        request.command(),
        datetime.date.today().isoformat(),
        run.selection,
        request.ids,
        request.reading,
        run.matrix.ranges,
        run.categories,
        request.fill_gaps,
    )


def _components(estimator: Any) -> dict[str, Any]:
    """Return the number of components used, for models that choose it, in place of the number asked for."""
    if not hasattr(estimator, "n_allowed_"):
        return {}
    from majorant.models.harmonium.summary import has_grown

    return {
        "n_components": estimator.rank_,
        "n_components_asked_for": estimator.n_components,
        "grown": has_grown(estimator),
    }


def numbers(run: FittedRun) -> dict[str, Any]:
    """Return the content of summary.json: every number on the screen, with all digits."""
    search = run.estimator.search_
    units = run.standardisation
    views = {}
    if run.views is not None:
        from majorant.cli.views import described

        views = {"views": described(run.views)}
    return {
        "majorant": majorant.__version__,
        "command": run.request.command(),
        "table": {
            "name": run.table.name,
            "sha256": run.table.checksum,
            "rows_used": run.n_used,
            "rows_left_out": run.n_left_out,
            **({} if run.matrix.bags is None else {"bags": run.matrix.n_bags}),
            **({} if run.matrix.sequences is None else {"sequences": run.matrix.n_sequences}),
            "columns_left_out": run.ignored,
            "cells_missing": run.n_missing,
        },
        "model": {
            "name": run.card.name,
            "title": run.card.title,
            run.card.size_parameter or plural_of(run.card.part): run.size,
            **_components(run.estimator),
        },
        "features": list(run.columns.features),
        "columns": [asdict(use) for use in run.column_uses],
        **views,
        "standardisation": None if units is None else {"means": units.means.tolist(), "scales": units.scales.tolist()},
        "seconds": run.seconds,
        "search": {
            "objective": search.objective_name,
            "best": search.best,
            "starts": search.n_starts,
            "hits": search.n_hits,
            "distinct_optima": search.n_distinct,
            "gap_to_second": search.gap_to_second,
            "optima": [{"objective": o.objective, "starts": o.n_hits, "distance": o.distance} for o in search.optima],
            "bound": search.proved_bound,
        },
        **({} if run.r2 is None else {"r2_of_the_fit": run.r2}),
        # a criterion of a fit that is not regular is infinite, which JSON cannot say
        "criteria": {name: value if math.isfinite(value) else None for name, value in run.criteria.items()},
        "selection": None if run.selection is None else run.selection.to_dict(),
        "summary": run.summary.to_dict(),
        **later_numbers(run.later),
        "look_out": list(run.look_out),
    }
