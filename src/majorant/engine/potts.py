"""Labelings of a graph's units that minimise unit energies plus a Potts term."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components, maximum_flow

from majorant.engine.latents import Latent, as_soft

Method = Literal["expansion", "icm"]

LARGEST_CAPACITY = 2.0**29
"""Largest capacity: capacities are 32-bit integers, and a residual may be twice as large."""


@dataclass(frozen=True)
class PottsGraph:
    r"""A graph of units whose linked units prefer equal states.

    .. math:: P(q) = \sum_{(i, j)} c_{ij} \Big(1 - \sum_z q_i(z) q_j(z)\Big)

    For hard labels this is the weight of the edges whose ends differ.
    """

    n_units: int
    edges: NDArray[np.intp]  # (n_edges, 2): each pair once, no unit with itself
    weights: NDArray[np.float64]  # (n_edges,): :math:`c_{ij} > 0`

    @cached_property
    def _arcs(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
        """Every edge in both directions: from, to, weight."""
        a, b = self.edges.T
        return np.concatenate([a, b]), np.concatenate([b, a]), np.concatenate([self.weights, self.weights])

    @cached_property
    def adjacency(self) -> csr_matrix:
        """Symmetric matrix of the weights."""
        tail, head, weight = self._arcs
        return csr_matrix((weight, (tail, head)), shape=(self.n_units, self.n_units))

    @cached_property
    def components(self) -> tuple[int, NDArray[np.int32]]:
        """Number of connected components, and the component of each unit."""
        n_sets, sets = connected_components(self.adjacency, directed=False)
        return int(n_sets), sets

    def energy(self, q: Latent) -> float:
        """Return ``P(q)``."""
        a, b = self.edges.T
        if q.ndim == 1:
            return float(self.weights[q[a] != q[b]].sum())
        return float(self.weights @ (1.0 - np.einsum("iz,iz->i", q[a], q[b])))

    def votes(self, q: Latent, n_states: int) -> NDArray[np.float64]:
        """Return the summed weight of neighbours in each state, ``sum_j c_ij q_j(z)``, shape (n_units, n_states)."""
        return np.asarray(self.adjacency @ as_soft(q, n_states))

    def minimise(
        self,
        unary: NDArray[np.float64],  # (n_units, n_states): infinite where a state is absent
        strength: float,
        z: NDArray[np.integer],  # (n_units,): labels to start from
        # "expansion": alpha-expansion [1]_, where each move is a minimum cut. Exact for two states; for more, no
        # expansion of a state lowers the sum, which is at most that of the minimum with its Potts term doubled. "icm":
        # single units are moved while that lowers the sum [2]_; many times faster, and good only for small `strength`.
        method: Method = "expansion",
    ) -> NDArray[np.int32]:
        r"""Minimise ``sum_i unary_i(z_i) + strength P(z)`` approximately; return labels no worse than the given `z`.

        References
        ----------
        .. [1] Y. Boykov, O. Veksler, R. Zabih, "Fast approximate energy minimization via graph cuts", IEEE Transactions
           on Pattern Analysis and Machine Intelligence, 2001.
        .. [2] J. Besag, "On the statistical analysis of dirty pictures", Journal of the Royal Statistical Society B,
           1986.
        """
        return (self._expand if method == "expansion" else self._one_by_one)(unary, strength, z)

    @cached_property
    def _degrees(self) -> NDArray[np.float64]:
        """Summed weight of the edges of every unit."""
        return np.bincount(self.edges.ravel(), np.repeat(self.weights, 2), self.n_units).astype(np.float64)

    def _expand(self, unary: NDArray[np.float64], strength: float, start: NDArray[np.integer]) -> NDArray[np.int32]:
        z: NDArray[np.int32] = start.astype(np.int32)
        paid = unary[np.arange(self.n_units), z]
        most = strength * self._degrees
        n_states = unary.shape[1]
        state, unchanged = 0, 0
        while unchanged < n_states:
            costs = unary[:, state] - paid
            units = np.flatnonzero((costs < most) & (z != state))  # moving the others cannot lower the sum
            moved = units[self._expansion(state, units, costs[units], strength, z)] if len(units) else units
            z[moved] = state
            paid[moved] = unary[moved, state]
            unchanged = 1 if len(moved) else unchanged + 1
            state = (state + 1) % n_states
        return z

    def _expansion(
        self, state: int, units: NDArray[np.intp], costs: NDArray[np.float64], strength: float, z: NDArray[np.int32]
    ) -> NDArray[np.bool_]:
        """Return which of some units to move to a state; `costs` are those of moving each alone."""
        near = self.adjacency[units]
        tail, neighbour = np.repeat(np.arange(len(units)), np.diff(near.indptr)), near.indices
        capacity = strength * near.data
        number = np.full(self.n_units, -1, dtype=np.intp)
        number[units] = np.arange(len(units))
        head = number[neighbour]
        differ, both = z[units[tail]] != z[neighbour], head >= 0
        # A pair that may both move: half of its present cost goes to each unit, the rest is paid if only one moves.
        now, then = np.where(differ, capacity, 0.0), np.where(z[neighbour] == state, 0.0, capacity)
        own = np.where(both, -0.5 * now, then - now)
        costs = costs + np.bincount(tail, own, len(units))
        tail, head, capacity = tail[both], head[both], np.where(differ, 0.5, 1.0)[both] * capacity[both]
        moves = minimum_cut(costs, tail, head, capacity)
        terms = np.concatenate([costs[moves], 0.5 * capacity[moves[tail] != moves[head]]])
        # Less than this is rounding, which must not cause cycles.
        return moves if terms.sum() < -1e-12 * np.abs(terms).sum() else np.zeros_like(moves)

    def _one_by_one(self, unary: NDArray[np.float64], strength: float, start: NDArray[np.integer]) -> NDArray[np.int32]:
        """Move units that gain more than all their neighbours at the same time, until none gains; return the labels."""
        z: NDArray[np.int32] = start.astype(np.int32)
        rows = np.arange(self.n_units)
        tail, head, _ = self._arcs
        while True:
            cost = unary - strength * self.votes(z, unary.shape[1])
            best = cost.argmin(axis=1).astype(np.int32)
            gain = cost[rows, z] - cost[rows, best]
            gain[gain <= 1e-12 * np.abs(cost[rows, best])] = 0.0
            if not gain.any():
                return z
            highest = np.zeros(self.n_units)
            np.maximum.at(highest, tail, gain[head])
            moves = gain > highest
            if not moves.any():  # equal gains: the first of them
                moves[gain.argmax()] = True
            z[moves] = best[moves]

    def differences(self, z: NDArray[np.integer], other: NDArray[np.integer]) -> tuple[NDArray[np.intp], int]:
        """Find the connected sets of units with different labels: the set of each unit (-1: none), and their number.

        Sets are not adjacent, so the change of P by each does not depend on the others.
        """
        differ = np.flatnonzero(z != other)
        sets = np.full(self.n_units, -1, dtype=np.intp)
        n_sets, sets[differ] = connected_components(self.adjacency[differ][:, differ], directed=False)
        return sets, int(n_sets)

    def energy_changes(
        self, z: NDArray[np.integer], other: NDArray[np.integer], sets: NDArray[np.intp], n_sets: int
    ) -> NDArray[np.float64]:
        """Return the change of P when one set at a time moves from `z` to `other`."""
        tail, head, weight = self._arcs
        inside = sets[tail] >= 0
        tail, head, weight = tail[inside], head[inside], weight[inside]
        shared = sets[head] >= 0
        change = (other[tail] != np.where(shared, other[head], z[head])) * 1.0 - (z[tail] != z[head])
        # An edge inside a set is counted from both ends.
        return np.bincount(sets[tail], weight * np.where(shared, 0.5, 1.0) * change, n_sets).astype(np.float64)


def minimum_cut(
    cost: NDArray[np.float64],  # (n,): infinite for units that are never in the set
    # `tail`, `head`, `capacity`: (n_arcs,): every edge in both directions
    tail: NDArray[np.intp],
    head: NDArray[np.intp],
    capacity: NDArray[np.float64],
) -> NDArray[np.bool_]:
    r"""Return the smallest set of units that minimises its cost plus the capacity of its cut.

    .. math:: \min_x \sum_i x_i\,\mathrm{cost}_i + \tfrac12 \sum_{\text{arcs}} \mathrm{capacity}_{ij} [x_i \ne x_j]

    Units whose side does not depend on the others are fixed first; a maximum flow decides the rest.

    The set is an array (n,) of bool.
    """
    n = len(cost)
    chosen = np.zeros(n, dtype=bool)
    open_ = np.ones(n, dtype=bool)
    while True:
        reach = np.bincount(tail, capacity, n)
        enters = open_ & (cost < -reach)
        settled = enters | (open_ & (cost >= reach))
        if not settled.any():
            break
        fast = 8 * settled.sum() > open_.sum()
        chosen |= enters
        open_ &= ~settled
        edge = open_[tail] & settled[head]
        pull = np.where(chosen[head[edge]], -capacity[edge], capacity[edge])
        cost = cost + np.bincount(tail[edge], pull, n)
        stays = open_[tail] & open_[head]
        tail, head, capacity = tail[stays], head[stays], capacity[stays]
        if not fast:
            break
    units = np.flatnonzero(open_)
    if len(units):
        number = np.cumsum(open_) - 1
        inside = _source_side(cost[units], number[tail], number[head], capacity)
        chosen[units[inside]] = True
    return chosen


def _source_side(
    cost: NDArray[np.float64], tail: NDArray[np.intp], head: NDArray[np.intp], capacity: NDArray[np.float64]
) -> NDArray[np.intp]:
    """Return the minimum cut by a maximum flow: the units still reachable from the source, in ascending order."""
    n = len(cost)
    reach = np.bincount(tail, capacity, n)
    cost = np.clip(cost, -reach, reach)
    # An edge that outweighs all else at one of its ends is never cut; capping it keeps the others' precision.
    largest = np.abs(cost).max()
    most = np.abs(cost) + reach + largest
    capacity = np.minimum(capacity, np.minimum(most[tail], most[head]) - capacity)
    scale = LARGEST_CAPACITY / max(largest, capacity.max())
    whole = np.rint(cost * scale).astype(np.int32)
    gains, costs = np.flatnonzero(whole < 0), np.flatnonzero(whole > 0)
    source, sink = n, n + 1
    rows = np.concatenate([tail, np.full(len(gains), source), costs])
    columns = np.concatenate([head, gains, np.full(len(costs), sink)])
    values = np.concatenate([np.rint(capacity * scale).astype(np.int32), -whole[gains], whole[costs]])
    network = csr_matrix((values, (rows, columns)), shape=(n + 2, n + 2))
    residual = network - maximum_flow(network, source, sink).flow
    residual.eliminate_zeros()
    reached = breadth_first_order(residual, source, return_predecessors=False)
    return np.sort(reached[reached < n]).astype(np.intp)
