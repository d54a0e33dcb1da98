"""States: the series with the most probable path, and the forecast."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.report.charts.axes import bottom_axis, bottom_title, left_axis, left_title, margin_for
from majorant.report.charts.marks import N_COLOURS, component_class, scatter
from majorant.report.charts.scales import Linear, padded, tick_labels
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.html import escaped
from majorant.report.measures.mixture import Mixture
from majorant.report.section import Section
from majorant.report.words import states as words

Array = NDArray[np.float64]
MOST_ROWS = 300
TOP, HEIGHT = 36.0, 260.0


def states_section(mixture: Mixture) -> Section | None:
    """Build the section, or return None where the first column has no cell among the rows that are shown."""
    run, model = mixture.run, mixture.run.estimator
    frame = mixture.as_fitted
    cuts = {name: run.given[name] for name in ("lengths", "groups") if name in run.given}
    path = np.asarray(model.predict(frame, **cuts))
    begins = np.zeros(len(path), dtype=bool)
    if "groups" in cuts:
        begins[1:] = np.asarray(cuts["groups"])[1:] != np.asarray(cuts["groups"])[:-1]
    elif "lengths" in cuts:
        begins[np.cumsum(cuts["lengths"])[:-1]] = True
    shown = slice(max(0, len(path) - MOST_ROWS), len(path))
    y = np.asarray(run.X[shown, 0], dtype=np.float64)
    if not (~np.isnan(y)).any():
        return None
    ahead = _forecast(model, frame, max(1, len(y) // 10)) if not cuts else None
    name = run.feature_names[0]
    stays = np.diag(model.transitions_)
    with np.errstate(divide="ignore"):
        durations = 1 / (1 - stays)
    label = f"{name} over time, by state" + ("" if ahead is None else ", and the forecast")
    n_ahead = 0 if ahead is None else len(ahead[0])
    return Section(
        "states",
        "States",
        words.headline(path, begins),
        figure("states", label, lambda size: draw(size, y, path[shown], begins[shown], mixture.k, ahead, name)),
        words.notes(escaped(name), len(y), len(path), durations, n_ahead),
    )


def _forecast(model: Any, frame: Any, n_steps: int) -> tuple[Array, Array, Array] | None:
    """Return mean and ends of the forecast of the first column; None where it needs columns that are not known."""
    try:
        ahead = model.forecast(frame, n_steps)
    except TypeError:
        return None
    low, high = ahead.interval(0.9)
    return ahead.mean[0, :, 0], low[0, :, 0], high[0, :, 0]


def draw(
    size: Size,
    y: Array,
    path: NDArray[np.intp],
    begins: NDArray[np.bool_],
    k: int,
    ahead: tuple[Array, Array, Array] | None,
    name: str,
) -> Canvas:
    """Draw the rows of one column by state, a line for each stretch without a gap, and the band of the forecast."""
    canvas, bottom, n = Canvas(size), TOP + HEIGHT, len(y)
    there = ~np.isnan(y)
    every = np.concatenate([y[there], *(ahead or ())])
    y_scale = Linear(*padded(float(every.min()), float(every.max())), bottom, TOP)
    y_ticks = y_scale.ticks(5)
    labels = tick_labels(y_ticks)
    left = margin_for(labels)
    x_scale = Linear(0.0, n + (0.0 if ahead is None else len(ahead[0])) + 1.0, left, size.width)
    x_ticks = x_scale.ticks(4 if size.narrow else 6)
    left_title(canvas, name, 14, size.width)
    left_axis(canvas, y_scale, y_ticks, labels, left, size.width)
    bottom_axis(canvas, x_scale, x_ticks, tick_labels(x_ticks), bottom, left, size.width)
    bottom_title(canvas, "row", size.width, bottom + 38, size.width - left)
    if ahead is not None:
        mean, low, high = ([(x_scale(n + 1.0 + i), y_scale(float(v))) for i, v in enumerate(part)] for part in ahead)
        canvas.polygon([*high, *low[::-1]], "fill-mid band")
        canvas.polyline(mean, "stroke-mid fitted-line")
    rows = np.flatnonzero(there)
    breaks = np.flatnonzero((np.diff(rows) > 1) | begins[rows[1:]]) + 1
    for stretch in np.split(rows, breaks):
        if len(stretch) > 1:
            points = [(x_scale(t + 1.0), y_scale(float(y[t]))) for t in stretch.tolist()]
            canvas.polyline(points, "stroke-hair fitted-line")
    for state in range(k):
        points = [(x_scale(t + 1.0), y_scale(float(y[t]))) for t in np.flatnonzero(there & (path == state)).tolist()]
        if points:
            scatter(canvas, points, state if k <= N_COLOURS else 0, component_class(state, k), 2.6)
    canvas.height = bottom + 46
    return canvas
