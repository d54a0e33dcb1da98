"""Groups of columns, or of views, that no row links: the rows do not say how these depend on each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from majorant._numbers import few_of, plural_of
from majorant.data.chunks import Block
from majorant.engine.mixture import OnData
from majorant.laws import Grouped
from majorant.laws.around import Around
from majorant.laws.grouped import boundaries
from majorant.registry import part_of

Groups = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Links:
    """Which columns some rows link: the first column of the group of each. The sum is that of all these rows."""

    first: NDArray[np.intp]

    @classmethod
    def of(cls, there: NDArray[np.bool_]) -> Links:
        """Return the links of units, of which `there`, (units, columns), tells which columns they have."""
        if len(there) and there.all():
            return cls(np.zeros(there.shape[1], dtype=np.intp))
        return cls._of(there.shape[1], *np.nonzero(there)[::-1])

    def __add__(self, other: Links) -> Links:
        d = len(self.first)
        return self._of(d, np.tile(np.arange(d), 2), np.concatenate([self.first, d + other.first]))

    @classmethod
    def _of(cls, d: int, columns: NDArray[np.intp], units: NDArray[np.intp]) -> Links:
        n = d + int(units.max(initial=0)) + 1
        graph = coo_array((np.ones(len(columns), dtype=np.int8), (columns, d + units)), shape=(n, n))
        group = connected_components(graph, directed=False)[1][:d]
        _, first, own = np.unique(group, return_index=True, return_inverse=True)
        return cls(first[own])

    def groups(self, names: Sequence[str]) -> Groups:
        """Return the names of the columns of each group; empty where all are linked."""
        each = [np.flatnonzero(self.first == own).tolist() for own in np.unique(self.first)]
        return tuple(tuple(names[i] for i in own) for own in each) if len(each) > 1 else ()


def unlinked_columns(on: OnData, names: Sequence[str], in_order: Sequence[str]) -> Groups:
    """Return the groups of columns that no unit links: row, group of rows of one component, or sequence; one pass.

    The known components of some units link the columns that these have. `names` are those of the density's columns.
    """
    law = on.mixture.law
    if not names or on.mixture.n_components == 1:
        return ()

    def of_block(block: Block) -> Links:
        rows, own = on.mixture.parts(block)
        there = np.concatenate([~np.isnan(c).reshape(len(block), -1) for c in rows.columns], axis=1)
        known = law.known(own) >= 0 if isinstance(law, Around) else np.zeros(len(block), dtype=bool)
        there = np.column_stack([there, known])
        if block.weights is not None:
            there &= block.weights[:, None] > 0
        if not law.rows_are_units:
            at = own.columns[0 if isinstance(law, Grouped) else -1]
            there = np.logical_or.reduceat(there, boundaries(own.seen((at,)))[0])
        return Links.of(there)

    links = on.data.map_sum(of_block)
    if len(links.first) != len(names) + 1:  # coordinates of complete rows, which are fewer
        return ()
    groups = links.groups([*names, ""])  # the last column: known components
    named = sorted(sorted(in_order.index(name) for name in group if name) for group in groups)
    found = tuple(tuple(in_order[j] for j in group) for group in named if group)
    return found if len(found) > 1 else ()


def groups_in_words(groups: Groups) -> str:
    """Return the names of views, or of columns: "'a', 'b'; 'c'"."""
    return "; ".join(few_of([repr(name) for name in group]) for group in groups)


def of_unlinked_columns(model: Any) -> str:
    """Say that little matches the components of groups of columns of a fitted mixture; empty where all are linked."""
    if not model.unlinked_:
        return ""
    parts, unit = plural_of(part_of(model)), "group of rows" if model.is_grouped_ else "row"
    by = "the gating" if "gating_coef" in model.estimate_names_ else "their shares"
    unit, by = (unit, by) if model._law_of_fit().rows_are_units else ("sequence", "transitions")
    return (
        f"No {unit} has cells of two of these groups of columns: {groups_in_words(model.unlinked_)}. Which {parts} of "
        f"one group are which of another is told by {by} alone, and may be chance: compare no {parts} across groups. "
        "Log-likelihood is right. Add rows that have cells of both"
    )
