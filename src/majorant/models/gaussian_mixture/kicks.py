"""Kicks out of a local optimum: two components are merged and cut anew, or one is removed and another cut in two."""

from __future__ import annotations

import numpy as np

from majorant.models.gaussian_mixture.starts import draw, kurtosis, projections
from majorant.solvers.gaussian import Array, Mixture

MERGE_SHARE = 0.35
"""How often two components are merged and cut anew, rather than one removed and another cut."""

N_DIRECTIONS = 20
SHARPNESS = 4.0
"""Slope of the soft cut, per standard deviation."""


def kicked(mixture: Mixture, points: Array, weights: Array, n_kicks: int, random: np.random.Generator) -> list[Array]:
    """Responsibilities of so many kicks, each (n_points, n_components).

    Parameters
    ----------
    mixture : Mixture
        Where to start from; at least two components.
    points : ndarray of shape (n_points, n_features)
    weights : ndarray of shape (n_points,)
    n_kicks : int
    random : numpy.random.Generator
    """
    k = mixture.n_components
    with np.errstate(divide="ignore"):
        table = mixture.log_densities(points) + np.log(mixture.weights)
    own = _responsibilities(table)
    without: dict[int, Array] = {}
    out = []
    for _ in range(n_kicks):
        i, j = np.argsort(random.random(k), kind="stable")[:2].tolist()
        uniforms, shift = random.random((2, N_DIRECTIONS)), 0.5 * random.standard_normal()
        merges, searches = random.random(2)
        if k == 2 or merges < MERGE_SHARE:
            q = own.copy()
            mass = q[:, i] + q[:, j]
        else:
            if i not in without:
                without[i] = _responsibilities(np.delete(table, i, axis=1))
            q = np.insert(without[i], i, 0.0, axis=1)
            mass = q[:, j]
        share = mass * weights
        if not share.any():
            continue
        # Few directions for a random one; of many the one that looks most like two groups.
        uniforms = uniforms if searches < 0.5 else uniforms[:, :1]
        z = points - np.einsum("i,ij->j", share, points) / share.sum()
        t = projections(z, share, z[draw(share, uniforms[0])] - z[draw(share, uniforms[1])])
        along = t[:, int(np.argmin(kurtosis(t, share)))]
        part = 1.0 / (1.0 + np.exp(-np.clip(SHARPNESS * (along - shift), -40.0, 40.0)))
        q[:, i], q[:, j] = mass * part, mass * (1.0 - part)
        out.append(q)
    return out


def _responsibilities(table: Array) -> Array:
    q = np.exp(table - table.max(axis=1, keepdims=True))
    return np.asarray(q / q.sum(axis=1, keepdims=True))
