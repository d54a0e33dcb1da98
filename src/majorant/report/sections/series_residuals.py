"""Residuals of a series: how each row lies in its forecast from the rows before it."""

from __future__ import annotations

import numpy as np
from scipy.stats import kstest

from majorant.report.charts.panels import draw_grid, draw_quantiles
from majorant.report.charts.scales import Linear
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.html import column_name
from majorant.report.measures.mixture import Mixture
from majorant.report.measures.series import Series
from majorant.report.numbers import fixed
from majorant.report.section import Section
from majorant.report.words.grammar import capital, counted, listed, verb

MOST_PANELS = 3
MOST_POINTS = 400
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
        headline(series),
        notes(series, len(shown)),
        figure("residuals", label, lambda size: draw(size, series, shown)),
    )


def draw(size: Size, series: Series, shown: list[int]) -> Canvas:
    """Draw one panel a column: sorted residuals over normal quantiles; the diagonal is a model that is right."""

    def inside(canvas: Canvas, i: int, x: Linear, y: Linear) -> None:
        draw_quantiles(canvas, np.clip(series.residuals_of(shown[i]), -REACH, REACH), MOST_POINTS, "stroke-1", x, y)

    names = [series.mixture.run.feature_names[column] for column in shown]
    ends = (-REACH, REACH)
    titles = {"x_title": "normal quantile", "y_title": "residual"}
    return draw_grid(size, names, [ends], ends, inside, **titles, height=190.0, narrow_across=1)


FAR = 1.96
FURTHEST = 1.36
"""Distance between distribution functions, times the root of the number of residuals, that one in twenty normal samples
exceeds; of residuals of a fitted model, which lie nearer, far fewer do."""
ERRORS = 3.3
"""Standard errors beyond which a deviation is told: about one model in a thousand that is right."""


def headline(series: Series) -> str:
    """Say whether residuals are as far out, and as unrelated, as in a model that is right."""
    spread = [c for c in series.has_residuals.tolist() if _is_too_wide(series, c) or _is_bent(series, c)]
    related = [c for c in series.has_residuals.tolist() if _related(series, c) is not None]
    names = [column_name(name) for name in series.mixture.run.feature_names]
    if spread and related:
        return (
            f"Residuals of {listed([names[c] for c in spread])} are not normal, and rows are related beyond the states."
        )
    if spread:
        return f"Residuals of {listed([names[c] for c in spread])} are not as a normal distribution has them."
    if related:
        return f"Rows of {listed([names[c] for c in related])} are related beyond what the states explain."
    return "The residuals are as those of a model that is right: normal, and unrelated."


def notes(series: Series, n_shown: int) -> list[str]:
    """Say what a residual is, and give the numbers of each column."""
    texts = [
        "<b>A residual</b> says how far out a row lies in its forecast from the rows before it, as the quantile of a "
        "normal distribution with the same probability. Where the model is right the points lie along the line, about "
        "one in twenty beyond 1.96, and none depends on those before it."
    ]
    for column in series.has_residuals[:n_shown].tolist():
        name = column_name(series.mixture.run.feature_names[column])
        values = series.residuals_of(column)
        share = fixed(100 * float((np.abs(values) > FAR).mean()), 1)
        said = f"<b>{name}:</b> {share}\u202f% of {len(values)} residuals are beyond 1.96"
        found = _related(series, column)
        if found is not None:
            said += f"; the correlation with {counted(found[0], 'row')} before is {fixed(found[1], 2)}"
        texts.append(said + ".")
    left_out = len(series.has_residuals) - n_shown
    if left_out:
        texts.append(f"{capital(counted(left_out, 'other column'))} {verb(left_out, 'is', 'are')} not drawn.")
    return texts


def _is_too_wide(series: Series, column: int) -> bool:
    """Return whether the share of far residuals differs from a twentieth by more than chance."""
    values = series.residuals_of(column)
    n = len(values)
    return bool(abs((np.abs(values) > FAR).mean() - 0.05) > ERRORS * np.sqrt(0.05 * 0.95 / n) + 0.5 / n)


def _is_bent(series: Series, column: int) -> bool:
    """Return whether the residuals of numbers, not of counts or codes, lie further from a normal law than by chance."""
    values = series.residuals_of(column)
    if len(np.unique(values)) < 0.9 * len(values):
        return False
    return bool(kstest(values, "norm").statistic * np.sqrt(len(values)) > FURTHEST)


def _related(series: Series, column: int) -> tuple[int, float] | None:
    """Return the lag and size of the largest autocorrelation that chance does not explain; None where there is none."""
    found, pairs = series.autocorrelations(column)
    with np.errstate(invalid="ignore"):
        strength = np.abs(found) * np.sqrt(pairs)
    if not len(strength) or np.isnan(strength).all() or not np.nanmax(strength) > ERRORS:
        return None
    lag = int(np.nanargmax(strength))
    return lag + 1, float(found[lag])
