"""From the numbers of a view to the variables of the model: standard units, whitening, bits that vary, levels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant.data.chunks import Block, Chunks
from majorant.models.harmonium.structure import LEAST_SPREAD, fit_chain, fit_graph, of_words, varying
from majorant.models.harmonium.tables import Table
from majorant.models.harmonium.views import MOST_WHITENED, Bernoulli, Chain, Gaussian, View, edges_of
from majorant.registry import value_class
from majorant.solvers.covariance import mean_of, shrunk_covariance

Array = NDArray[np.float64]

PLACES = ("gaussian", "bernoulli", "structured", "categorical")
"""Kinds of variables of the model, in their order there."""
ROWS = 4096
"""Rows that are standardised at a time."""
FARTHEST = 1e100
"""Standardised values beyond are brought to it, so that their squares stay numbers."""


@value_class
@dataclass(frozen=True)
class FittedView:
    """A view as a fit met it.

    Attributes
    ----------
    name, kind : str
    columns : ndarray of int, or None
        Columns of X; None where X was a dictionary of arrays.
    names : list of str
        Of the columns.
    mean : ndarray of shape (n_columns,), or (n_levels,) for categories
        Mean of each column, of each bit or of each level.
    scale : ndarray of shape (n_columns,)
        Standard deviation of each column of a Gaussian view; 1 for other kinds.
    kept : ndarray of int
        The columns that vary: those that the model knows of. Of categories, the levels that do.
    whitener : ndarray of shape (n_kept, n_kept), or None
        Standardised rows times it are the variables of the model.
    levels : list of ndarray
        The categories of each column of a categorical view, in sorted order.
    given : View
        What the view was asked to be.
    structure : Structure or None
        Of a chain, or of bits with edges.
    penalty : float
        What its weights count for in the penalty, beside those of other views.
    """

    name: str
    kind: str
    columns: Any
    names: list[str]
    mean: Array
    scale: Array
    kept: NDArray[np.intp]
    whitener: Any
    levels: list[Any]
    given: View
    structure: Any = None
    penalty: float = 1.0

    @property
    def couplings(self) -> NDArray[np.intp]:
        """Columns that are coupled, by number: those of edges, or each word of a chain with itself."""
        if isinstance(self.given, Bernoulli):
            return edges_of(self.given, self.name, self.names)
        return np.repeat(np.arange(len(self.mean) if self.kind == "chain" else 0)[:, None], 2, axis=1)

    @property
    def place(self) -> str:
        """Among which variables of the model it is, of `PLACES`."""
        return self.kind if self.structure is None else "structured"

    @property
    def width(self) -> int:
        """Variables of the model."""
        return len(self.kept) if self.structure is None else int(self.structure.width)

    @property
    def centre(self) -> Array:
        """Mean of each variable of the model; features of a structured view have the mean zero."""
        return self.mean[self.kept] if self.place in ("bernoulli", "categorical") else np.zeros(self.width)

    @property
    def spread(self) -> Array:
        """Standard deviation of each variable: the unit of its weights in the penalty."""
        if self.structure is not None:
            return np.asarray(self.structure.spread)
        return np.ones(self.width) if self.kind == "gaussian" else spread_of(self.centre)

    @property
    def scale_of_weights(self) -> Array:
        """Unit of the weights of each variable; zero where it has none."""
        scale = np.asarray(1 / (self.spread * np.sqrt(self.penalty)), dtype=np.float64)
        if self.structure is not None and not self.structure.is_latent:
            scale[self.structure.n_nodes :] = 0.0
        return scale

    @property
    def sizes(self) -> tuple[int, ...]:
        """Levels of each categorical variable that varies."""
        return tuple(len(levels) for levels in self.levels if len(levels) > 1)

    def encoded(self, table: Table, *, reuse: bool = False) -> Any:
        """The variables of the model, dense or CSR; a missing row is zero. `reuse`: the table may be used up."""
        if self.kind == "chain":
            return of_words(table.values, len(self.mean), self.kept)
        if self.kind == "bernoulli":
            values = table.values
            return values if len(self.kept) == values.shape[1] else values[:, self.kept]
        if self.kind == "categorical":
            return self._one_hot(table)
        z = standardised(table.values, self.mean, self.scale, self.kept, reuse=reuse)
        z[table.missing] = 0.0
        return z if self.whitener is None else _by_block(z, self.whitener)

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
        """Values of a Gaussian view's columns from variables of the model."""
        out = np.tile(self.mean, (len(z), 1))
        if self.width:
            inner = z if self.whitener is None else np.linalg.solve(self.whitener.T, z.T).T
            out[:, self.kept] += inner * self.scale[self.kept]
        return out


def spread_of(p: Array) -> Array:
    """Standard deviations of bits or levels of these frequencies, as the penalty counts them."""
    return np.asarray(np.sqrt(np.maximum(p * (1 - p), LEAST_SPREAD)))


def standardised(
    values: NDArray[Any], mean: Array, scale: Array, kept: NDArray[np.intp], *, reuse: bool = False
) -> Array:
    """Deviations from the mean in units of the scale, in the memory of `values` where that may be used up."""
    whole = len(kept) == values.shape[1]
    z: Array
    if reuse and whole and values.dtype == np.float64 and values.flags.writeable:
        z = values
    else:
        z = np.array(values if whole else values[:, kept], dtype=np.float64)
    mean, scale = mean[kept], scale[kept]
    for a in range(0, len(z), ROWS):
        part = z[a : a + ROWS]
        half = 0.5 if np.abs(np.nan_to_num(part)).max(initial=0.0) > 1e300 else 1.0  # halves' differences stay numbers
        with np.errstate(over="ignore"):
            part *= half
            part -= half * mean
            part /= half * scale
        np.clip(part, -FARTHEST, FARTHEST, out=part)
    return z


def fit_view(name: str, view: View, table: Table, weights: Array, *, others: bool) -> FittedView:
    """The means, scales and levels of weighted rows in canonical order.

    Parameters
    ----------
    others : bool
        Whether there is another Gaussian view: it is then whitened unless the view says otherwise.
    """
    there = ~table.missing
    values, w = table.values if there.all() else table.values[there], weights[there] / weights[there].sum()
    width = values.shape[1]
    ones = np.ones(width)
    if isinstance(view, Chain):
        return _fit_chain(name, view, table, values, w)
    if isinstance(view, Bernoulli):
        mean, kept = varying(np.asarray(values.T @ w), np.bincount(values.indices, minlength=width), len(w))
        fitted = FittedView(name, view.kind, table.columns, table.names, mean, ones, kept, None, [], view)
        edges = edges_of(view, name, table.names)
        if not len(edges):
            return fitted
        return replace(fitted, structure=fit_graph(values[:, kept], w, edges, kept, is_latent=bool(view.latent_edges)))
    if view.kind == "categorical":
        return _fit_categories(name, view, table, values, w)
    mean, scale, kept = _moments(values, w)
    fitted = FittedView(name, view.kind, table.columns, table.names, mean, scale, kept, None, [], view)
    assert isinstance(view, Gaussian)
    whiten = (others and len(kept) <= MOST_WHITENED) if isinstance(view.whiten, str) else bool(view.whiten)
    if not whiten or not len(kept):
        return fitted
    whitener = _whitener(standardised(values, mean, scale, kept), w)
    return replace(fitted, whitener=whitener)


def _fit_chain(name: str, view: Chain, table: Table, values: Any, w: Array) -> FittedView:
    structure, mean, kept = fit_chain(values, w, len(table.names), is_latent=bool(view.latent_transitions))
    if view.n_steps is not None:
        structure = replace(structure, length=view.n_steps)
    ones = np.ones(len(mean))
    return FittedView(name, view.kind, table.columns, table.names, mean, ones, kept, None, [], view, structure)


def _fit_categories(name: str, view: View, table: Table, values: NDArray[Any], w: Array) -> FittedView:
    levels: list[NDArray[Any]] = []
    means: list[Array] = []
    kept: list[NDArray[np.bool_]] = []
    for j in range(values.shape[1]):
        found = _levels(values[:, j], name, table.names[j])
        codes = _codes(values[:, j], found, table.names[j])
        means.append(np.asarray(np.bincount(codes, weights=w, minlength=len(found)), dtype=np.float64))
        kept.append(np.full(len(found), len(found) > 1))
        levels.append(found)
    mean = np.concatenate(means)
    at = np.flatnonzero(np.concatenate(kept))
    ones = np.ones(values.shape[1])
    return FittedView(name, view.kind, table.columns, table.names, mean, ones, at, None, levels, view)


def _levels(values: NDArray[Any], view: str, column: str) -> NDArray[Any]:
    odd = next((v for v in values.tolist() if isinstance(v, Iterable) and not isinstance(v, str | bytes)), None)
    if odd is not None:
        raise TypeError(f"column {column!r} of view {view!r} must hold numbers or texts; got {odd!r}")
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
    """Mean and standard deviation of each column, and the columns that vary beyond rounding."""
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


def _whitener(z: Array, w: Array) -> Array:
    """The symmetric root of the inverse of the shrunk covariance of standardised rows.

    Distinct rows with weight are what it is shrunk by the number of: so that neither the size of all weights counts,
    nor whether a row is repeated or weighted, as nowhere else.
    """
    values, vectors = np.linalg.eigh(shrunk_covariance(z, w, np.zeros(z.shape[1]), len(z)))
    values = np.maximum(values, 1e-10 * values.max())
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T)


def _by_block(z: Array, matrix: Array) -> Array:
    return Chunks(z).map_rows(lambda block: block.columns[0] @ matrix, (matrix.shape[1],))
