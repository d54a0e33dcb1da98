"""The only feature of a table with a single column: where the parts lie on it."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from majorant.report.charts.axes import bottom_axis, bottom_title
from majorant.report.charts.density import density
from majorant.report.charts.labels import Shelf, text_width
from majorant.report.charts.marks import component_class
from majorant.report.charts.scales import Linear, padded, tick_labels
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.measures.partition import Partition
from majorant.report.numbers import between
from majorant.report.section import Section
from majorant.report.sections import pair as words
from majorant.report.words.grammar import capital
from majorant.results.silhouettes import thinned_rows

MOST_ROWS = 600
BASE, REACH = 150.0, 100.0


def strip_section(partition: Partition) -> Section | None:
    """Build the section, or return None unless the table has one feature and two parts or more."""
    if partition.n_features != 1 or len(partition.used) < 2:
        return None
    name = partition.run.feature_names[0]
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
        words.strip_headline(cuts, name, partition.parts),
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
    curves = {
        j: density(values[labels == j], scale.low, scale.high, 160) * [1.0, float((labels == j).mean())]
        for j in partition.used
    }
    tallest = max(float(curve[:, 1].max()) for curve in curves.values())
    shelf = Shelf(6)
    for j, curve in curves.items():
        colour = component_class(j, k)
        points = [
            (scale(at), BASE - REACH * height / tallest) for at, height in curve.tolist() if height > 1e-3 * tallest
        ]
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
            css = "quiet" if colour == "mid" else f"text-{colour}"
            canvas.text(x, peak[1] - 10, name, f"{css} strong-weight halo", anchor="middle")
            return
