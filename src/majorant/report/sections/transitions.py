"""Transitions: the probability of every step from a state to the next, and how long states last."""

from __future__ import annotations

import numpy as np

from majorant.report import numbers
from majorant.report.charts.marks import component_class
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.measures.mixture import Mixture
from majorant.report.measures.series import Series
from majorant.report.section import Section
from majorant.report.sections import states as words
from majorant.report.table import Column, Table

MOST_STATES = 8
"""States up to which the steps are drawn."""
TOP, LEAST_SIDE = 34.0, 1.6


def transitions_section(mixture: Mixture) -> Section | None:
    """Build the section; None with a single state."""
    if mixture.k < 2:
        return None
    series = Series(mixture)
    label = f"Probabilities of the next state, from each of {mixture.k} states"
    drawn = figure("transitions", label, lambda size: draw(size, series)) if mixture.k <= MOST_STATES else ""
    return Section(
        "transitions",
        "Transitions",
        words.transitions_headline(series),
        words.transitions_notes(series),
        drawn,
        table=table(series),
    )


def draw(size: Size, series: Series) -> Canvas:
    """Draw a square for every step, as large as its probability, in the colour of the state that it leads to."""
    steps, k = series.model.transitions_, series.mixture.k
    left = 44.0 if size.narrow else 96.0
    cell = min(92.0, (size.width - left) / k)
    largest = min(cell, 62.0) - 20
    canvas = Canvas(size, TOP + cell * k + 8)
    for j in range(k):
        colour = component_class(j, k)
        css = "strong" if colour == "mid" else f"text-{colour} strong-weight"
        canvas.text(left + cell * (j + 0.5), 16, f"to {j + 1}", css, anchor="middle")
        canvas.text(0, TOP + cell * (j + 0.5) + 4, f"from {j + 1}" if not size.narrow else str(j + 1), css)
    for i in range(k):
        canvas.line(left, TOP + cell * i, left + cell * k, TOP + cell * i, "grid")
        for j in range(k):
            p, colour = float(steps[i, j]), component_class(j, k)
            x, y = left + cell * (j + 0.5), TOP + cell * (i + 0.5) - 8
            side = largest * np.sqrt(p)
            if p > 0:
                side = max(side, LEAST_SIDE)
                canvas.rect(x - side / 2, y - side / 2, side, side, f"fill-{colour}" + ("" if i == j else " bars"))
            canvas.text(x, TOP + cell * (i + 1) - 6, words.probability(p), "quiet", anchor="middle")
    return canvas


def table(series: Series) -> Table:
    """Return the steps, the first states and how long states last."""
    model, k = series.model, series.mixture.k
    by_transitions, met = series.durations
    columns = [Column("From state", list(range(1, k + 1)))]
    wide = [(f"To {j + 1}", model.transitions_[:, j]) for j in range(k)]
    for head, values in (*wide, ("First", model.start_probabilities_)):
        texts = [words.probability(float(v)) for v in values]
        columns.append(
            Column(head, values.tolist(), texts, css="number", where="copies" if k > MOST_STATES else "everywhere")
        )
    for head, values in (("Lasts", by_transitions), ("As met", met)):
        columns.append(Column(head, values.tolist(), [numbers.fixed(v, 1) for v in values.tolist()], css="number"))
    return Table("transitions", columns)
