"""Residuals of a series: how each row lies in its forecast from the rows before it."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from majorant.report.charts.axes import bottom_axis, bottom_title, left_axis, left_title, margin_for
from majorant.report.charts.labels import shorten
from majorant.report.charts.scales import Linear, tick_labels
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.measures.mixture import Mixture
from majorant.report.measures.series import Series
from majorant.report.section import Section
from majorant.report.words import series_residuals as words

MOST_PANELS = 3
MOST_POINTS = 400
HEIGHT, HEAD, FOOT = 190.0, 30.0, 40.0
REACH = 3.6


def series_residuals_section(mixture: Mixture) -> Section | None:
    """Build the section; None where no column has residuals, and for a degenerate fit."""
    series = Series(mixture)
    if not mixture.regular or not len(series.has_residuals):
        return None
    shown = series.has_residuals[:MOST_PANELS].tolist()
    label = "Forecast residuals in ascending order beside the quantiles of a normal distribution"
    return Section(
        "residuals",
        "Residuals",
        words.headline(series),
        figure("residuals", label, lambda size: draw(size, series, shown)),
        words.notes(series, len(shown)),
    )


def draw(size: Size, series: Series, shown: list[int]) -> Canvas:
    """Draw one panel a column: sorted residuals over normal quantiles; the diagonal is a model that is right."""
    canvas = Canvas(size)
    n_across, gap = (1, 0.0) if size.narrow else (len(shown), 20.0)
    ticks = [-2.0, 0.0, 2.0]
    labels = tick_labels(ticks)
    left = margin_for(labels)
    width = min(300.0, (size.width - left - gap * (n_across - 1)) / n_across)
    left_title(canvas, "residual", 14, size.width)
    for i, column in enumerate(shown):
        row, place = divmod(i, n_across)
        x1, y1 = left + place * (width + gap), 20 + HEAD + row * (HEIGHT + HEAD + FOOT)
        x_scale, y_scale = Linear(-REACH, REACH, x1, x1 + width), Linear(-REACH, REACH, y1 + HEIGHT, y1)
        name = series.mixture.run.feature_names[column]
        canvas.text(x1, y1 - 10, shorten(name, width), "strong-weight", full=name)
        left_axis(canvas, y_scale, ticks, labels if place == 0 else [""] * 3, x1, x1 + width)
        canvas.line(x_scale(-REACH), y_scale(-REACH), x_scale(REACH), y_scale(REACH), "zero")
        values = np.sort(series.residuals[:, column][~np.isnan(series.residuals[:, column])])
        at = np.unique(np.linspace(0, len(values) - 1, min(len(values), MOST_POINTS)).astype(np.int64))
        quantiles = norm.ppf((at + 0.5) / len(values))
        points = zip(quantiles.tolist(), np.clip(values[at], -REACH, REACH).tolist(), strict=True)
        canvas.dots([(x_scale(q), y_scale(v)) for q, v in points], "stroke-1 small")
        bottom_axis(canvas, x_scale, ticks, labels, y1 + HEIGHT, x1, x1 + width)
    bottom = 20 + -(-len(shown) // n_across) * (HEIGHT + HEAD + FOOT)
    bottom_title(canvas, "normal quantile", left + n_across * width + gap * (n_across - 1), bottom, size.width)
    canvas.height = bottom + 8
    return canvas
