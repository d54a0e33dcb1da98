"""Clusters: one row of a table each."""

from __future__ import annotations

import numpy as np

from majorant.report import numbers
from majorant.report.charts.marks import N_COLOURS, component_class, legend_mark
from majorant.report.columns import bar_column
from majorant.report.html import escaped
from majorant.report.measures.clustering import Clustering
from majorant.report.section import Section
from majorant.report.sections.silhouettes import sample
from majorant.report.table import Column, Table, Value
from majorant.report.words.grammar import in_prose, opening, verb

MOST_ROWS = 60


def clusters_section(clustering: Clustering) -> Section:
    """Build the section: sizes, spreads and silhouettes of the clusters."""
    shown = list(range(clustering.k))
    if clustering.k > MOST_ROWS:
        shown = sorted(np.argsort(-clustering.sizes, kind="stable")[:MOST_ROWS].tolist())
    return Section(
        "clusters", "Clusters", headline(clustering), notes(clustering, len(shown)), table=_table(clustering, shown)
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


def headline(clustering: Clustering) -> str:
    """State the sizes of the clusters and which cluster is loose, in one sentence."""
    sizes, n = clustering.sizes, clustering.n_rows
    if clustering.k == 1:
        return f"One cluster holds {'the only row' if n == 1 else f'all {numbers.integer(n)} rows'}."
    n_empty = clustering.k - len(clustering.used)
    if n_empty:
        return f"{opening(n_empty)} of {in_prose(clustering.k)} clusters {verb(n_empty, 'has', 'have')} no rows."
    alone = [j for j in clustering.used if sizes[j] == 1]
    largest, smallest = int(sizes.max()), int(sizes.min())
    if len(alone) == clustering.k:
        return "Every row is a cluster of its own."
    if alone:
        which = f"Cluster {alone[0] + 1} is" if len(alone) == 1 else f"{opening(len(alone))} clusters are"
        return f"{which} a single row{' each' if len(alone) > 1 else ''}."
    if largest > n / 2 and clustering.k > 2:
        share = f"Cluster {int(sizes.argmax()) + 1} holds {numbers.percent(largest / n, 0)} of the rows"
    elif largest <= 1.5 * smallest:
        share = "The clusters are of similar size"
    else:
        share = f"The largest cluster has {largest / smallest:.1f} times the rows of the smallest"
    return f"{share}{_compactness(clustering)}."


def _compactness(clustering: Clustering) -> str:
    spreads = np.nan_to_num(clustering.spreads)
    order = np.argsort(-spreads)
    if spreads[order[0]] >= 1.1 * spreads[order[1]]:
        return f"; cluster {int(order[0]) + 1} is the least compact"
    if spreads[order[0]] <= 1.15 * spreads[order[-1]]:
        return "; all are about equally compact"
    return ""


def notes(clustering: Clustering, n_shown: int) -> list[str]:
    """Explain the columns of the table, and which sections are missing."""
    silhouettes = clustering.silhouettes
    first = "<b>Spread</b> is the root mean square distance of a row to its centre"
    first += ", in standard deviations." if clustering.run.standardised else "."
    if silhouettes is not None:
        first += (
            " <b>Silhouette</b> runs from \u22121 to 1: near 1, a row is far from every other cluster."
            " <b>Below zero</b> counts rows with a negative one: nearer, on average, to another cluster."
        )
    texts = [first]
    if silhouettes is not None and silhouettes.sampled:
        texts.append(f"Silhouettes are those of {sample(silhouettes)}.")
    if n_shown < clustering.k:
        texts.append(f"The {n_shown} largest of {clustering.k} clusters are shown.")
    if clustering.weighted:
        name = escaped(clustering.search.objective_name)
        texts.append(f"The {name} counts rows by their weights; this table counts each once.")
    if clustering.k == 1:
        texts.append("With one cluster there are no profiles, silhouettes or pairs of features to show.")
    elif silhouettes is None:
        texts.append(_why_no_silhouettes(clustering))
    return texts


def _why_no_silhouettes(clustering: Clustering) -> str:
    if len(clustering.used) < 2:
        return "Silhouettes need two clusters with rows; there are none to show."
    if len(clustering.used) == clustering.n_rows:
        return "Silhouettes need a cluster with two rows; there are none to show."
    return "Silhouettes are not shown for so many clusters."
