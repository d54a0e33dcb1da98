"""Sections of a hidden Markov model: the series by state with its forecast, transitions, and forecast residuals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.models.hidden_markov.summary import NEVER_LEFT
from majorant.models.hidden_markov.times import Times, labels_of, read_times, times_ahead
from majorant.report import numbers
from majorant.report.charts.axes import draw_grid, draw_quantile_panels
from majorant.report.charts.marks import N_COLOURS, component_class, name_class, scatter
from majorant.report.charts.scales import Linear, padded, tick_labels
from majorant.report.charts.svg import Canvas, Point, Size, figure
from majorant.report.columns import number_column
from majorant.report.html import column_name, escaped
from majorant.report.measures.mixture import Mixture
from majorant.report.numbers import fixed, integer
from majorant.report.section import Section
from majorant.report.table import Column, Table
from majorant.report.words.grammar import capital, counted, listed, verb

Array = NDArray[np.float64]
MOST_LAGS = 20


@dataclass(frozen=True)
class Series:
    """A hidden Markov model and its sequences, one after the other."""

    mixture: Mixture

    @property
    def model(self) -> Any:
        return self.mixture.run.estimator

    @cached_property
    def cuts(self) -> dict[str, Any]:
        """What says which rows are one sequence, and what transitions depend on."""
        given = self.mixture.run.given
        return {name: given[name] for name in ("lengths", "groups", "gating") if name in given}

    @cached_property
    def names(self) -> NDArray[Any] | None:
        """Name of each row's sequence; None where all rows are one."""
        if "groups" in self.cuts:
            return np.asarray(self.cuts["groups"])
        if "lengths" in self.cuts:
            return np.repeat(np.arange(1, len(self.cuts["lengths"]) + 1), self.cuts["lengths"])
        return None

    @cached_property
    def codes(self) -> NDArray[np.intp]:
        """Number of each row's sequence, in the order of their names."""
        if self.names is None:
            return np.zeros(self.mixture.n_rows, dtype=np.intp)
        return np.unique(self.names, return_inverse=True)[1].reshape(-1).astype(np.intp)

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The rows, sequence by sequence."""
        return np.argsort(self.codes, kind="stable")

    @cached_property
    def begins(self) -> NDArray[np.bool_]:
        """Whether each row in order is the first of its sequence."""
        return np.asarray(np.diff(self.codes[self.order], prepend=-1) != 0)

    @cached_property
    def path(self) -> NDArray[np.int64]:
        """The most probable state of each row in order."""
        return self.mixture.labels[self.order]

    @cached_property
    def times(self) -> Times | None:
        """Times of the rows in order; None where they are not known."""
        given = self.mixture.run.times
        return None if given is None else read_times(np.asarray(given)[self.order])

    def times_ahead(self, n_steps: int) -> list[str] | None:
        """Return the times of the rows to come of each sequence, one after the other, as text."""
        found = None if self.times is None else times_ahead(self.times, self.codes[self.order], n_steps)
        return None if found is None else labels_of(found.ravel())

    def forecast(self, n_steps: int) -> Any:
        """Return the forecast of every sequence; None of a degenerate fit, or without rows that it needs."""
        if not self.mixture.regular:
            return None
        try:
            return self.model.forecast(self.mixture.as_fitted, n_steps, **self.cuts)
        except (TypeError, ValueError):
            return None

    @cached_property
    def residuals(self) -> Array:
        """Forecast residuals of each row in order: normal if the model is right, NaN where a cell is missing."""
        return np.asarray(self.model.pseudo_residuals(self.mixture.as_fitted, **self.cuts))[self.order]

    def residuals_of(self, column: int) -> Array:
        """Return the residuals of the cells of a column that are there."""
        found = self.residuals[:, column]
        return found[~np.isnan(found)]

    @cached_property
    def has_residuals(self) -> NDArray[np.intp]:
        """Columns that have residuals."""
        return np.flatnonzero((~np.isnan(self.residuals)).sum(axis=0) > 2)

    def autocorrelations(self, column: int) -> tuple[Array, Array]:
        """Return the correlations of a column's residuals with those some rows before, and the pairs of each lag."""
        r = self.residuals[:, column] - np.nanmean(self.residuals[:, column])
        variance, codes = np.nanmean(r**2), self.codes[self.order]
        found, pairs = [], []
        for lag in range(1, min(MOST_LAGS, len(r) // 4) + 1):
            products = np.where(codes[lag:] == codes[:-lag], r[lag:] * r[:-lag], np.nan)
            n = int((~np.isnan(products)).sum())
            found.append(float(np.nansum(products)) / n / variance if n and variance > 0 else np.nan)
            pairs.append(n)
        return np.array(found), np.array(pairs, dtype=np.float64)

    @cached_property
    def durations(self) -> tuple[Array, Array]:
        """Mean length of a visit to each state: by the transitions, and as met."""
        by_transitions, met = self.model.durations(self.mixture.as_fitted, **self.cuts)
        return np.asarray(by_transitions), np.asarray(met)


MOST_ROWS = 300
HEIGHT = 260.0
LEVEL = 0.9
LANE = 13.0
MOST_STEPS, MOST_LISTED = 10, 10
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
        states_headline(series.path, series.begins),
        states_notes(escaped(name), len(y), mixture.n_rows, n_sequences, n_ahead, mixture.k > N_COLOURS),
        figure("states", label, lambda size: draw_series(size, y, path, begins, mixture.k, drawn, name, times)),
        table=None if ahead is None else forecast_table(series, ahead),
    )


def forecast_table(series: Series, ahead: Any) -> Table:
    """Return the mean and the interval of every column, and the most probable state, of every row to come."""
    low, high = ahead.interval(LEVEL)
    n_sequences, n_steps, n_told = ahead.mean.shape
    columns = []
    if series.names is not None:
        columns.append(Column("Sequence", [str(name) for name in np.unique(series.names) for _ in range(n_steps)]))
    if (times := series.times_ahead(n_steps)) is not None:
        columns.append(Column("Time", times))
    columns.append(Column("Rows ahead", list(range(1, n_steps + 1)) * n_sequences, css="number"))
    for j in range(n_told):
        name = series.mixture.run.feature_names[j]
        mean, below, above = (part[:, :, j].ravel() for part in (ahead.mean, low, high))
        write = numbers.writer(mean, above - below)
        ends = [f"{write(a)} to {write(b)}" for a, b in zip(below, above, strict=True)]
        columns += [
            number_column(name, mean, write),
            Column("90\u202f% interval", ends, css="number wide-only", where="page"),
            number_column(f"{name} (5 %)", below, write, where="copies"),
            number_column(f"{name} (95 %)", above, write, where="copies"),
        ]
    columns += [
        Column("State", ahead.states.argmax(axis=2).ravel() + 1, css="number"),
        number_column("Probability", ahead.states.max(axis=2).ravel(), 2),
    ]
    return Table("forecast", columns, css="below", only_in_copies=range(n_sequences * n_steps - MOST_LISTED))


def draw_series(
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
    rows, lanes = np.flatnonzero(there), list[Linear]()
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
        labels = None if times is None else [times[int(at) - 1] if 1 <= at <= len(times) else "" for at in ticks]
        return labels or tick_labels(ticks)

    y_range, along = padded(float(every.min()), float(every.max())), "row" if times is None else "time"
    canvas = draw_grid(
        size, [""], [x_range], y_range, inside, x_title=along, y_title=name, height=HEIGHT, x_labels=x_labels
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


def states_headline(path: NDArray[np.int64], begins: NDArray[np.bool_]) -> str:
    """Return how often the state changes along the most probable path."""
    changes = int(np.count_nonzero((path[1:] != path[:-1]) & ~begins[1:]))
    if changes == 0:
        return "The state never changes within a sequence."
    return f"The state changes {counted(changes, 'time', words=False)} in {counted(len(path), 'row', words=False)}."


def states_notes(column: str, shown: int, n_rows: int, n_sequences: int, ahead: int, has_lanes: bool) -> list[str]:
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
        rows = counted(ahead, "row", words=False)
        said.append(f"The band holds 90 % of the forecast for {after} {rows}; the line is its mean.")
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


MOST_STATES = 8
"""States up to which the steps are drawn."""
HEAD, LEAST_SIDE = 34.0, 1.6


def transitions_section(mixture: Mixture) -> Section | None:
    """Build the section; None with a single state."""
    if mixture.k < 2:
        return None
    series = Series(mixture)
    label = f"Probabilities of the next state, from each of {mixture.k} states"
    drawn = (
        figure("transitions", label, lambda size: draw_transitions(size, series)) if mixture.k <= MOST_STATES else ""
    )
    return Section(
        "transitions",
        "Transitions",
        transitions_headline(series),
        transitions_notes(series),
        drawn,
        table=transitions_table(series),
    )


def draw_transitions(size: Size, series: Series) -> Canvas:
    """Draw a square for every step, as large as its probability, in the colour of the state that it leads to."""
    steps, k = series.model.transitions_, series.mixture.k
    left = 44.0 if size.narrow else 96.0
    cell = min(92.0, (size.width - left) / k)
    largest = min(cell, 62.0) - 20
    canvas = Canvas(size, HEAD + cell * k + 8)
    for j in range(k):
        colour = component_class(j, k)
        css = name_class(colour, "strong")
        canvas.text(left + cell * (j + 0.5), 16, f"to {j + 1}", css, anchor="middle")
        canvas.text(0, HEAD + cell * (j + 0.5) + 4, f"from {j + 1}" if not size.narrow else str(j + 1), css)
    for i in range(k):
        canvas.line(left, HEAD + cell * i, left + cell * k, HEAD + cell * i, "grid")
        for j in range(k):
            p, colour = float(steps[i, j]), component_class(j, k)
            x, y = left + cell * (j + 0.5), HEAD + cell * (i + 0.5) - 8
            side = largest * np.sqrt(p)
            if p > 0:
                side = max(side, LEAST_SIDE)
                canvas.rect(x - side / 2, y - side / 2, side, side, f"fill-{colour}" + ("" if i == j else " bars"))
            canvas.text(x, HEAD + cell * (i + 1) - 6, probability(p), "quiet", anchor="middle")
    return canvas


def transitions_table(series: Series) -> Table:
    """Return the steps, the first states and how long states last."""
    model, k = series.model, series.mixture.k
    by_transitions, met = series.durations
    columns = [Column("From state", range(1, k + 1))]
    steps, first = (model._of_each(n, getattr(model, f"{n}_")) for n in ("transitions", "start_probabilities"))
    wide = [(f"To {j + 1}", steps[:, j]) for j in range(k)]
    where = "copies" if k > MOST_STATES else "everywhere"
    for head, values in (*wide, ("First", first)):
        columns.append(number_column(head, values, probability, where=where))
    lasts = number_column("Lasts", by_transitions, lambda rows: fixed(rows, 1) if np.isfinite(rows) else NEVER_LEFT)
    columns += [lasts, number_column("As met", met, 1)]
    return Table("transitions", columns)


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
        residuals_headline(series),
        residuals_notes(series, len(shown)),
        figure("residuals", label, lambda size: draw_residuals(size, series, shown)),
    )


def draw_residuals(size: Size, series: Series, shown: list[int]) -> Canvas:
    """Draw one panel a column: sorted residuals over normal quantiles; the diagonal is a model that is right."""
    names = [series.mixture.run.feature_names[column] for column in shown]
    values = [np.clip(series.residuals_of(column), -REACH, REACH) for column in shown]
    look: dict[str, Any] = {"y_title": "residual", "height": 190.0, "narrow_across": 1}
    return draw_quantile_panels(size, names, values, MOST_POINTS, REACH, REACH, ["1"] * len(shown), **look)


FAR = 1.96
FURTHEST = 1.36
"""Distance between distribution functions, times the root of the number of residuals, that one in twenty normal samples
exceeds; of residuals of a fitted model, which lie nearer, far fewer do."""
ERRORS = 3.3
"""Standard errors beyond which a deviation is told: about one model in a thousand that is right."""


def residuals_headline(series: Series) -> str:
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


def residuals_notes(series: Series, n_shown: int) -> list[str]:
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
    from scipy.stats import kstest  # takes time to load

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
