"""Perturbations of a local optimum that need only its responsibilities and log densities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from majorant.engine.draws import drawn

Array = NDArray[np.float64]
LEAST = 1e-6
"""Smallest responsibility, as EM cannot leave zero."""


def perturbed(q: Array, log_density: Array, weights: Array, draws: np.random.Generator) -> Array:
    """Perturb responsibilities by one of three moves, drawn at random.

    Parameters
    ----------
    q, log_density : ndarray of shape (components, rows)
        At least two components.
    weights : ndarray of shape (rows,)

    Returns
    -------
    ndarray of shape (components, rows)
    """
    move = (redrawn, replaced, joined)[int(draws.integers(3))]
    out = np.maximum(move(q, log_density, weights, draws), LEAST)
    return np.asarray(out / out.sum(axis=0))


def redrawn(q: Array, log_density: Array, weights: Array, draws: np.random.Generator) -> Array:
    """Redraw the responsibilities of 10 to 50 % of the rows."""
    chosen = np.asarray(draws.random(q.shape[1]) < draws.uniform(0.1, 0.5))
    out = q.copy()
    out[:, chosen] = draws.dirichlet(np.full(len(q), 0.3), int(chosen.sum())).T
    return out


def replaced(q: Array, log_density: Array, weights: Array, draws: np.random.Generator) -> Array:
    """Distribute a component over the others, and give it the 10 to 60 % of another's rows that fit that one worst."""
    a, b = draws.permutation(len(q))[:2]
    out = q.copy()
    out[a] = 0
    rest = np.maximum(out.sum(axis=0), 1e-300)
    others = np.arange(len(q)) != a
    out[others] += q[a] * np.where(rest > 1e-12, out[others] / rest, 1 / (len(q) - 1))
    mass = out[b] * weights
    order = np.argsort(log_density[b], kind="stable")
    below = np.cumsum(mass[order]) <= draws.uniform(0.1, 0.6) * mass.sum()
    worst = np.zeros(q.shape[1], dtype=bool)
    worst[order[below]] = True
    out[a, worst], out[b, worst] = out[b, worst], 0.0
    return out


def joined(q: Array, log_density: Array, weights: Array, draws: np.random.Generator) -> Array:
    """Merge two components and split them anew, by similarity of log densities to two of their rows."""
    a, b = draws.permutation(len(q))[:2]
    both = q[a] + q[b]
    mass = both * weights
    if not mass.sum() > 0:
        return redrawn(q, log_density, weights, draws)
    i, j = drawn(mass, draws.random(2))
    finite = np.where(np.isfinite(log_density), log_density, -1e300)
    nearer = np.abs(finite - finite[:, [i]]).sum(axis=0) <= np.abs(finite - finite[:, [j]]).sum(axis=0)
    out = q.copy()
    out[a], out[b] = both * nearer, both * ~nearer
    return out
