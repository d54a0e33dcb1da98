"""Axes: horizontal grid lines with their numbers, a base line with ticks, titles at its ends."""

from __future__ import annotations

from collections.abc import Sequence

from majorant.report.charts.labels import shorten, text_width
from majorant.report.charts.scales import Linear, Log
from majorant.report.charts.svg import Canvas


def left_axis(
    canvas: Canvas, scale: Linear | Log, ticks: Sequence[float], labels: Sequence[str], x1: float, x2: float
) -> None:
    """Draw grid lines from `x1` to `x2`, each with its label (if not empty) at the left."""
    for tick, label in zip(ticks, labels, strict=True):
        y = scale(tick)
        canvas.line(x1, y, x2, y, "grid")
        if label:
            canvas.text(x1 - 8, y + 4, label, "quiet", anchor="end")


def bottom_axis(
    canvas: Canvas, scale: Linear | Log, ticks: Sequence[float], labels: Sequence[str], y: float, x1: float, x2: float
) -> None:
    """Draw a base line at `y` with ticks, and the labels that fit below it."""
    canvas.line(x1, y, x2, y, "axis")
    edge = -1e9
    for tick, label in zip(ticks, labels, strict=True):
        x, half = scale(tick), text_width(label) / 2
        canvas.line(x, y, x, y + 4, "axis")
        centre = min(max(x, half), canvas.width - half)
        if centre - half > edge:
            canvas.text(centre, y + 18, label, "quiet", anchor="middle")
            edge = centre + half + 6


def bottom_title(canvas: Canvas, text: str, x: float, y: float, room: float) -> None:
    """Write the title of a horizontal axis, at its right end."""
    canvas.text(x, y, shorten(text, room), anchor="end", full=text)


def left_title(canvas: Canvas, text: str, y: float, room: float) -> None:
    """Write the title of a vertical axis, horizontally at the top left."""
    canvas.text(0, y, shorten(text, room), full=text)


def margin_for(labels: Sequence[str], least: float = 22.0) -> float:
    """Return the width of the margin for the labels of the vertical axis."""
    return max([least, *(text_width(label) for label in labels)]) + 8
