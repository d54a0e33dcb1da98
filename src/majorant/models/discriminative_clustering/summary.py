"""The summary of a discriminative clustering."""

from __future__ import annotations

from typing import Any

from majorant.models.base import ACTIVE_SHARE
from majorant.summary import (
    Block,
    Column,
    Fact,
    Facts,
    Summary,
    Table,
    clusters_block,
    counted,
    part_columns,
    search_block,
)

MOST_FEATURES = 20
MOST_CLUSTERS = 30


def clustering_summary(model: Any) -> Summary:
    """Search report with the proved bound, the fit, the clusters, and which features tell them apart.

    Parameters
    ----------
    model : DiscriminativeClustering
        Fitted.
    """
    k, d = model.cluster_centers_.shape
    n = len(model.labels_)
    features = model._feature_names()
    facts = Facts(
        "fit",
        [Fact("information", model.information_, 4), Fact("penalty alpha", model.alpha_, 4)],
        [Fact("rows", n), Fact("active clusters", model.n_active_clusters_)],
    )
    how = "a linear classifier"
    if model.kernel is not None:
        how = f"a kernel classifier with {counted(len(model.landmarks_), 'landmark')}"
    blocks = [
        search_block(model.search_),
        Block("FIT", f"{how}; reached in {counted(model.n_iter_, 'iteration')}", (facts,)),
        clusters_block(model.labels_, model.cluster_centers_, features),
    ]
    if model.kernel is None and 1 < k <= MOST_CLUSTERS:
        columns = [Column("score by", features[:MOST_FEATURES]), *part_columns(model.coef_[:, :MOST_FEATURES])]
        more = (f"The first {MOST_FEATURES} of {d} features; coef_ has all.",) if d > MOST_FEATURES else ()
        blocks.append(Block("CLASSIFIER", "", (Table("coefficients", columns), *more)))
    look_out = []
    if k > 1 and model.n_active_clusters_ < k:
        look_out.append(
            f"{k - model.n_active_clusters_} of {k} clusters have a mean probability below {100 * ACTIVE_SHARE:g} %: "
            "fewer clusters say as much, or a smaller alpha lets more be told apart"
        )
    return Summary(
        f"discriminative clustering, {counted(k, 'cluster')}",
        f"{counted(n, 'row')}, {counted(d, 'feature')}",
        blocks,
        look_out,
    )
