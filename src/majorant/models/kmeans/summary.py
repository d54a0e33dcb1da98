"""The summary of a k-means fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from majorant.summary import Block, Fact, Facts, Summary, clusters_block, counted, search_block

if TYPE_CHECKING:
    from majorant.models.kmeans.estimator import KMeans


def kmeans_summary(model: KMeans) -> Summary:
    """Return the summary: the search, the fit, and the clusters."""
    n, (k, d) = len(model.labels_), model.cluster_centers_.shape
    name = model.search_.objective_name
    asked = {"size_min": model.size_min, "size_max": model.size_max}
    of_rows = [Fact("rows", n), *(Fact(name, size) for name, size in asked.items() if size is not None)]
    facts = Facts("fit", [Fact(name, model.inertia_, 2), Fact(f"{name} per row", model.inertia_ / n, 4)], of_rows)
    return Summary(
        f"k-means, {counted(k, 'cluster')}",
        f"{counted(n, 'row')}, {counted(d, 'feature')}",
        [
            search_block(model.search_),
            Block("FIT", f"reached in {counted(model.n_iter_, 'iteration')}", [facts]),
            clusters_block(model.labels_, model.cluster_centers_, model._feature_names()),
        ],
    )
