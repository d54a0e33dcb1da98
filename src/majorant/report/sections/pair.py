"""The two features that show the parts best, or the only one: rows, densities and outlines."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant.report import numbers
from majorant.report.charts.axes import (
    backdrop,
    bottom_axis,
    bottom_title,
    draw_grid,
)
from majorant.report.charts.labels import Box, Shelf, free_place, shorten, text_width
from majorant.report.charts.marks import N_COLOURS, component_class, name_class, radius_for, scatter
from majorant.report.charts.scales import Linear, padded, tick_labels
from majorant.report.charts.svg import Canvas, Point, Size, figure
from majorant.report.html import column_name
from majorant.report.measures.partition import BestPair, Partition
from majorant.report.numbers import between
from majorant.report.section import Section
from majorant.report.sections.profiles import largest_parts, shown_of
from majorant.report.words.grammar import capital, counted, in_prose, listed, opening, verb
from majorant.results.silhouettes import thinned_rows

MOST_POINTS, MOST_ROWS = 1500, 600
MOST_PANELS = 12
MOST_CUTS = 4
EDGE = 62.0
BASE, REACH = 150.0, 100.0
VISIBLE = 0.003
"""Height of a density from which on it is drawn, as a share of the highest."""


@dataclass(frozen=True)
class Scatter:
    """The data of a scatter plot, in the table's own units."""

    # the two columns, for rows without missing values in them
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    labels: NDArray[np.int64]  # the part of each row
    # names of the columns, and the word for a part
    x_name: str
    y_name: str
    part: str
    outlines: dict[int, NDArray[np.float64]]  # outline of each part, where the model has one
    n_gaps: int  # number of rows that lack one of the two values
    is_map: bool = False  # whether only neighbourhoods are meaningful; axes and densities are then not drawn

    @classmethod
    def of(cls, partition: Partition, pair: BestPair) -> Scatter:
        data, names = partition.own_units, partition.feature_names
        both = np.isfinite(data[:, pair.first]) & np.isfinite(data[:, pair.second])
        rows = thinned_rows(partition.labels, partition.sizes, MOST_POINTS)
        rows = rows[both[rows]]
        outlines = {j: partition.outline(j, (pair.first, pair.second)) for j in partition.used}
        return cls(
            data[rows, pair.first],
            data[rows, pair.second],
            partition.labels[rows],
            names[pair.first],
            names[pair.second],
            partition.part,
            {j: outline for j, outline in outlines.items() if outline is not None},
            int((~both).sum()),
        )

    def ranges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the ranges of the two axes: all rows and outlines, with a margin."""
        x = np.concatenate([self.x, *(outline[:, 0] for outline in self.outlines.values())])
        y = np.concatenate([self.y, *(outline[:, 1] for outline in self.outlines.values())])
        return padded(float(x.min()), float(x.max())), padded(float(y.min()), float(y.max()))

    def name(self, part: int) -> str:
        return f"{capital(self.part)} {part + 1}"


def pair_section(partition: Partition) -> Section | None:
    """Build the section; None with fewer than two parts or two features that differ."""
    pair = partition.pair
    if pair is None:
        return None
    data = Scatter.of(partition, pair)
    if not len(data.x):
        return None
    panels = largest_parts(partition, MOST_PANELS)
    label = f"Scatter plot of {data.y_name} against {data.x_name}, rows marked by {partition.part}"

    def draw(size: Size) -> Canvas:
        if partition.k <= N_COLOURS:
            return draw_scatter(size, data, np.unique(data.labels).tolist(), partition.k)
        return draw_scatter_panels(size, data, panels)

    return Section(
        "pair",
        "Best pair of features",
        headline(partition),
        notes(partition, len(data.x), data.n_gaps, len(panels)),
        figure("pair", label, draw),
    )


def draw_scatter(size: Size, data: Scatter, parts: list[int], k: int) -> Canvas:
    """Draw all parts in one plot, with marginal densities at its edges."""
    edge = 0.0 if data.is_map else EDGE * (0.75 if size.narrow else 1.0)
    radius = radius_for(len(data.x)) * (0.85 if size.narrow else 1.0)

    def inside(canvas: Canvas, i: int, x: Linear, y: Linear) -> None:
        if edge:
            _edge_densities(canvas, data, k, x, y, edge)
        for j in parts:
            mine = data.labels == j
            rows = zip(data.x[mine].tolist(), data.y[mine].tolist(), strict=True)
            scatter(canvas, [(x(a), y(b)) for a, b in rows], j, component_class(j, k), radius)
        for j, outline in data.outlines.items():
            _outline(canvas, outline, component_class(j, k), x, y)
        _name_parts(canvas, data, parts, k, x, y)

    x_range, y_range = data.ranges()
    return draw_grid(
        size,
        [""],
        [x_range],
        y_range,
        inside,
        x_title=data.x_name,
        y_title=data.y_name,
        height=300.0 if size.narrow else 400.0,
        has_axes=not data.is_map,
        margin=edge and edge + 12,
    )


def draw_scatter_panels(size: Size, data: Scatter, parts: list[int]) -> Canvas:
    """Draw one panel per part, its rows in colour over all rows in grey; panels share both axes."""
    x_range, y_range = data.ranges()
    rows = list(zip(data.x.tolist(), data.y.tolist(), strict=True))

    def inside(canvas: Canvas, i: int, x: Linear, y: Linear) -> None:
        backdrop(canvas, rows, x, y)
        mine = np.flatnonzero(data.labels == parts[i]).tolist()
        canvas.dots([(x(rows[r][0]), y(rows[r][1])) for r in mine], "stroke-1 small")
        if parts[i] in data.outlines:
            _outline(canvas, data.outlines[parts[i]], "1", x, y)

    return draw_grid(
        size,
        [data.name(part) for part in parts],
        [x_range],
        y_range,
        inside,
        x_title=data.x_name,
        y_title=data.y_name,
        has_axes=not data.is_map,
    )


def _outline(canvas: Canvas, outline: NDArray[np.float64], colour: str, x_scale: Linear, y_scale: Linear) -> None:
    canvas.polygon([(x_scale(x), y_scale(y)) for x, y in outline.tolist()], f"stroke-{colour} outline")


def _edge_densities(canvas: Canvas, data: Scatter, k: int, x_scale: Linear, y_scale: Linear, reach: float) -> None:
    """Draw marginal densities of each part above and to the right of the plot, areas proportional to its rows."""
    base_x, base_y = x_scale.end + 8, y_scale.end - 40
    for values, scale, along_x in ((data.x, x_scale, True), (data.y, y_scale, False)):
        for j, out in densities(values, data.labels, scale, reach, 70).items():
            points = [(s, base_y - h) if along_x else (base_x + h, s) for s, h in out]
            start, end = out[0][0], out[-1][0]
            corners = [(start, base_y), (end, base_y)] if along_x else [(base_x, start), (base_x, end)]
            colour = component_class(j, k)
            canvas.polygon([corners[0], *points, corners[1]], f"fill-{colour} band")
            canvas.polyline(points, f"stroke-{colour} curve")


def densities(
    values: NDArray[np.float64], labels: NDArray[np.int64], scale: Linear, reach: float, n_points: int
) -> dict[int, list[Point]]:
    """Return where the kernel density of each part is drawn, and how high; areas are proportional to rows.

    The bandwidth is Silverman's, but at least a fiftieth of the range, so that a single value is visible.
    """
    at, curves = np.linspace(scale.low, scale.high, n_points), {}
    for j in np.unique(labels).tolist():
        own = values[labels == j]
        bandwidth = max(1.06 * float(own.std()) * len(own) ** -0.2, (scale.high - scale.low) / 50)
        curves[j] = np.exp(-0.5 * ((at[:, None] - own) / bandwidth) ** 2).sum(axis=1) / bandwidth
    tallest = max(float(curve.max()) for curve in curves.values())
    found = {
        j: [
            (scale(x), reach * y / tallest)
            for x, y in zip(at.tolist(), curve.tolist(), strict=True)
            if y > VISIBLE * tallest
        ]
        for j, curve in curves.items()
    }
    return {j: points for j, points in found.items() if points}  # not a part of few rows beside one that hardly varies


def _name_parts(canvas: Canvas, data: Scatter, parts: list[int], k: int, x_scale: Linear, y_scale: Linear) -> None:
    """Write each part's name at the place nearest to the median of its rows where it covers least."""
    corner = np.array([x_scale.start, y_scale.end])
    dots = np.array([[x_scale(x), y_scale(y)] for x, y in zip(data.x.tolist(), data.y.tolist(), strict=True)]) - corner
    size, taken = (x_scale.end - corner[0], y_scale.start - corner[1]), list[Box]()
    for j in parts:
        name = shorten(data.name(j), 120)
        label = np.median(dots[data.labels == j], axis=0), np.array([text_width(name, bold=True) / 2 + 4, 10.0])
        free = free_place(label, taken, dots, size, reach=160.0)
        if free is None:
            continue
        taken.append((free, label[1]))
        x, y = (free + corner).tolist()
        canvas.text(x, y + 4, name, f"text-{component_class(j, k)} strong-weight halo", anchor="middle")


def headline(partition: Partition) -> str:
    """State how well two features separate the parts, in one sentence."""
    pair = partition.pair
    if pair is None:
        return ""
    first, second = partition.feature(pair.first), partition.feature(pair.second)
    share = pair.n_agreeing / partition.n_rows
    apart = f"the {counted(partition.k, partition.part)} apart"
    if share == 1:
        return f"Two features, {first} and {second}, are enough to tell {apart}."
    if share >= 0.9:
        return f"Two features, {first} and {second}, nearly tell {apart}."
    if share >= 0.6:
        return f"Two features, {first} and {second}, tell most rows of {apart}."
    return f"No two features tell {apart}; {first} and {second} do it best."


def notes(partition: Partition, n_drawn: int, n_gaps: int, parts_shown: int) -> list[str]:
    """Explain how the pair was found, how to read it, and what follows."""
    pair = partition.pair
    if pair is None:
        return []
    texts = [f"{_choice(partition, pair)} {_reading(partition, parts_shown)}"]
    placed = f"<b>{numbers.integer(pair.n_agreeing)} of {numbers.integer(partition.n_rows)} rows</b>"
    conclusion = f"Straight lines on these two alone would place {placed} in the same {partition.part}"
    rest = len(partition.ranked_features) - 2
    if rest and pair.n_agreeing < partition.n_rows:
        others = "the other feature decides" if rest == 1 else f"the other {counted(rest, 'feature')} decide"
        conclusion += f"; {others} the rest"
    texts.append(f"{conclusion}.")
    if n_gaps:
        rows = f"{opening(n_gaps)} {verb(n_gaps, 'row lacks', 'rows lack')} one of the two"
        texts.append(f"{rows} and {verb(n_gaps, 'is', 'are')} not drawn.")
    if n_drawn < partition.n_rows - n_gaps:
        texts.append(f"{numbers.integer(n_drawn)} rows are drawn, equally spaced within each {partition.part}.")
    return texts


def strip_headline(cuts: list[str], name: str, parts: str) -> str:
    """State how a single feature separates the parts, in one sentence; `cuts` are the cut points."""
    column = column_name(name)
    if not cuts:
        return f"The {parts} overlap on {column}."
    if len(cuts) == 1:
        return f"A cut at {cuts[0]} on {column} parts the {parts} exactly."
    shown = listed(cuts) if len(cuts) <= MOST_CUTS else f"{in_prose(len(cuts))} points"
    return f"Cuts at {shown} on {column} part the {parts} exactly."


def _choice(partition: Partition, pair: BestPair) -> str:
    wilks = "Wilks\u2019 \u039b " + (numbers.fixed(pair.wilks, 2) if pair.wilks >= 0.005 else "below 0.01")
    units = ", in the table\u2019s own units" if partition.run.raw is not None else ""
    if pair.n_tried == 1:
        return f"The only two features to choose from ({wilks}){units}."
    tried = f"smallest of {numbers.integer(pair.n_tried)} pairs"
    text = f"The pair that separates best <b>together</b> ({tried}, {wilks}){units}."
    if pair.searched < len(partition.ranked_features):
        text += f" Only pairs among the {pair.searched} features that the {partition.parts} explain best were compared."
    return text


def _reading(partition: Partition, parts_shown: int) -> str:
    around = f" An ellipse holds nine tenths of a {partition.part}." if partition.has_outlines else ""
    if partition.k <= N_COLOURS:
        return f"The curves on the edges are the density of each {partition.part}\u2019s rows.{around}"
    return (
        f"One panel per {partition.part}: its rows in colour, all rows in grey.{around}"
        f"{shown_of(partition, parts_shown)}"
    )


def strip_section(partition: Partition) -> Section | None:
    """Build the section, or return None unless the table has one feature and two parts or more."""
    if partition.n_features != 1 or len(partition.used) < 2:
        return None
    name = partition.feature_names[0]
    values = partition.own_units[:, 0]
    cuts = cut_points(values, partition.labels, partition.used)
    notes = [f"<b>The curves</b> are the density of each {partition.part}\u2019s rows, the ticks below them the rows."]
    rows = thinned_rows(partition.labels, partition.sizes, MOST_ROWS)
    rows = rows[np.isfinite(values[rows])]
    if len(rows) < partition.n_rows:
        notes.append(f"{len(rows)} rows are drawn, equally spaced within each {partition.part}.")
    return Section(
        "pair",
        "The one feature",
        strip_headline(cuts, name, partition.parts),
        notes,
        figure(
            "strip",
            f"Density of each {partition.part} along {name}",
            lambda size: draw_strip(size, values[rows], partition.labels[rows], partition, name),
        ),
    )


def cut_points(values: NDArray[np.float64], labels: NDArray[np.int64], used: list[int]) -> list[str]:
    """Return the cut points between neighbouring parts; empty if two overlap."""
    spans = sorted(
        (float(np.fmin.reduce(values[labels == j])), float(np.fmax.reduce(values[labels == j]))) for j in used
    )
    if any(b[0] <= a[1] for a, b in itertools.pairwise(spans)):
        return []
    return [between(a[1], b[0]) for a, b in itertools.pairwise(spans)]


def draw_strip(
    size: Size, values: NDArray[np.float64], labels: NDArray[np.int64], partition: Partition, name: str
) -> Canvas:
    """Draw densities above a line, a short tick for each row below it."""
    canvas, k = Canvas(size, BASE + 66), partition.k
    scale = Linear(*padded(float(values.min()), float(values.max())), 0, size.width)
    ticks = scale.ticks(4 if size.narrow else 6)
    shelf = Shelf(6)
    for j, curve in densities(values, labels, scale, REACH, 160).items():
        colour = component_class(j, k)
        points = [(x, BASE - height) for x, height in curve]
        canvas.polygon([(points[0][0], BASE), *points, (points[-1][0], BASE)], f"fill-{colour} band")
        canvas.polyline(points, f"stroke-{colour} curve")
        mine = values[labels == j].tolist()
        canvas.path("".join(f"M{scale(v):.1f} {BASE + 4:.0f}v10" for v in mine), f"stroke-{colour} rug")
        _name(canvas, shelf, j, partition.part, colour, max(points, key=lambda point: -point[1]), size)
    bottom_axis(canvas, scale, ticks, tick_labels(ticks), BASE + 20, 0, size.width)
    bottom_title(canvas, name, size.width, BASE + 58, size.width)
    return canvas


def _name(canvas: Canvas, shelf: Shelf, j: int, part: str, colour: str, peak: tuple[float, float], size: Size) -> None:
    for name in (f"{capital(part)} {j + 1}", str(j + 1)):
        half = text_width(name, bold=True) / 2
        x = min(max(peak[0], half), size.width - half)
        if shelf.take(x - half, x + half):
            canvas.text(x, peak[1] - 10, name, f"{name_class(colour)} halo", anchor="middle")
            return
