"""Perturbations: components are merged and cut anew, or removed and others cut in two, or two solutions are mixed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from majorant.solvers.covariance_types import triangle_to_matrix
from majorant.solvers.gaussian import Array, Mixture, moments

MERGE_SHARE = 0.5
"""Probability that two components are merged and cut anew, rather than one removed and another cut: near a good optimum
the former gains several times as often."""

N_DIRECTIONS = 20
"""Directions of which half of the perturbations cut along the one that looks most like two groups."""

N_SEEN = 128
"""Rows, drawn by responsibility, from which it is told how a direction looks."""

SHARPNESS = 4.0
"""Slope of the soft cut, per standard deviation."""

BATCH = 1 << 21
"""Approximate size of a batch in numbers."""


def perturbed(
    mixture: Mixture, points: Array, weights: Array, n_perturbations: int, random: np.random.Generator
) -> Iterator[Array]:
    """Yield responsibilities of this many perturbations, in batches (n_batch, n_points, n_components).

    Parameters
    ----------
    mixture : Mixture
        Where to start from; at least two components.
    points : ndarray of shape (n_points, n_features)
    weights : ndarray of shape (n_points,)
    n_perturbations : int
    random : numpy.random.Generator
    """
    n = len(points)
    energies = mixture.energies(points)
    size = max(1, BATCH // (n * (4 + mixture.n_components)))
    for first in range(0, n_perturbations, size):
        yield _batch(energies, points, weights, min(size, n_perturbations - first), random)


def recombined(energies: Sequence[Array], weights: Array, size: int, random: np.random.Generator) -> Array:
    """Return responsibilities (size, n_points, n_components) of mixtures that take each component from one of two.

    Components of two solutions are matched by the rows that they share.

    Parameters
    ----------
    energies : sequence of ndarray of shape (n_points, n_components)
        Of at least two solutions, see `Mixture.energies`.
    weights : ndarray of shape (n_points,)
    size : int
    random : numpy.random.Generator
    """
    tables = [_responsibilities(one) for one in energies]
    k, out = energies[0].shape[1], []
    for _ in range(size):
        a, b = random.permutation(len(energies))[:2]
        shared = np.einsum("i,ik,il->kl", weights, tables[a], tables[b])
        match = linear_sum_assignment(shared, maximize=True)[1]
        is_other = np.asarray(random.random(k) < 0.5)
        if is_other.all() or not is_other.any():
            is_other[random.integers(k)] ^= True
        out.append(_responsibilities(np.where(is_other, energies[b][:, match], energies[a])))
    return np.stack(out)


def _batch(energies: Array, points: Array, weights: Array, n_perturbations: int, random: np.random.Generator) -> Array:
    d, k = points.shape[1], energies.shape[1]
    every = np.arange(n_perturbations)
    i, j = np.argsort(random.random((n_perturbations, k)), axis=1, kind="stable")[:, :2].T
    merges = (random.random(n_perturbations) < MERGE_SHARE) | (k == 2)
    q = np.repeat(_responsibilities(energies)[None], n_perturbations, axis=0)
    for component in np.unique(i[~merges]):
        without = energies.copy()
        without[:, component] = np.inf
        q[~merges & (i == component)] = _responsibilities(without)
    mass = q[every, :, j] + np.where(merges[:, None], q[every, :, i], 0.0)
    share = mass * weights
    total = np.maximum(share.sum(axis=1), 1e-300)[:, None]
    mean = np.einsum("mn,nd->md", share, points) / total
    covariance = triangle_to_matrix(moments(points, None, share.T, mean, "full")[:, 1 + d :] / total, d)
    ridge = 1e-9 * np.trace(covariance, axis1=1, axis2=2) / d + 1e-12
    covariance += ridge[:, None, None] * np.eye(d)
    # Directions are whitened differences of rows: another basis of the coordinates does not change them.
    ends = _drawn(share, random.random((n_perturbations, 2 * N_DIRECTIONS)))
    differences = points[ends[:, :N_DIRECTIONS]] - points[ends[:, N_DIRECTIONS:]]
    axes = np.linalg.solve(covariance, differences.transpose(0, 2, 1)).transpose(0, 2, 1)
    lengths = np.sqrt(np.maximum(np.einsum("mja,mja->mj", axes, differences), 1e-300))
    axes /= lengths[:, :, None]
    chosen = axes[:, 0].copy()
    looks = np.flatnonzero(random.random(n_perturbations) < 0.5)
    if looks.size:
        seen = _drawn(share[looks], (random.random((len(looks), 1)) + np.arange(N_SEEN)) / N_SEEN)
        t = np.einsum("mna,mja->mjn", points[seen] - mean[looks, None], axes[looks])
        t *= t
        variance = t.sum(axis=2)
        kurtosis = np.einsum("mjn,mjn->mj", t, t) / np.maximum(variance**2, 1e-300)
        kurtosis[variance <= 0] = np.inf
        chosen[looks] = axes[looks, kurtosis.argmin(axis=1)]
    along = np.einsum("na,ma->mn", points, chosen) - np.einsum("ma,ma->m", mean, chosen)[:, None]
    shift = random.standard_normal(n_perturbations)[:, None]  # far enough out for small groups at the edge
    part = 1.0 / (1.0 + np.exp(-np.clip(SHARPNESS * (along - shift), -40.0, 40.0)))
    q[every, :, i], q[every, :, j] = mass * part, mass * (1.0 - part)
    return q


def _drawn(mass: Array, uniforms: Array) -> NDArray[np.intp]:
    """Draw points by each row of masses, by inverse CDF over one grid for all rows."""
    cumulative = np.cumsum(mass, axis=1)
    line = cumulative / np.maximum(cumulative[:, -1:], 1e-300)
    offsets = np.arange(len(mass))[:, None]
    drawn = np.searchsorted((line + offsets).ravel(), (uniforms + offsets).ravel(), side="right")
    return np.asarray(np.clip(drawn.reshape(uniforms.shape) - offsets * mass.shape[1], 0, mass.shape[1] - 1))


def _responsibilities(energies: Array) -> Array:
    q = np.exp(energies.min(axis=1, keepdims=True) - energies)
    return np.asarray(q / q.sum(axis=1, keepdims=True))
