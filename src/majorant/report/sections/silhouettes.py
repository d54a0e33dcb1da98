"""Silhouettes: how clearly each row belongs to its cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant.report import numbers
from majorant.report.charts.axes import left_axis
from majorant.report.charts.labels import Shelf, text_width
from majorant.report.charts.marks import N_COLOURS, component_class
from majorant.report.charts.scales import Linear, tick_labels
from majorant.report.charts.svg import Canvas, Size, coordinate, figure
from majorant.report.measures.clustering import Clustering
from majorant.report.section import Section
from majorant.report.words.grammar import in_prose, opening
from majorant.results.silhouettes import Silhouettes

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
        headline(silhouettes),
        notes(silhouettes, clustering.k),
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
        css = "quiet" if block.colour == "mid" else f"text-{block.colour}"
        text = name if all_full or (block is blocks[0] and width <= block.width) else str(block.cluster + 1)
        start = min(block.start, canvas.width - text_width(text, bold=True))
        if shelf.take(start, start + text_width(text, bold=True)):
            canvas.text(start, 18, text, f"{css} strong-weight")
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
