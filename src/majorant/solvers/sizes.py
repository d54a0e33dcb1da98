"""Clusters whose sizes must fit: the cheapest assignment for given centres, and k-means with it.

The assignment is a flow of least cost from rows through clusters to a store that takes between the smallest and the
largest size from each. It is found by shortest augmenting paths over the clusters alone, an edge from one cluster to
another being the row that is cheapest to move; each cluster has a price, by which the next assignment begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.solvers.nearest import directions_of, squared_distances

Array = NDArray[np.float64]

HOPE = 10
"""Steps like the last one after which a descent must have reached what it is to beat."""


@dataclass(frozen=True)
class Sizes:
    """The smallest and the largest weight of a cluster."""

    low: float
    high: float


@dataclass(frozen=True)
class Assigned:
    """An assignment of rows to clusters."""

    # (k, n): The weight of each row in each cluster. At most k - 1 rows are divided, and none if weights and sizes are
    # whole multiples of one number.
    mass: Array
    # (k,): what a unit of weight pays in each cluster beside its cost: above zero only in a full one, below zero only
    # in one of the smallest size
    prices: Array
    cost: float


def assign_within(
    costs: Array,  # (n, k): of a unit of weight of each row in each cluster
    weights: Array,  # (n,)
    sizes: Sizes,  # ``k * low <= sum(weights) <= k * high``
    prices: Array | None = None,  # (k,): those of a similar assignment: a good start
) -> Assigned:
    r"""Assign rows to clusters of limited weight at the least cost.

    .. math:: \min_{a \ge 0} \sum_{ij} a_{ij} c_{ij} \quad\text{subject to}\quad \sum_j a_{ij} = w_i, \qquad
              l \le \sum_i a_{ij} \le h.

    References
    ----------
    .. [1] R. K. Ahuja, T. L. Magnanti, J. B. Orlin, "Network Flows", 1993, section 9.7.
    .. [2] P. S. Bradley, K. P. Bennett, A. Demiriz, "Constrained k-means clustering", Microsoft Research, 2000.
    """
    n, k = costs.shape
    prices = np.zeros(k) if prices is None else prices.copy()
    mass = np.empty((k, n))
    _kernels.assign_within(np.ascontiguousarray(costs), weights, sizes.low, sizes.high, prices, mass)
    return Assigned(mass, prices, float(np.einsum("ji,ij->", mass, costs)))


@dataclass(frozen=True)
class SizedResult:
    """The end of a descent: centres, assignment, objectives of its iterations, and whether nothing changed any more."""

    centres: Array
    assigned: Assigned
    objectives: list[float]
    converged: bool


def sized_kmeans(
    points: Any,  # CSR or dense (n, d)
    weights: Array,  # (n,)
    centres: Array,  # (k, d)
    sizes: Sizes,
    *,
    max_iter: int,
    tolerance: float,  # sum of squared shifts of centres up to which they stand still
    on_sphere: bool = False,  # whether rows and centres have length one: centres are then the directions of sums
    prices: Array | None = None,  # (k,): those of a similar assignment
    # an objective that the descent is given up for where `HOPE` more steps like the last one would not reach it
    beat: float = np.inf,
) -> SizedResult:
    """Assign rows within sizes and move centres to the means, in turn, until labels or centres stand still."""
    centres = np.asarray(centres, dtype=np.float64)
    assigned = assign_within(square_costs(points, centres), weights, sizes, prices)
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
        if converged or objectives[-1] - HOPE * (objectives[-2] - objectives[-1]) > beat:
            break
    return SizedResult(centres, assigned, objectives, converged)


def square_costs(points: Any, centres: Array) -> Array:
    """Return squared distances in double precision."""
    return np.asarray(squared_distances(points, centres.astype(points.dtype)), dtype=np.float64)
