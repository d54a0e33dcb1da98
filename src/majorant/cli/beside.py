"""Columns of the user's table that are written beside the results: ids, and others to keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from majorant.cli.errors import CommandError
from majorant.cli.matrix import check_there
from majorant.cli.tables import SourceTable

EVERY = ("*",)


def kept_columns(
    table: SourceTable, ids: Sequence[str], keep: Sequence[str], series: Sequence[str] = ()
) -> pl.DataFrame:
    """Return the ids, sequences and times, then the other columns to keep, ``*`` being all of them."""
    names = [*ids, *series, *(table.frame.columns if tuple(keep) == EVERY else keep)]
    for name in names:
        check_there(table, name)
    return table.frame.select(*dict.fromkeys(names))


def without_ids(table: SourceTable, ids: Sequence[str], used: Mapping[str, Sequence[str]]) -> SourceTable:
    """Return the table without the columns that only identify rows; `used` has other roles of columns by option."""
    for option, names in used.items():
        shared = [name for name in ids if name in names]
        if shared:
            raise CommandError(
                f'"{shared[0]}" is given to --id and to --{option}.', "An id is not used by the model: name it once."
            )
    return replace(table, frame=table.frame.drop(ids)) if ids else table


def beside(found: Mapping[str, Any], kept: pl.DataFrame, first: int = 0) -> dict[str, Any]:
    """Return results with the kept columns of their rows after ``row``; `first` rows of the table came before.

    A kept column with the name of a result becomes "name (table)".
    """
    if kept.width == 0:
        return dict(found)
    own = kept[pl.Series(found["row"]) - 1 - first]
    named: dict[str, Any] = {"row": found["row"]}
    for name in own.columns:
        free = name
        while free in found or (free != name and free in (*named, *own.columns)):
            free += " (table)"
        named[free] = own[name]
    return named | dict(found)
