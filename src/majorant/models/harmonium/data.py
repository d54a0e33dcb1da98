"""Rows of several views as the weighted empirical measure that a fit sees: distinct, in one order, grouped."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from majorant._validation import levels_to_user
from majorant.data.chunks import BLOCK_BYTES, Chunks
from majorant.data.measure import empirical_measure
from majorant.models.harmonium.layout import Layout, Seen
from majorant.models.harmonium.pseudo_likelihood import Part
from majorant.models.harmonium.standard import PLACES, FittedView, fit_view, spread_of
from majorant.models.harmonium.supervision import Supervision
from majorant.models.harmonium.tables import Table, n_rows
from majorant.models.harmonium.views import Gaussian, View

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Distinct:
    """Distinct rows of all views together, in canonical order.

    Attributes
    ----------
    tables : dict of Table
    weights : ndarray of shape (n_points,)
        In units of the heaviest.
    y : ndarray of shape (n_points,), or None
    """

    tables: dict[str, Table]
    weights: Array
    y: NDArray[Any] | None


def distinct_rows(tables: Mapping[str, Table], weights: Array | None, y: NDArray[Any] | None) -> Distinct:
    """Rows with weight and at least one view, equal ones merged; by y, then by their views.

    Raises
    ------
    ValueError
        If no row with weight has a view.
    """
    n = n_rows(tables)
    w = np.ones(n) if weights is None else weights
    says = (w > 0) & ~np.logical_and.reduce([table.missing for table in tables.values()])
    if not says.any():
        raise ValueError("X lacks every view in all of its rows: they are NaN")
    rows = np.flatnonzero(says)
    codes = [_codes(table, rows) for table in tables.values()]
    keys = codes if y is None else [np.unique(y[rows], return_inverse=True)[1], *codes]
    w = w[rows]
    order = np.lexsort((w, *keys[::-1]))
    sorted_keys = np.column_stack([key[order] for key in keys])
    first = np.append(True, (np.diff(sorted_keys, axis=0) != 0).any(axis=1))
    merged = np.add.reduceat(w[order], np.flatnonzero(first))
    at = rows[order[first]]
    taken = {
        name: Table(table.values[at], table.missing[at], table.names, table.columns) for name, table in tables.items()
    }
    return Distinct(taken, merged / merged.max(), None if y is None else y[at])


def _codes(table: Table, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """A number for each row, equal for equal ones, ascending in canonical order; -1 where the view is missing."""
    codes = np.full(len(rows), -1, dtype=np.intp)
    there = np.flatnonzero(~table.missing[rows])
    if not len(there):
        return codes
    values = table.values[rows[there]] if len(there) < len(table.missing) else table.values
    if values.dtype == object:
        numbers = np.zeros(len(there), dtype=np.intp)
        for j in range(values.shape[1]):
            column = np.array([str(v) for v in values[:, j].tolist()])
            numbers = np.unique(
                np.column_stack([numbers, np.unique(column, return_inverse=True)[1]]), axis=0, return_inverse=True
            )[1].ravel()
        codes[there] = numbers
    else:
        codes[there] = empirical_measure(values).positions
    return codes


def fit_views(views: Mapping[str, View], rows: Distinct) -> tuple[FittedView, ...]:
    """Each view in standard units; one that is constant is told of.

    Raises
    ------
    ValueError
        If a view is missing for every row.
    """
    for name, table in rows.tables.items():
        if table.missing.all():
            raise ValueError(f"view {name!r} is missing (NaN) for every row: leave it out of views")
    fitted = []
    n_gaussian = sum(view.kind == "gaussian" for view in views.values())
    for name, view in views.items():
        found = fit_view(name, view, rows.tables[name], rows.weights, others=n_gaussian > 1)
        if found.width == 0:
            warnings.warn(
                f"view {name!r} is constant, and says nothing"
                if len(views) > 1
                else "X is constant: there is nothing to learn",
                ConvergenceWarning,
                stacklevel=levels_to_user(),
            )
        fitted.append(found)
    return tuple(fitted)


def in_order(views: tuple[FittedView, ...]) -> list[FittedView]:
    """Views as W has them: place by place, those of a place in the order in which they were named."""
    return [view for place in PLACES for view in views if view.place == place]


def layout_of(views: tuple[FittedView, ...], supervision: Supervision) -> Layout:
    """The variables of views, of a label where it is one, and the scores of a loss."""
    levels = [size for view in views for size in view.sizes]
    weights = [1.0] * len(levels)
    if supervision.n_labels:
        levels, weights = [*levels, supervision.n_labels], [*weights, supervision.weight]
    n_gaussian, n_bits = (sum(v.width for v in views if v.place == place) for place in ("gaussian", "bernoulli"))
    structures = tuple(v.structure for v in views if v.structure is not None)
    has_label = supervision.n_labels > 0
    return Layout(n_gaussian, n_bits, tuple(levels), tuple(weights), supervision.n_scores, has_label, structures)


def rows_of_views(views: tuple[FittedView, ...]) -> dict[str, slice]:
    """The rows of W of each view."""
    found, start = {}, 0
    for view in in_order(views):
        found[view.name] = slice(start, start + view.width)
        start += view.width
    return {view.name: found[view.name] for view in views}


def centre_of(views: tuple[FittedView, ...], label_shares: Array) -> Array:
    """The mean of each variable of a fit."""
    return np.concatenate([*(view.centre for view in in_order(views)), label_shares])


def scale_of(views: tuple[FittedView, ...], label_shares: Array, layout: Layout) -> Array:
    """Units of the rows of W and V: an inverse standard deviation, as the penalty counts it."""
    of_views = (view.scale_of_weights for view in in_order(views))
    return np.concatenate([*of_views, 1 / spread_of(label_shares), np.ones(layout.n_scores)])


def known_variances(views: tuple[FittedView, ...]) -> Array:
    """The variance given the latents of each Gaussian variable; NaN where it is learnt."""
    known = [np.full(v.width, v.given.variance or np.nan) for v in in_order(views) if isinstance(v.given, Gaussian)]
    return np.concatenate([np.empty(0), *known])


@dataclass(frozen=True)
class Pattern:
    """Rows with the same views, as the model's variables.

    Attributes
    ----------
    seen : Seen
    rows : ndarray of int
    columns : tuple
        Gaussian variables (dense), bits and one-hot categories (CSR), then the data of each structured view.
    """

    seen: Seen
    rows: NDArray[np.intp]
    columns: tuple[Any, ...]


def patterns_of(
    tables: Mapping[str, Table], views: tuple[FittedView, ...], layout: Layout, *, reuse: bool = False
) -> list[Pattern]:
    """Rows grouped by the views that they have, those that lack nothing first; a view without a table lacks all.

    `reuse`: the tables may be used up.
    """
    n = n_rows(tables)
    lost = np.column_stack([tables[v.name].missing if v.name in tables else np.ones(n, dtype=bool) for v in views])
    encoded = {v.name: v.encoded(tables[v.name], reuse=reuse) for v in views if v.name in tables}
    kinds = [np.unique(lost, axis=0)] if n else [np.zeros((1, len(views)), dtype=bool)]
    found = []
    for missing in kinds[0]:
        rows = np.flatnonzero((lost == missing).all(axis=1))
        there = [v for v, gone in zip(views, missing, strict=True) if not gone]
        columns = [_stacked(there, place, encoded, rows, n) for place in ("gaussian", "bernoulli", "categorical")]
        structured = [encoded[v.name] for v in there if v.structure is not None]
        columns += structured if len(rows) == n else [table[rows] for table in structured]
        found.append(Pattern(seen_of(views, there, layout), rows, tuple(columns)))
    return found


def seen_of(views: tuple[FittedView, ...], there: list[FittedView], layout: Layout) -> Seen:
    """What rows with these views have."""
    at = rows_of_views(views)
    names = {v.name for v in there}

    def indices(place: str, present: bool) -> NDArray[np.intp]:
        parts = [
            np.arange(at[v.name].start, at[v.name].stop)
            for v in views
            if v.place == place and (v.name in names) == present
        ]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.intp)

    variables: list[int] = []
    number = 0
    for view in views:
        if view.kind == "categorical":
            variables += range(number, number + len(view.sizes)) if view.name in names else []
            number += len(view.sizes)
    structured = [v.name for v in views if v.structure is not None]
    structures = tuple(i for i, name in enumerate(structured) if name in names)
    return Seen(
        indices("gaussian", True), indices("bernoulli", True), tuple(variables), indices("gaussian", False), structures
    )


def _stacked(there: list[FittedView], place: str, encoded: Mapping[str, Any], rows: NDArray[np.intp], n: int) -> Any:
    tables = [encoded[v.name] for v in there if v.place == place]
    if not tables:
        return np.empty((len(rows), 0)) if place == "gaussian" else sparse.csr_matrix((len(rows), 0))
    if len(tables) == 1:
        whole = tables[0]
    else:
        whole = np.hstack(tables) if place == "gaussian" else sparse.hstack(tables, format="csr")
    return whole if len(rows) == n else whole[rows]


def parts_of(
    patterns: list[Pattern],
    rows: Distinct,
    layout: Layout,
    *,
    n_jobs: int | None = None,
) -> tuple[Part, ...]:
    """What passes go over: each pattern's rows with weights; y is one more variable, or what scores are to predict."""
    parts = []
    size = int(np.clip(BLOCK_BYTES // (8 * max(layout.n_variables, 1)), 64, 8192))
    for pattern in patterns:
        z, x, c, *structured = pattern.columns
        seen = pattern.seen
        if layout.has_label:
            assert rows.y is not None
            n_labels = layout.levels[-1]
            of_label = sparse.csr_matrix(
                (np.ones(len(pattern.rows)), rows.y[pattern.rows], np.arange(len(pattern.rows) + 1)),
                shape=(len(pattern.rows), n_labels),
            )
            c = sparse.hstack([c, of_label], format="csr")
            seen = replace(seen, variables=(*seen.variables, len(layout.levels) - 1))
        w = rows.weights[pattern.rows]
        extra = (rows.y[pattern.rows],) if layout.n_scores and rows.y is not None else ()
        weights = None if (w == 1.0).all() else w
        data = Chunks(z, x, c, *extra, *structured, weights=weights, rows=size, n_jobs=n_jobs)
        parts.append(Part(seen, data))
    return tuple(parts)
