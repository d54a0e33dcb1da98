"""Variables of the model from columns of views: standardisation, whitening, levels, patterns of missing views."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from majorant._numbers import briefly
from majorant._validation import levels_to_user
from majorant.data.chunks import BLOCK_BYTES, Block, Chunks
from majorant.models.harmonium.layout import Layout, Seen, Supervision
from majorant.models.harmonium.pseudo_likelihood import Part, PseudoLikelihood
from majorant.models.harmonium.structure_fit import LEAST_SPREAD, fit_chain, fit_graph, of_words, varying
from majorant.models.harmonium.tables import Distinct, Table, n_rows
from majorant.models.harmonium.views import Bernoulli, Categorical, Chain, Gaussian, View, edges_of, is_whitened
from majorant.registry import value_class
from majorant.solvers.covariance import Whitener, fit_whitener, mean_of

Array = NDArray[np.float64]

PLACES = ("gaussian", "bernoulli", "structured", "categorical")
"""Kinds of variables, in their order in the model."""
ROWS = 4096
"""Number of rows that are standardised at a time."""
FARTHEST = 1e100
"""Bound on standardised values, so that their squares stay finite."""


@value_class
@dataclass(frozen=True)
class FittedView:
    """A view with its means, scales, levels and whitening on the rows of the fit.

    Attributes
    ----------
    columns : ndarray of int, or None
        Columns of X; None where X was a dictionary of arrays.
    names : list of str
        Names of the columns.
    given : View
        The view as the user declared it.
    mean : ndarray of shape (n_columns,), or (n_levels,) for categories
        Mean of each column, of each bit or of each level.
    scale : ndarray of shape (n_columns,)
        Standard deviation of each column of a Gaussian view; 1 for other kinds.
    kept : ndarray of int
        Columns (of categories: levels) that vary; the others are no variables of the model.
    whitener : Whitener or None
        Leads from standardised rows to the variables of the model.
    levels : list of ndarray
        Categories of each column of a categorical view, in sorted order.
    structure : Structure or None
        Nodes and couplings of a chain, or of bits with edges.
    penalty : float
        Factor of its weights in the penalty.
    """

    name: str
    kind: str
    columns: Any
    names: list[str]
    given: View
    mean: Array
    scale: Array
    kept: NDArray[np.intp]
    whitener: Whitener | None = None
    levels: list[Any] = field(default_factory=list)
    structure: Any = None
    penalty: float = 1.0

    @property
    def couplings(self) -> NDArray[np.intp]:
        """Pairs of coupled columns, by number: edges, or each word of a chain with itself."""
        if isinstance(self.given, Bernoulli):
            return edges_of(self.given, self.name, self.names)
        return np.repeat(np.arange(len(self.mean) if self.kind == "chain" else 0)[:, None], 2, axis=1)

    @property
    def place(self) -> str:
        """Kind of its variables, of `PLACES`."""
        return self.kind if self.structure is None else "structured"

    @property
    def width(self) -> int:
        """Number of variables of the model."""
        return len(self.kept) if self.structure is None else int(self.structure.width)

    @property
    def centre(self) -> Array:
        """Mean of each variable; features of a structured view have mean zero."""
        return self.mean[self.kept] if self.place in ("bernoulli", "categorical") else np.zeros(self.width)

    @property
    def spread(self) -> Array:
        """Standard deviation of each variable, the unit of its weights in the penalty."""
        if self.structure is not None:
            return np.asarray(self.structure.spread)
        return np.ones(self.width) if self.kind == "gaussian" else spread_of(self.centre)

    @property
    def scale_of_weights(self) -> Array:
        """Unit of the weights of each variable; zero where they are fixed at zero."""
        scale = np.asarray(1 / (self.spread * np.sqrt(self.penalty)), dtype=np.float64)
        if self.structure is not None and not self.structure.is_latent:
            scale[self.structure.n_nodes :] = 0.0
        return scale

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of levels of each categorical variable that varies."""
        return tuple(len(levels) for levels in self.levels if len(levels) > 1)

    def encoded(self, table: Table, *, reuse: bool = False) -> Any:
        """Encode rows as variables of the model, dense or CSR, zero where missing; `reuse` may overwrite the table."""
        if self.kind == "chain":
            return of_words(table.values, len(self.mean), self.kept)
        if self.kind == "bernoulli":
            values = table.values
            return values if len(self.kept) == values.shape[1] else values[:, self.kept]
        if self.kind == "categorical":
            return self._one_hot(table)
        z = standardised(table.values, self.mean, self.scale, self.kept, reuse=reuse)
        z[table.missing] = 0.0
        return z if self.whitener is None else self.whitener.whitened(z)

    def _one_hot(self, table: Table) -> Any:
        codes, start, there = [], 0, np.flatnonzero(~table.missing)
        for j, levels in enumerate(self.levels):
            if len(levels) > 1:
                codes.append(
                    start + _codes(table.values[there, j], levels, f"column {self.names[j]!r} of {self.name!r}")
                )
                start += len(levels)
        indptr = np.zeros(len(table.missing) + 1, dtype=np.intp)
        indptr[1:] = np.cumsum(~table.missing) * len(codes)
        indices = np.column_stack(codes).ravel() if codes else np.empty(0, dtype=np.intp)
        return sparse.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(table.missing), start))

    def restored(self, z: Array) -> Array:
        """Return the columns of a Gaussian view from variables of the model."""
        out = np.tile(self.mean, (len(z), 1))
        if self.width:
            inner = z if self.whitener is None else self.whitener.restored(z)
            out[:, self.kept] += inner * self.scale[self.kept]
        return out

    def in_columns(self, cells: Array, rest: Array) -> Array:
        """Arrange cells of nodes as all columns of a structured view; constant columns have the values of `rest`.

        The columns of a chain in one table are those of all paragraphs; otherwise paragraphs have an axis of their own.
        """
        out = np.tile(rest, (*cells.shape[:-1], 1))
        out[..., self.kept] = cells
        return out if self.columns is None else out.reshape(len(out), -1)

    def sampled(self, drawn: Array) -> Any:
        """Return the columns of the view from drawn variables of the model; bits as CSR."""
        if self.kind == "gaussian":
            return self.restored(drawn)
        if self.structure is not None or self.kind == "bernoulli":
            cells = self.in_columns(drawn, np.round(self.mean))
            return cells if self.kind == "chain" else sparse.csr_matrix(cells)
        columns, start = [], 0
        for levels in self.levels:
            if len(levels) == 1:
                columns.append(np.repeat(levels, len(drawn)))
            else:
                columns.append(levels[drawn[:, start : start + len(levels)].argmax(axis=1)])
                start += len(levels)
        return np.column_stack(columns)


def spread_of(p: Array) -> Array:
    """Return the standard deviations of bits or levels with frequencies p, with the floor of rare ones."""
    return np.asarray(np.sqrt(np.maximum(p * (1 - p), LEAST_SPREAD)))


def standardised(
    values: NDArray[Any], mean: Array, scale: Array, kept: NDArray[np.intp], *, reuse: bool = False
) -> Array:
    """Standardise columns `kept`; `reuse` allows to do so in the memory of `values`."""
    whole = len(kept) == values.shape[1]
    z: Array
    if reuse and whole and values.dtype == np.float64 and values.flags.writeable:
        z = values
    else:
        z = np.array(values if whole else values[:, kept], dtype=np.float64)
    mean, scale = mean[kept], scale[kept]
    for a in range(0, len(z), ROWS):
        part = z[a : a + ROWS]
        half = 0.5 if np.abs(np.nan_to_num(part)).max(initial=0.0) > 1e300 else 1.0  # differences of halves are finite
        with np.errstate(over="ignore"):
            part *= half
            part -= half * mean
            part /= half * scale
        np.clip(part, -FARTHEST, FARTHEST, out=part)
    return z


def fit_view(name: str, view: View, table: Table, weights: Array, *, others: bool) -> FittedView:
    """Fit means, scales and levels to weighted rows in canonical order.

    Parameters
    ----------
    others : bool
        Whether there is another Gaussian view; see `is_whitened`.
    """
    there = ~table.missing
    values, w = table.values if there.all() else table.values[there], weights[there] / weights[there].sum()
    none, ones = np.empty(0, dtype=np.intp), np.ones(len(table.names))
    plain = FittedView(name, view.kind, table.columns, table.names, given=view, mean=ones, scale=ones, kept=none)
    if isinstance(view, Chain):
        chain, mean, kept = fit_chain(values, w, len(table.names), is_latent=bool(view.latent_transitions))
        chain = chain if view.n_steps is None else replace(chain, length=view.n_steps)
        return replace(plain, mean=mean, kept=kept, structure=chain)
    if isinstance(view, Bernoulli):
        mean, kept = varying(np.asarray(values.T @ w), np.bincount(values.indices, minlength=values.shape[1]), len(w))
        edges, graph = edges_of(view, name, table.names), None
        if len(edges):
            graph = fit_graph(values[:, kept], w, edges, kept, is_latent=bool(view.latent_edges))
        return replace(plain, mean=mean, kept=kept, structure=graph)
    if isinstance(view, Categorical):
        levels = [_levels(column, name, label) for column, label in zip(values.T, table.names, strict=True)]
        columns = zip(values.T, levels, table.names, strict=True)
        shares = [np.bincount(_codes(v, of, label), weights=w, minlength=len(of)) for v, of, label in columns]
        kept = np.flatnonzero(np.concatenate([np.full(len(of), len(of) > 1) for of in levels]))
        return replace(plain, mean=np.concatenate(shares), kept=kept, levels=levels)
    mean, scale, kept = _moments(values, w)
    plain = replace(plain, mean=mean, scale=scale, kept=kept)
    if len(kept) and is_whitened(view, len(values), len(kept), others=others):
        return replace(plain, whitener=fit_whitener(standardised(values, mean, scale, kept), w))
    return plain


def _levels(values: NDArray[Any], view: str, column: str) -> NDArray[Any]:
    odd = next((v for v in values.tolist() if isinstance(v, Iterable) and not isinstance(v, str | bytes)), None)
    if odd is not None:
        raise TypeError(f"column {column!r} of view {view!r} must hold numbers or texts; got {briefly(odd)}")
    try:
        levels = np.array(sorted(set(values.tolist())))
    except TypeError as error:
        raise TypeError(f"column {column!r} of view {view!r} mixes numbers and texts: write all as texts") from error
    return levels.astype(object) if levels.dtype.kind in "US" else levels


def _codes(values: NDArray[Any], levels: NDArray[Any], where: str) -> NDArray[np.intp]:
    number = {level: i for i, level in enumerate(levels.tolist())}
    try:
        return np.array([number[v] for v in values.tolist()], dtype=np.intp)
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{where} has a category that the fit did not: {error}; known are {list(number)[:10]}"
        ) from error


def _moments(values: NDArray[Any], w: Array) -> tuple[Array, Array, NDArray[np.intp]]:
    """Return the mean and standard deviation of each column, and the columns that vary by more than rounding."""
    low, high = values.min(axis=0).astype(np.float64), values.max(axis=0).astype(np.float64)
    half = high / 2 - low / 2
    size = np.maximum(np.abs(low), np.abs(high))
    kept = np.flatnonzero((half > 1e-14 * size) & (half > 1e-290))
    unit, origin = np.where(half > 0, half, 1.0), low / 2 + high / 2
    data = Chunks(values, weights=w)
    safe = 0.5 if size.max(initial=0.0) > 1e300 else 1.0

    def in_units(block: Block) -> Array:  # in [-1, 1] or half of it
        return np.asarray((safe * block.columns[0].astype(np.float64) - safe * origin) / unit)

    middle = data.map_sum(lambda block: mean_of(in_units(block), np.asarray(block.weights)))
    squares = data.map_sum(lambda block: mean_of((in_units(block) - middle) ** 2, np.asarray(block.weights)))
    deviation = np.sqrt(squares)
    mean, scale = origin.copy(), np.ones(values.shape[1])
    mean[kept] = (origin + middle / safe * unit)[kept]
    scale[kept] = np.maximum(deviation / safe, 1e-10)[kept] * unit[kept]
    return mean, scale, kept


def fit_views(views: Mapping[str, View], rows: Distinct) -> tuple[FittedView, ...]:
    """Fit all views; warn of one that is constant."""
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
    """Return the views in their order in W: by `PLACES`, and within one as the user named them."""
    return [view for place in PLACES for view in views if view.place == place]


def layout_of(views: tuple[FittedView, ...], supervision: Supervision) -> Layout:
    """Lay out the variables of all views, the label where it is modelled, and the scores of a loss."""
    levels = [size for view in views for size in view.sizes]
    weights = [1.0] * len(levels)
    if supervision.n_labels:
        levels, weights = [*levels, supervision.n_labels], [*weights, supervision.weight]
    n_gaussian, n_bits = (sum(v.width for v in views if v.place == place) for place in ("gaussian", "bernoulli"))
    structures = tuple(v.structure for v in views if v.structure is not None)
    has_label = supervision.n_labels > 0
    return Layout(n_gaussian, n_bits, tuple(levels), tuple(weights), supervision.n_scores, has_label, structures)


def rows_of_views(views: tuple[FittedView, ...]) -> dict[str, slice]:
    """Return the rows of W of each view."""
    found, start = {}, 0
    for view in in_order(views):
        found[view.name] = slice(start, start + view.width)
        start += view.width
    return {view.name: found[view.name] for view in views}


def centre_of(views: tuple[FittedView, ...], label_shares: Array) -> Array:
    """Return the mean of each variable."""
    return np.concatenate([*(view.centre for view in in_order(views)), label_shares])


def scale_of(views: tuple[FittedView, ...], label_shares: Array, layout: Layout, penalty: float) -> Array:
    """Return the units of the rows of W and V: inverse standard deviations, with the floor of rare bits.

    Those of the target are smaller by the root of its penalty in units of that of the views.
    """
    of_views = (view.scale_of_weights for view in in_order(views))
    of_target = np.concatenate([1 / spread_of(label_shares), np.ones(layout.n_scores)])
    return np.concatenate([*of_views, of_target / np.sqrt(penalty)])


def known_variances(views: tuple[FittedView, ...]) -> Array:
    """Return the variance of each Gaussian variable given the latents; NaN where it is learnt."""
    known = [np.full(v.width, v.given.variance or np.nan) for v in in_order(views) if isinstance(v.given, Gaussian)]
    return np.concatenate([np.empty(0), *known])


@dataclass(frozen=True)
class Pattern:
    """Rows that have the same views, as variables of the model."""

    seen: Seen
    rows: NDArray[np.intp]
    # Gaussian variables (dense), bits and one-hot categories (CSR), then data of each structured view
    columns: tuple[Any, ...]


def patterns_of(tables: Mapping[str, Table], views: tuple[FittedView, ...], *, reuse: bool = False) -> list[Pattern]:
    """Group rows by the views that they have, complete rows first; a view without a table is missing for all rows.

    `reuse` allows to overwrite the tables.
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
        found.append(Pattern(seen_of(views, there), rows, tuple(columns)))
    return found


def seen_of(views: tuple[FittedView, ...], there: list[FittedView]) -> Seen:
    """Return the variables of rows with the views `there`."""
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
    """Add weights, and y as one more variable or as the target of scores, to the rows of each pattern."""
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


def problem_of(
    rows: Distinct,
    views: tuple[FittedView, ...],
    supervision: Supervision,
    label_shares: Array,
    *,
    n_jobs: int | None,
    reuse: bool,
) -> tuple[PseudoLikelihood, tuple[NDArray[np.intp], ...]]:
    """Return the pseudo-likelihood of distinct rows, and the positions of the rows of each part among them."""
    layout = layout_of(views, supervision)
    patterns = patterns_of(rows.tables, views, reuse=reuse)
    parts = parts_of(patterns, rows, layout, n_jobs=n_jobs)
    problem = PseudoLikelihood(layout, centre_of(views, label_shares), parts, supervision.loss, supervision.weight)
    return problem, tuple(pattern.rows for pattern in patterns)
