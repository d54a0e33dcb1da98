"""Map: all rows on the plane that shows the parts farthest apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from majorant.report import numbers
from majorant.report.charts.labels import Box, free_place, text_width
from majorant.report.charts.marks import N_COLOURS, component_class, scatter
from majorant.report.charts.scales import Linear, padded
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.measures.partition import Partition
from majorant.report.section import Section
from majorant.report.sections.profiles import merge_tree
from majorant.report.words.grammar import counted
from majorant.results.silhouettes import thinned_rows

Array = NDArray[np.float64]
FEW_FEATURES = 10
MOST_POINTS = 700
RIDGE = 1e-3
"""Share of the mean variance that is added to the variances within parts, which may be singular."""


@dataclass(frozen=True)
class Plane:
    """The first two linear discriminants."""

    rows: Array  # (n, 2): places of the rows
    centres: Array  # (k_used, 2): places of the centres of the parts that have rows
    share: float  # share of the separation along all discriminants

    @classmethod
    def of(cls, partition: Partition) -> Plane:
        features = partition.ranked_features
        Z = (partition.complete[:, features] - partition.means[features]) / partition.deviations[features]
        basis = np.linalg.qr(Z.T)[0] if len(features) > len(Z) else None
        Z = Z if basis is None else Z @ basis
        sizes = partition.sizes[partition.used]
        centres = np.array([Z[partition.labels == j].mean(axis=0) for j in partition.used])
        rest = Z - centres[np.searchsorted(partition.used, partition.labels)]
        within = rest.T @ rest / len(Z)
        shift = centres - Z.mean(axis=0)
        between = (shift.T * sizes) @ shift / len(Z)
        ridge = RIDGE * np.eye(Z.shape[1])
        values, vectors = eigh(between, within + ridge)
        axes = vectors[:, :-3:-1]
        by_feature = axes if basis is None else basis @ axes
        axes *= np.sign(by_feature[np.abs(by_feature).argmax(axis=0), [0, 1]])
        total = float(np.maximum(values, 0.0).sum())
        return cls(Z @ axes, centres @ axes, float(values[-2:].sum()) / total if total > 0 else 1.0)


def map_section(partition: Partition) -> Section | None:
    """Build the section; None with fewer than three parts or features, and where few of both need no map."""
    n_features = len(partition.ranked_features)
    if len(partition.used) < 3 or n_features < 3 or (partition.k <= N_COLOURS and n_features <= FEW_FEATURES):
        return None
    plane = Plane.of(partition)
    rows = thinned_rows(partition.labels, partition.sizes, MOST_POINTS)
    label = f"All rows on two linear discriminants, with the number of each {partition.part} at its centre"
    return Section(
        "map",
        "Map",
        headline(partition, plane),
        notes(partition, len(rows)),
        figure("map", label, lambda size: draw_map(size, partition, plane, rows)),
    )


def draw_map(size: Size, partition: Partition, plane: Plane, rows: NDArray[np.int64]) -> Canvas:
    """Draw the rows as dots and the numbers of the parts at their centres, both axes in one unit."""
    canvas = Canvas(size)
    (x_low, x_high), (y_low, y_high) = (padded(*ends) for ends in np.quantile(plane.rows, [0, 1], axis=0).T.tolist())
    height = min(max(size.width * (y_high - y_low) / (x_high - x_low), 0.4 * size.width), 0.9 * size.width)
    unit = min(size.width / (x_high - x_low), height / (y_high - y_low))
    x_half, y_half = size.width / unit / 2, height / unit / 2
    x_scale = Linear((x_low + x_high) / 2 - x_half, (x_low + x_high) / 2 + x_half, 0.0, size.width)
    y_scale = Linear((y_low + y_high) / 2 - y_half, (y_low + y_high) / 2 + y_half, height, 0.0)
    canvas.rect(0, 0, size.width, height, "frame")
    radius = 2.6 if len(rows) <= 400 else 2.0
    for j in partition.used:
        mine = plane.rows[rows[partition.labels[rows] == j]].tolist()
        points = [(x_scale(x), y_scale(y)) for x, y in mine]
        if partition.k <= N_COLOURS:
            scatter(canvas, points, j, component_class(j, partition.k), radius)
        else:
            canvas.dots(points, "stroke-mid small")
    taken: list[Box] = []
    for j, centre in zip(partition.used, plane.centres.tolist(), strict=True):
        name, place = str(j + 1), np.array([x_scale(centre[0]), y_scale(centre[1])])
        half = np.array([text_width(name, bold=True) / 2 + 2, 8.0])
        free = free_place((place, half), taken, np.empty((0, 2)), (size.width, height), reach=48.0)
        if free is None:
            continue
        taken.append((free, half))
        css = f"text-{component_class(j, partition.k)}" if partition.k <= N_COLOURS else "clear"
        x, y = free.tolist()
        if (free != place).any():
            canvas.line(float(place[0]), float(place[1]), x, y, "zero")
        canvas.text(x, y + 4, name, f"{css} strong-weight halo", anchor="middle")
    canvas.height = height + 2
    return canvas


def headline(partition: Partition, plane: Plane) -> str:
    """State which two parts are most alike, and how much of the separation the plane shows."""
    sizes = partition.sizes[partition.used]
    first, second, _ = merge_tree(np.nan_to_num(partition.standard_centres[partition.used]), sizes)[0]
    a, b = sorted(partition.used[j] + 1 for j in (first, second))
    apart = f"{numbers.percent(plane.share, 0)} of what separates the {counted(partition.k, partition.part)}"
    return f"{partition.parts.capitalize()} {a} and {b} are the most alike; the plane shows {apart}."


def notes(partition: Partition, n_drawn: int) -> list[str]:
    """Explain the axes, and what the plane leaves out."""
    texts = [
        "<b>All features at once:</b> the two directions (linear discriminants) along which the "
        f"{partition.parts} lie farthest apart in relation to their spread, both in one unit. A number stands at the "
        f"centre of its {partition.part}.",
        f"<b>Note:</b> {partition.parts} that overlap here may be apart in another direction.",
    ]
    if n_drawn < partition.n_rows:
        texts.append(f"{numbers.integer(n_drawn)} rows are drawn, equally spaced within each {partition.part}.")
    return texts
