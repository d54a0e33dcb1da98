"""The command ``majorant forecast``: the rows that follow the series of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.cli.errors import CommandError, listed, refusals
from majorant.cli.formulas import formula_refusals
from majorant.cli.matrix import Columns, Matrix
from majorant.cli.messages import heard
from majorant.cli.parts import write_table
from majorant.cli.predict import check_new, series_of
from majorant.cli.runs import Recipe, read_run
from majorant.cli.series import formula_of_series, gaps_ahead, in_order, needed_ahead, with_gaps_filled
from majorant.cli.settings import known_models
from majorant.cli.tables import SourceTable, check_writable_ending, is_same_file, read_table
from majorant.models.hidden_markov.sequences import sequences_of
from majorant.models.hidden_markov.times import read_times, times_ahead
from majorant.registry import card_of
from majorant.summary import counted


def forecast_and_write(
    folder: Path,
    table_path: Path,
    out: Path,
    steps: int,
    level: float,
    future: Path | None,
    force: bool,
    given: Mapping[str, Any],
) -> tuple[str, tuple[str, ...]]:
    """Write the forecast of every sequence of a table; return what was done, and warnings, in sentences."""
    check_writable_ending(out)
    check_new(out, force)
    if is_same_file(out, table_path):
        raise CommandError(f"{out} is the table itself, which --force does not replace.", "Choose another --out.")
    estimator, recipe = read_run(folder)
    card = card_of(estimator)
    if not card.in_order:
        able = [name for name, other in known_models().items() if other.in_order]
        raise CommandError(f"{card.title} has no forecast: it is no model of series.", f"One is {listed(able)}.")
    table = read_table(table_path, replace(recipe.reading, **given))
    if recipe.fill_gaps:
        table = with_gaps_filled(table, recipe.columns.time, recipe.columns.sequence)
    matrix, frame, said = series_of(estimator, recipe, table, recipe.drop_missing)
    needed = needed_ahead(estimator)
    if future is None and needed:
        raise CommandError(
            f"the model needs {listed(needed)} of the rows to come.", "Give a table that has them: --future TABLE."
        )
    if future is not None and not needed:
        raise CommandError("the model needs nothing of the rows to come.", "Leave --future out; --steps says how many.")
    extra, times = dict[str, Any](), times_after(matrix, steps)
    if future is not None:
        new = read_table(future, replace(recipe.reading, **given))
        extra, times, steps, told = ahead_of(estimator, recipe, table, new)
        said = (*said, *told)
    with heard() as warned, refusals(card):
        ahead = estimator.forecast(frame, steps, **extra, **matrix.given)
        low, high = ahead.interval(level)
    units = recipe.standardisation
    told = recipe.columns.features[: ahead.mean.shape[2]]
    found: dict[str, NDArray[Any]] = {}
    if matrix.sequences is not None:
        found["sequence"] = np.repeat(np.unique(matrix.sequences), steps)
    found["ahead"] = np.tile(np.arange(1, steps + 1), len(ahead.mean))
    if times is not None:
        found[recipe.columns.time or "time"] = times
    for j, name in enumerate(told):
        for ending, values in (("_mean", ahead.mean), ("_low", low), ("_high", high)):
            own = values[:, :, j].ravel()
            found[name + ending] = own if units is None else own * units.scales[j] + units.means[j]
    for k in range(ahead.states.shape[2]):
        found[f"probability_{k + 1}"] = ahead.states[:, :, k].ravel()
    write_table(found, out)
    return f"{out}, {counted(steps, 'step')} of {counted(len(ahead.mean), 'sequence')}", (*said, *warned)


def times_after(matrix: Matrix, steps: int) -> NDArray[Any] | None:
    """Return the times of the rows to come, sequence by sequence; None where these are not known, or not even."""
    if matrix.times is None:
        return None
    names = np.zeros(len(matrix.rows)) if matrix.sequences is None else matrix.sequences
    codes = np.unique(names, return_inverse=True)[1].reshape(-1).astype(np.intp)
    found = times_ahead(read_times(matrix.times), codes, steps)
    return None if found is None else found.ravel()


def ahead_of(
    estimator: Any, recipe: Recipe, table: SourceTable, new: SourceTable
) -> tuple[dict[str, Any], NDArray[Any] | None, int, tuple[str, ...]]:
    """Return what a forecast is given of the rows to come, their times and number by sequence, and warnings."""
    columns, units = recipe.columns, recipe.standardisation
    roles = Columns((), time=columns.time if columns.time in new.frame.columns else None, sequence=columns.sequence)
    before, after = in_order(table, replace(columns, features=())), in_order(new, roles)
    formula = formula_of_series(estimator)
    sequences = sequences_of(before.table.frame, None, before.sequences)[1]
    sizes = [len(after.numbers)]
    if before.sequences is not None:
        assert after.sequences is not None
        names, counts = np.unique(after.sequences, return_counts=True)
        sizes = counts.tolist()
        if names.tolist() != np.unique(before.sequences).tolist() or len(set(sizes)) > 1:
            raise CommandError(
                f"{new.name} must have as many rows for each sequence of {table.name}, and none of others.",
                f'Its "{columns.sequence}" has '
                + listed([f"{a} ({n})" for a, n in zip(names, sizes, strict=True)])
                + ".",
            )
    with formula_refusals(after.numbers, new.name):
        said = () if roles.time is None else gaps_ahead(before, after, roles.time)
        times = None if roles.time is None else after.table.frame[roles.time].to_numpy()
        if formula is None:
            check = [name for name in columns.features[1:] if name not in new.frame.columns]
            if check:
                raise CommandError(f"{new.name} lacks {listed(check)}.", f"Columns: {listed(new.frame.columns)}.")
            others = after.table.frame.select(columns.features[1:]).to_numpy()
            return (
                {"future": others if units is None else (others - units.means[1:]) / units.scales[1:]},
                times,
                sizes[0],
                said,
            )
        terms, gating = formula.ahead(before.table.frame, after.table.frame, sequences)
    given = {"future": terms, "gating_ahead": gating}
    return {name: value for name, value in given.items() if value is not None}, times, sizes[0], said
