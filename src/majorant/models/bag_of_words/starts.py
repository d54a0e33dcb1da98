"""First parts of the regions of images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.image import grid_to_graph

from majorant.data.measure import empirical_measure
from majorant.engine.biases import in_groups
from majorant.engine.latents import collect
from majorant.engine.potts import PottsGraph
from majorant.models.kmeans import KMeans
from majorant.solvers.nearest import squared_distances
from majorant.solvers.structural_svm.grids import GridProblem, GridSet
from majorant.starts.annealed_pooling import annealed_pooling

NAMED = ("annealed", "kmeans", "random")
"""What `latent_init` may be."""

ANNEALED = "annealed pooling"
ONLY = "the only part"
"""Sources of starts after which tightest bounds are the default."""

RANDOM = "random parts"

NUDGE = 0.3
"""Of the centres of k-means, what is added to the filters before every temperature."""


@dataclass(frozen=True)
class FirstParts:
    """Parts with which a fit begins.

    Attributes
    ----------
    source : str
        Where they are from, in words.
    parts : ndarray of shape (n_images, n_regions) of int32
    n_passes : int
        Passes over the images that they took.
    """

    source: str
    parts: NDArray[np.int32]
    n_passes: int = 0


@dataclass(frozen=True)
class Discovered:
    """Parts by k-means on the regions.

    Attributes
    ----------
    centres : ndarray of shape (n_parts, n_features)
        The means of the clusters; where there are fewer distinct regions than parts, the last rows repeat the mean.
    parts : ndarray of shape (n_images, n_regions) of int32
        The nearest centre of each region.
    mean : ndarray of shape (n_features,)
        Mean of the regions.
    """

    centres: NDArray[np.float64]
    parts: NDArray[np.int32]
    mean: NDArray[np.float64]


def region_rows(grids: GridSet) -> NDArray[Any]:
    """The regions of all images, image by image."""
    rows: NDArray[Any] = grids.rows[(grids.starts[:, None] + np.arange(grids.n_regions)).ravel()]
    return rows


def nearest_means(grids: GridSet, shares: NDArray[np.float64], parts: NDArray[np.int32]) -> NDArray[np.int32]:
    """For each region the part whose mean is nearest: parts that tell regions apart, if all do so by chance."""
    rows, weights = region_rows(grids), np.repeat(shares, grids.n_regions)
    sums = collect(parts.ravel(), np.column_stack([rows, np.ones(len(rows))]), grids.n_parts, weights)
    means = sums[:, :-1] / np.maximum(sums[:, -1:], 1e-300)
    nearest = squared_distances(rows.astype(np.float64), means).argmin(axis=1)
    return np.asarray(nearest, dtype=np.int32).reshape(parts.shape)


def discover(grids: GridSet, shares: NDArray[np.float64], seed: int, n_jobs: int | None) -> Discovered:
    """Find parts that many regions have, whatever class their images are of.

    Parameters
    ----------
    grids : GridSet
    shares : ndarray of shape (n_images,)
        Weights of the images.
    seed : int
    n_jobs : int, optional
    """
    rows, weights = region_rows(grids), np.repeat(shares, grids.n_regions)
    n_clusters = min(grids.n_parts, empirical_measure(rows, weights).n_points)
    clusters = KMeans(n_clusters, random_state=seed, n_jobs=n_jobs).fit(rows, sample_weight=weights)
    mean = np.einsum("i,ij->j", weights, rows) / weights.sum()
    centres = np.tile(mean, (grids.n_parts, 1))
    centres[:n_clusters] = clusters.cluster_centers_
    return Discovered(centres, clusters.labels_.astype(np.int32).reshape(-1, grids.n_regions), mean)


def coherent(grids: GridSet, found: Discovered, shape: tuple[int, ...], strength: float) -> NDArray[np.int32]:
    """Parts near their regions and alike in neighbouring ones, by graph cuts.

    A pair of neighbours of different parts pays so much that at `strength` one, if all pairs differed, they would pay
    as much as all regions do for their squared distance from the nearest part.
    """
    rows = region_rows(grids).astype(np.float64)
    distances = squared_distances(rows, found.centres)
    scale = float(distances.min(axis=1).mean())
    neighbours = grid_to_graph(*shape).tocoo()
    once = neighbours.row < neighbours.col
    edges = in_groups(np.column_stack([neighbours.row[once], neighbours.col[once]]), len(grids), grids.n_regions)
    graph = PottsGraph(len(rows), edges, np.ones(len(edges)))
    price = strength * scale * len(rows) / max(len(edges), 1)
    return graph.minimise(distances, price, found.parts.ravel()).reshape(found.parts.shape)


def first_parts(
    problem: GridProblem,
    shares: NDArray[np.float64],
    init: Any,
    given: NDArray[np.int32] | None,
    *,
    shape: tuple[int, ...],
    coherence: float,
    alpha: float,
    n_init: int,
    seed: int,
    n_jobs: int | None,
) -> Iterator[FirstParts]:
    """The starts of a fit, made one by one as they are asked for.

    Parameters
    ----------
    problem : GridProblem
    shares : ndarray of shape (n_images,)
    init : {"annealed", "kmeans", "random"} or anything else
    given : ndarray of shape (n_images, n_regions), optional
        Parts of the first start, where `init` is none of the names; further ones are annealed.
    shape : tuple of int
        (rows, columns) of the grid.
    coherence : float
        Potts strength of parts by k-means, see `coherent`.
    alpha : float
        Strength of the penalty.
    n_init : int
    seed : int
        That of random parts and of k-means. The first annealed start is one and the same.
    n_jobs : int, optional
    """
    grids = problem.samples
    size = len(grids), grids.n_regions
    if grids.n_parts == 1:
        yield FirstParts(ONLY, np.zeros(size, dtype=np.int32))
        return
    for k in range(n_init):
        if given is not None and k == 0:
            yield FirstParts("given parts", given)
        elif init == "random":
            drawn = np.random.default_rng([seed, k]).random(size) * grids.n_parts
            yield FirstParts(RANDOM, drawn.astype(np.int32))
        elif init == "kmeans":
            found = discover(grids, shares, seed + k, n_jobs)
            if coherence:
                yield FirstParts("coherent k-means", coherent(grids, found, shape, coherence))
            else:
                yield FirstParts("k-means", found.parts)
        else:
            yield annealed_parts(problem, shares, alpha, k, n_jobs)


def annealed_parts(
    problem: GridProblem, shares: NDArray[np.float64], alpha: float, seed: int, n_jobs: int | None
) -> FirstParts:
    """Parts at the end of a path from the mean over all parts, which needs no first parts, to the best one.

    Parts may be interchanged, and at a high temperature all are alike: before every temperature their filters are moved
    a little towards the clusters of k-means. A region is one of many, so its share of a score is, and temperatures are.
    """
    grids = problem.samples
    found = discover(grids, shares, seed, n_jobs)
    nudge = np.zeros(grids.dim)
    grids.split(nudge)[0][:] = NUDGE * (found.centres - found.mean)
    w, n_passes = annealed_pooling(
        lambda w, beta, tau: problem.pooled(w, shares, beta * grids.n_regions, tau),
        problem.dim,
        alpha=alpha,
        mean_square=0.0,
        unit=float(problem.cost.max()),
        nudge=nudge,
    )
    return FirstParts(ANNEALED, problem.own_latent(w), n_passes + 1)
