r"""Bits that act upon their neighbours: chains of bits, and any graph, inside a view of a harmonium.

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

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from majorant.registry import value_class
from majorant.solvers.chains import Chains

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Conditionals:
    """Cells of a structured view given all else, over the rows of a block.

    Attributes
    ----------
    value : float
        Weighted log-likelihood.
    residual : ndarray of shape (n_rows, width)
        Its derivative in the natural parameter of each node and coupling, in units of their features.
    of_intercept : ndarray of shape (width,)
        Its derivative in the linear terms.
    own : sparse matrix of shape (width, width)
        Symmetric; the derivative of the value in J beyond ``residual' features``: a cell says nothing of itself.
    """

    value: float
    residual: Array
    of_intercept: Array
    own: Any


class Structure(Protocol):
    """What is known of the cells of a view, their nodes and their couplings."""

    @property
    def n_nodes(self) -> int:
        """Rows of W that are nodes; couplings follow."""
        ...

    @property
    def width(self) -> int:
        """Nodes and couplings: rows of W."""
        ...

    @property
    def is_latent(self) -> bool:
        """Whether couplings depend on the latents."""
        ...

    @property
    def length(self) -> int:
        """Cells of each node of a row that lacks the view."""
        ...

    @property
    def centre(self) -> Array:
        """Shares of cells, and of neighbours, that are on."""
        ...

    @property
    def spread(self) -> Array:
        """Standard deviations of features."""
        ...

    @property
    def turn(self) -> Any:
        """T: see the module; sparse, (width, width)."""
        ...

    def features(self, data: Any) -> Array:
        """Features of rows, (n_rows, width), minus their means."""
        ...

    def conditionals(self, data: Any, m: Array, weights: Array, intercept: Array, w: Array | None) -> Conditionals:
        """See `Conditionals`; `w` are weights of rows."""
        ...

    def rates(self, features: Array) -> Array:
        """Shares of cells, and of neighbours, that are on, by features of rows that have `length` cells a node."""
        ...

    def expected(self, eta: Array) -> Array:
        """Expected features of such rows by the natural parameters of nodes and couplings, (n_rows, width)."""
        ...

    def probabilities(self, eta: Array) -> Array:
        """Of every cell of such rows, (n_rows, ...)."""
        ...

    def drawn(self, eta: Array, random: np.random.Generator, cells: Array | None) -> Array:
        """Cells of such rows, in the shape of `probabilities`, by a step from others where no draw is exact."""
        ...

    def features_of(self, cells: Array) -> Array:
        """Features of such rows by their cells."""
        ...


def natural(structure: Structure, h: Array, weights: Array, intercept: Array, features: Array | None = None) -> Array:
    r"""Natural parameters of nodes and couplings by latents, (n_rows, width).

    By their expectation given expected features, of which a node or coupling does not act upon itself:
    :math:`|W_i|^2 (1/2 - p_i) / P` is added, p its rate.
    """
    weights = structure.turn @ weights
    eta = h @ weights.T / np.sqrt(structure.length) + intercept
    if features is not None:
        q = np.einsum("ik,ik->i", weights, weights) / structure.length
        eta += q * (0.5 - structure.rates(features))
    return np.asarray(eta)


LEAST_SPREAD = 0.01
"""The penalty of a bit is at least that of one with this variance."""
SWEEPS, SETTLED, DAMPING = 200, 1e-9, 0.5
"""Of mean field on a graph."""
CONFIGURATIONS = ((1, 0), (1, 1), (1, 2), (0, 1), (0, 2))
"""A cell and how many of its neighbours are on, but for cells that are off among neighbours that are off."""


@value_class
@dataclass(frozen=True)
class ChainStructure:
    """Chains of cells, one a word, over the paragraphs of a document: a node and a coupling for each word.

    Rows of data are documents: how many cells of each word are in each of `CONFIGURATIONS`, configuration after
    configuration, and at last the number of paragraphs (CSR). These counts are all that the model meets.

    Attributes
    ----------
    n_nodes : int
        Words.
    is_latent : bool
        Whether couplings depend on the latents.
    length : int
        Paragraphs of a document whose view is missing.
    centre : ndarray of shape (2 n_nodes,)
        Share of cells that are on, then of neighbours that both are.
    spread : ndarray of shape (2 n_nodes,)
        Standard deviations of features.
    slope : ndarray of shape (n_nodes,)
        Of the feature of a word's coupling on that of the word.
    """

    n_nodes: int
    is_latent: bool
    length: int
    centre: Array
    spread: Array
    slope: Array

    @property
    def width(self) -> int:
        """Rows of W."""
        return 2 * self.n_nodes

    @cached_property
    def turn(self) -> Any:
        """See `Structure`."""
        nodes = np.arange(self.n_nodes)
        return _turn(self.width, nodes, self.n_nodes + nodes, -self.slope)

    def features(self, data: Any) -> Array:
        """See `Structure`."""
        counts = data.toarray()
        at = counts[:, :-1].reshape(len(counts), len(CONFIGURATIONS), self.n_nodes)
        return self._centred(at[:, 0] + at[:, 1] + at[:, 2], at[:, 1] / 2 + at[:, 2], counts[:, -1:])

    def features_of(self, cells: Array) -> Array:
        """See `Structure`."""
        return self._centred(cells.sum(axis=1), (cells[:, 1:] * cells[:, :-1]).sum(axis=1), self.length)

    def _centred(self, on: Array, both: Array, length: Any) -> Array:
        """Features by how many cells of each word are on, and how many neighbours both are."""
        root, words = np.sqrt(length), self.n_nodes
        nodes = on / root - root * self.centre[:words]
        couplings = both / root - (length - 1) / root * self.centre[words:]
        return np.concatenate([nodes, couplings - self.slope * nodes], axis=1)

    def rates(self, features: Array) -> Array:
        """See `Structure`."""
        shares = np.full(self.width, 1 / np.sqrt(self.length))
        shares[self.n_nodes :] = np.sqrt(self.length) / max(self.length - 1, 1)
        features = features.copy()
        features[:, self.n_nodes :] += self.slope * features[:, : self.n_nodes]
        return np.asarray(features * shares + self.centre)

    def _chains(self, eta: Array) -> Chains:
        """The law of each word of each row."""
        unary = np.zeros((eta[:, : self.n_nodes].size, self.length, 2))
        unary[:, :, 1] = eta[:, : self.n_nodes].ravel()[:, None]
        steps = np.zeros((len(unary), 2, 2))
        steps[:, 1, 1] = eta[:, self.n_nodes :].ravel()
        table = np.repeat(np.arange(len(unary), dtype=np.int32), self.length)
        offsets = self.length * np.arange(len(unary) + 1)
        return Chains(unary.reshape(-1, 2), steps, offsets, table)

    def expected(self, eta: Array) -> Array:
        """See `Structure`."""
        if not eta.size:
            return np.zeros_like(eta)
        sums, shape = self._chains(eta).sums(n_jobs=1), (len(eta), self.n_nodes, self.length)
        on = sums.marginals[:, 1].reshape(shape).sum(axis=2)
        return self._centred(on, sums.steps[:, 1, 1].reshape(shape[:2]), self.length)

    def probabilities(self, eta: Array) -> Array:
        """See `Structure`: (n_rows, length, n_nodes)."""
        if not eta.size:
            return np.zeros((len(eta), self.length, self.n_nodes))
        marginals = self._chains(eta).sums(n_jobs=1).marginals[:, 1]
        return np.ascontiguousarray(marginals.reshape(len(eta), self.n_nodes, self.length).transpose(0, 2, 1))

    def drawn(self, eta: Array, random: np.random.Generator, cells: Array | None) -> Array:
        """See `Structure`; exact."""
        if not eta.size:
            return np.zeros((len(eta), self.length, self.n_nodes))
        chains = self._chains(eta)
        states = chains.sample(random.random(len(chains.unary)), n_jobs=1).astype(np.float64)
        return np.ascontiguousarray(states.reshape(len(eta), self.n_nodes, self.length).transpose(0, 2, 1))

    def conditionals(self, data: Any, m: Array, weights: Array, intercept: Array, w: Array | None) -> Conditionals:
        """See `Structure`. Cells that are off and whose neighbours are off are met all at once, the others by kind."""
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
    """Bits on a graph: each is a node of its own, each edge a coupling.

    Rows of data are bits (CSR of ones).

    Attributes
    ----------
    n_nodes : int
    is_latent : bool
    edges : ndarray of shape (n_edges, 2)
        Pairs of different nodes, none twice.
    centre : ndarray of shape (n_nodes + n_edges,)
        Share of bits that are on, then of edges whose ends both are.
    spread : ndarray of shape (n_nodes + n_edges,)
    """

    n_nodes: int
    is_latent: bool
    edges: NDArray[np.intp]
    centre: Array
    spread: Array

    @property
    def width(self) -> int:
        """Rows of W."""
        return self.n_nodes + len(self.edges)

    @cached_property
    def _ends(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Each end of each edge: the node there, its neighbour, and the edge."""
        node, neighbour = np.concatenate([self.edges, self.edges[:, ::-1]]).T
        return node, neighbour, np.tile(np.arange(len(self.edges)), 2)

    @cached_property
    def _sums(self) -> tuple[Any, Any]:
        """Sums of ends by node, and by edge."""
        node, _, edge = self._ends
        ends, ones = np.arange(len(node)), np.ones(len(node))
        by_node = sparse.csr_matrix((ones, (node, ends)), shape=(self.n_nodes, len(node)))
        return by_node, sparse.csr_matrix((ones, (edge, ends)), shape=(len(self.edges), len(node)))

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Any]:
        """Two different ends at one node, by number, each pair once; and sums of them by node."""
        node = self._ends[0]
        order = np.argsort(node, kind="stable")
        sizes = np.bincount(node, minlength=self.n_nodes)
        starts = np.cumsum(sizes) - sizes
        found = [np.column_stack(np.triu_indices(k, 1)) + at for at, k in zip(starts, sizes, strict=True) if k > 1]
        first, second = order[np.concatenate(found)].T if found else np.empty((2, 0), dtype=np.intp)
        places = node[first], np.arange(len(first))
        return first, second, sparse.csr_matrix((np.ones(len(first)), places), shape=(self.n_nodes, len(first)))

    @property
    def length(self) -> int:
        """Cells of a node."""
        return 1

    @cached_property
    def turn(self) -> Any:
        """See `Structure`: the feature of an edge is the product of its ends' deviations from their means."""
        edges = self.n_nodes + np.tile(np.arange(len(self.edges)), 2)
        means = self.centre[self.edges[:, ::-1]].T.ravel()
        return _turn(self.width, self.edges.T.ravel(), edges, -means)

    def features(self, data: Any) -> Array:
        """See `Structure`."""
        return self.features_of(data.toarray())

    def features_of(self, cells: Array) -> Array:
        """See `Structure`."""
        x = cells.T - self.centre[: self.n_nodes, None]
        i, j = self.edges.T
        both = x[i] * x[j] - (self.centre[self.n_nodes :] - self.centre[i] * self.centre[j])[:, None]
        return np.concatenate([x, both]).T

    def rates(self, features: Array) -> Array:
        """See `Structure`."""
        p = features + self.centre
        i, j = self.edges.T
        p[:, self.n_nodes :] += features[:, i] * self.centre[j] + features[:, j] * self.centre[i]
        return np.asarray(p)

    def expected(self, eta: Array) -> Array:
        """See `Structure`; by mean field."""
        return self.features_of(self.probabilities(eta))

    def probabilities(self, eta: Array) -> Array:
        """See `Structure`: (n_rows, n_nodes), by mean field."""
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
        """See `Structure`: each node in turn, those of one colour at once."""
        x = np.zeros((len(eta), self.n_nodes)) if cells is None else cells.copy()
        for nodes in self._colours:
            p = expit(self._log_odds(eta, x)[:, nodes])
            x[:, nodes] = random.random(p.shape) < p
        return x

    @cached_property
    def _colours(self) -> list[NDArray[np.intp]]:
        """Nodes in groups without an edge within, greedily."""
        by_node, neighbour = self._sums[0], self._ends[1]
        colour = np.full(self.n_nodes, -1, dtype=np.intp)
        for i in range(self.n_nodes):
            ends = by_node.indices[by_node.indptr[i] : by_node.indptr[i + 1]]
            taken = set(colour[neighbour[ends]].tolist())
            colour[i] = next(c for c in range(self.n_nodes) if c not in taken)
        return [np.flatnonzero(colour == c) for c in range(int(colour.max(initial=-1)) + 1)]

    def conditionals(self, data: Any, m: Array, weights: Array, intercept: Array, w: Array | None) -> Conditionals:
        """See `Structure`. Tables are nodes, or ends of edges, by rows of the block."""
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
    """The identity, and entries of nodes (rows) and couplings (columns)."""
    every = np.arange(width)
    return _assembled(width, [every, nodes], [every, couplings], [np.ones(width), entries])


def _assembled(width: int, rows: list[Any], columns: list[Any], entries: list[Array]) -> Any:
    """A square sparse matrix."""
    places = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_matrix((np.concatenate(entries), places), shape=(width, width))


def _turned(turn: Any, value: float, residual: Array, of_intercept: Array, own: Any) -> Conditionals:
    """Derivatives in the features F as those in f = F T."""
    return Conditionals(value, (turn.T @ residual.T).T, of_intercept, turn.T @ own @ turn)
