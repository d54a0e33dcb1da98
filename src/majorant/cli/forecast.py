"""The command ``majorant forecast``: the rows that follow the series of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.cli.errors import CommandError, listed, refusals
from majorant.cli.parts import write_table
from majorant.cli.predict import check_new, series_of
from majorant.cli.runs import read_run
from majorant.cli.settings import known_models
from majorant.cli.tables import check_writable_ending, is_same_file, read_table
from majorant.registry import card_of
from majorant.summary import counted


def forecast_and_write(
    folder: Path, table_path: Path, out: Path, steps: int, level: float, force: bool, given: Mapping[str, Any]
) -> tuple[str, tuple[str, ...]]:
    """Write the forecast of every sequence of a table; return what was done, and warnings, in sentences.

    Raises
    ------
    CommandError
        If the run's model is none of series, or cannot say what follows.
    """
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
    matrix, frame, said = series_of(estimator, recipe, table, recipe.drop_missing)
    with refusals(card):
        ahead = estimator.forecast(frame, steps, **matrix.given)
        low, high = ahead.interval(level)
    units = recipe.standardisation
    told = recipe.columns.features[: ahead.mean.shape[2]]
    found: dict[str, NDArray[Any]] = {}
    if matrix.sequences is not None:
        found["sequence"] = np.repeat(np.unique(matrix.sequences), steps)
    found["ahead"] = np.tile(np.arange(1, steps + 1), len(ahead.mean))
    for j, name in enumerate(told):
        for ending, values in (("_mean", ahead.mean), ("_low", low), ("_high", high)):
            own = values[:, :, j].ravel()
            found[name + ending] = own if units is None else own * units.scales[j] + units.means[j]
    for k in range(ahead.states.shape[2]):
        found[f"probability_{k + 1}"] = ahead.states[:, :, k].ravel()
    write_table(found, out)
    return f"{out}, {counted(steps, 'step')} of {counted(len(ahead.mean), 'sequence')}", said
