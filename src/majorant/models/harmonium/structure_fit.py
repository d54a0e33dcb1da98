"""From a view of bits to its structure: which columns are coupled, which vary, means and spreads of features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant._validation import did_you_mean
from majorant.data.chunks import Block, Chunks
from majorant.models.harmonium.structure import (
    CONFIGURATIONS,
    LEAST_SPREAD,
    ChainStructure,
    GraphStructure,
    Structure,
)
from majorant.models.harmonium.views import Bernoulli

Array = NDArray[np.float64]


def edges_of(view: Bernoulli, name: str, names: list[str]) -> NDArray[np.intp]:
    """The edges of a view of bits, by number: each pair ascending, and all in order.

    Raises
    ------
    TypeError, ValueError
        If an end is no column of the view, or an edge is there twice, or leads from a column to itself.
    """
    found: set[tuple[int, int]] = set()
    for edge in view.edges if view.edges is not None else ():
        i, j = sorted(_end(end, name, names) for end in edge)
        if i == j:
            raise ValueError(f"view {name!r}: the edge {tuple(edge)!r} leads from a column to itself")
        if (i, j) in found:
            raise ValueError(f"view {name!r}: the edge {tuple(edge)!r} is there twice")
        found.add((i, j))
    return np.array(sorted(found), dtype=np.intp).reshape(-1, 2)


def _end(end: Any, view: str, names: list[str]) -> int:
    if isinstance(end, str):
        if end not in names:
            raise ValueError(f"view {view!r} has no column {end!r}, which edges name.{did_you_mean(end, names)}")
        return names.index(end)
    if isinstance(end, bool | np.bool_) or not isinstance(end, int | np.integer):
        raise TypeError(f"view {view!r}: edges are pairs of numbers or names of columns; got {end!r}")
    if not 0 <= end < len(names):
        raise ValueError(f"view {view!r} has {len(names)} columns, and none is number {end}, which edges name")
    return int(end)


def fit_graph(
    bits: Any, weights: Array, edges: NDArray[np.intp], kept: NDArray[np.intp], *, is_latent: bool
) -> GraphStructure:
    """The structure of those bits that vary (`kept`, of which `bits` are); `weights` of rows sum to 1."""
    number = np.full(max(int(edges.max(initial=-1)), int(kept.max(initial=-1))) + 1, -1, dtype=np.intp)
    number[kept] = np.arange(len(kept))
    inner = number[edges]
    inner = inner[(inner >= 0).all(axis=1)]
    width = len(kept) + len(inner)
    plain = GraphStructure(len(kept), is_latent, inner, np.zeros(width), np.ones(width))
    centre = Chunks(bits, weights=weights).map_sum(lambda block: _weights(block) @ plain.features(block.columns[0]))
    centred = replace(plain, centre=centre)
    return replace(centred, spread=_spread(_moments(centred, bits, weights)[0]))


def fit_chain(
    counts: Any, weights: Array, n_words: int, *, is_latent: bool
) -> tuple[ChainStructure, Array, NDArray[np.intp]]:
    """The structure of those words that vary, the mean of every word, and which vary."""
    sums = np.asarray(weights @ counts).ravel()
    at = sums[:-1].reshape(len(CONFIGURATIONS), n_words)
    cells, steps = sums[-1], sums[-1] - weights.sum()
    both = at[1] + 2 * at[2]
    plain = np.asarray(counts.sum(axis=0)).ravel()
    total = plain[:-1].reshape(len(CONFIGURATIONS), n_words)[:3].sum(axis=0)
    kept = np.flatnonzero((total > 0) & (total < plain[-1]))
    least = 0.5 / (1 + plain[-1])
    mean = at[:3].sum(axis=0) / cells
    varies = (total > 0) & (total < plain[-1])
    mean = np.where(varies, mean, np.clip(np.round(mean), least, 1 - least))
    pairs = both / (2 * steps) if steps > 0 else np.zeros(n_words)
    lengths = counts[:, [-1]].toarray()[:, 0]
    order = np.argsort(lengths, kind="stable")
    middle = lengths[order][np.searchsorted(np.cumsum(weights[order]), 0.5 * weights.sum())]
    centre = np.concatenate([mean[kept], pairs[kept]])
    zero = np.zeros(len(kept))
    structure = ChainStructure(len(kept), is_latent, int(middle), centre, np.ones(2 * len(kept)), zero)
    squares, products = _moments(structure, of_words(counts, n_words, kept), weights)
    of_nodes, of_couplings = squares[: len(kept)], squares[len(kept) :]
    slope = products / np.maximum(of_nodes, LEAST_SPREAD)
    squares = np.append(of_nodes, of_couplings - slope * (2 * products - slope * of_nodes))
    return replace(structure, spread=_spread(squares), slope=slope), mean, kept


def of_words(counts: Any, n_words: int, kept: NDArray[np.intp]) -> Any:
    """Counts of some of the words."""
    if len(kept) == n_words:
        return counts
    columns = (n_words * np.arange(len(CONFIGURATIONS))[:, None] + kept).ravel()
    return counts[:, np.append(columns, counts.shape[1] - 1)]


def chain_counts(paragraphs: Any, lengths: NDArray[np.intp]) -> Any:
    """What a chain meets of documents: see `ChainStructure`.

    Parameters
    ----------
    paragraphs : CSR matrix of shape (n_paragraphs, n_words)
        Ones, the paragraphs of the documents one after the other.
    lengths : ndarray of shape (n_documents,)
    """
    n = paragraphs.shape[0]
    document = np.repeat(np.arange(len(lengths)), lengths)
    here = np.flatnonzero(document[1:] == document[:-1])
    steps = sparse.csr_matrix((np.ones(len(here)), (here, here + 1)), shape=(n, n))
    neighbours = ((steps + steps.T) @ paragraphs).tocsr()
    of_document = sparse.csr_matrix((np.ones(n), (document, np.arange(n))), shape=(len(lengths), n))
    near = [neighbours.multiply(neighbours == k).astype(bool).astype(np.float64) for k in (1, 2)]
    on = [paragraphs.multiply(table) for table in near]
    tables = [paragraphs - on[0] - on[1], *on, near[0] - on[0], near[1] - on[1]]
    counts = [of_document @ sparse.csr_matrix(table) for table in tables]
    counts = sparse.hstack([*counts, sparse.csr_matrix(lengths[:, None].astype(np.float64))], format="csr")
    counts.eliminate_zeros()
    counts.sort_indices()
    return counts


def _moments(structure: Structure, data: Any, weights: Array) -> tuple[Array, Array]:
    """Mean squares of features, and mean products of those of nodes and as many couplings."""
    n = structure.n_nodes

    def visit(block: Block) -> Array:
        f, w = structure.features(block.columns[0]), _weights(block)
        products = f[:, :n] * f[:, n : 2 * n] if structure.width == 2 * n else f[:, :0]
        return np.concatenate([w @ f**2, w @ products])

    sums = Chunks(data, weights=weights).map_sum(visit) / weights.sum()
    return sums[: structure.width], sums[structure.width :]


def _spread(squares: Array) -> Array:
    """Standard deviations of features, at least that of rare bits."""
    return np.asarray(np.sqrt(np.maximum(squares, LEAST_SPREAD)))


def _weights(block: Block) -> Array:
    assert block.weights is not None
    return block.weights
