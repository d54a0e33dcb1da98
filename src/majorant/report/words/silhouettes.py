"""How firmly rows belong to their clusters."""

from __future__ import annotations

import numpy as np

from majorant.report import numbers
from majorant.report.measures.silhouettes import Silhouettes
from majorant.report.words.grammar import in_prose, opening


def loosest(silhouettes: Silhouettes) -> int:
    """The cluster with the smallest mean silhouette."""
    return int(np.nanargmin(silhouettes.cluster_means))


def headline(silhouettes: Silhouettes) -> str:
    """One sentence on rows that would suit another cluster better."""
    misfits = silhouettes.misfits
    n, total = int(misfits.sum()), len(silhouettes.values)
    loose = loosest(silhouettes) + 1
    of = f"{numbers.integer(total)} {'sampled ' if silhouettes.sampled else ''}rows"
    if n == 0:
        none = f"None of {of} would suit another cluster better"
        if np.nanmax(silhouettes.cluster_means) - np.nanmin(silhouettes.cluster_means) < 0.05:
            return f"{none}; the clusters hold together about equally well."
        return f"{none}; cluster {loose} is the loosest."
    where = int(misfits.argmax())
    subject = f"{opening(n)} of {of} would suit another cluster better"
    if n == 1:
        return f"{subject}; it is in cluster {where + 1}."
    if misfits[where] == n:
        return f"{subject}; {'both' if n == 2 else 'all of them'} are in cluster {where + 1}."
    if misfits[where] > n / 2:
        return f"{subject}; {numbers.integer(int(misfits[where]))} of them are in cluster {where + 1}."
    return f"{subject}, in {in_prose(int((misfits > 0).sum()))} clusters; cluster {loose} is the loosest."


def notes(silhouettes: Silhouettes, n_clusters: int) -> list[str]:
    """How to read the silhouettes."""
    texts = [
        "<b>One thin bar a row</b>, sorted within its cluster; the width of a block is the cluster\u2019s size. "
        "The dashed line is its mean. Bars below zero are rows that another cluster would suit better."
    ]
    if n_clusters > 3:
        texts.append(f"The loosest cluster, {loosest(silhouettes) + 1}, is in colour.")
    if silhouettes.sampled:
        texts.append(f"Drawn from {sample(silhouettes)}.")
    return texts


def sample(silhouettes: Silhouettes) -> str:
    return f"{numbers.integer(len(silhouettes.values))} rows, equally spaced within each cluster"
