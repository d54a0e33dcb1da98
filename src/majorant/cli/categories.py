"""Columns of text as numbers, for models that take numbers: one column of 0 and 1 for each level."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from majorant.cli.errors import CommandError, listed
from majorant.cli.tables import SourceTable

CHOICES = ("drop", "auto", "one-hot")
MOST_LEVELS = {"auto": 10, "one-hot": 100}
"""Levels up to which a column of text is written as numbers."""


def text_levels(column: pl.Series) -> list[str]:
    """Return the distinct texts of a column, sorted."""
    return column.cast(pl.String).drop_nulls().unique().sort().to_list()


def becomes_numbers(column: pl.Series, how: str = "one-hot") -> bool:
    """Return whether a column is text that is written as numbers: its levels are ordered, or few."""
    if column.dtype not in (pl.String, pl.Categorical):
        return column.dtype == pl.Enum
    return len(text_levels(column)) <= min(MOST_LEVELS[how], len(column) / 2)


@dataclass(frozen=True)
class Categories:
    """The levels of columns of text."""

    # levels of each column that becomes columns of 0 and 1; those of an ordered column become one of 0, 1, 2,
    levels: Mapping[str, list[str]] = field(default_factory=dict)
    ordered: tuple[str, ...] = ()  # columns whose levels have an order, as that of an Enum
    are_contrasts: bool = False  # whether the first level of each has no column, as beside an intercept

    @classmethod
    def learn(cls, frame: pl.DataFrame, how: str, among: Collection[str], are_contrasts: bool = False) -> Categories:
        """Return the levels of the columns of text `among` those of a table."""
        levels, ordered = dict[str, list[str]](), list[str]()
        for name in frame.columns:
            column = frame[name]
            if name not in among or how == "drop":
                continue
            if isinstance(column.dtype, pl.Enum):
                levels[name] = column.dtype.categories.to_list()
                ordered.append(name)
            elif becomes_numbers(column, how) and len(found := text_levels(column)) > are_contrasts:
                levels[name] = found
        return cls(levels, tuple(ordered), are_contrasts)

    def names(self, name: str) -> list[str]:
        """Return the columns of numbers that a column becomes: itself, if it is no text."""
        if name not in self.levels or name in self.ordered:
            return [name]
        first, *others = self.levels[name]
        if self.are_contrasts:
            return [f"{name}: {level} against {first}" for level in others]
        return [f"{name}={level}" for level in (first, *others)]

    def apply(self, table: SourceTable) -> SourceTable:
        """Return a table with numbers in place of text."""
        columns, sources = list[pl.Series](), dict[str, str]()
        for column in table.frame.get_columns():
            if column.name not in self.levels:
                columns.append(column)
                continue
            levels, text = self.levels[column.name], column.cast(pl.String)
            new = (text.is_not_null() & ~text.is_in(levels)).arg_true()
            if len(new):
                raise CommandError(
                    f'"{column.name}" is "{text[new[0]]}" in row {new[0] + 1}{table.part}, a level that the fit has '
                    f"not seen; it saw {listed(levels)}.",
                    "Correct the cell, or leave it empty.",
                )
            if column.name in self.ordered:
                codes = {level: float(code) for code, level in enumerate(levels)}
                columns.append(text.replace_strict(codes, default=None, return_dtype=pl.Float64).rename(column.name))
                continue
            made = levels[1:] if self.are_contrasts else levels
            for name, level in zip(self.names(column.name), made, strict=True):
                columns.append((text == level).cast(pl.Float64).rename(name))
                sources[name] = column.name
        names = [column.name for column in columns]
        repeated = next((name for name in names if names.count(name) > 1), None) if self.levels else None
        if repeated is not None:
            raise CommandError(f'{table.name} has a column "{repeated}" and a level of that name: rename the column.')
        return replace(table, frame=pl.DataFrame(columns), sources=sources) if self.levels else table
