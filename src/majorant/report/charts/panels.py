"""Small multiples: panels with axes that share their vertical scale, and where wanted the horizontal one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from majorant.report.charts.axes import bottom_axis, bottom_title, left_axis, left_title, margin_for
from majorant.report.charts.labels import shorten
from majorant.report.charts.scales import Linear, tick_labels
from majorant.report.charts.svg import Canvas, Size

Range = tuple[float, float]
Draw = Callable[[Canvas, int, Linear, Linear], None]


def draw_grid(
    size: Size,
    titles: Sequence[str],
    x_ranges: Sequence[Range],
    y_range: Range,
    draw: Draw,
    *,
    x_title: str,
    y_title: str,
    css: Sequence[str] = (),
    height: float = 150.0,
    most_across: int = 3,
    narrow_across: int = 2,
    y_labels: Callable[[list[float]], list[str]] = tick_labels,
) -> Canvas:
    """Draw one panel per title, with the axes around it; `draw` fills the panel of a number.

    With one horizontal range all panels share it; otherwise each has its own.
    """
    canvas, n = Canvas(size), len(titles)
    n_across, gap = (narrow_across, 26.0) if size.narrow else (min(n, most_across), 26.0)
    y_ticks = Linear(*y_range, 0, 1).ticks(4)
    texts = y_labels(y_ticks)
    left, head, foot = margin_for(texts), 30.0, 34.0
    width = (size.width - left - gap * (n_across - 1)) / n_across
    left_title(canvas, y_title, 14, size.width)
    for i, title in enumerate(titles):
        row, column = divmod(i, n_across)
        x1, y1 = left + column * (width + gap), 20 + head + row * (height + head + foot)
        x_scale = Linear(*x_ranges[i % len(x_ranges)], x1, x1 + width)
        y_scale = Linear(*y_range, y1 + height, y1)
        shown = css[i] if css else "strong"
        canvas.text(x1, y1 - 10, shorten(title, width - 4, bold=True), shown, full=title)
        left_axis(canvas, y_scale, y_ticks, texts if column == 0 else [""] * len(y_ticks), x1, x1 + width)
        draw(canvas, i, x_scale, y_scale)
        x_ticks = x_scale.ticks(3)
        bottom_axis(canvas, x_scale, x_ticks, tick_labels(x_ticks), y1 + height, x1, x1 + width)
    bottom = 20 + -(-n // n_across) * (height + head + foot)
    bottom_title(canvas, x_title, size.width, bottom + 8, size.width)
    canvas.height = bottom + 16
    return canvas
