"""What k-means is given: settings and rows, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from majorant._validation import (
    check_choice,
    check_csr,
    check_integer,
    check_runs,
    validate_data,
    with_small_indices,
)
from majorant.engine.policies import check_bounds
from majorant.models.kmeans.nearest_rows import OBJECTIVES
from majorant.models.kmeans.search import SEEDED
from majorant.search.effort import EFFORTS

if TYPE_CHECKING:
    from majorant.models.kmeans.estimator import KMeans

ACCEPTED: dict[str, Any] = {
    "accept_sparse": "csr",
    "accept_large_sparse": False,
    "dtype": [np.float64, np.float32],
    "order": "C",
}
"""Arguments of scikit-learn's ``validate_data`` for rows in memory."""
OF_MISSING = (
    "KMeans takes no missing values: drop those rows, fill them in, or fit mj.GaussianMixture, which takes them as "
    "they are"
)
"""What to do about missing values."""


def check_settings(model: KMeans) -> None:
    """Check the parameters that do not depend on the rows."""
    check_integer("n_clusters", model.n_clusters, low=1)
    check_runs(model)
    check_choice("algorithm", model.algorithm, ["swap", "lloyd", "elkan"])
    check_choice("effort", model.effort, EFFORTS)
    check_choice("metric", model.metric, list(OBJECTIVES))
    if isinstance(model.init, str):
        check_choice("init", model.init, [*SEEDED, "random-partition"], or_else=", an array or a callable")
    check_bounds(model.bounds)


def rows_of(model: KMeans, X: Any, *, reset: bool) -> Any:
    """Return rows in memory as an array or a CSR matrix of finite numbers."""
    X = validate_data(model, with_small_indices(X), reset=reset, of_missing=OF_MISSING, **ACCEPTED)
    check_csr(X)
    return X
