r"""Views of bits with couplings between neighbours: chains over paragraphs, and bits on a graph.

A structured view has nodes and couplings, each of which is a row of W with a linear term: a node i has
:math:`a_i, W_i`, a coupling e has :math:`g_e, R_e`. A cell c is a bit of a row of X; it has a node i(c), and each of
its neighbours n(c) belongs to a coupling. With P cells for each node (P = 1 on a graph, the number of paragraphs of a
chain) the sums of cells and of products of neighbours, in units of the root of P, are the features of nodes and
couplings. With the latents integrated out

.. math:: m &= \frac{1}{\sqrt P} \Big( \sum_c (x_c - \mu_{i(c)}) W_{i(c)}
               + \sum_{(c, c')} (x_c x_{c'} - \rho_e) R_e \Big) + \dots, \\
          \log p(x) &= \sum_c a_{i(c)} x_c + \sum_{(c, c')} g_e x_c x_{c'} + \tfrac12 |m|^2 + \text{const}.

Turning one cell from 0 to 1 adds to m, and to the linear part,

.. math:: \delta_c = \frac{1}{\sqrt P} \Big( W_{i(c)} + \sum_{c' \in n(c)} x_{c'} R_e \Big), \qquad
          \gamma_c = a_{i(c)} + \sum_{c' \in n(c)} x_{c'} g_e .

With :math:`m_1 = m + (1 - x_c) \delta_c` and :math:`m_0 = m - x_c \delta_c` half the difference of
:math:`|m_1|^2` and :math:`|m_0|^2` is :math:`\tfrac12 (m_1 - m_0)^\top (m_1 + m_0)`, so the log-odds of a cell given
all else are

.. math:: \eta_c = \gamma_c + \delta_c^\top m + |\delta_c|^2 (\tfrac12 - x_c) .

Words that are frequent are often frequent side by side. So that R says of neighbours what W does not, the features of
couplings are taken without the part that those of their nodes explain, f = F T with a triangular T that is found at the
fit: in the formulas above W and R are the rows of T times those that are learnt and penalised.

They are linear in a, g and :math:`J = \binom{W}{R} \binom{W}{R}^\top`: the objective stays convex in these, and the
certificate holds, whether couplings depend on the latents (R) or not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from majorant.data.chunks import Block, Chunks
from majorant.registry import value_class
from majorant.solvers.chains import Chains

Array = NDArray[np.float64]

LEAST_SPREAD = 0.01
"""Floor of the variance of a bit in the penalty."""
SWEEPS, SETTLED, DAMPING = 200, 1e-9, 0.5
"""Settings of mean field on a graph."""
CONFIGURATIONS = ((1, 0), (1, 1), (1, 2), (0, 1), (0, 2))
"""A cell and its number of neighbours that are on; cells that are off among neighbours that are off are left out."""


@dataclass(frozen=True)
class Conditionals:
    """Conditionals of the cells of a structured view given everything else, summed over a block of rows.

    Attributes
    ----------
    value : float
        Weighted log-likelihood.
    residual : ndarray of shape (n_rows, width)
        Its derivative in the natural parameters of nodes and couplings, in units of their features.
    of_intercept : ndarray of shape (width,)
        Its derivative in the linear terms.
    own : sparse matrix of shape (width, width)
        Symmetric correction of the derivative in J beyond ``residual' features``: a cell does not predict itself.
    """

    value: float
    residual: Array
    of_intercept: Array
    own: Any


class Structure(Protocol):
    """Nodes, couplings and features of a structured view."""

    @property
    def n_nodes(self) -> int:
        """Number of nodes, the first rows of W; couplings follow."""

    @property
    def width(self) -> int:
        """Number of nodes and couplings: rows of W."""

    @property
    def is_latent(self) -> bool:
        """Whether couplings depend on the latents."""

    @property
    def length(self) -> int:
        """Number of cells of each node in a row that lacks the view."""

    @property
    def centre(self) -> Array:
        """Frequencies of cells that are on, then of pairs of neighbours that both are."""

    @property
    def spread(self) -> Array:
        """Standard deviations of features."""

    @property
    def turn(self) -> Any:
        """The matrix T of the module docstring; sparse, (width, width)."""

    def features(self, data: Any) -> Array:
        """Return the features of rows, (n_rows, width), minus their means."""

    def features_of(self, cells: Array) -> Array:
        """Return the features of rows of `length` cells a node, from their cells."""

    def conditionals(self, data: Any, m: Array, weights: Array, intercept: Array, w: Array | None) -> Conditionals:
        """Return the conditionals of all cells; `w` are weights of rows."""

    def rates(self, features: Array) -> Array:
        """Return frequencies like those of `centre`, from features of rows of `length` cells a node."""

    def expected(self, eta: Array) -> Array:
        """Return the expected features (n_rows, width) under natural parameters of nodes and couplings."""

    def probabilities(self, eta: Array) -> Array:
        """Return the probabilities of all cells under natural parameters, (n_rows, ...)."""

    def drawn(self, eta: Array, random: np.random.Generator, cells: Array | None) -> Array:
        """Draw cells, in the shape of `probabilities`; by one Gibbs step from `cells` where no draw is exact."""


def natural(structure: Structure, h: Array, weights: Array, intercept: Array, features: Array | None = None) -> Array:
    r"""Return the natural parameters (n_rows, width) of nodes and couplings given the latents h.

    With expected features h is the latents' expectation, which includes each node's own part: then
    :math:`|W_i|^2 (1/2 - p_i) / P` is added, p the frequency of a node or coupling.
    """
    weights = structure.turn @ weights
    eta = h @ weights.T / np.sqrt(structure.length) + intercept
    if features is not None:
        q = np.einsum("ik,ik->i", weights, weights) / structure.length
        eta += q * (0.5 - structure.rates(features))
    return np.asarray(eta)


@value_class
@dataclass(frozen=True)
class ChainStructure:
    """Chains over the paragraphs of a document, one for each word, each with one node and one coupling.

    Rows of data are documents (CSR): the number of cells of each word in each of `CONFIGURATIONS`, configuration after
    configuration, then the number of paragraphs. The model needs no more than these counts.

    Attributes
    ----------
    n_nodes : int
        Number of words.
    is_latent, length, centre, spread
        See `Structure`; `length` is the number of paragraphs.
    slope : ndarray of shape (n_nodes,)
        Regression coefficient of the feature of a word's coupling on that of the word.
    """

    n_nodes: int
    is_latent: bool
    length: int
    centre: Array
    spread: Array
    slope: Array

    @property
    def width(self) -> int:
        return 2 * self.n_nodes

    @cached_property
    def turn(self) -> Any:
        nodes = np.arange(self.n_nodes)
        return _turn(self.width, nodes, self.n_nodes + nodes, -self.slope)

    def features(self, data: Any) -> Array:
        counts = data.toarray()
        at = counts[:, :-1].reshape(len(counts), len(CONFIGURATIONS), self.n_nodes)
        return self._centred(at[:, 0] + at[:, 1] + at[:, 2], at[:, 1] / 2 + at[:, 2], counts[:, -1:])

    def features_of(self, cells: Array) -> Array:
        return self._centred(cells.sum(axis=1), (cells[:, 1:] * cells[:, :-1]).sum(axis=1), self.length)

    def _centred(self, on: Array, both: Array, length: Any) -> Array:
        """Return the features from the numbers of cells and of neighbouring pairs of cells that are on, by word."""
        root, words = np.sqrt(length), self.n_nodes
        nodes = on / root - root * self.centre[:words]
        couplings = both / root - (length - 1) / root * self.centre[words:]
        return np.concatenate([nodes, couplings - self.slope * nodes], axis=1)

    def rates(self, features: Array) -> Array:
        shares = np.full(self.width, 1 / np.sqrt(self.length))
        shares[self.n_nodes :] = np.sqrt(self.length) / max(self.length - 1, 1)
        features = features.copy()
        features[:, self.n_nodes :] += self.slope * features[:, : self.n_nodes]
        return np.asarray(features * shares + self.centre)

    def _chains(self, eta: Array) -> Chains:
        """Return the chain of each word of each row."""
        unary = np.zeros((eta[:, : self.n_nodes].size, self.length, 2))
        unary[:, :, 1] = eta[:, : self.n_nodes].ravel()[:, None]
        steps = np.zeros((len(unary), 2, 2))
        steps[:, 1, 1] = eta[:, self.n_nodes :].ravel()
        table = np.repeat(np.arange(len(unary), dtype=np.int32), self.length)
        offsets = self.length * np.arange(len(unary) + 1)
        return Chains(unary.reshape(-1, 2), steps, offsets, table)

    def expected(self, eta: Array) -> Array:
        if not eta.size:
            return np.zeros_like(eta)
        sums, shape = self._chains(eta).sums(n_jobs=1), (len(eta), self.n_nodes, self.length)
        on = sums.marginals[:, 1].reshape(shape).sum(axis=2)
        return self._centred(on, sums.steps[:, 1, 1].reshape(shape[:2]), self.length)

    def probabilities(self, eta: Array) -> Array:
        return self._cells(self._chains(eta).sums(n_jobs=1).marginals[:, 1] if eta.size else eta, len(eta))

    def drawn(self, eta: Array, random: np.random.Generator, cells: Array | None) -> Array:
        chains = self._chains(eta)
        states = chains.sample(random.random(len(chains.unary)), n_jobs=1) if eta.size else eta
        return self._cells(states.astype(np.float64), len(eta))

    def _cells(self, states: Array, n: int) -> Array:
        """Arrange values of the cells of all chains as an array of shape (n, length, n_nodes)."""
        return np.ascontiguousarray(states.reshape(n, self.n_nodes, self.length).transpose(0, 2, 1))

    def conditionals(self, data: Any, m: Array, weights: Array, intercept: Array, w: Array | None) -> Conditionals:
        # Cells that are off and whose neighbours are off are summed by word, all others by configuration.
        n, words = data.shape[0], self.n_nodes
        entries = data.tocoo()
        is_cell = entries.col < data.shape[1] - 1
        length: Array = np.zeros(n)
        length[entries.row[~is_cell]] = entries.data[~is_cell]
        row, count = entries.row[is_cell], entries.data[is_cell]
        kind, word = np.divmod(entries.col[is_cell], words)
        x, neighbours = np.array(CONFIGURATIONS, dtype=np.float64)[kind].T
        off = length[:, None] - np.bincount(row * words + word, count, n * words).reshape(n, words)
        if w is not None:
            count, off = count * w[row], off * w[:, None]
        a, g = intercept[:words], intercept[words:]
        weights = self.turn @ weights
        wn, wr = weights[:words], weights[words:]
        q = [np.einsum("ik,ik->i", u, v) for u, v in ((wn, wn), (wn, wr), (wr, wr))]
        root, share = 1 / np.sqrt(length), 1 / length
        unary, step = (m @ wn.T) * root[:, None], (m @ wr.T) * root[:, None]
        eta = a + unary + share[:, None] * (q[0] / 2)
        e = -off * expit(eta)
        value = -float(np.einsum("ij,ij->", off, np.logaddexp(0, eta)))
        half = share @ e / 2
        own = [half, np.zeros(words), np.zeros(words)]
        eta = a[word] + unary[row, word] + neighbours * (g[word] + step[row, word])
        squares = q[0][word] + neighbours * (2 * q[1][word] + neighbours * q[2][word])
        eta += (0.5 - x) * share[row] * squares
        value += float(count @ (x * eta - np.logaddexp(0, eta)))
        entry = count * (x - expit(eta))
        back = entry * (0.5 - x) * share[row]
        for power in range(3):
            own[power] = own[power] + np.bincount(word, back * neighbours**power, words)
        flat = row * words + word
        e += np.bincount(flat, entry, n * words).reshape(n, words)
        pairs = np.bincount(flat, entry * neighbours, n * words).reshape(n, words)
        residual = np.concatenate([e, pairs], axis=1)
        nodes, couplings = np.arange(words), words + np.arange(words)
        places = [nodes, nodes, couplings, couplings], [nodes, couplings, nodes, couplings]
        of_own = _assembled(self.width, *places, [own[0], own[1], own[1], own[2]])
        return _turned(self.turn, value, residual * root[:, None], residual.sum(axis=0), of_own)


@value_class
@dataclass(frozen=True)
class GraphStructure:
    """Bits on a graph: each bit is a node, each edge a coupling.

    Rows of data are bits (CSR of ones).

    Attributes
    ----------
    edges : ndarray of shape (n_edges, 2)
        Pairs of different nodes, none twice.
    n_nodes, is_latent, centre, spread
        See `Structure`.
    """

    n_nodes: int
    is_latent: bool
    edges: NDArray[np.intp]
    centre: Array
    spread: Array

    length = 1

    @property
    def width(self) -> int:
        return self.n_nodes + len(self.edges)

    @cached_property
    def _ends(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Node, neighbour and edge of each end of each edge."""
        node, neighbour = np.concatenate([self.edges, self.edges[:, ::-1]]).T
        return node, neighbour, np.tile(np.arange(len(self.edges)), 2)

    @cached_property
    def _sums(self) -> tuple[Any, Any]:
        """Matrices that sum over ends by node, and by edge."""
        node, _, edge = self._ends
        ends, ones = np.arange(len(node)), np.ones(len(node))
        by_node = sparse.csr_matrix((ones, (node, ends)), shape=(self.n_nodes, len(node)))
        return by_node, sparse.csr_matrix((ones, (edge, ends)), shape=(len(self.edges), len(node)))

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Any]:
        """Pairs of ends at the same node, each pair once, and the matrix that sums over them by node."""
        node = self._ends[0]
        order = np.argsort(node, kind="stable")
        sizes = np.bincount(node, minlength=self.n_nodes)
        starts = np.cumsum(sizes) - sizes
        found = [np.column_stack(np.triu_indices(k, 1)) + at for at, k in zip(starts, sizes, strict=True) if k > 1]
        first, second = order[np.concatenate(found)].T if found else np.empty((2, 0), dtype=np.intp)
        places = node[first], np.arange(len(first))
        return first, second, sparse.csr_matrix((np.ones(len(first)), places), shape=(self.n_nodes, len(first)))

    @cached_property
    def turn(self) -> Any:
        # The feature of an edge is the product of its ends' deviations from their means.
        edges = self.n_nodes + np.tile(np.arange(len(self.edges)), 2)
        means = self.centre[self.edges[:, ::-1]].T.ravel()
        return _turn(self.width, self.edges.T.ravel(), edges, -means)

    def features(self, data: Any) -> Array:
        return self.features_of(data.toarray())

    def features_of(self, cells: Array) -> Array:
        x = cells.T - self.centre[: self.n_nodes, None]
        i, j = self.edges.T
        both = x[i] * x[j] - (self.centre[self.n_nodes :] - self.centre[i] * self.centre[j])[:, None]
        return np.concatenate([x, both]).T

    def rates(self, features: Array) -> Array:
        p = features + self.centre
        i, j = self.edges.T
        p[:, self.n_nodes :] += features[:, i] * self.centre[j] + features[:, j] * self.centre[i]
        return np.asarray(p)

    def expected(self, eta: Array) -> Array:
        return self.features_of(self.probabilities(eta))

    def probabilities(self, eta: Array) -> Array:
        # by mean field
        p = expit(eta[:, : self.n_nodes])
        for _ in range(SWEEPS):
            change = expit(self._log_odds(eta, p)) - p
            p += DAMPING * change
            if np.abs(change).max(initial=0.0) < SETTLED:
                break
        return np.asarray(p)

    def _log_odds(self, eta: Array, cells: Array) -> Array:
        _, neighbour, edge = self._ends
        acting = cells.T[neighbour] * eta.T[self.n_nodes + edge]
        return np.asarray(eta[:, : self.n_nodes] + (self._sums[0] @ acting).T)

    def drawn(self, eta: Array, random: np.random.Generator, cells: Array | None) -> Array:
        x = np.zeros((len(eta), self.n_nodes)) if cells is None else cells.copy()
        for nodes in self._colours:
            p = expit(self._log_odds(eta, x)[:, nodes])
            x[:, nodes] = random.random(p.shape) < p
        return x

    @cached_property
    def _colours(self) -> list[NDArray[np.intp]]:
        """Greedy colouring: groups of nodes without an edge inside."""
        by_node, neighbour = self._sums[0], self._ends[1]
        colour = np.full(self.n_nodes, -1, dtype=np.intp)
        for i in range(self.n_nodes):
            ends = by_node.indices[by_node.indptr[i] : by_node.indptr[i + 1]]
            taken = set(colour[neighbour[ends]].tolist())
            colour[i] = next(c for c in range(self.n_nodes) if c not in taken)
        return [np.flatnonzero(colour == c) for c in range(int(colour.max(initial=-1)) + 1)]

    def conditionals(self, data: Any, m: Array, weights: Array, intercept: Array, w: Array | None) -> Conditionals:
        # Tables have shape (nodes or ends of edges, rows of the block).
        x, nodes = np.ascontiguousarray(data.toarray().T), self.n_nodes
        node, neighbour, edge = self._ends
        by_node, by_edge = self._sums
        first, second, of_pairs = self._pairs
        weights = self.turn @ weights
        wn, wr = weights[:nodes], weights[nodes:]
        half, near = 0.5 - x, x[neighbour]
        eta = wn @ m.T + intercept[:nodes, None] + half * np.einsum("ik,ik->i", wn, wn)[:, None]
        acting = np.repeat(intercept[nodes:][edge][:, None], len(m), axis=1)
        if self.is_latent:
            joint = near[first] * near[second]
            acting += (wr @ m.T)[edge]
            acting += half[node] * np.einsum("ik,ik->i", 2 * wn[node] + wr[edge], wr[edge])[:, None]
            products = 2 * np.einsum("ik,ik->i", wr[edge[first]], wr[edge[second]])
            eta += half * (of_pairs @ (joint * products[:, None]))
        eta += by_node @ (acting * near)
        value, e = x * eta - np.logaddexp(0, eta), x - expit(eta)
        if w is not None:
            value *= w
            e *= w
        residual = np.concatenate([e, by_edge @ (e[node] * near)])
        back = e * half
        rows, columns, entries = [np.arange(nodes)], [np.arange(nodes)], [back.sum(axis=1)]
        if self.is_latent:
            crossing = np.einsum("ij,ij->i", back[node], near)
            pairs = np.einsum("ij,ij->i", back[node[first]], joint)
            rows += [node, nodes + edge, nodes + edge, nodes + edge[first], nodes + edge[second]]
            columns += [nodes + edge, node, nodes + edge, nodes + edge[second], nodes + edge[first]]
            entries += [crossing, crossing, crossing, pairs, pairs]
        own = _assembled(self.width, rows, columns, entries)
        return _turned(self.turn, float(value.sum()), residual.T, residual.sum(axis=1), own)


def _turn(width: int, nodes: NDArray[np.intp], couplings: NDArray[np.intp], entries: Array) -> Any:
    """Return the identity plus entries in rows of nodes and columns of couplings."""
    every = np.arange(width)
    return _assembled(width, [every, nodes], [every, couplings], [np.ones(width), entries])


def _assembled(width: int, rows: list[Any], columns: list[Any], entries: list[Array]) -> Any:
    """Return a square sparse matrix from parts of its triplets."""
    places = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_matrix((np.concatenate(entries), places), shape=(width, width))


def _turned(turn: Any, value: float, residual: Array, of_intercept: Array, own: Any) -> Conditionals:
    """Convert derivatives in the features F to those in f = F T."""
    return Conditionals(value, (turn.T @ residual.T).T, of_intercept, turn.T @ own @ turn)


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
    rows = Chunks(bits, weights=weights)
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

    sums = Chunks(data, weights=weights).map_sum(visit) / weights.sum()
    return sums[: structure.width], sums[structure.width :]
