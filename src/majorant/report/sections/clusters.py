"""Clusters: one row of a table each."""

from __future__ import annotations

import numpy as np

from majorant.report import numbers
from majorant.report.charts.marks import N_COLOURS, component_class, legend_mark
from majorant.report.measures.clustering import Clustering
from majorant.report.section import Section
from majorant.report.table import Column, Table, Value, bar_column
from majorant.report.words import clusters as words

MOST_ROWS = 60


def clusters_section(clustering: Clustering) -> Section:
    """Build the section: sizes, spreads and silhouettes of the clusters."""
    shown = list(range(clustering.k))
    if clustering.k > MOST_ROWS:
        shown = sorted(np.argsort(-clustering.sizes, kind="stable")[:MOST_ROWS].tolist())
    return Section(
        "clusters",
        "Clusters",
        words.headline(clustering),
        "",
        words.notes(clustering, len(shown)),
        is_figure=False,
        table=_table(clustering, shown),
    )


def _table(clustering: Clustering, shown: list[int]) -> Table:
    silhouettes, has_total = clustering.silhouettes, clustering.k > 1
    sizes, n = clustering.sizes[shown].tolist(), clustering.n_rows
    names = [str(j + 1) for j in shown]
    marks = [legend_mark(j) if clustering.k <= N_COLOURS else "" for j in shown]
    colours = [component_class(j, clustering.k) for j in shown]
    bars = bar_column([size / int(clustering.sizes.max()) for size in sizes], colours)
    spreads = [float(clustering.spreads[j]) for j in shown]
    columns = [
        Column("Cluster", [j + 1 for j in shown], markup=[f"{m}{name}" for m, name in zip(marks, names, strict=True)]),
        Column("Rows", sizes, list(map(numbers.integer, sizes)), css="number"),
        Column(
            "Share",
            [size / n for size in sizes],
            [numbers.percent_in_column(size / n) for size in sizes],
            css="number wide-only",
        ),
        bars,
        Column("Spread", spreads, [_spread(clustering, spread) for spread in spreads], css="number"),
    ]
    total: list[tuple[Value, str]] = [
        ("All", "All"),
        (n, numbers.integer(n)),
        (1.0, numbers.percent_in_column(1.0)),
        (None, ""),
        (clustering.spread, _spread(clustering, clustering.spread)),
    ]
    if silhouettes is not None:
        means = silhouettes.cluster_means[shown].tolist()
        negative = [int(silhouettes.negative[j]) if size else None for j, size in zip(shown, sizes, strict=True)]
        texts = [numbers.DASH if count is None else numbers.integer(count) for count in negative]
        columns += [
            Column("Silhouette", means, [numbers.fixed(mean, 2) for mean in means], css="number"),
            Column("Below zero", negative, texts, css="number"),
        ]
        n_negative = int(silhouettes.negative.sum())
        total += [(silhouettes.mean, numbers.fixed(silhouettes.mean, 2)), (n_negative, numbers.integer(n_negative))]
    if has_total:
        columns = [column.extended(*cell) for column, cell in zip(columns, total, strict=True)]
    return Table("clusters", columns, has_total=has_total)


def _spread(clustering: Clustering, value: float) -> str:
    """Format a spread with the decimals that the spread of all rows needs, so that a column has the same number."""
    size = clustering.spread
    if size and not 1e-3 <= size < 1e7:
        return numbers.scientific(value) if np.isfinite(value) else numbers.DASH
    decimals = 2 if not size else int(np.clip(2 - np.floor(np.log10(size)), 0, 5))
    return numbers.fixed(value, decimals)
