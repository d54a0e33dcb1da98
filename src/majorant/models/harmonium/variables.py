"""Variables of the model from columns of views: standardisation, whitening, levels, structures."""

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
from majorant.data.chunks import Block, Chunks
from majorant.models.harmonium.structure import CONFIGURATIONS, ChainStructure, GraphStructure, Structure
from majorant.models.harmonium.tables import Distinct, Table
from majorant.models.harmonium.views import Bernoulli, Categorical, Chain, View, edges_of, is_whitened
from majorant.registry import value_class
from majorant.solvers.covariance import Whitener, fit_whitener, mean_of

Array = NDArray[np.float64]

ROWS = 4096
"""Number of rows that are standardised at a time."""
FARTHEST = 1e100
"""Bound on standardised values, so that their squares stay finite."""
LEAST_SPREAD = 0.01
"""Floor of the variance of a bit in the penalty."""
BLOCK_NUMBERS = 1 << 19
"""Features that are held at a time."""


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


def fit_graph(
    bits: Any, weights: Array, edges: NDArray[np.intp], kept: NDArray[np.intp], *, is_latent: bool
) -> GraphStructure:
    """Fit the structure of the bits that vary: columns `kept`; `weights` of rows sum to 1."""
    number = np.full(max(int(edges.max(initial=-1)), int(kept.max(initial=-1))) + 1, -1, dtype=np.intp)
    number[kept] = np.arange(len(kept))
    inner = number[edges]
    inner = inner[(inner >= 0).all(axis=1)]
    width = len(kept) + len(inner)
    plain = GraphStructure(len(kept), is_latent, inner, np.zeros(width), np.ones(width))
    rows = Chunks(bits, weights=weights, rows=_rows(width))
    centre = rows.map_sum(lambda block: np.asarray(block.weights) @ plain.features(block.columns[0]))
    squares = _moments_of_features(replace(plain, centre=centre), bits, weights)[0]
    return replace(plain, centre=centre, spread=np.sqrt(np.maximum(squares, LEAST_SPREAD)))


def fit_chain(
    counts: Any, weights: Array, n_words: int, *, is_latent: bool
) -> tuple[ChainStructure, Array, NDArray[np.intp]]:
    """Fit the structure of the words that vary; also the mean of every word, and which words vary."""
    sums, plain = (np.asarray(total).ravel() for total in (weights @ counts, counts.sum(axis=0)))
    at, on = (total[:-1].reshape(len(CONFIGURATIONS), n_words) for total in (sums, plain))
    steps = sums[-1] - weights.sum()
    mean, kept = varying(at[:3].sum(axis=0) / sums[-1], on[:3].sum(axis=0), plain[-1])
    pairs = (at[1] + 2 * at[2]) / (2 * steps) if steps > 0 else np.zeros(n_words)
    lengths = counts[:, [-1]].toarray()[:, 0]
    order = np.argsort(lengths, kind="stable")
    median = lengths[order][np.searchsorted(np.cumsum(weights[order]), 0.5 * weights.sum())]
    centre, zero = np.concatenate([mean[kept], pairs[kept]]), np.zeros(len(kept))
    structure = ChainStructure(len(kept), is_latent, int(median), centre, np.ones(2 * len(kept)), zero)
    squares, products = _moments_of_features(structure, of_words(counts, n_words, kept), weights)
    of_nodes, of_couplings = squares[: len(kept)], squares[len(kept) :]
    slope = products / np.maximum(of_nodes, LEAST_SPREAD)
    squares = np.append(of_nodes, of_couplings - slope * (2 * products - slope * of_nodes))
    return replace(structure, spread=np.sqrt(np.maximum(squares, LEAST_SPREAD)), slope=slope), mean, kept


def varying(mean: Array, on: NDArray[Any], n: float) -> tuple[Array, NDArray[np.intp]]:
    """Return means of bits of which `on` of n cells are on, kept away from 0 and 1, and the bits that vary."""
    varies, least = (on > 0) & (on < n), 0.5 / (1 + n)
    return np.where(varies, mean, np.clip(np.round(mean), least, 1 - least)), np.flatnonzero(varies)


def of_words(counts: Any, n_words: int, kept: NDArray[np.intp]) -> Any:
    """Return the counts of some of the words."""
    if len(kept) == n_words:
        return counts
    columns = (n_words * np.arange(len(CONFIGURATIONS))[:, None] + kept).ravel()
    return counts[:, np.append(columns, counts.shape[1] - 1)]


def _moments_of_features(structure: Structure, data: Any, weights: Array) -> tuple[Array, Array]:
    """Return mean squares of features, and mean products of features of nodes and their couplings, if there are any."""
    n = structure.n_nodes

    def visit(block: Block) -> Array:
        f, w = structure.features(block.columns[0]), np.asarray(block.weights)
        products = f[:, :n] * f[:, n : 2 * n] if structure.width == 2 * n else f[:, :0]
        return np.concatenate([w @ f**2, w @ products])

    sums = Chunks(data, weights=weights, rows=_rows(structure.width)).map_sum(visit) / weights.sum()
    return sums[: structure.width], sums[structure.width :]


def _rows(width: int) -> int:
    """Return how many rows of features are held at a time."""
    return max(BLOCK_NUMBERS // max(width, 1), 16)
