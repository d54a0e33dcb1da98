"""Certificates of k-means: how far the centres can be from the best possible ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.measure import empirical_measure
from majorant.results.certificate import Certificate
from majorant.solvers.kmeans_bounds import Effort, kmeans_lower_bound
from majorant.solvers.nearest import assign


def certificate(
    X: NDArray[Any], weights: NDArray[np.float64] | None, centres: NDArray[Any], effort: Effort
) -> Certificate:
    """Return the certificate of centres on rows in memory, both in the units of the rows."""
    # In double precision whatever X is: rounding to single must not enter a bound.
    measure = empirical_measure(X.astype(np.float64, copy=False), weights)
    inside = np.ascontiguousarray((centres - measure.origin) * measure.scale)
    labels = np.zeros(measure.n_points, dtype=np.int32)
    moments, _ = assign(measure.points, measure.weights, inside, labels)
    assert moments is not None
    found = kmeans_lower_bound(measure.points, measure.weights, inside, effort=effort)
    unit = measure.scale**-2
    solution = f"{len(centres)}-centre solution"
    return Certificate(found.bound * unit, float(moments[:, -1].sum()) * unit, found.method, solution=solution)
