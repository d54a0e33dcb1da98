"""Distinct units of a table in canonical order, where rows carry several columns or groups.

Equal units are merged and their weights summed, units without weight are dropped, so that neither the order of the rows
nor writing a unit twice instead of weighting it can change an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import InMemory
from majorant.data.measure import empirical_measure

MOST_ROWS = 2.0**53
"""Rows that whole weights can count; above it numbers are not exact."""


@dataclass(frozen=True)
class Units:
    """Rows of distinct units.

    Attributes
    ----------
    columns : tuple of ndarray
        Row-aligned arrays; where there are groups, the last is the number of each row's group, ascending.
    weights : ndarray of shape (rows,)
        Weight of the unit of each row.
    positions : ndarray of shape (n_given,)
        Where each given row is among the rows; -1 for one without weight.
    row_weight : float
        What the weight of one row is: one where weights are whole numbers, which count rows (up to `MOST_ROWS`);
        otherwise their mean over the rows that have any.
    n_rows : float
        Number of rows that the weights represent.
    """

    columns: tuple[NDArray[Any], ...]
    weights: NDArray[np.float64]
    positions: NDArray[np.intp]
    row_weight: float

    @property
    def n_rows(self) -> float:
        return float(self.weights.sum()) / self.row_weight


def distinct_units(
    columns: Sequence[NDArray[Any]],  # (n_rows,) or (n_rows, p): numbers; NaN where a cell is missing
    weights: NDArray[np.float64] | None = None,  # (n_rows,): nonnegative; the same for all rows of a group
    groups: NDArray[np.intp] | None = None,  # (n_rows,): the group of each row; without, every row is a unit
    *,
    in_order: bool = False,  # whether rows of a group keep their order: they are a sequence
) -> Units:
    """Find the distinct units of row-aligned columns."""
    n = len(columns[0])
    flat = np.concatenate([np.asarray(c, dtype=np.float64).reshape(n, -1) for c in columns], axis=1)
    # A column that is never missing: a row whose cells are all missing is a unit all the same.
    measure = empirical_measure(np.column_stack([np.ones(n), flat]), weights)
    unit = row_weight(weights)
    if groups is None:
        kept = np.flatnonzero(measure.positions >= 0)
        first = np.empty(measure.n_points, dtype=np.intp)
        first[measure.positions[kept][::-1]] = kept[::-1]
        return Units(tuple(c[first] for c in columns), measure.weights, measure.positions, unit)
    return _grouped(columns, np.ones(n) if weights is None else weights, groups, measure.positions, unit, in_order)


def merged_units(
    parts: Iterable[tuple[Sequence[NDArray[Any]], NDArray[np.float64] | None]],  # weights may be None: one each
    most: int,
) -> tuple[tuple[NDArray[Any], ...], NDArray[np.float64]] | None:
    """Return the distinct units of columns that come in parts, and their weights; None if there are more than `most`.

    They are those of `distinct_units`, in its order, however the rows are cut; few more than `most` rows, and those
    of a part, are in memory at a time.
    """
    known: list[tuple[Sequence[NDArray[Any]], NDArray[np.float64]]] = []
    waiting = 0

    def merged() -> Units:
        columns = [np.concatenate(own) for own in zip(*(part for part, _ in known), strict=True)]
        return distinct_units(columns, np.concatenate([own for _, own in known]))

    for columns, weights in parts:
        known.append((columns, np.ones(len(columns[0])) if weights is None else weights))
        waiting += len(columns[0])
        if waiting > most:
            units = merged()
            if len(units.weights) > most:
                return None
            known, waiting = [(units.columns, units.weights)], 0
    units = merged()
    return None if len(units.weights) > most else (units.columns, units.weights)


def row_weight(weights: NDArray[np.float64] | None) -> float:
    """Return the weight of one row; see `Units`."""
    if weights is None:
        return 1.0
    positive = weights[weights > 0]
    if (positive == np.rint(positive)).all() and positive.sum() <= MOST_ROWS:
        return 1.0
    return float(
        positive[0] if positive.min() == positive.max() else positive.mean()
    )  # a mean of equal ones is rounded


def check_group_weights(weights: NDArray[np.float64], codes: NDArray[np.intp]) -> None:
    """Refuse rows of one group with different weights: the group is weighted, not its rows."""
    order = np.argsort(codes, kind="stable")
    differ = np.flatnonzero((codes[order][1:] == codes[order][:-1]) & (weights[order][1:] != weights[order][:-1]))
    if len(differ):
        a, b = order[differ[0]], order[differ[0] + 1]
        raise ValueError(
            f"rows {a} and {b} are of one group, but have weights {weights[a]:g} and {weights[b]:g}: "
            "sample_weight weights whole groups, so give all rows of a group the same"
        )


def blocks_of(
    columns: Sequence[Any],
    weights: NDArray[np.float64] | None,
    groups: NDArray[np.intp] | None = None,
    rows: int | None = None,
) -> InMemory:
    """Cut rows into blocks, of about so many rows if that is given; none cuts a group, whose rows lie together."""
    source = InMemory(*columns, weights=weights, rows=rows)
    if groups is None or source.n_blocks == 1:
        return source
    begins = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
    size = len(next(source.blocks()))
    nearest = np.searchsorted(begins, np.arange(0, source.n_units, size), side="right") - 1
    return InMemory(*columns, weights=weights, edges=np.unique(begins[nearest]))


def _grouped(
    columns: Sequence[NDArray[Any]],
    weights: NDArray[np.float64],
    groups: NDArray[np.intp],
    codes: NDArray[np.intp],
    unit: float,
    in_order: bool,
) -> Units:
    kept = np.flatnonzero(codes >= 0)
    order = kept[np.argsort(groups[kept], kind="stable") if in_order else np.lexsort((codes[kept], groups[kept]))]
    begins = np.flatnonzero(np.append(True, groups[order][1:] != groups[order][:-1]))
    ends = np.append(begins[1:], len(order))
    known: dict[bytes, list[int]] = {}
    for g, (a, b) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        known.setdefault(codes[order[a:b]].astype(">i8").tobytes(), []).append(g)
    rows, weight_of_row, number = [], [], []
    positions = np.full(len(groups), -1, dtype=np.intp)
    placed = 0
    for new, key in enumerate(sorted(known, key=lambda k: (len(k), k))):
        alike = known[key]
        members = order[begins[alike[0]] : ends[alike[0]]]
        total = float(np.sum(np.sort([weights[order[begins[g]]] for g in alike])))
        for g in alike:
            positions[order[begins[g] : ends[g]]] = placed + np.arange(len(members))
        rows.append(members)
        weight_of_row.append(np.full(len(members), total))
        number.append(np.full(len(members), new, dtype=np.intp))
        placed += len(members)
    at = np.concatenate(rows)
    numbers = np.concatenate(number)
    return Units((*(c[at] for c in columns), numbers), np.concatenate(weight_of_row), positions, unit)
