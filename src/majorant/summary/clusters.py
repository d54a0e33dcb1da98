"""Tables of clusters, their sizes and centres, for any model with labels and centres."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from majorant._numbers import counted
from majorant.summary.summary import Block
from majorant.summary.table import Column, Table, part_columns

MOST_FEATURES = 20
MOST_CENTRES = 30


def clusters_block(
    labels: NDArray[np.integer],  # (n_rows,): cluster of each row, from 0; on the page clusters are numbered from 1
    centres: NDArray[np.floating],  # (n_clusters, n_features)
    features: Sequence[str],  # names of the features
) -> Block:
    """Build the block of clusters: rows and share of each, then the centres by feature."""
    k = len(centres)
    rows = np.bincount(labels, minlength=k)
    numbers = range(1, k + 1)
    sizes = [Column("cluster", numbers), Column("rows", rows), Column("share", rows / len(labels), 3)]
    content: list[Table | str] = [Table("clusters", sizes)]
    if k > MOST_CENTRES:
        return Block("CLUSTERS", "", (*content, f"The centres of {k} clusters are in cluster_centers_."))
    shown = _told_apart(centres)
    columns = [Column("centre on", [features[i] for i in shown])]
    content.append(Table("centres", columns + part_columns(centres[:, shown])))
    if len(shown) < len(features):
        left_out = counted(len(features) - len(shown), "feature")
        content.append(f"The features on which the centres lie farthest apart; {left_out} left out.")
    return Block("CLUSTERS", "", tuple(content))


def _told_apart(centres: NDArray[np.floating]) -> list[int]:
    """Return the features to show, in their own order: all, or those whose centres differ most."""
    d = centres.shape[1]
    if d <= MOST_FEATURES:
        return list(range(d))
    spread = np.ptp(centres, axis=0)
    return sorted(np.argsort(-spread, kind="stable")[:MOST_FEATURES].tolist())
