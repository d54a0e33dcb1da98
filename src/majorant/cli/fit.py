"""The job behind ``majorant fit``: from a table to the folder of a run."""

from __future__ import annotations

import datetime
import json
import os
import shlex
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import majorant
from majorant.cli import messages
from majorant.cli.assignments import assigned, feature_frame
from majorant.cli.errors import CommandError
from majorant.cli.matrix import (
    Array,
    Columns,
    Matrix,
    Standardisation,
    build_matrix,
    choose_features,
    row_number_columns,
)
from majorant.cli.runs import ASSIGNMENTS, MODEL, REPORT, SUMMARY, Recipe, Writer, check_free, write_run
from majorant.cli.settings import allows_missing, build_estimator, find_model, joined_names
from majorant.cli.tables import SourceTable, read_table, write_table
from majorant.persistence import UnsavableError, save
from majorant.registry import ModelCard
from majorant.summary import Summary, counted

_WHAT = {
    REPORT: "the full report, open it in a browser",
    MODEL: "the fitted model",
    ASSIGNMENTS: "one row for each row of the table",
    SUMMARY: "every number on this screen",
}


@dataclass(frozen=True)
class FitRequest:
    """What the user asked for; the names are those of the options."""

    model: str
    table: Path
    out: Path
    target: str | None = None
    features: tuple[str, ...] = ()
    k: int | None = None
    standardise: bool = False
    weights: str | None = None
    settings: tuple[str, ...] = ()
    random_state: int = 0
    drop_missing: bool = False
    force: bool = False
    report: bool = True
    quiet: bool = False

    def command(self) -> str:
        """What repeats the run in a shell, with line breaks where it is long."""
        options: list[tuple[str, ...]] = []
        options += [("--target", self.target)] if self.target else []
        options += [("--features", joined_names(self.features))] if self.features else []
        options += [("--k", str(self.k))] if self.k is not None else []
        options += [("--standardise",)] if self.standardise else []
        options += [("--weights", self.weights)] if self.weights else []
        options += [("--set", setting) for setting in self.settings]
        options += [("--drop-missing",)] if self.drop_missing else []
        options += [("--random-state", str(self.random_state))]
        options += [("--no-report",)] if not self.report else []
        options += [("--out", str(self.out))]
        lines = [shlex.join(["majorant", "fit", self.model, str(self.table)])]
        for option in options:
            joined = f"{lines[-1]} {shlex.join(option)}"
            if len(joined) <= 76:
                lines[-1] = joined
            else:
                lines.append(f"      {shlex.join(option)}")
        return " \\\n".join(lines)


@dataclass(frozen=True)
class FittedRun:
    """What a fit gave, before anything is written."""

    request: FitRequest
    card: ModelCard
    table: SourceTable
    columns: Columns
    matrix: Matrix
    standardisation: Standardisation | None
    estimator: Any
    summary: Summary
    seconds: float
    look_out: tuple[str, ...]

    @property
    def seen(self) -> Array:
        """The features as the model saw them."""
        return self.matrix.values if self.standardisation is None else self.standardisation.apply(self.matrix.values)

    @property
    def size(self) -> int:
        """Number of the model's parts."""
        return int(getattr(self.estimator, self.card.size_parameter))

    @property
    def ignored(self) -> list[str]:
        """Columns that were left out because they are not numeric; none when the features were named."""
        if self.request.features:
            return []
        return [name for name in self.table.frame.columns if name not in self.columns.all]


def fit_and_write(request: FitRequest) -> FittedRun:
    """Fit, write the run's folder, and show what came out."""
    card = find_model(request.model)
    check_free(request.out, request.force)
    run = fit(request, card)
    write_run(request.out, _writers(run))
    if not request.quiet:
        print("\n".join(screen(run)))
    return run


def fit(request: FitRequest, card: ModelCard) -> FittedRun:
    """Read the table and fit the model to it."""
    if card.needs_target and request.target is None:
        raise CommandError(f"{card.title} predicts a column: name it with --target.")
    if request.target is not None and not card.needs_target:
        raise CommandError(f"{card.title} has no target: leave --target out, or leave the column out with --features.")
    estimator = build_estimator(card, request.k, request.settings, request.random_state)
    table = read_table(request.table)
    others = [name for name in (request.target, request.weights) if name is not None]
    columns = Columns(choose_features(table, request.features, others), request.target, request.weights)
    keeps_missing = allows_missing(estimator) and not request.drop_missing
    matrix = build_matrix(table, columns, keeps_missing, request.drop_missing)
    _check_size(card, getattr(estimator, card.size_parameter), matrix, request)
    units = Standardisation.of(matrix.values, matrix.weights) if request.standardise else None
    seen = matrix.values if units is None else units.apply(matrix.values)
    began = time.perf_counter()
    warned = _fit_estimator(card, estimator, feature_frame(columns.features, seen), matrix)
    seconds = time.perf_counter() - began
    summary: Summary = estimator.summary()
    look_out = tuple(dict.fromkeys([*summary.look_out, *warned]))
    return FittedRun(request, card, table, columns, matrix, units, estimator, summary, seconds, look_out)


def _fit_estimator(card: ModelCard, estimator: Any, frame: pl.DataFrame, matrix: Matrix) -> list[str]:
    """Fit in place; what the model warns of comes back."""
    targets = () if matrix.target is None else (matrix.target,)
    weights = {} if matrix.weights is None else {"sample_weight": matrix.weights}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            estimator.fit(frame, *targets, **weights)
        except (ValueError, TypeError) as error:
            raise CommandError(f"{card.title} refused: {' '.join(str(error).split())}") from error
        except MemoryError as error:
            raise CommandError("there is not enough memory for this table.", "Fit fewer rows or columns.") from error
    telling = [w for w in caught if issubclass(w.category, (UserWarning, RuntimeWarning))]
    return list(dict.fromkeys(" ".join(str(w.message).split()) for w in telling))


def _check_size(card: ModelCard, size: Any, matrix: Matrix, request: FitRequest) -> None:
    """Refuse more parts than the table can fill."""
    if not isinstance(size, int) or isinstance(size, bool):
        return
    rows = len(matrix.values)
    how = f"{counted(size, card.part)}{'' if request.k is not None else ', as many as it has by default'}"
    if size > rows:
        raise CommandError(
            f"{request.table.name} has {counted(rows, 'usable row')}, too few for {how}.", f"Set --k to {rows} or less."
        )
    if card.kind == "clustering" and not _has_distinct_rows(matrix.values, size):
        distinct = len(np.unique(matrix.values, axis=0))
        raise CommandError(
            f"{request.table.name} has {counted(distinct, 'different row')}, too few for {how}.",
            f"Set --k to {distinct} or less.",
        )


def _has_distinct_rows(values: Array, number: int) -> bool:
    """Whether there are so many different rows; looks at the first ones first."""
    n_seen = max(1000, 2 * number)
    while True:
        if len(np.unique(values[:n_seen], axis=0)) >= number:
            return True
        if n_seen >= len(values):
            return False
        n_seen *= 10


def screen(run: FittedRun) -> list[str]:
    """What the terminal shows of a run."""
    evidence = run.estimator.evidence_
    use = messages.TableUse(
        run.table.name,
        len(run.matrix.rows),
        run.matrix.n_left_out,
        run.ignored,
        row_number_columns(run.table, run.columns.features),
    )
    standardised = run.standardisation is not None
    lines = use.lines()
    lines += messages.model_lines(run.card.title, run.size, run.card.part, len(run.columns.features), standardised)
    lines += messages.starts_lines(evidence, run.seconds)
    lines += ["", *messages.result_lines(evidence)]
    parts = run.summary.block_of(f"{run.card.part}s")
    if parts is not None:
        lines += messages.parts_lines(parts, standardised)
    if run.look_out:
        lines += ["", *messages.look_out_lines(run.look_out)]
    out = run.request.out
    lines += ["", *messages.wrote_lines({out / name: what for name, what in _WHAT.items() if name in _writers(run)})]
    lines += ["", *messages.labelled("Next", f"majorant predict {shlex.quote(str(out))} NEW.csv --out predicted.csv")]
    return lines


def _writers(run: FittedRun) -> Mapping[str, Writer]:
    """How each file of the run is written."""
    recipe = _recipe(run)
    writers: dict[str, Writer] = {
        MODEL: lambda path: _save(run, path, recipe),
        ASSIGNMENTS: lambda path: write_table(
            assigned(run.estimator, feature_frame(run.columns.features, run.seen), run.matrix.rows, is_new=False), path
        ),
        SUMMARY: lambda path: _write_json(path, numbers(run)),
    }
    if run.request.report:
        from majorant.cli.report import write_report

        writers[REPORT] = lambda path: write_report(path, run.estimator, recipe, run.matrix)
    return writers


def _save(run: FittedRun, path: Path, recipe: Recipe) -> None:
    try:
        save(run.estimator, path, extra=recipe.to_state())
    except UnsavableError as error:
        raise CommandError(f"the model cannot be saved: {error}.") from error


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def _recipe(run: FittedRun) -> Recipe:
    request = run.request
    return Recipe(
        run.columns,
        run.standardisation,
        request.drop_missing,
        os.path.relpath(request.table.absolute(), request.out.absolute()),
        run.table.name,
        run.table.checksum,
        request.command(),
        datetime.date.today().isoformat(),
    )


def numbers(run: FittedRun) -> dict[str, Any]:
    """What summary.json holds: every number on the screen, with all digits."""
    evidence = run.estimator.evidence_
    optima: Sequence[Any] = evidence.optima
    units = run.standardisation
    return {
        "majorant": majorant.__version__,
        "command": run.request.command(),
        "table": {
            "name": run.table.name,
            "sha256": run.table.checksum,
            "rows_used": len(run.matrix.rows),
            "rows_left_out": run.matrix.n_left_out,
            "columns_left_out": run.ignored,
        },
        "model": {"name": run.card.name, "title": run.card.title, run.card.size_parameter: run.size},
        "features": list(run.columns.features),
        "standardisation": None if units is None else {"means": units.means.tolist(), "scales": units.scales.tolist()},
        "seconds": run.seconds,
        "evidence": {
            "objective": evidence.objective_name,
            "best": evidence.best,
            "starts": evidence.n_starts,
            "hits": evidence.n_hits,
            "distinct_optima": evidence.n_distinct,
            "gap_to_second": evidence.gap_to_second,
            "optima": [{"objective": o.objective, "starts": o.n_hits, "distance": o.distance} for o in optima],
            "bound": evidence.lower_bound,
        },
        "summary": run.summary.to_dict(),
        "look_out": list(run.look_out),
    }
