"""Small harmoniums with structured views, and the log-densities of their rows by the definition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant.data.chunks import Chunks
from majorant.models.harmonium.layout import Layout, Loss, Parameters, Seen
from majorant.models.harmonium.pseudo_likelihood import Part, PseudoLikelihood
from majorant.models.harmonium.structure import ChainStructure, GraphStructure
from majorant.models.harmonium.tables import chain_counts

Array = NDArray[np.float64]

WORDS, EDGES = 2, np.array([[0, 1], [0, 2], [1, 2], [2, 3]])
LENGTHS = (3, 1, 4, 2, 3, 3, 1)


@dataclass(frozen=True)
class Rows:
    """What rows hold: real numbers, bits, documents, bits on a graph, categories and a target."""

    z: Array
    x: Array
    documents: list[Array]
    graph: Array
    codes: NDArray[np.intp]
    y: NDArray[Any] | None
    weights: Array


def layout(random: np.random.Generator, loss: Loss | None = None) -> Layout:
    """Two real variables, two bits, chains of two words, four bits on a graph, a category of three levels."""
    chain = ChainStructure(WORDS, True, 3, random.uniform(0.2, 0.6, 4), np.ones(4), random.uniform(0.3, 0.9, 2))
    graph = GraphStructure(4, True, EDGES, random.uniform(0.2, 0.6, 8), np.ones(8))
    return Layout(2, 2, (3,), (1.0,), 0 if loss is None else loss.n_scores, structures=(chain, graph))


def rows(random: np.random.Generator, loss: Loss | None = None) -> Rows:
    """Random ones, documents of different lengths."""
    n = len(LENGTHS)
    y = None if loss is None else random.integers(0, 3, n) if loss.n_scores == 3 else random.normal(size=n)
    return Rows(
        random.normal(size=(n, 2)),
        (random.random((n, 2)) < 0.4).astype(float),
        [(random.random((length, WORDS)) < 0.5).astype(float) for length in LENGTHS],
        (random.random((n, 4)) < 0.5).astype(float),
        random.integers(0, 3, n),
        y,
        random.uniform(0.5, 2, n),
    )


def part(given: Rows, at: NDArray[np.intp], shape: Layout, *, lacking: bool = False) -> Part:
    """Those rows as the pseudo-likelihood takes them; `lacking`: without a real variable and the chains."""
    documents = [given.documents[d] for d in at]
    counts = chain_counts(sparse.csr_matrix(np.concatenate(documents)), np.array([len(d) for d in documents]))
    z = given.z[at][:, [0]] if lacking else given.z[at]
    structured = [sparse.csr_matrix(given.graph[at])] if lacking else [counts, sparse.csr_matrix(given.graph[at])]
    y = () if given.y is None else (given.y[at],)
    hot = sparse.csr_matrix(np.eye(3)[given.codes[at]])
    data = Chunks(z, sparse.csr_matrix(given.x[at]), hot, *y, *structured, weights=given.weights[at], rows=3)
    whole = Seen.everything(shape)
    if not lacking:
        return Part(whole, data)
    return Part(Seen(np.array([0]), whole.bits, whole.variables, np.array([1]), (1,)), data)


def problem(seed: int, loss: Loss | None = None, *, missing: bool = False) -> tuple[PseudoLikelihood, Parameters, Rows]:
    """Rows of random values, some without some views where asked, and random parameters."""
    random = np.random.default_rng(seed)
    shape, given = layout(random, loss), rows(random, loss)
    n = len(LENGTHS)
    split = n - 3 if missing else n
    parts = [part(given, np.arange(split), shape)]
    if missing:
        parts.append(part(given, np.arange(split, n), shape, lacking=True))
    centre = np.concatenate([np.zeros(2), random.random(2), np.zeros(12), random.random(3)])
    weights = 0.3 * random.normal(size=(shape.n_rows, 2))
    at = Parameters(weights, 0.4 * random.normal(size=shape.n_rows), 0.2 * random.normal(size=2) - 0.3)
    return PseudoLikelihood(shape, centre, tuple(parts), loss, 2.0), at, given


def log_joint(cost: PseudoLikelihood, at: Parameters, given: Rows, d: int, document: Array, graph: Array) -> float:
    """log p of row d, with other cells in the place of its own, but for the constant: by the definition."""
    shape, centre = cost.layout, cost.centre
    chain, edges = shape.structures
    (c, g), root = shape.of_structures, np.sqrt(len(document))
    w, a = at.weights.copy(), at.intercept
    for i in range(WORDS):  # a coupling's feature is what the word's does not explain
        w[c.start + i] -= chain.slope[i] * at.weights[c.start + WORDS + i]
    for e, (i, j) in enumerate(EDGES):  # and an edge's the product of deviations
        w[g.start + i] -= edges.centre[j] * at.weights[g.start + 4 + e]
        w[g.start + j] -= edges.centre[i] * at.weights[g.start + 4 + e]
    m = given.z[d] @ w[:2] + (given.x[d] - centre[2:4]) @ w[2:4]
    linear = given.z[d] @ a[:2] - (given.z[d] ** 2 / at.variance).sum() / 2 + given.x[d] @ a[2:4]
    for i in range(WORDS):
        node, coupling = c.start + i, c.start + WORDS + i
        for p in range(len(document)):
            m = m + (document[p, i] - chain.centre[i]) / root * w[node]
            linear += a[node] * document[p, i]
            if p:
                both = document[p - 1, i] * document[p, i]
                m = m + (both - chain.centre[WORDS + i]) / root * w[coupling]
                linear += a[coupling] * both
    for i in range(4):
        m = m + (graph[i] - edges.centre[i]) * w[g.start + i]
        linear += a[g.start + i] * graph[i]
    for e, (i, j) in enumerate(EDGES):
        m = m + (graph[i] * graph[j] - edges.centre[4 + e]) * w[g.start + 4 + e]
        linear += a[g.start + 4 + e] * graph[i] * graph[j]
    level = shape.first_level + given.codes[d]
    m = m + w[level] - centre[shape.first_level :] @ w[shape.first_level : shape.first_level + 3]
    return float(linear + a[level] + m @ m / 2)
