"""Residuals of each component, in standard deviations of its noise."""

from __future__ import annotations

import numpy as np

from majorant.report.charts.axes import bottom_axis, bottom_title, left_axis, left_title, margin_for
from majorant.report.charts.marks import N_COLOURS, component_class, scatter, shaded_class
from majorant.report.charts.scales import Linear, padded, tick_labels
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.measures.regression import Regression
from majorant.report.section import Section
from majorant.report.words import residuals as words

MOST_PANELS = 6
MOST_POINTS = 1200
"""Largest number of rows in all panels."""


def residuals_section(regression: Regression) -> Section | None:
    """Build the section; None where one line fits every row exactly, or components are not lines."""
    if regression.run.estimator.is_exact_ or not regression.has_lines:
        return None
    shown = [j for j in range(regression.k) if regression.sizes[j]][:MOST_PANELS]
    return Section(
        "residuals",
        "Residuals",
        words.headline(regression),
        figure("residuals", words.figure_label(regression), lambda size: draw_residuals(size, regression, shown)),
        words.notes(regression, shown, MOST_POINTS // len(shown)),
    )


def draw_residuals(size: Size, regression: Regression, shown: list[int]) -> Canvas:
    """Draw one panel per component: residuals as points, their running median as a line; panels share both axes."""
    canvas = Canvas(size)
    n_across, gap = (1, 0.0) if size.narrow else (min(len(shown), 3), 20.0)
    parts = {j: regression.residuals(j) for j in shown}
    far = max(float(np.abs(r.values).max()) for r in parts.values())
    reach = 1.06 * max(far, 2.5)
    x_range = padded(min(float(r.at.min()) for r in parts.values()), max(float(r.at.max()) for r in parts.values()))
    y_ticks = Linear(-reach, reach, 0, 1).ticks(5)
    y_labels = tick_labels(y_ticks)
    left = margin_for(y_labels)
    width = (size.width - left - gap * (n_across - 1)) / n_across
    height, head, foot = 190.0, 30.0, 34.0
    left_title(canvas, words.Y_TITLE, 14, size.width)
    for i, (j, residuals) in enumerate(parts.items()):
        row, column = divmod(i, n_across)
        x1, y1 = left + column * (width + gap), 20 + head + row * (height + head + foot)
        x_scale, y_scale = Linear(*x_range, x1, x1 + width), Linear(-reach, reach, y1 + height, y1)
        colour = component_class(j, regression.k)
        css = "strong" if colour == "mid" else f"text-{colour} strong-weight"
        canvas.text(x1, y1 - 10, f"Component {j + 1}", css)
        canvas.rect(x1, y_scale(2), width, y_scale(-2) - y_scale(2), f"fill-{colour} band")
        left_axis(canvas, y_scale, y_ticks, y_labels if column == 0 else [""] * len(y_ticks), x1, x1 + width)
        canvas.line(x1, y_scale(0), x1 + width, y_scale(0), "zero")
        certainty = regression.certainty[regression.labels == j]
        kept = np.unique(
            np.linspace(0, len(certainty) - 1, min(len(certainty), MOST_POINTS // len(shown))).astype(np.int64)
        )
        shades: dict[str, list[tuple[float, float]]] = {}
        for r in kept.tolist():
            shade = shaded_class(j, regression.k, float(certainty[r]))
            point = (x_scale(float(residuals.at[r])), y_scale(float(residuals.values[r])))
            shades.setdefault(shade, []).append(point)
        for shade, points in sorted(shades.items()):
            scatter(canvas, points, j if regression.k <= N_COLOURS else 0, shade, 2.5)
        medians = zip(residuals.median_at.tolist(), residuals.medians.tolist(), strict=True)
        canvas.polyline([(x_scale(a), y_scale(m)) for a, m in medians], "objective-line")
        x_ticks = x_scale.ticks(4)
        bottom_axis(canvas, x_scale, x_ticks, tick_labels(x_ticks), y1 + height, x1, x1 + width)
    bottom = 20 + -(-len(shown) // n_across) * (height + head + foot)
    bottom_title(canvas, words.x_title(regression), size.width, bottom + 8, size.width)
    canvas.height = bottom + 16
    return canvas
