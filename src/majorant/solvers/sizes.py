"""Clusters whose sizes must fit: the cheapest assignment for given centres, and k-means with it.

The assignment is a flow of least cost from rows through clusters to a store that takes between the smallest and the
largest size from each. It is found by shortest augmenting paths over the clusters alone, an edge from one cluster to
another being the row that is cheapest to move; each cluster has a price, by which the next assignment begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.solvers.nearest import directions_of, squared_distances

Array = NDArray[np.float64]

ROUNDS = 30
"""Adjustments of prices, cluster by cluster, before paths are looked for."""


@dataclass(frozen=True)
class Sizes:
    """The smallest and the largest weight of a cluster."""

    low: float
    high: float


@dataclass(frozen=True)
class Assigned:
    """An assignment of rows to clusters.

    Attributes
    ----------
    mass : ndarray of shape (k, n)
        The weight of each row in each cluster. At most k - 1 rows are divided, and none if weights and sizes are whole
        multiples of one number.
    prices : ndarray of shape (k,)
        What a unit of weight pays in each cluster beside its cost: above zero only in a full one, below zero only in
        one of the smallest size.
    cost : float
    """

    mass: Array
    prices: Array
    cost: float


def assign_within(costs: Array, weights: Array, sizes: Sizes, prices: Array | None = None) -> Assigned:
    r"""Assign rows to clusters of limited weight at the least cost.

    .. math:: \min_{a \ge 0} \sum_{ij} a_{ij} c_{ij} \quad\text{subject to}\quad \sum_j a_{ij} = w_i, \qquad
              l \le \sum_i a_{ij} \le h.

    Parameters
    ----------
    costs : ndarray of shape (n, k)
        Of a unit of weight of each row in each cluster.
    weights : ndarray of shape (n,)
    sizes : Sizes
        ``k * low <= sum(weights) <= k * high``.
    prices : ndarray of shape (k,), optional
        Those of a similar assignment: a good start.

    References
    ----------
    .. [1] R. K. Ahuja, T. L. Magnanti, J. B. Orlin, "Network Flows", 1993, section 9.7.
    .. [2] P. S. Bradley, K. P. Bennett, A. Demiriz, "Constrained k-means clustering", Microsoft Research, 2000.
    """
    flow = _Flow(costs, weights, sizes, _adjusted(costs, weights, sizes, prices))
    flow.balance()
    return Assigned(flow.mass, flow.prices(), float(np.einsum("ji,ij->", flow.mass, costs)))


def _adjusted(costs: Array, weights: Array, sizes: Sizes, prices: Array | None) -> Array:
    """Return prices at which the nearest clusters have nearly the right sizes: each in turn takes the one it needs."""
    n, k = costs.shape
    prices = np.zeros(k) if prices is None else prices.copy()
    at = np.arange(n)
    for _ in range(ROUNDS):
        priced = costs + prices
        labels = priced.argmin(axis=1)
        own = priced[at, labels]
        size = np.bincount(labels, weights, k)
        off = np.maximum(size - sizes.high, 0.0) - np.maximum(sizes.low - size, 0.0)
        j = int(np.abs(off).argmax())
        if abs(off[j]) <= weights.max():
            break
        if off[j] > 0:
            inside = np.flatnonzero(labels == j)
            rest = priced[inside]
            rest[:, j] = np.inf
            steps, moved = rest.min(axis=1) - own[inside], weights[inside]
        else:
            inside = np.flatnonzero(labels != j)
            steps, moved = priced[inside, j] - own[inside], weights[inside]
        order = np.argsort(steps, kind="stable")
        enough = min(int(np.searchsorted(np.cumsum(moved[order]), abs(off[j]))), len(order) - 1)
        prices[j] += np.sign(off[j]) * steps[order[enough]]
    return prices


class _Flow:
    """Masses of rows in clusters, and what of each cluster the store takes: node k."""

    def __init__(self, costs: Array, weights: Array, sizes: Sizes, prices: Array) -> None:
        n, k = costs.shape
        self.costs, self.sizes, self.k = costs, sizes, k
        labels = (costs + prices).argmin(axis=1)
        self.mass = np.zeros((k, n))
        self.mass[labels, np.arange(n)] = weights
        size = self.mass.sum(axis=1)
        self.taken = np.where(
            prices > 0, sizes.high, np.where(prices < 0, sizes.low, np.clip(size, sizes.low, sizes.high))
        )
        self.excess = np.append(size - self.taken, self.taken.sum() - size.sum())
        self.least = 1e-12 * float(weights.sum())
        self.rounding = 1e-13 * float(costs.max(initial=0.0) - costs.min(initial=0.0))
        self.lengths = np.full((k + 1, k + 1), np.inf)
        self.movers = np.zeros((k, k), dtype=np.intp)
        for a in range(k):
            self._look_at(a)

    def balance(self) -> None:
        """Move weight from clusters that have too much, along the cheapest paths, until all sizes fit."""
        while self.excess.max() > self.least:
            distance, before = self._shortest(np.where(self.excess > self.least, 0.0, np.inf))
            to = int(np.where(self.excess < -self.least, distance, np.inf).argmin())
            path = [to]
            while before[path[-1]] >= 0:
                path.append(int(before[path[-1]]))
            self._send(path[::-1])

    def prices(self) -> Array:
        distance, _ = self._shortest(np.zeros(self.k + 1))
        return np.asarray(distance[-1] - distance[:-1])

    def _shortest(self, distance: Array) -> tuple[Array, NDArray[np.intp]]:
        """Return the distances from the nodes of distance zero, and the node before each: Bellman and Ford."""
        before = np.full(self.k + 1, -1, dtype=np.intp)
        for _ in range(self.k + 1):
            through = distance[:, None] + self.lengths
            nearest = through.argmin(axis=0)
            found = through[nearest, np.arange(self.k + 1)]
            better = found + self.rounding < distance
            if not better.any():
                break
            distance = np.where(better, found, distance)
            before[better] = nearest[better]
        return distance, before

    def _send(self, path: list[int]) -> None:
        """Send as much along a path as its ends and its edges allow."""
        steps = list(pairwise(path))
        amount = min(self.excess[path[0]], -self.excess[path[-1]], *(self._room(a, b) for a, b in steps))
        self.excess[path[0]] -= amount
        self.excess[path[-1]] += amount
        movers = [self.movers[a, b] if max(a, b) < self.k else -1 for a, b in steps]
        for (a, b), row in zip(steps, movers, strict=True):
            if a == self.k:
                self.taken[b] -= amount
            elif b == self.k:
                self.taken[a] += amount
            else:
                left = self.mass[a, row] - amount
                self.mass[a, row] = left if left > self.least else 0.0
                self.mass[b, row] += amount
        for node in set(path) - {self.k}:
            self._look_at(node)

    def _room(self, a: int, b: int) -> float:
        if a == self.k:
            return float(self.taken[b] - self.sizes.low)
        if b == self.k:
            return float(self.sizes.high - self.taken[a])
        return float(self.mass[a, self.movers[a, b]])

    def _look_at(self, a: int) -> None:
        """Find the rows of a cluster that are cheapest to move to each other one, and the edges to the store."""
        inside = np.flatnonzero(self.mass[a] > 0)
        self.lengths[a, : self.k] = np.inf
        if len(inside):
            more = self.costs[inside] - self.costs[inside, a][:, None]
            cheapest = more.argmin(axis=0)
            self.movers[a] = inside[cheapest]
            self.lengths[a, : self.k] = more[cheapest, np.arange(self.k)]
        self.lengths[a, a] = np.inf
        self.lengths[a, self.k] = 0.0 if self.sizes.high - self.taken[a] > self.least else np.inf
        self.lengths[self.k, a] = 0.0 if self.taken[a] - self.sizes.low > self.least else np.inf


@dataclass(frozen=True)
class SizedResult:
    """The end of a descent: centres, assignment, objectives of its iterations, and whether nothing changed any more."""

    centres: Array
    assigned: Assigned
    objectives: list[float]
    converged: bool


def sized_kmeans(
    points: Any,
    weights: Array,
    centres: Array,
    sizes: Sizes,
    *,
    max_iter: int,
    tolerance: float,
    on_sphere: bool = False,
) -> SizedResult:
    """Assign rows within sizes and move centres to the means, in turn, until no label changes or centres stand still.

    Parameters
    ----------
    points : ndarray or CSR matrix of shape (n, d)
    weights : ndarray of shape (n,)
    centres : ndarray of shape (k, d)
    sizes : Sizes
    max_iter : int
    tolerance : float
        Sum of squared shifts of centres up to which they stand still.
    on_sphere : bool
        Whether rows and centres have length one: centres are then the directions of sums.
    """
    centres = np.asarray(centres, dtype=np.float64)
    assigned = assign_within(square_costs(points, centres), weights, sizes)
    objectives, converged = [assigned.cost], False
    for _ in range(max_iter):
        mass = assigned.mass.sum(axis=1)
        sums = np.asarray(assigned.mass @ points, dtype=np.float64)
        means = np.divide(sums, mass[:, None], out=centres.copy(), where=mass[:, None] > 0)
        means = directions_of(means, centres) if on_sphere else means
        moved = float(np.sum((means - centres) ** 2))
        before, centres = assigned, means
        assigned = assign_within(square_costs(points, centres), weights, sizes, before.prices)
        objectives.append(assigned.cost)
        converged = moved <= tolerance or bool(np.array_equal(assigned.mass, before.mass))
        if converged:
            break
    return SizedResult(centres, assigned, objectives, converged)


def square_costs(points: Any, centres: Array) -> Array:
    """Return squared distances in double precision."""
    return np.asarray(squared_distances(points, centres.astype(points.dtype)), dtype=np.float64)
