"""Initial parts of a reconfigurable bag of words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.image import grid_to_graph

from majorant.data.measure import empirical_measure
from majorant.engine.biases import in_groups
from majorant.engine.latents import collect
from majorant.engine.loop import Solution
from majorant.engine.potts import PottsGraph
from majorant.models.kmeans import KMeans
from majorant.models.margin.family import Weights
from majorant.models.margin.search import First, StartRequest, vanishes
from majorant.solvers.nearest import squared_distances
from majorant.solvers.structural_svm.grids import GridProblem, GridSet
from majorant.starts.annealed_pooling import column_sizes

NAMED = ("annealed", "kmeans", "random")
"""Values of `latent_init`."""

NUDGE = 0.3
"""Share of the centres of k-means that is added to the filters before every temperature."""

LOST = 1e3
"""Largest rounding error of a score, in costs of a mistake, at which bounds are still meaningful."""


def refuse_lost(problem: GridProblem, alpha: float) -> None:
    """Refuse features so large that rounding errors of scores outweigh costs."""
    if problem.reach(alpha) * np.finfo(np.float64).eps > LOST * float(problem.cost.max()):
        raise ValueError(
            f"X holds {np.abs(problem.samples.rows).max():.0e}: beside alpha={alpha:g} the rounding of a score "
            "outweighs what a mistake costs. Scale X to about 1"
        )


@dataclass(frozen=True)
class Discovered:
    """Parts by k-means on the regions."""

    # (n_parts, n_features): means of the clusters; if there are fewer distinct regions than parts, the last rows repeat
    # the overall mean
    centres: NDArray[np.float64]
    sizes: NDArray[np.float64]  # (n_features,): by which features were divided, in `centres` and `mean` too
    parts: NDArray[np.int32]  # (n_images, n_regions): nearest centre of each region
    mean: NDArray[np.float64]  # (n_features,): mean of the regions


def region_rows(grids: GridSet) -> NDArray[Any]:
    """Return the regions of all images, image by image."""
    rows: NDArray[Any] = grids.rows[(grids.starts[:, None] + np.arange(grids.n_regions)).ravel()]
    return rows


def rows_of_equal_size(grids: GridSet) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the regions of all images with columns of about equal size, and what these were divided by."""
    rows = region_rows(grids)
    sizes = column_sizes(rows)
    return rows / sizes if (sizes != 1).any() else rows, sizes


def nearest_means(grids: GridSet, shares: NDArray[np.float64], parts: NDArray[np.int32]) -> NDArray[np.int32]:
    """Assign each region to the part of nearest mean, so that the means of random parts differ more."""
    rows, weights = rows_of_equal_size(grids)[0], np.repeat(shares, grids.n_regions)
    sums = collect(parts.ravel(), np.column_stack([rows, np.ones(len(rows))]), grids.n_parts, weights)
    means = sums[:, :-1] / np.maximum(sums[:, -1:], 1e-300)
    nearest = squared_distances(rows.astype(np.float64), means).argmin(axis=1)
    return np.asarray(nearest, dtype=np.int32).reshape(parts.shape)


def discover(grids: GridSet, shares: NDArray[np.float64], seed: int, n_jobs: int | None) -> Discovered:
    """Cluster the regions of all images by k-means.

    Parameters
    ----------
    shares : ndarray of shape (n_images,)
        Weights of the images.
    n_jobs : int, optional
    """
    rows, sizes = rows_of_equal_size(grids)
    weights = np.repeat(shares, grids.n_regions)
    n_clusters = min(grids.n_parts, empirical_measure(rows, weights).n_points)
    clusters = KMeans(n_clusters, random_state=seed, n_jobs=n_jobs).fit(rows, sample_weight=weights)
    mean = np.einsum("i,ij->j", weights, rows) / weights.sum()
    centres = np.tile(mean, (grids.n_parts, 1))
    centres[:n_clusters] = clusters.cluster_centers_
    return Discovered(centres, sizes, clusters.labels_.astype(np.int32).reshape(-1, grids.n_regions), mean)


def coherent(grids: GridSet, found: Discovered, shape: tuple[int, ...], strength: float) -> NDArray[np.int32]:
    """Choose parts near their regions that agree between neighbours, by graph cuts.

    At `strength` one, the cost if all pairs of neighbours differed equals the sum over regions of the squared distance
    from the nearest part.
    """
    rows = rows_of_equal_size(grids)[0].astype(np.float64)
    distances = squared_distances(rows, found.centres)
    scale = float(distances.min(axis=1).mean())
    neighbours = grid_to_graph(*shape).tocoo()
    once = neighbours.row < neighbours.col
    edges = in_groups(np.column_stack([neighbours.row[once], neighbours.col[once]]), len(grids), grids.n_regions)
    graph = PottsGraph(len(rows), edges, np.ones(len(edges)))
    price = strength * scale * len(rows) / max(len(edges), 1)
    return graph.minimise(distances, price, found.parts.ravel()).reshape(found.parts.shape)


def first_parts(
    # its seed is that of random parts and of k-means; the first annealed start does not depend on it
    request: StartRequest[GridProblem],
    shape: tuple[int, ...],  # (rows, columns) of the grid
    coherence: float,  # strength of the preference for equal neighbours in parts by k-means, see `coherent`
) -> Iterator[First]:
    """Make starts one by one as they are asked for; those after given parts are annealed."""
    problem, shares, seed = request.problem, request.shares, request.seed
    grids = problem.samples
    refuse_lost(problem, request.alpha)
    size = len(grids), grids.n_regions
    if grids.n_parts == 1:
        yield First("the only part", np.zeros(size, dtype=np.int32), is_trusted=True)
        return
    for k in range(request.n_init):
        if request.given is not None and k == 0:
            yield First("given parts", request.given)
        elif request.init == "random":
            drawn = (np.random.default_rng([seed, k]).random(size) * grids.n_parts).astype(np.int32)
            yield First("random parts", drawn, otherwise=partial(_if_stuck, request, drawn))
        elif request.init == "kmeans":
            found = discover(grids, shares, seed + k, problem.n_jobs)
            if coherence:
                yield First("coherent k-means", coherent(grids, found, shape, coherence))
            else:
                yield First("k-means", found.parts)
        else:
            yield annealed_parts(request, k)


def _if_stuck(
    request: StartRequest[GridProblem], parts: NDArray[np.int32], solution: Solution[Weights]
) -> NDArray[np.int32] | None:
    """Return a new start by `nearest_means` if the weights of a fit from random parts vanish; otherwise None."""
    stuck = vanishes(request.alpha, solution.theta.w, solution.objective)
    return nearest_means(request.problem.samples, request.shares, parts) if stuck else None


def annealed_parts(request: StartRequest[GridProblem], seed: int) -> First:
    """Make an annealed start, with filters moved a little towards clusters of the regions before every temperature.

    Parts may be interchanged: without this, the filters of all would stay equal.
    """
    grids = request.problem.samples
    found = discover(grids, request.shares, seed, request.problem.n_jobs)
    nudge = np.zeros(grids.dim)
    grids.split(nudge)[0][:] = NUDGE * (found.centres - found.mean) * found.sizes
    sizes = np.ones(grids.dim)
    grids.split(sizes)[0][:] = found.sizes
    return request.annealed(n_units=grids.n_regions, nudge=nudge, sizes=sizes)
