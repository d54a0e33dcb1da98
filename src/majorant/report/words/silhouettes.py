"""Sentences about silhouettes."""

from __future__ import annotations

import numpy as np

from majorant.report import numbers
from majorant.report.charts.marks import N_COLOURS
from majorant.report.words.grammar import in_prose, opening
from majorant.results.silhouettes import Silhouettes

ALIKE = 0.05


def spoken_of(silhouettes: Silhouettes) -> int | None:
    """Return the cluster to name: that of most negative silhouettes, otherwise the loosest if any is loose."""
    negative = silhouettes.negative
    if negative.max() > negative.sum() / 2:
        return int(negative.argmax())
    means = silhouettes.cluster_means
    alike = negative.sum() == 0 and np.nanmax(means) - np.nanmin(means) < ALIKE
    return None if alike else int(np.nanargmin(means))


def headline(silhouettes: Silhouettes) -> str:
    """State how many rows are closer to another cluster, in one sentence."""
    negative, named = silhouettes.negative, spoken_of(silhouettes)
    n, total = int(negative.sum()), len(silhouettes.values)
    of = f"{numbers.integer(total)} {'sampled ' if silhouettes.sampled else ''}rows"
    subject = f"{opening(n) if n else 'None'} of {of} would suit another cluster better"
    if named is None:
        return f"{subject}; the clusters hold together about equally well."
    cluster, n_there = f"cluster {named + 1}", int(negative[named])
    if n == 1:
        return f"{subject}; it is in {cluster}."
    if n and n_there == n:
        return f"{subject}; {'both' if n == 2 else 'all of them'} are in {cluster}."
    if n_there > n / 2:
        return f"{subject}; {numbers.integer(n_there)} of them are in {cluster}."
    if n:
        subject += f", in {in_prose(int((negative > 0).sum()))} clusters"
    return f"{subject}; {cluster} is the loosest."


def notes(silhouettes: Silhouettes, n_clusters: int) -> list[str]:
    """Explain the silhouettes."""
    texts = [
        "<b>One thin bar per row</b>, sorted within its cluster; the width of a block is the cluster\u2019s size. "
        "The dashed line is its mean. Bars below zero are rows that another cluster would suit better."
    ]
    named = spoken_of(silhouettes)
    if n_clusters > N_COLOURS and named is not None:
        texts.append(f"Cluster {named + 1} is in colour.")
    if silhouettes.sampled:
        texts.append(f"Drawn from {sample(silhouettes)}.")
    return texts


def sample(silhouettes: Silhouettes) -> str:
    """State which rows were sampled."""
    return f"{numbers.integer(len(silhouettes.values))} rows, equally spaced within each cluster"
