"""Which views do rows link? What rows say nothing of is not answered, and is told."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from majorant._validation import levels_to_user
from majorant.models.harmonium.certificate import groups_in_words, unlinked_sentence
from majorant.models.harmonium.tables import Table, n_rows

Groups = tuple[tuple[str, ...], ...]


def unlinked_views(tables: Mapping[str, Table], *, by_target: bool) -> Groups:
    """Return the groups of views that no row links, not even by other views; empty where all are linked.

    Warns
    -----
    UserWarning
        If there are such groups.
    """
    names = list(tables)
    there = np.column_stack([~table.missing for table in tables.values()]).astype(np.intp)
    n_groups, group = connected_components(there.T @ there, directed=False)
    if n_groups == 1:
        return ()
    groups = tuple(tuple(n for n, at in zip(names, group, strict=True) if at == g) for g in range(n_groups))
    _warn(f"{unlinked_sentence(groups, by_target=by_target)} Add rows that have views of both.")
    return groups


def linked_to(view: str, tables: Mapping[str, Table], groups: Groups) -> dict[str, Table]:
    """Return tables without the views that no row of the fit links with `view`: of these nothing follows for it.

    Warns
    -----
    UserWarning
        If there are rows that show nothing else, which are taken to show nothing.
    """
    linked = next((group for group in groups if view in group), tuple(tables))
    shown = np.any([~table.missing for table in tables.values()], axis=0)
    used = np.any([~table.missing for name, table in tables.items() if name in linked] or [~shown & False], axis=0)
    if n := int(np.sum(shown & ~used)):
        _warn(
            f"{n} of {len(shown)} rows show only views that no row of the fit links with {view!r} "
            f"({groups_in_words(groups)}): they say nothing of it, and have its means."
        )
    hidden = np.ones(n_rows(tables), dtype=bool)
    return {name: table if name in linked else replace(table, missing=hidden) for name, table in tables.items()}


def warn_of_rows(tables: Mapping[str, Table], groups: Groups) -> None:
    """Warn where a row shows views of several groups."""
    if groups and (_groups_shown(tables, groups).sum(axis=0) > 1).any():
        tell_unlinked(groups, "what rows that have several of them say together is not determined")


def warn_of_comparison(tables: Sequence[Mapping[str, Table]], groups: Groups) -> None:
    """Warn where rows that are to be compared show views of several groups."""
    if groups and np.any([_groups_shown(of, groups).any(axis=1) for of in tables], axis=0).sum() > 1:
        tell_unlinked(groups, "representations of rows of different groups cannot be compared")


def _groups_shown(tables: Mapping[str, Table], groups: Groups) -> NDArray[np.bool_]:
    """Return of which groups (n_groups, n_rows) rows show a view."""
    nothing = np.ones(n_rows(tables), dtype=bool)
    lost = [[tables[name].missing if name in tables else nothing for name in group] for group in groups]
    return np.array([~np.all(of_group, axis=0) for of_group in lost])


def tell_unlinked(groups: Groups, what: str) -> None:
    """Warn of what no answer is known to; nothing where all views are linked."""
    if groups:
        _warn(f"No row of the fit has views of two of these groups: {groups_in_words(groups)}. So {what}.")


def _warn(said: str) -> None:
    warnings.warn(said, stacklevel=levels_to_user())
