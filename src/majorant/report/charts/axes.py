"""Axes and panels: grid lines with their numbers, titles at their ends; one plot, or small multiples of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from majorant.report.charts.labels import shorten, text_width
from majorant.report.charts.scales import Linear, Log, evenly, tick_labels
from majorant.report.charts.svg import Canvas, Size, dots_path


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


def margin_for(labels: Sequence[str]) -> float:
    """Return the width of the margin for the labels of the vertical axis."""
    return max([22.0, *(text_width(label) for label in labels)]) + 8


Range = tuple[float, float]
Draw = Callable[[Canvas, int, Linear, Linear], None]


def draw_grid(
    size: Size,
    titles: Sequence[str],
    x_ranges: Sequence[Range],
    y_range: Range,
    draw: Draw,
    *,
    x_title: str = "",
    y_title: str = "",
    css: Sequence[str] = (),
    subtitles: Sequence[str] = (),
    height: float = 150.0,
    narrow_across: int = 2,
    y_labels: Callable[[list[float]], list[str]] = tick_labels,
    x_labels: Callable[[list[float]], list[str]] = tick_labels,
    places: Sequence[Sequence[tuple[float, str]]] = (),
    has_axes: bool = True,
    margin: float = 0.0,
) -> Canvas:
    """Draw one panel per title, with the axes around it; `draw` fills the panel of a number.

    With one horizontal range all panels share it; otherwise each has its own. `places` names the ticks of panels that
    have no scale. Panels without axes have a frame. A margin is left free above and at the right.
    """
    canvas, n, gap = Canvas(size), len(titles), 26.0 if has_axes else 14.0
    n_across = min(n, narrow_across if size.narrow else 3)
    y_ticks = Linear(*y_range, 0, 1).ticks(4 if height < 200 else 5) if has_axes else []
    texts = y_labels(y_ticks)
    left, foot = (margin_for(texts), 34.0) if has_axes else (0.0, 0.0)
    top = margin + (20.0 if y_title else 0.0)
    head = (30.0 if any(titles) else 16.0) + (16.0 if subtitles else 0.0)
    width = (size.width - margin - left - gap * (n_across - 1)) / n_across
    left_title(canvas, y_title, margin + 14, size.width)
    for i, title in enumerate(titles):
        row, column = divmod(i, n_across)
        x1, y1 = left + column * (width + gap), top + head + row * (height + head + foot)
        x_scale = Linear(*x_ranges[i % len(x_ranges)], x1, x1 + width)
        y_scale = Linear(*y_range, y1 + height, y1)
        shown = css[i] if css else "strong"
        canvas.text(x1, y1 - (26 if subtitles else 10), shorten(title, width - 4, bold=True), shown, full=title)
        if subtitles:
            canvas.text(x1, y1 - 10, shorten(subtitles[i], width - 4), "quiet", full=subtitles[i])
        left_axis(canvas, y_scale, y_ticks, texts if column == 0 else [""] * len(y_ticks), x1, x1 + width)
        draw(canvas, i, x_scale, y_scale)
        if has_axes:
            x_ticks = (
                [at for at, _ in places[i]] if any(places[i : i + 1]) else x_scale.ticks(max(3, int(width // 100)))
            )
            x_texts = [text for _, text in places[i]] if any(places[i : i + 1]) else x_labels(x_ticks)
            bottom_axis(canvas, x_scale, x_ticks, x_texts, y1 + height, x1, x1 + width)
        else:
            canvas.rect(x1, y1, width, height, "frame")
    bottom = top + -(-n // n_across) * (height + head + foot)
    bottom_title(canvas, x_title, size.width - margin, bottom + 8, size.width - margin)
    canvas.height = bottom + (16 if has_axes else 8)
    return canvas


def backdrop(canvas: Canvas, points: Iterable[tuple[float, float]], x: Linear, y: Linear) -> None:
    """Draw small grey dots in a panel, which all panels of a figure have."""
    own_x, own_y = Linear(x.low, x.high, 0, x.end - x.start), Linear(y.low, y.high, y.start - y.end, 0)
    dots = dots_path((own_x(a), own_y(b)) for a, b in points)
    name = canvas.define("rows", f'<path id="{{id}}" class="dot stroke-hair small" d="{dots}"/>')
    canvas.add(f'<use href="#{name}" x="{x.start:.1f}" y="{y.end:.1f}"/>')


def draw_quantile_panels(
    size: Size,
    titles: Sequence[str],
    values: Sequence[NDArray[np.float64]],
    most: int,
    x_end: float,
    y_end: float,
    colours: Sequence[str],
    **look: Any,
) -> Canvas:
    """Draw one panel for each array of values: in order against normal quantiles, with the line of equality."""

    def inside(canvas: Canvas, i: int, x: Linear, y: Linear) -> None:
        _draw_quantiles(canvas, values[i], most, f"stroke-{colours[i]}", x, y)

    ends = [(-x_end, x_end)], (-y_end, y_end)
    return draw_grid(size, titles, *ends, inside, x_title="normal quantile", **look)


def _draw_quantiles(canvas: Canvas, values: NDArray[np.float64], most: int, css: str, x: Linear, y: Linear) -> None:
    """Draw the line of equality, and at most so many of the values, sorted, against normal quantiles."""
    end = min(x.high, y.high)
    canvas.line(x(-end), y(-end), x(end), y(end), "zero")
    n, values = len(values), np.sort(values)
    at = evenly(n, most)
    expected = ndtri((at + 0.5) / n)
    points = zip(expected.tolist(), values[at].tolist(), strict=True)
    canvas.dots([(x(a), y(b)) for a, b in points], f"{css} small")
