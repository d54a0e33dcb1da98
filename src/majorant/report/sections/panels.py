"""Panels: points on some features, one panel per group, beside those of all groups in grey."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from majorant.report.charts.labels import Shelf, shorten, text_width
from majorant.report.charts.marks import mark
from majorant.report.charts.scales import Linear, padded, signed_labels
from majorant.report.charts.svg import Canvas, Size, dots_path

AXIS_TITLE = "standard deviations from the mean of all rows"
ROOM_FOR_A_HEAD = 4.0


def draw_panels(
    size: Size, features: Sequence[str], panels: Sequence[tuple[str, NDArray[np.float64]]], every: NDArray[np.float64]
) -> Canvas:
    """Draw one panel per group, with its own points in colour; panels share both axes.

    Parameters
    ----------
    size : Size
    features : sequence of str
        Names of the features, from top to bottom.
    panels : sequence of (str, array of shape (n_own, n_features))
        Name and points of each panel, in standard deviations from the mean.
    every : array of shape (n_points, n_features)
        The points of all groups, including those without a panel.
    """
    canvas, narrow = Canvas(size), size.narrow
    n_across, room, gap = (2, 112.0, 12.0) if narrow else (4, 150.0, 16.0)
    step, head, foot = 17.0, 26.0, 34.0
    panel_width = (size.width - room - gap * (n_across - 1)) / n_across
    height = step * len(features) + 6
    rows = [3 + step * (r + 0.5) for r in range(len(features))]
    backdrop = _backdrop(canvas, every, rows, panel_width)
    for i, (title, points) in enumerate(panels):
        row, column = divmod(i, n_across)
        x1, y1 = room + column * (panel_width + gap), row * (height + head + foot) + head
        scale = scale_of(every, x1 + 8, x1 + panel_width - 8)
        canvas.text(x1, y1 - 8, shorten(title, panel_width - ROOM_FOR_A_HEAD, bold=True), "strong", full=title)
        vertical_grid(canvas, scale, y1, y1 + height, 3)
        canvas.rect(x1, y1, panel_width, height, "frame")
        if column == 0:
            for y, name in zip(rows, features, strict=True):
                canvas.text(0, y1 + y + 4, shorten(name, room - 12), "clear", full=name)
        canvas.add(f'<use href="#{backdrop}" x="{x1:.1f}" y="{y1:.1f}"/>')
        for point in points:
            for y, value in zip(rows, point.tolist(), strict=True):
                mark(canvas, 0, "1", scale(value), y1 + y, 4.2)
    n_down = -(-len(panels) // n_across)
    bottom = n_down * (height + head + foot)
    canvas.text(size.width, bottom + 10, AXIS_TITLE, anchor="end")
    canvas.height = bottom + 18
    return canvas


def _backdrop(canvas: Canvas, every: NDArray[np.float64], rows: Sequence[float], panel_width: float) -> str:
    """Define all points in grey, used in every panel; return the definition's id."""
    scale = scale_of(every, 8, panel_width - 8)
    points = [(scale(value), y) for point in every.tolist() for value, y in zip(point, rows, strict=True)]
    return canvas.define("centres", f'<path id="{{id}}" class="dot stroke-hair small" d="{dots_path(points)}"/>')


def scale_of(every: NDArray[np.float64], x1: float, x2: float) -> Linear:
    """Return the scale from standard deviations to positions."""
    return Linear(*padded(float(min(every.min(), -0.5)), float(max(every.max(), 0.5)), 0.06), x1, x2)


def vertical_grid(canvas: Canvas, scale: Linear, y1: float, y2: float, count: int) -> None:
    """Draw lines at round numbers of standard deviations, with their names below."""
    ticks = scale.ticks(count)
    shelf = Shelf(6)
    ordered = sorted(zip(ticks, signed_labels(ticks, "mean"), strict=True), key=lambda pair: abs(pair[0]))
    for tick, text in ordered:
        x, half = scale(tick), text_width(text) / 2
        canvas.line(x, y1, x, y2, "axis" if tick == 0 else "grid")
        if shelf.take(x - half, x + half):
            canvas.text(x, y2 + 18, text, "quiet", anchor="middle")
