"""What is checked of a request before the libraries that fit models are loaded, so that mistakes are told at once."""

from __future__ import annotations

from dataclasses import replace

from majorant.cli.categories import CHOICES
from majorant.cli.errors import CommandError, did_you_mean
from majorant.cli.matrix import check_there
from majorant.cli.request import LARGEST, FitRequest
from majorant.cli.runs import CHECKPOINT, FIGURES, FILES, TABLES, WORKBOOK, check_free, read_run
from majorant.cli.settings import check_model
from majorant.cli.tables import SourceTable, check_writable_ending, is_same_file, read_table


def checked(request: FitRequest) -> SourceTable:
    """Return the table of a request that names a known model, a free folder and columns that are there."""
    check_model(request.model)
    if request.categorical not in CHOICES:
        raise CommandError(
            f'--categorical must be drop, auto or one-hot; got "{request.categorical}".'
            f"{did_you_mean(request.categorical, CHOICES)}"
        )
    for name in (*FILES, TABLES, FIGURES):
        own = request.out / name
        if is_same_file(own, request.table) or is_same_file(own, request.table.parent):
            raise CommandError(
                f"{request.table} would be replaced by the run's own {name}.", "Choose another --out, or rename it."
            )
    check_free(request.out, request.force or request.resume)
    table = read_table(request.table, request.reading)
    table = replace(table, frame=request.reading.with_levels(table.frame))
    if request.workbook:
        check_writable_ending(request.out / WORKBOOK, table.frame.height)
    if request.resume:
        _check_same(request, table)
    outcomes = tuple(request.later(table.frame.columns).outcomes or ())
    for option, names in {**request.named_columns, "outcomes": outcomes}.items():
        if request.formula is None or option not in request.roles:  # which a formula may compute
            for name in names:
                check_there(table, name)
    return table


def _check_same(request: FitRequest, table: SourceTable) -> None:
    """Raise CommandError unless the folder holds a stopped run of the same command and table."""
    if not (request.out / CHECKPOINT).is_file():
        raise CommandError(
            f"{request.out} holds no {CHECKPOINT}: no run was stopped there.", "Leave --resume out to begin one."
        )
    recipe = read_run(request.out)[1]
    sizes = (request.k,) if request.k is not None else (None, range(1, 1 + LARGEST), range(2, 1 + LARGEST))
    if recipe.command not in [replace(request, k=k).command() for k in sizes]:
        raise CommandError(
            f"the run in {request.out} was stopped with other options: {' '.join(recipe.command.split())}",
            "Give the same, or leave --resume out to begin again.",
        )
    if recipe.checksum != table.checksum:
        raise CommandError(f"{table.name} has changed since the run was stopped.", "Leave --resume out to begin again.")
