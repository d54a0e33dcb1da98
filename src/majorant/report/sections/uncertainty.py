"""Uncertainty: how clearly each row belongs to its component, and the least certain rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.models.hidden_markov.times import labels_of, read_times
from majorant.report import numbers
from majorant.report.charts.axes import bottom_axis, bottom_title
from majorant.report.charts.labels import Shelf, text_width
from majorant.report.charts.scales import Linear
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.columns import number_column
from majorant.report.measures.mixture import CLEAR, Mixture
from majorant.report.section import Section
from majorant.report.table import Column, Table
from majorant.report.words.grammar import capital, opening, verb

MOST_LISTED = 10
STEP = 0.05
TOP, BASE = 40.0, 190.0
GAP = 2.0


def uncertainty_section(mixture: Mixture) -> Section | None:
    """Build the section; None with a single component."""
    if mixture.k < 2:
        return None
    edges, counts = certainty_bins(mixture.certainty)
    own = f"the probability of their own {mixture.part}"
    label = f"Histogram of {own} of {mixture.n_rows} rows, {mixture.n_clear} above 0.9"
    listed = most_unsure(mixture.certainty, MOST_LISTED)
    listed = sorted(listed) if mixture.card.in_order else listed
    return Section(
        "uncertainty",
        "Uncertainty",
        headline(mixture),
        notes(mixture, MOST_LISTED),
        figure("uncertainty", label, lambda size: draw_certainty(size, edges, counts, mixture.part)),
        table=_list(mixture, listed),
    )


def certainty_bins(certainty: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Count rows by certainty in bins of 0.05, from that of the smallest up to 1; return edges and counts.

    0.9 is an edge; a row exactly at it counts in the bin below.
    """
    n_steps = int(np.ceil((1.0 - float(certainty.min())) / STEP - 1e-9)) or 1
    edges = np.round(1.0 - STEP * np.arange(max(n_steps, 3), -1, -1), 10)
    places = np.clip(np.searchsorted(edges, certainty, side="left") - 1, 0, len(edges) - 2)
    return edges, np.bincount(places, minlength=len(edges) - 1)


def most_unsure(certainty: NDArray[np.float64], most: int) -> list[int]:
    """Return the rows below the threshold of certainty, the least certain first."""
    order = np.argsort(certainty, kind="stable")[:most]
    return [int(i) for i in order if certainty[i] <= CLEAR]


def draw_certainty(
    size: Size, edges: NDArray[np.float64], counts: NDArray[np.int64], part: str = "component"
) -> Canvas:
    """Draw one bar per bin with its count; bars of uncertain rows are dark."""
    canvas = Canvas(size, BASE + 48)
    scale = Linear(float(edges[0]), float(edges[-1]), 8, size.width - 8)
    tallest = int(counts.max())
    shelf = Shelf(2)
    for low, high, count in zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True):
        if not count:
            continue
        height = max((BASE - TOP) * count / tallest, 1.5)
        x1, x2 = scale(low) + GAP / 2, scale(high) - GAP / 2
        canvas.rect(x1, BASE - height, x2 - x1, height, "fill-ink" if high <= CLEAR + 1e-9 else "fill-mid")
        text, half = numbers.integer(count), text_width(numbers.integer(count)) / 2
        middle = min(max((x1 + x2) / 2, half), size.width - half)
        if shelf.take(middle - half, middle + half):
            canvas.text(middle, BASE - height - 6, text, "clear" if high <= CLEAR + 1e-9 else "quiet", anchor="middle")
    every = 4 if len(edges) > 9 else 2
    ticks = edges[::-1][::every][::-1].tolist()
    bottom_axis(canvas, scale, ticks, [f"{tick:.1f}" for tick in ticks], BASE, 0, size.width)
    bottom_title(canvas, f"probability of the row\u2019s {part}", size.width, BASE + 38, size.width)
    canvas.text(0, 16, "rows")
    return canvas


def _list(mixture: Mixture, rows: list[int]) -> Table | None:
    if not rows:
        return None
    shares = mixture.responsibilities[rows]
    is_own = np.arange(mixture.k) == mixture.labels[rows][:, None]
    ranked = np.argsort(-shares - is_own, axis=1, kind="stable")
    numbered = [int(mixture.row_number(row)) for row in rows]
    columns = [Column("Row", numbered, texts=list(map(numbers.integer, numbered)))]
    if mixture.run.times is not None:
        times = read_times(np.asarray(mixture.run.times))
        columns.append(Column("Time", labels_of(times.write(times.numbers[rows])), css="number"))
    columns += [Column(name, [_cell(values[row]) for row in rows]) for name, values in mixture.run.ids.items()]
    for place, (head, probability) in enumerate(
        ((capital(mixture.part), "Probability"), ("Next", "Probability of the next"))
    ):
        own, is_aside = ranked[:, place], place == 1 and mixture.run.times is not None
        columns += [
            Column(head, own + 1, css="number"),
            number_column(
                probability,
                shares[np.arange(len(rows)), own],
                3,
                f"number{' wide-only' * is_aside}",
                head_markup="Probability",
            ),
        ]
    return Table("unsure-rows", columns, css="below", dense=True)


def _cell(value: Any) -> str | int | float | None:
    """Return a cell of an id as a table writes it."""
    return value if value is None or (isinstance(value, str | int | float) and value is not True) else str(value)


def headline(mixture: Mixture) -> str:
    """State how many rows clearly belong to one component, in one sentence."""
    n, clear = mixture.n_rows, mixture.n_clear
    unsure = n - clear
    if not unsure:
        return f"Every row belongs to one {mixture.part} with a probability above {CLEAR:.1f}."
    if clear < n / 2:
        return f"The {mixture.parts} overlap: only {numbers.integer(clear)} of {numbers.integer(n)} rows are clear-cut."
    subject = f"{opening(unsure) if unsure < 100 else numbers.integer(unsure)} of {numbers.integer(n)} rows"
    return f"{subject} {verb(unsure, 'is', 'are')} unsure of {verb(unsure, 'its', 'their')} {mixture.part}."


def notes(mixture: Mixture, n_listed: int) -> list[str]:
    """Explain the bars and the list."""
    texts = [
        f"<b>Each bar counts rows</b> by the probability of their own {mixture.part}, as the fit sees it: 1 is "
        f"certain. Rows up to {CLEAR:.1f} are unsure."
    ]
    unsure = mixture.n_rows - mixture.n_clear
    if unsure:
        listed = "They are listed" if unsure <= n_listed else f"The {n_listed} most unsure are listed"
        listed += " in order of time," if mixture.card.in_order else ""
        texts.append(f"{listed} with the two {mixture.parts} between which they stand.")
    texts.append("<b>Note:</b> these probabilities hold if the fitted model is right.")
    return texts
