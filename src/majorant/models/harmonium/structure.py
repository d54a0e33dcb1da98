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

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator
from scipy.special import expit

from majorant.registry import value_class
from majorant.solvers.chains import Chains
from majorant.solvers.logistic import positions, softplus_and_minus_sigmoid

Array = NDArray[np.float64]

SWEEPS, SETTLED, DAMPING = 200, 1e-9, 0.5
"""Settings of mean field on a graph."""
CONFIGURATIONS = ((1, 0), (1, 1), (1, 2), (0, 1), (0, 2))
"""A cell and its number of neighbours that are on; cells that are off among neighbours that are off are left out."""


@dataclass(frozen=True)
class Conditionals:
    """Conditionals of the cells of a structured view given everything else, summed over a block of rows."""

    value: float  # weighted log-likelihood
    # (n_rows, width): its derivative in the natural parameters of nodes and couplings, in units of their features
    residual: LinearOperator
    of_intercept: Array  # (width,): its derivative in the linear terms
    # (width, width): symmetric correction of the derivative in J beyond ``residual' features``: a cell does not predict
    # itself
    own: LinearOperator


@value_class
@dataclass(frozen=True)
class ChainStructure:
    """Chains over the paragraphs of a document, one for each word, each with one node and one coupling.

    Rows of data are documents (CSR): the number of cells of each word in each of `CONFIGURATIONS`, configuration after
    configuration, then the number of paragraphs. The model needs no more than these counts.
    """

    n_nodes: int  # number of words, the first rows of W; couplings follow
    is_latent: bool  # whether couplings depend on the latents
    length: int  # number of cells of each node (of paragraphs) in a row that lacks the view
    centre: Array  # frequencies of cells that are on, then of pairs of neighbours that both are
    spread: Array  # standard deviations of features
    slope: Array  # (n_nodes,): regression coefficient of the feature of a word's coupling on that of the word

    @property
    def width(self) -> int:
        """Number of nodes and couplings: rows of W."""
        return 2 * self.n_nodes

    @cached_property
    def turn(self) -> Any:
        """The matrix T of the module docstring; sparse, (width, width)."""
        nodes = np.arange(self.n_nodes)
        return _turn(self.width, nodes, self.n_nodes + nodes, -self.slope)

    def features(self, data: Any) -> Array:
        """Return the features of rows, (n_rows, width), minus their means."""
        counts = data.toarray()
        at = counts[:, :-1].reshape(len(counts), len(CONFIGURATIONS), self.n_nodes)
        return self._centred(at[:, 0] + at[:, 1] + at[:, 2], at[:, 1] / 2 + at[:, 2], counts[:, -1:])

    def table(self, data: Any) -> LinearOperator:
        """Return the features of rows as a factor of products, by which sparse rows stay sparse."""
        length, words = data[:, [-1]].toarray(), np.arange(self.n_nodes)
        root = np.sqrt(length)
        kinds = [0, 1, 2, 1, 2]  # configurations of cells that are on, then of those with neighbours that are
        rows = np.concatenate([kind * self.n_nodes + words for kind in kinds])
        columns = np.concatenate([words, words, words, words + self.n_nodes, words + self.n_nodes])
        entries = np.repeat([1.0, 1.0, 1.0, 0.5, 1.0], self.n_nodes)
        sums = sparse.csr_matrix((entries, (rows, columns)), shape=(data.shape[1], self.width))
        means = np.zeros((2, self.width))
        means[0, : self.n_nodes], means[1, self.n_nodes :] = np.split(self.centre, 2)
        own = sparse.diags_array(1 / root[:, 0]) @ (data @ sums)
        return _factor([own], self.turn, np.column_stack([root, (length - 1) / root]), means)

    def features_of(self, cells: Array) -> Array:
        """Return the features of rows of `length` cells a node, from their cells."""
        return self._centred(cells.sum(axis=1), (cells[:, 1:] * cells[:, :-1]).sum(axis=1), self.length)

    def _centred(self, on: Array, both: Array, length: Any) -> Array:
        """Return the features from the numbers of cells and of neighbouring pairs of cells that are on, by word."""
        root, words = np.sqrt(length), self.n_nodes
        nodes = on / root - root * self.centre[:words]
        couplings = both / root - (length - 1) / root * self.centre[words:]
        return np.concatenate([nodes, couplings - self.slope * nodes], axis=1)

    def rates(self, features: Array) -> Array:
        """Return frequencies like those of `centre`, from features of rows of `length` cells a node."""
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
        """Return the expected features (n_rows, width) under natural parameters of nodes and couplings."""
        if not eta.size:
            return np.zeros_like(eta)
        sums, shape = self._chains(eta).sums(n_jobs=1), (len(eta), self.n_nodes, self.length)
        on = sums.marginals[:, 1].reshape(shape).sum(axis=2)
        return self._centred(on, sums.steps[:, 1, 1].reshape(shape[:2]), self.length)

    def probabilities(self, eta: Array) -> Array:
        """Return the probabilities of all cells under natural parameters, (n_rows, ...)."""
        return self._cells(self._chains(eta).sums(n_jobs=1).marginals[:, 1] if eta.size else eta, len(eta))

    def drawn(self, eta: Array, random: np.random.Generator, cells: Array | None) -> Array:
        """Draw cells, in the shape of `probabilities`; on a graph by one Gibbs step from `cells`."""
        chains = self._chains(eta)
        states = chains.sample(random.random(len(chains.unary)), n_jobs=1) if eta.size else eta
        return self._cells(states.astype(np.float64), len(eta))

    def _cells(self, states: Array, n: int) -> Array:
        """Arrange values of the cells of all chains as an array of shape (n, length, n_nodes)."""
        return np.ascontiguousarray(states.reshape(n, self.n_nodes, self.length).transpose(0, 2, 1))

    def cells(self, data: Any) -> Any:
        """Return what `conditionals` reads of rows, whatever the parameters: it is kept beside them."""
        return data

    def conditionals(self, cells: Any, m: Array, weights: Array, intercept: Array, w: Array | None) -> Conditionals:
        """Return the conditionals of all cells; `w` are weights of rows."""
        # Cells that are off and whose neighbours are off are summed by word, all others by configuration.
        n, words = cells.shape[0], self.n_nodes
        entries = cells.tocoo()
        is_cell = entries.col < cells.shape[1] - 1
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
        of_intercept = np.concatenate([e.sum(axis=0), pairs.sum(axis=0)])
        nodes, couplings = np.arange(words), words + np.arange(words)
        places = [nodes, nodes, couplings, couplings], [nodes, couplings, nodes, couplings]
        of_own = _assembled(self.width, *places, [own[0], own[1], own[1], own[2]])
        residual = _factor([e * root[:, None], pairs * root[:, None]], self.turn)
        return Conditionals(value, residual, of_intercept, _turned(of_own, self.turn))


@value_class
@dataclass(frozen=True)
class GraphStructure:
    """Bits on a graph: each bit is a node, each edge a coupling. Attributes and methods are as of `ChainStructure`.

    Rows of data are bits (CSR of ones).
    """

    n_nodes: int
    is_latent: bool
    edges: NDArray[np.intp]  # (n_edges, 2): pairs of different nodes, none twice
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
    def _ends_by(self) -> tuple[Any, Any]:
        """The ends of edges by node, and by neighbour: sparse matrices (nodes, ends)."""
        ends, shape = np.arange(2 * len(self.edges)), (self.n_nodes, 2 * len(self.edges))
        by_node, by_neighbour = (sparse.csr_matrix((np.ones(len(ends)), (at, ends)), shape) for at in self._ends[:2])
        return by_node, by_neighbour

    @cached_property
    def turn(self) -> Any:
        # The feature of an edge is the product of its ends' deviations from their means.
        edges = self.n_nodes + np.tile(np.arange(len(self.edges)), 2)
        means = self.centre[self.edges[:, ::-1]].T.ravel()
        return _turn(self.width, self.edges.T.ravel(), edges, -means)

    def features(self, data: Any) -> Array:
        return self.features_of(data.toarray())

    def table(self, data: Any) -> LinearOperator:
        row, end = self._acting(data)
        edge, first = end % max(len(self.edges), 1), end < len(self.edges)
        on = np.zeros(data.shape, dtype=bool)
        on.ravel()[positions(data)] = True
        both = first & on[row, self._ends[0][end]]
        pairs = sparse.csr_matrix((np.ones(both.sum()), (row[both], edge[both])), shape=(len(on), len(self.edges)))
        return _factor([data, pairs], self.turn, np.ones((len(on), 1)), self.centre[None])

    def _acting(self, data: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the row and the end of each edge whose neighbour is on."""
        by_neighbour = self._ends_by[1]
        counts = np.diff(by_neighbour.indptr)[data.indices]
        starts = by_neighbour.indptr[data.indices]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        row = np.repeat(np.arange(data.shape[0]), np.diff(data.indptr))
        return np.repeat(row, counts), by_neighbour.indices[np.repeat(starts, counts) + within]

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
        return np.asarray(eta[:, : self.n_nodes] + (self._ends_by[0] @ acting).T)

    def drawn(self, eta: Array, random: np.random.Generator, cells: Array | None) -> Array:
        x = np.zeros((len(eta), self.n_nodes)) if cells is None else cells.copy()
        for nodes in self._colours:
            p = expit(self._log_odds(eta, x)[:, nodes])
            x[:, nodes] = random.random(p.shape) < p
        return x

    @cached_property
    def _colours(self) -> list[NDArray[np.intp]]:
        """Greedy colouring: groups of nodes without an edge inside."""
        by_node, neighbour = self._ends_by[0], self._ends[1]
        colour = np.full(self.n_nodes, -1, dtype=np.intp)
        for i in range(self.n_nodes):
            ends = by_node.indices[by_node.indptr[i] : by_node.indptr[i + 1]]
            taken = set(colour[neighbour[ends]].tolist())
            colour[i] = next(c for c in range(self.n_nodes) if c not in taken)
        return [np.flatnonzero(colour == c) for c in range(int(colour.max(initial=-1)) + 1)]

    def cells(self, data: Any) -> _ActedCells:
        row, end = self._acting(data)
        edge, at = self._ends[2][end], row * self.n_nodes + self._ends[0][end]
        acted = np.zeros(data.shape[0] * self.n_nodes, dtype=bool)
        acted[at] = True
        flat = np.flatnonzero(acted)
        number = np.searchsorted(flat, at)
        on = positions(data)
        acted[:] = False
        acted[on] = True
        acting = sparse.csr_matrix((np.ones(len(edge)), (number, edge)), shape=(len(flat), len(self.edges)))
        starts = np.searchsorted(row, np.arange(data.shape[0] + 1))
        return _ActedCells(data, on, flat, 0.5 - acted[flat], acting, number, edge, starts)

    def conditionals(
        self, cells: _ActedCells, m: Array, weights: Array, intercept: Array, w: Array | None
    ) -> Conditionals:
        # Cells without a neighbour that is on are like bits without edges; each other one, with those that act on it.
        n, nodes, edges = cells.data.shape[0], self.n_nodes, len(self.edges)
        row, node = np.divmod(cells.flat, nodes)
        ones, acting, half = cells.data.indices, cells.acting, cells.half
        weights = self.turn @ weights
        wn, a = weights[:nodes], intercept[:nodes]
        q = np.einsum("ik,ik->i", wn, wn)
        eta = m @ wn.T
        eta += a + q / 2
        eta.ravel()[cells.on] -= q[ones]
        more = acting @ intercept[nodes:]
        if self.is_latent:
            change = acting @ weights[nodes:]
            more += np.einsum("ik,ik->i", change, m[row])
            more += half * np.einsum("ik,ik->i", 2 * wn[node] + change, change)
        eta.ravel()[cells.flat] += more
        shares = np.ones(n) if w is None else w
        value = float(np.repeat(shares, np.diff(cells.data.indptr)) @ eta.ravel()[cells.on])
        softplus, e = softplus_and_minus_sigmoid(eta)
        value -= float(shares @ softplus)
        e.ravel()[cells.on] += 1.0
        e *= shares[:, None]
        of_cells = e.ravel()[cells.flat]
        entries = of_cells[cells.number]
        pairs = sparse.csr_matrix((entries, cells.edge, cells.starts), shape=(n, edges))
        of_intercept = np.concatenate([e.sum(axis=0), np.bincount(cells.edge, entries, edges)])
        own_back = of_intercept[:nodes] / 2 - np.bincount(ones, e.ravel()[cells.on], nodes)
        own: Any = sparse.diags_array(np.append(own_back, np.zeros(edges)), format="csr")
        if self.is_latent:
            weighted = sparse.diags_array(of_cells * half) @ acting
            crossing = sparse.csr_matrix((np.ones(len(node)), (node, np.arange(len(node)))), (nodes, len(node)))
            crossing = crossing @ weighted
            own = own + sparse.block_array([[None, crossing], [crossing.T, acting.T @ weighted]], format="csr")
        return Conditionals(value, _factor([e, pairs], self.turn), of_intercept, _turned(own, self.turn))


Structure = ChainStructure | GraphStructure


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


@dataclass(frozen=True)
class _ActedCells:
    """Rows of bits, and their cells with a neighbour that is on, on which edges act."""

    data: Any  # CSR (n_rows, n_nodes)
    # positions, in the flat table, of the ones and of the cells
    on: NDArray[np.intp]
    flat: NDArray[np.intp]
    half: Array  # 0.5 less the value of each cell
    acting: Any  # CSR (n_cells, n_edges): the edges that act on each cell
    # the cell and the edge of each of these, row by row, and where rows start
    number: NDArray[np.intp]
    edge: NDArray[np.intp]
    starts: NDArray[np.intp]


def _turn(width: int, nodes: NDArray[np.intp], couplings: NDArray[np.intp], entries: Array) -> Any:
    """Return the identity plus entries in rows of nodes and columns of couplings."""
    every = np.arange(width)
    return _assembled(width, [every, nodes], [every, couplings], [np.ones(width), entries])


def _assembled(width: int, rows: list[Any], columns: list[Any], entries: list[Array]) -> Any:
    """Return a square sparse matrix from parts of its triplets."""
    places = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_matrix((np.concatenate(entries), places), shape=(width, width))


def _turned(own: Any, turn: Any) -> LinearOperator:
    """Return the symmetric ``turn.T @ own @ turn`` as a factor of products."""

    def times(v: Array) -> Array:
        return np.asarray(turn.T @ (own @ (turn @ v)))

    return LinearOperator(own.shape, times, times, times, np.float64, times)


def _factor(parts: list[Any], turn: Any, shares: Array | None = None, means: Array | None = None) -> LinearOperator:
    """Return (parts side by side less shares times means) times `turn`, as a factor of products."""
    ends = np.cumsum([part.shape[1] for part in parts])[:-1]

    def forward(v: Array) -> Array:
        v = turn @ v
        out = sum(part @ own for part, own in zip(parts, np.split(v, ends), strict=True))
        return np.asarray(out if shares is None or means is None else out - shares @ (means @ v))

    def back(v: Array) -> Array:
        out = np.concatenate([part.T @ v for part in parts])
        return np.asarray(turn.T @ (out if shares is None or means is None else out - means.T @ (shares.T @ v)))

    shape = parts[0].shape[0], turn.shape[0]
    return LinearOperator(shape, forward, back, forward, np.float64, back)
