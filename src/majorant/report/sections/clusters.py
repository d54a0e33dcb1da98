"""Clusters: one row of a table each, and how clearly each row of the data belongs to its cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from majorant.report import numbers
from majorant.report.charts.axes import left_axis
from majorant.report.charts.labels import Shelf, text_width
from majorant.report.charts.marks import N_COLOURS, component_class, name_class
from majorant.report.charts.scales import Linear, tick_labels
from majorant.report.charts.svg import Canvas, Size, coordinate, figure
from majorant.report.columns import bar_column, number_column, part_column, shares_column
from majorant.report.fit import largest
from majorant.report.html import escaped
from majorant.report.measures.clustering import Clustering
from majorant.report.section import Section
from majorant.report.table import Table, Value
from majorant.report.words.grammar import in_prose, opening, verb
from majorant.results.silhouettes import Silhouettes

MOST_ROWS = 60


def clusters_section(clustering: Clustering) -> Section:
    """Build the section: sizes, spreads and silhouettes of the clusters."""
    k, n, sizes, silhouettes = clustering.k, clustering.n_rows, clustering.sizes, clustering.silhouettes
    shown = largest(sizes, MOST_ROWS)
    spread = partial(_spread, clustering)
    columns = [
        part_column("Cluster", shown, k),
        number_column("Rows", sizes[shown]),
        shares_column("Share", sizes[shown] / n, css="number wide-only"),
        bar_column([float(size / sizes.max()) for size in sizes[shown]], [component_class(j, k) for j in shown]),
        number_column("Spread", clustering.spreads[shown], spread),
    ]
    total: list[tuple[Value, str]] = [
        ("All", "All"),
        (n, numbers.integer(n)),
        (1.0, numbers.percent_in_column(1.0)),
        (None, ""),
        (clustering.spread, spread(clustering.spread)),
    ]
    if silhouettes is not None:
        negative, n_negative = silhouettes.negative, int(silhouettes.negative.sum())
        columns += [
            number_column("Silhouette", silhouettes.cluster_means[shown], 2),
            number_column("Below zero", [negative[j] if sizes[j] else None for j in shown]),
        ]
        total += [(silhouettes.mean, numbers.fixed(silhouettes.mean, 2)), (n_negative, numbers.integer(n_negative))]
    if k > 1:
        columns = [column.extended(*cell) for column, cell in zip(columns, total, strict=True)]
    table = Table("clusters", columns, has_total=k > 1)
    return Section("clusters", "Clusters", headline(clustering), notes(clustering, len(shown)), table=table)


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


TOP, BOTTOM = 34.0, 194.0
LEFT = 34.0
NARROWEST_BAR = 1.2


@dataclass(frozen=True)
class Block:
    """The bars of one cluster: their start, width and mean, and the CSS class of their colour."""

    cluster: int
    start: float
    width: float
    mean: float
    colour: str

    @property
    def end(self) -> float:
        return self.start + self.width


def silhouettes_section(clustering: Clustering) -> Section | None:
    """Build the section, or return None where silhouettes do not exist."""
    silhouettes = clustering.silhouettes
    if silhouettes is None:
        return None
    label = (
        f"Silhouette of {len(silhouettes.values)} rows, sorted within their cluster; "
        f"mean {numbers.fixed(silhouettes.mean, 2)}"
    )
    return Section(
        "silhouettes",
        "Silhouettes",
        silhouettes_headline(silhouettes),
        silhouettes_notes(silhouettes, clustering.k),
        figure("silhouettes", label, lambda size: draw_silhouettes(size, silhouettes, clustering.k)),
    )


def draw_silhouettes(size: Size, silhouettes: Silhouettes, k: int) -> Canvas:
    """Draw one block per cluster, with one bar per row."""
    canvas = Canvas(size, BOTTOM + 30)
    low, high = min(float(silhouettes.values.min()), 0.0), max(float(silhouettes.values.max()), 0.1)
    scale = Linear(low, high, BOTTOM, TOP)
    ticks = scale.ticks(5)
    left_axis(canvas, scale, ticks, tick_labels(ticks), LEFT, size.width)
    clusters = np.flatnonzero(np.bincount(silhouettes.labels, minlength=k))
    gap = 10.0 if len(clusters) <= 3 else 4.0 if len(clusters) <= 20 else 1.5
    pitch = (size.width - LEFT - gap * (len(clusters) - 1)) / len(silhouettes.values)
    named = spoken_of(silhouettes)
    blocks: list[Block] = []
    counts = Shelf(10)
    x = LEFT
    for j in clusters.tolist():
        values = np.sort(silhouettes.values[silhouettes.labels == j])[::-1]
        block = Block(j, x, pitch * len(values), float(silhouettes.cluster_means[j]), component_class(j, k, named))
        blocks.append(block)
        canvas.path(_bars(values, x, pitch, scale), f"fill-{block.colour} bars")
        canvas.line(x, scale(block.mean), block.end, scale(block.mean), "mean-line")
        n_below = int((values < 0).sum())
        text = f"{n_below} below zero" if k <= 3 and not size.narrow else str(n_below)
        end = max(block.end, text_width(text))
        if n_below and counts.take(end - text_width(text), end):
            canvas.text(end, BOTTOM + 18, text, "clear", anchor="end")
        x = block.end + gap
    canvas.line(LEFT, scale(0), size.width, scale(0), "zero")
    _name_blocks(canvas, blocks)
    return canvas


def _name_blocks(canvas: Canvas, blocks: list[Block]) -> None:
    """Write names over the blocks, with means if all have room; otherwise the numbers that fit."""
    means = [f"mean {numbers.fixed(b.mean, 2)}" for b in blocks]
    full = [f"Cluster {b.cluster + 1}" for b in blocks]
    widths = [text_width(name, bold=True) for name in full]
    with_means = all(w + 8 + text_width(m) <= b.width for w, m, b in zip(widths, means, blocks, strict=True))
    all_full = all(w <= b.width for w, b in zip(widths, blocks, strict=True))
    shelf = Shelf(6)
    for block, name, mean, width in zip(blocks, full, means, widths, strict=True):
        text = name if all_full or (block is blocks[0] and width <= block.width) else str(block.cluster + 1)
        start = min(block.start, canvas.width - text_width(text, bold=True))
        if shelf.take(start, start + text_width(text, bold=True)):
            canvas.text(start, 18, text, name_class(block.colour))
        if with_means:
            canvas.text(block.start + width + 8, 18, mean, "quiet")


def _bars(values: NDArray[np.float64], x: float, pitch: float, scale: Linear) -> str:
    """Return path data of the sorted values as bars; bars too thin to be seen are averaged."""
    together = max(1, int(np.ceil(NARROWEST_BAR / pitch)))
    zero = scale(0)
    steps = [f"M{coordinate(x)} {coordinate(zero)}"]
    for i in range(0, len(values), together):
        chunk = values[i : i + together]
        steps.append(f"V{coordinate(scale(float(chunk.mean())))}H{coordinate(x + pitch * (i + len(chunk)))}")
    return "".join([*steps, f"V{coordinate(zero)}Z"])


ALIKE = 0.05


def spoken_of(silhouettes: Silhouettes) -> int | None:
    """Return the cluster to name: that of most negative silhouettes, otherwise the loosest if any is loose."""
    negative = silhouettes.negative
    if negative.max() > negative.sum() / 2:
        return int(negative.argmax())
    means = silhouettes.cluster_means
    alike = negative.sum() == 0 and np.nanmax(means) - np.nanmin(means) < ALIKE
    return None if alike else int(np.nanargmin(means))


def silhouettes_headline(silhouettes: Silhouettes) -> str:
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


def silhouettes_notes(silhouettes: Silhouettes, n_clusters: int) -> list[str]:
    """Explain the silhouettes."""
    texts = [
        "<b>One thin bar per row</b>, sorted within its cluster; the width of a block is the cluster\u2019s size. "
        "A dashed line is the mean of a cluster. Bars below zero are rows that another cluster would suit better."
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
