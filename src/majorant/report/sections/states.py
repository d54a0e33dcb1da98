"""States: the series with the most probable path, and the forecast."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.models.hidden_markov.times import labels_of
from majorant.report import numbers
from majorant.report.charts.marks import N_COLOURS, component_class, scatter
from majorant.report.charts.panels import draw_grid
from majorant.report.charts.scales import Linear, padded, tick_labels
from majorant.report.charts.svg import Canvas, Point, Size, figure
from majorant.report.html import escaped
from majorant.report.measures.mixture import Mixture
from majorant.report.measures.series import Series
from majorant.report.numbers import fixed, integer
from majorant.report.section import Section
from majorant.report.table import Column, Table
from majorant.report.words.grammar import listed
from majorant.summary import counted

Array = NDArray[np.float64]
MOST_ROWS = 300
HEIGHT = 260.0
LEVEL = 0.9
LANE = 13.0
MOST_STEPS = 10
MOST_LISTED = 10
"""Rows of the forecast that the page shows; its copies have all."""


def states_section(mixture: Mixture) -> Section | None:
    """Build the section, or return None where the first column has no cell among the rows that are shown."""
    series, run = Series(mixture), mixture.run
    shown = slice(max(0, mixture.n_rows - MOST_ROWS), mixture.n_rows)
    y, path, begins = run.X[series.order[shown], 0], series.path[shown], series.begins[shown].copy()
    if not (~np.isnan(y)).any():
        return None
    begins[0] = False
    ahead = series.forecast(min(MOST_STEPS, max(1, len(y) // 10)))
    drawn = None if ahead is None else (ahead.mean[-1, :, 0], *(end[-1, :, 0] for end in ahead.interval(LEVEL)))
    n_ahead = 0 if drawn is None else len(drawn[0])
    name = run.feature_names[0]
    times = None
    if series.times is not None:
        later = series.times_ahead(n_ahead) if n_ahead else None
        times = labels_of(series.times.write(series.times.numbers[shown])) + (later or [])[-n_ahead or None :]
    label = f"{name} over time, by state" + ("" if ahead is None else ", and the forecast")
    n_sequences = int(series.begins.sum())
    return Section(
        "states",
        "Series",
        headline(series.path, series.begins),
        notes(escaped(name), len(y), mixture.n_rows, n_sequences, n_ahead, mixture.k > N_COLOURS),
        figure("states", label, lambda size: draw(size, y, path, begins, mixture.k, drawn, name, times)),
        table=None if ahead is None else forecast_table(series, ahead),
    )


def forecast_table(series: Series, ahead: Any) -> Table:
    """Return the mean and the interval of every column, and the most probable state, of every row to come."""
    low, high = ahead.interval(LEVEL)
    n_sequences, n_steps, n_told = ahead.mean.shape
    columns = []
    if series.names is not None:
        columns.append(Column("Sequence", [str(name) for name in np.unique(series.names) for _ in range(n_steps)]))
    columns.append(Column("Rows ahead", list(range(1, n_steps + 1)) * n_sequences, css="number"))
    times = series.times_ahead(n_steps)
    if times is not None:
        columns.append(Column("Time", times))
    for j in range(n_told):
        name = series.mixture.run.feature_names[j]
        parts = [part[:, :, j].ravel() for part in (ahead.mean, low, high)]
        decimals = numbers.shared_decimals(parts[0], parts[2] - parts[1])
        texts = [
            [numbers.scientific(v) if decimals is None else numbers.fixed(v, decimals) for v in part.tolist()]
            for part in parts
        ]
        ends = [f"{a} to {b}" for a, b in zip(texts[1], texts[2], strict=True)]
        columns += [
            Column(name, parts[0].tolist(), texts[0], css="number"),
            Column("90\u202f% interval", [None] * len(ends), ends, css="number wide-only", where="page"),
            Column(f"{name} (5 %)", parts[1].tolist(), texts[1], css="number", where="copies"),
            Column(f"{name} (95 %)", parts[2].tolist(), texts[2], css="number", where="copies"),
        ]
    likely = ahead.states.argmax(axis=2).ravel()
    chance = ahead.states.max(axis=2).ravel()
    columns += [
        Column("State", (likely + 1).tolist(), css="number"),
        Column("Probability", chance.tolist(), [numbers.fixed(v, 2) for v in chance.tolist()], css="number"),
    ]
    n_rows = n_sequences * n_steps
    return Table("forecast", columns, css="below", only_in_copies=range(0, max(0, n_rows - MOST_LISTED)))


def draw(
    size: Size,
    y: Array,
    path: NDArray[np.int64],
    begins: NDArray[np.bool_],
    k: int,
    ahead: tuple[Array, ...] | None,
    name: str,
    times: list[str] | None = None,
) -> Canvas:
    """Draw the rows of one column by state, a line for each stretch without a gap, and the band of the forecast."""
    n, there = len(y), ~np.isnan(y)
    every = np.concatenate([y[there], *(ahead or ())])
    x_range = (0.0, n + (0.0 if ahead is None else len(ahead[0])) + 1.0)
    rows = np.flatnonzero(there)
    breaks = np.flatnonzero((np.diff(rows) > 1) | begins[rows[1:]]) + 1

    def inside(canvas: Canvas, i: int, x: Linear, y_scale: Linear) -> None:
        for t in np.flatnonzero(begins).tolist():
            canvas.line(x(t + 0.5), y_scale.end, x(t + 0.5), y_scale.start, "axis")
        if ahead is not None:
            mean, low, high = ([(x(n + 1.0 + j), y_scale(float(v))) for j, v in enumerate(part)] for part in ahead)
            canvas.polygon([*high, *low[::-1]], "fill-mid band")
            canvas.polyline(mean, "stroke-mid fitted-line")

        def points(of: NDArray[np.int64]) -> list[Point]:
            return [(x(t + 1.0), y_scale(float(y[t]))) for t in of.tolist()]

        for stretch in np.split(rows, breaks):
            if len(stretch) > 1:
                canvas.polyline(points(stretch), "stroke-hair fitted-line")
        for state in range(k):
            if len(own := np.flatnonzero(there & (path == state))):
                scatter(canvas, points(own), state if k <= N_COLOURS else 0, component_class(state, k), 2.6)
        lanes.append(x)

    def x_labels(ticks: list[float]) -> list[str]:
        if times is None:
            return tick_labels(ticks)
        return [times[int(at) - 1] if 1 <= at <= len(times) else "" for at in ticks]

    lanes: list[Linear] = []
    canvas = draw_grid(
        size,
        [""],
        [x_range],
        padded(float(every.min()), float(every.max())),
        inside,
        x_title="row" if times is None else "time",
        y_title=name,
        height=HEIGHT,
        x_labels=x_labels,
    )
    if k > N_COLOURS:
        draw_lanes(canvas, path, begins, k, lanes[0])
    return canvas


def draw_lanes(canvas: Canvas, path: NDArray[np.int64], begins: NDArray[np.bool_], k: int, x_scale: Linear) -> None:
    """Draw a lane for each state below the series, filled where the path is in it: there are more than colours."""
    top = canvas.height + 14
    canvas.text(x_scale(0.0), top - 6, "state", "axis-title")
    cuts = np.flatnonzero((np.diff(path) != 0) | begins[1:]) + 1
    stretches = [(int(rows[0]), len(rows)) for rows in np.split(np.arange(len(path)), cuts)]
    for state in range(k):
        y = top + LANE * state
        canvas.text(x_scale(0.0) - 8, y + LANE - 4, str(state + 1), "end")
        canvas.line(x_scale(0.5), y + LANE - 2, x_scale(len(path) + 0.5), y + LANE - 2, "axis")
        for first, n_rows in stretches:
            if path[first] == state:
                canvas.rect(x_scale(first + 0.5), y, x_scale(float(n_rows)) - x_scale(0.0), LANE - 2, "fill-mid")
    canvas.height = top + LANE * k + 10


CLOSED = 1e-6


def headline(path: NDArray[np.int64], begins: NDArray[np.bool_]) -> str:
    """Return how often the state changes along the most probable path."""
    changes = int(np.count_nonzero((path[1:] != path[:-1]) & ~begins[1:]))
    if changes == 0:
        return "The state never changes within a sequence."
    return f"The state changes {counted(changes, 'time')} in {counted(len(path), 'row')}."


def notes(column: str, shown: int, n_rows: int, n_sequences: int, ahead: int, has_lanes: bool) -> list[str]:
    """Return what is drawn, and what the band is."""
    which = "" if shown == n_rows else f" Shown are the last {integer(shown)} of {integer(n_rows)} rows."
    path = "on the most probable path"
    by_state = (
        f"; the lanes below tell the state of each {path}"
        if has_lanes
        else (f", each in the colour and shape of its state {path}")
    )
    said = [f"The rows of <b>{column}</b> in their order{by_state}.{which}"]
    if n_sequences > 1:
        said.append(f"The {integer(n_sequences)} sequences are one after the other, with a line between them.")
    if ahead:
        after = "the next" if n_sequences == 1 else "the last sequence\u2019s next"
        said.append(f"The band holds 90 % of the forecast for {after} {counted(ahead, 'row')}; the line is its mean.")
        said.append("The table below gives the most probable state of the rows to come.")
    return said


def transitions_headline(series: Series) -> str:
    """Return which state lasts longest, or which is never left."""
    by_transitions = series.durations[0]
    absorbing = np.flatnonzero(series.model.transitions_.diagonal() >= 1 - CLOSED)
    if len(absorbing):
        return f"State {absorbing[0] + 1} is never left."
    longest = int(by_transitions.argmax())
    return f"State {longest + 1} lasts longest: {fixed(float(by_transitions[longest]), 1)} rows on average."


def transitions_notes(series: Series) -> list[str]:
    """Return what the squares and columns are, and which steps never happen."""
    steps = series.model.transitions_
    texts = [
        "<b>Each row</b> gives the probabilities of the next state; the area of a square is its probability.",
    ]
    if hasattr(series.model, "gating_center_"):
        texts.append("Covariates change them: these are where all covariates are at their mean.")
    texts += [
        "<b>Lasts</b> is the mean number of rows of a visit by these probabilities, <b>as met</b> the rows of a state "
        "over its visits in the table; <b>first</b> is the probability that a sequence begins there.",
    ]
    closed = np.argwhere(steps < CLOSED)
    if len(closed):
        never = listed([f"{i + 1} to {j + 1}" for i, j in closed[:8].tolist()])
        texts.append(f"<b>Never:</b> from state {never}{'' if len(closed) <= 8 else ' and others'}.")
    return texts


def probability(p: float) -> str:
    """Format a probability, with a sign where it is zero to the digits shown."""
    return "0" if p < CLOSED else "<.001" if p < 0.0005 else fixed(p, 3)
