r"""Better multipliers, by linear programs over the covers that were in the way.

The bound :math:`\sum_i w_i \lambda_i - k \max_c h_\lambda(c)` is concave in :math:`\lambda`. With the maximum taken over
a pool of centres only it is a linear program; its solution within a box about the best multipliers so far is tried,
the centres at which :math:`h` turns out to be large join the pool, and the box grows after a success and shrinks after a
failure. In a small box most points are active, or not, for certain at most centres of the pool, and need no variable.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from majorant.solvers.kmeans_bounds.problem import Array, BoundProblem, squared_distances


def box_program(
    problem: BoundProblem, distances: Array, low: Array, high: Array, time_limit: float
) -> tuple[Array, float] | None:
    r"""Solves :math:`\max \sum w_i \lambda_i - k s` over a box and a pool of centres.

    Parameters
    ----------
    problem : BoundProblem
    distances : ndarray of shape (n, m)
        Squared distances of the points to the pool.
    low, high : ndarray of shape (n,)
        The box of multipliers.

    Returns
    -------
    (multipliers, value), or None
        None if the solver gave up.
    """
    w, k = problem.weights, problem.n_clusters
    n, m = distances.shape
    always = distances <= low[:, None]
    point, centre = np.nonzero((distances < high[:, None]) & ~always)
    n_pairs = len(point)
    pair = np.arange(n_pairs)
    sure_point, sure_centre = np.nonzero(always)
    # Columns: multipliers, s, one excess a pair. Rows: excess >= multiplier - distance; s >= cover of each centre.
    rows = np.concatenate((pair, pair, n_pairs + centre, n_pairs + sure_centre, n_pairs + np.arange(m)))
    columns = np.concatenate((point, n + 1 + pair, n + 1 + pair, sure_point, np.full(m, n)))
    entries = np.concatenate((np.ones(n_pairs), -np.ones(n_pairs), w[point], w[sure_point], -np.ones(m)))
    matrix = coo_matrix((entries, (rows, columns)), shape=(n_pairs + m, n + 1 + n_pairs)).tocsr()
    right = np.concatenate((distances[point, centre], np.where(always, w[:, None] * distances, 0.0).sum(axis=0)))
    cost = np.concatenate((-w, [float(k)], np.zeros(n_pairs)))
    limits = np.column_stack(
        (np.concatenate((low, np.zeros(1 + n_pairs))), np.concatenate((high, np.full(1 + n_pairs, np.inf))))
    )
    found = linprog(cost, matrix, right, bounds=limits, method="highs", options={"time_limit": time_limit})
    if found.x is None:
        return None
    return np.clip(found.x[:n], low, high), -float(found.fun)
