"""Certificates of k-means: how far the centres can be from the best possible ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from majorant.data.chunks import Chunks
from majorant.data.directions import unit_rows
from majorant.data.measure import empirical_measure
from majorant.models.kmeans.nearest_rows import OBJECTIVES, Metric
from majorant.models.kmeans.sized import check_sizes
from majorant.results.certificate import Certificate
from majorant.solvers.kmeans_bounds import Effort, effort_within, kmeans_lower_bound
from majorant.solvers.nearest import assign, centres_of
from majorant.solvers.sizes import Sizes, assign_within, square_costs

if TYPE_CHECKING:
    from majorant.models.kmeans.estimator import KMeans


def certificate(
    model: KMeans, X: NDArray[Any], weights: NDArray[np.float64] | None, effort: Effort, seconds: float | None
) -> Certificate:
    """Return the certificate of a fit on rows in memory, at an effort or within some seconds.

    Where sizes are limited, the objective is that of the best assignment within them: no centres have one below the
    bound for all assignments.
    """
    centres = model.cluster_centers_
    total = float(X.shape[0]) if weights is None else float(weights.sum())
    sizes = check_sizes(model.size_min, model.size_max, total, len(centres))
    if seconds is not None:
        affordable = effort_within(float(seconds), X.shape[0], X.shape[1], len(centres))
        if affordable is None:
            objective = model._fitted.objective(Chunks(X, weights=weights)) if sizes is None else model.inertia_
            name = OBJECTIVES[model.metric]
            return Certificate(0.0, objective, f"none within {seconds:.2g} seconds", objective_name=name)
        with threadpool_limits(limits=1, user_api="blas"):  # threads that wait for each other cost processor time
            return _certificate(X, weights, centres, affordable, sizes, model.metric)
    return _certificate(X, weights, centres, effort, sizes, model.metric)


def _certificate(
    X: NDArray[Any],
    weights: NDArray[np.float64] | None,
    centres: NDArray[Any],
    effort: Effort,
    sizes: Sizes | None,
    metric: Metric,
) -> Certificate:
    # In double precision whatever X is: rounding to single must not enter a bound.
    X = X.astype(np.float64, copy=False)
    measure = empirical_measure(unit_rows(X) if metric == "cosine" else X, weights)
    inside = np.ascontiguousarray((centres - measure.origin) * measure.scale)
    labels = np.zeros(measure.n_points, dtype=np.int32)
    moments, _ = assign(measure.points, measure.weights, inside, labels)
    assert moments is not None
    objective = float(moments[:, -1].sum())
    if sizes is not None:
        objective = assign_within(square_costs(measure.points, inside), measure.weights, sizes).cost
    means = centres_of(moments, inside)[0] if metric == "cosine" else inside
    found = kmeans_lower_bound(measure.points, measure.weights, means, effort=effort)
    bound, unit = found.bound, measure.scale**-2
    if metric == "cosine":
        bound, objective = _of_directions(bound, measure.total_weight), objective / 2
    solution = f"{len(centres)}-centre solution"
    return Certificate(
        bound * unit, objective * unit, found.method, objective_name=OBJECTIVES[metric], solution=solution
    )


def _of_directions(bound: float, weight: float) -> float:
    """Return a bound on the sum of one minus the cosine, from one on the sum of squares of rows of length one.

    Where r is one minus the length of a cluster's mean, the two are the sums over clusters of w r and of w (2 r - r^2).
    With F the first, the second is at most 2 F - F^2 / weight, as the mean of squares is at least the squared mean.
    """
    share = min(bound / weight, 1.0)
    return max(bound, 0.0) / (1.0 + math.sqrt(1.0 - share))
