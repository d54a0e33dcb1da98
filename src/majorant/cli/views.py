"""The columns of each view: the file of ``--views``, and rows with numbers, bits and categories."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from majorant.cli.errors import CommandError, did_you_mean, listed
from majorant.cli.matrix import (
    Columns,
    Matrix,
    build_matrix,
    check_there,
    feature_frame,
    first_text,
    is_numeric,
    labels_of,
)
from majorant.cli.tables import SourceTable
from majorant.models.harmonium import views as kinds

EXAMPLE = """For example: [tags] on one line, kind = "bernoulli" and columns = ["tag_*"] on the next two."""
BINARISE = "Counts have no proper model with Gaussian latents: take binarize = 0 (present or not), or another kind."
VIEW_KEYS = ("kind", "columns")


def read_views(path: Path, table: SourceTable, others: Collection[str]) -> dict[str, kinds.View]:
    """Read the views that a file names, with their columns in the order of the table.

    A column is given by name, as a pattern ("tag_*") or as a range of the table's columns ("x1:x9"). The columns
    of a chain are ordered by paragraph, as the file names them.

    Parameters
    ----------
    path : Path
        A TOML file with one section a view.
    others : collection of str
        Target and weights, which patterns and ranges skip and no view may name.
    """
    found: dict[str, kinds.View] = {}
    owner: dict[str, str] = {}
    for name, section in _sections(path).items():
        view = _view(path, name, section)
        columns = _columns(path, name, section, table, others, in_order=view.kind == "chain")
        for column in columns:
            if column in owner:
                raise CommandError(
                    f'column "{column}" is in the views "{owner[column]}" and "{name}" of {path}.',
                    "A column belongs to one view: name the columns of one of them more narrowly.",
                )
            owner[column] = name
        for column in columns:
            _check_kind(path, name, view, table, column)
        found[name] = replace(view, columns=columns)
    return found


def columns_of(views: Mapping[str, kinds.View], table: SourceTable) -> tuple[str, ...]:
    """Return the columns of all views, in the order of the table."""
    used = {column for view in views.values() for column in view.columns}
    return tuple(column for column in table.frame.columns if column in used)


def view_matrix(
    table: SourceTable,
    columns: Columns,
    views: Mapping[str, kinds.View],
    drop_missing: bool,
    has_labels: bool = False,
    is_new: bool = False,
) -> Matrix:
    """Return the rows of the views; the frame holds categories as text, the values their numbers in sorted order."""
    texts: dict[str, pl.Series] = {}
    for name in (column for view in views.values() if view.kind == "categorical" for column in view.columns):
        texts[name] = _texts(table, name)
    codes = [series.cast(pl.Enum(series.drop_nulls().unique().sort())).to_physical() for series in texts.values()]
    coded = replace(table, frame=table.frame.with_columns(codes))
    _check_bits(coded, views)
    matrix = build_matrix(coded, columns, not drop_missing, drop_missing, has_labels, is_new)
    _check_whole(table, columns, views, matrix)
    rows = matrix.rows - 1
    frame = feature_frame(columns.features, matrix.values)
    return replace(matrix, frame=frame.with_columns(series.gather(rows) for series in texts.values()))


def with_lost_views(table: SourceTable, views: Mapping[str, kinds.View]) -> tuple[SourceTable, list[str]]:
    """Add empty columns for views that the table lacks; also return their names. At least one view must exist."""
    there = set(table.frame.columns)
    lost = [name for name, view in views.items() if not there.intersection(view.columns)]
    if len(lost) == len(views):
        return table, []
    empty = {column: pl.lit(None, dtype=pl.Float64) for name in lost for column in views[name].columns}
    return replace(table, frame=table.frame.with_columns(**empty)), lost


def described(views: Mapping[str, kinds.View]) -> dict[str, Any]:
    """Return the kind and columns of each view, for summary.json."""
    return {name: {"kind": view.kind, "columns": list(view.columns)} for name, view in views.items()}


def _sections(path: Path) -> dict[str, Any]:
    """Return the sections of the file."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise CommandError(f"there is no file {path}.", "Check the path of --views.") from None
    except OSError as error:
        raise CommandError(f"{path} cannot be opened: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is not UTF-8: {error.reason} at byte {error.start}.") from error
    except tomllib.TOMLDecodeError as error:
        raise CommandError(f"{path} is not TOML: {str(error).rstrip('.')}.", EXAMPLE) from error
    if not content:
        raise CommandError(f"{path} names no view.", EXAMPLE)
    for name, section in content.items():
        if not isinstance(section, dict):
            raise CommandError(f'"{name}" of {path} stands in no view.', EXAMPLE)
    return content


def _view(path: Path, name: str, section: Mapping[str, Any]) -> kinds.View:
    """Return the view of a section, without its columns."""
    known = list(kinds.KINDS)
    kind = section.get("kind")
    if kind is None:
        raise CommandError(f'view "{name}" of {path} has no kind.', f"Kinds: {listed(known)}.")
    if not isinstance(kind, str) or kind.lower() not in known:
        advice = BINARISE if str(kind).lower() in ("count", "counts", "poisson") else f"Kinds: {listed(known)}."
        raise CommandError(f'view "{name}" of {path} has the kind "{kind}".{did_you_mean(str(kind), known)}', advice)
    cls = kinds.KINDS[kind.lower()]
    options = [field.name for field in fields(cls) if field.name != "columns"]
    for key in section:
        if key not in (*VIEW_KEYS, *options):
            keys = [*VIEW_KEYS, *options]
            raise CommandError(
                f'view "{name}" of {path} has no setting "{key}".{did_you_mean(key, keys)}',
                f"Settings of {kind.lower()} views: {listed(keys)}.",
            )
    view: kinds.View = cls(**{key: section[key] for key in options if key in section})
    if isinstance(view, kinds.Chain) and view.n_steps is None:
        raise CommandError(
            f'view "{name}" of {path} is a chain without n_steps.',
            "Say how many paragraphs its columns are: n_steps = 5.",
        )
    try:
        view.check(name)
    except (TypeError, ValueError) as error:
        raise CommandError(f"{path}: {error}.") from error
    return view


def _columns(
    path: Path, name: str, section: Mapping[str, Any], table: SourceTable, others: Collection[str], *, in_order: bool
) -> list[str]:
    asked = section.get("columns")
    asked = [asked] if isinstance(asked, str) else asked
    if not isinstance(asked, list) or not all(isinstance(one, str) for one in asked) or not asked:
        raise CommandError(
            f'view "{name}" of {path} has no columns.', 'Name them: columns = ["height", "tag_*", "x1:x9"].'
        )
    found = dict.fromkeys(column for one in asked for column in _matching(path, name, one, table, others))
    return list(found) if in_order else [column for column in table.frame.columns if column in found]


def _matching(path: Path, name: str, asked: str, table: SourceTable, others: Collection[str]) -> Sequence[str]:
    """Return the columns that a name, a pattern or a range matches."""
    every = table.frame.columns
    if asked in every:
        if asked in others:
            raise CommandError(
                f'"{asked}" is the target or the weights, and cannot be in the view "{name}" of {path} too.'
            )
        return [asked]
    first, colon, last = asked.partition(":")
    if colon and first in every and last in every:
        start, stop = every.index(first), every.index(last)
        if start > stop:
            raise CommandError(f'"{first}" comes after "{last}" in {table.name}: write "{last}:{first}".')
        found = every[start : stop + 1]
    else:
        found = [column for column in every if fnmatchcase(column, asked)]
    found = [column for column in found if column not in others]
    if found:
        return found
    is_pattern = any(sign in asked for sign in "*?[")
    what = f'no column of {table.name} matches "{asked}"' if is_pattern else f'no column "{asked}" in {table.name}'
    near = "" if is_pattern else did_you_mean(asked, every)
    raise CommandError(f'{what}, as view "{name}" of {path} has it.{near}', f"Columns: {listed(every)}.")


def _check_kind(path: Path, name: str, view: kinds.View, table: SourceTable, column: str) -> None:
    """Raise CommandError for text in a view of numbers."""
    check_there(table, column)
    if view.kind == "categorical" or is_numeric(table.frame[column]):
        return
    found = first_text(table.frame[column])
    if found is None:
        return
    raise CommandError(
        f'column "{column}" of {table.name} holds text such as "{found[1][:40]}" in row {found[0]}, but the view '
        f'"{name}" of {path} is {view.kind}.',
        'Take it out of the view, or put it into one with kind = "categorical".',
    )


def _check_bits(table: SourceTable, views: Mapping[str, kinds.View]) -> None:
    """Raise CommandError for values other than 0 and 1 in a view of bits."""
    for name, view in views.items():
        if not isinstance(view, kinds.Bernoulli | kinds.Chain) or view.binarize is not None:
            continue
        for column in view.columns:
            if column not in table.frame.columns or not is_numeric(table.frame[column]):
                continue
            values = table.frame[column].cast(pl.Float64).to_numpy()
            wrong = np.flatnonzero(~(np.isnan(values) | (values == 0) | (values == 1)))
            if len(wrong):
                raise CommandError(
                    f'column "{column}" of {table.name} has {values[wrong[0]]:g} in row {wrong[0] + 1}, but the '
                    f'{view.kind} view "{name}" holds 0 and 1.',
                    BINARISE,
                )


def _check_whole(table: SourceTable, columns: Columns, views: Mapping[str, kinds.View], matrix: Matrix) -> None:
    """Raise CommandError for rows that lack only a part of a view."""
    place = {column: i for i, column in enumerate(columns.features)}
    for name, view in views.items():
        lost = np.isnan(matrix.values[:, [place[column] for column in view.columns]])
        steps, unit = (view.n_steps or 1, "paragraph of ") if isinstance(view, kinds.Chain) else (1, "")
        if lost.shape[1] % steps:
            continue  # the model says what is wrong
        lost = lost.reshape(len(lost), steps, -1)
        partly = np.asarray(lost.any(axis=2) & ~lost.all(axis=2))
        if partly.any():
            row, step = np.argwhere(partly)[0].tolist()
            column = view.columns[step * lost.shape[2] + int(np.flatnonzero(lost[row, step])[0])]
            raise CommandError(
                f'row {matrix.rows[row]} of {table.name} lacks "{column}", but has other columns of the {unit}view '
                f'"{name}": a row has a {unit}view, or lacks all of it.',
                "Fill it in, or leave incomplete rows out with --drop-missing.",
            )


def _texts(table: SourceTable, name: str) -> pl.Series:
    """Return a column's categories as text, whole numbers without decimals."""
    values, missing = labels_of(table, name)
    texts = [None if lost else str(value) for value, lost in zip(values.tolist(), missing.tolist(), strict=True)]
    return pl.Series(name, texts, dtype=pl.String)
