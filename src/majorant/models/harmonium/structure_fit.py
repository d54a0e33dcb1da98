"""Views with structure from their data: which bits vary, means and spreads of features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.models.harmonium.structure import CONFIGURATIONS, ChainStructure, GraphStructure, Structure

Array = NDArray[np.float64]

LEAST_SPREAD = 0.01
"""Floor of the variance of a bit in the penalty."""
BLOCK_NUMBERS = 1 << 19
"""Features that are held at a time."""


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
    squares = _moments(replace(plain, centre=centre), bits, weights)[0]
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
    squares, products = _moments(structure, of_words(counts, n_words, kept), weights)
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


def _moments(structure: Structure, data: Any, weights: Array) -> tuple[Array, Array]:
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
