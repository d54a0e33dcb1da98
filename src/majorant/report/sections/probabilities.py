"""Probabilities of a classifier: how well they order the rows (ROC), and whether they are right (calibration)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from majorant.report import numbers
from majorant.report.charts.panels import draw_grid
from majorant.report.charts.scales import Linear
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.html import escaped, shortened
from majorant.report.measures.classification import Classification
from majorant.report.section import Section
from majorant.report.table import Column, Table
from majorant.report.words.classification import LONGEST_CLASS, class_name

Array = NDArray[np.float64]
MOST_CLASSES = 12
N_BINS = 10
N_POINTS = 80
FAR_OFF = 0.05
AXES = (
    "false positives (ROC), predicted probability (calibration)",
    "true positives (ROC), observed share (calibration)",
)


def probabilities_section(classification: Classification) -> Section | None:
    """Build the section: a curve per class, against all others; None without probabilities, or with one class."""
    proba = classification.probabilities
    if proba is None or not 2 <= classification.n_classes <= MOST_CLASSES:
        return None
    of = range(1, 2) if classification.n_classes == 2 else range(classification.n_classes)
    truth = classification.truth
    curves = {c: roc(truth == c, proba[:, c]) for c in of}
    areas = {c: area_under(truth == c, proba[:, c]) for c in of}
    bins = {c: calibration(truth == c, proba[:, c]) for c in of}
    worst = min(areas, key=lambda c: areas[c])

    def inside(canvas: Canvas, i: int, x: Linear, y: Linear) -> None:
        canvas.line(x(0), y(0), x(1), y(1), "axis")
        for c in sorted(of, key=lambda c: c == worst):
            points = curves[c] if i == 0 else bins[c][:, :2]
            colour = "stroke-ink" if c == worst else "stroke-mid"
            places = [(x(a), y(b)) for a, b in points.tolist()]
            canvas.polyline(places, f"{colour} fitted-line")
            if i:
                canvas.dots(places, f"{colour} small")

    def draw(size: Size) -> Canvas:
        titles, unit = ["ROC", "Calibration"], [(0.0, 1.0)]
        return draw_grid(
            size, titles, unit, (0.0, 1.0), inside, x_title=AXES[0], y_title=AXES[1], height=220.0, narrow_across=1
        )

    briers = [float(((proba[:, c] - (truth == c)) ** 2).mean()) for c in of]
    names = [classification.names[c] for c in of]
    table = Table(
        "probabilities",
        [
            Column("Class", names, markup=[escaped(shortened(name, LONGEST_CLASS)) for name in names]),
            _fixed("Base rate", [float((truth == c).mean()) for c in of]),
            _fixed("Mean probability", [float(proba[:, c].mean()) for c in of]),
            _fixed("Area under ROC", list(areas.values())),
            _fixed("Brier score", briers),
        ],
    )
    label = "Curves of true against false positives, and of observed shares against predicted probabilities"
    return Section(
        "probabilities",
        "Probabilities",
        _headline(classification, areas, bins, worst),
        _notes(classification),
        figure("probabilities", label, draw),
        table=table,
    )


def roc(is_class: NDArray[np.bool_], probability: Array) -> Array:
    """Return shares of false and of true positives at every threshold, from (0, 0) to (1, 1), thinned."""
    order = np.argsort(-probability, kind="stable")
    last = np.append(np.flatnonzero(np.diff(probability[order])), len(order) - 1)  # of rows with one probability
    hits = np.cumsum(is_class[order])[last]
    misses = last + 1 - hits
    curve = np.column_stack([misses / max(misses[-1], 1), hits / max(hits[-1], 1)])
    kept = np.unique(np.linspace(0, len(curve) - 1, min(len(curve), N_POINTS)).astype(np.int64))
    return np.vstack([[0.0, 0.0], curve[kept]])


def area_under(is_class: NDArray[np.bool_], probability: Array) -> float:
    """Return the probability that a row of the class has a larger probability than another one, ties by half."""
    n = int(is_class.sum())
    ranks = rankdata(probability)[is_class].sum()
    return float((ranks - n * (n + 1) / 2) / max(n * (len(is_class) - n), 1))


def calibration(is_class: NDArray[np.bool_], probability: Array) -> Array:
    """Return mean probability, observed share and number of rows of bins of equal width that hold rows."""
    own = np.minimum((probability * N_BINS).astype(np.int64), N_BINS - 1)
    counts = np.bincount(own, minlength=N_BINS)
    kept = counts > 0
    sums = [np.bincount(own, weights=values, minlength=N_BINS)[kept] for values in (probability, is_class)]
    return np.column_stack([*(s / counts[kept] for s in sums), counts[kept]])


def _fixed(head: str, values: list[float]) -> Column:
    return Column(head, values, [numbers.fixed(value, 3) for value in values], css="number")


def _headline(classification: Classification, areas: dict[int, float], bins: dict[int, Array], worst: int) -> str:
    """State how well the probabilities order the rows, and how far they are off."""
    off = max(float((abs(b[:, 0] - b[:, 1]) * b[:, 2]).sum() / b[:, 2].sum()) for b in bins.values())
    area = numbers.fixed(areas[worst], 2)
    first = f"The area under the ROC curve is {area}"
    if len(areas) > 1:
        first = f"The area under the ROC curve is least for {class_name(classification, worst)}, {area}"
    off_by = "about right" if off <= FAR_OFF else f"off by {numbers.percent(off, 0)} on average"
    return f"{first}; probabilities are {off_by}."


def _notes(classification: Classification) -> list[str]:
    unit = classification.unit
    texts = [
        f"<b>ROC:</b> for every threshold the share of a class that is found, against the share of all other {unit}s "
        "that are taken for it. The diagonal is guessing, with an area of 0.5.",
        f"<b>Calibration:</b> of {unit}s with a probability of 0.7, seven in ten should be of the class: the diagonal.",
        f"These are the {unit}s of the fit, on which both look better than on new ones.",
    ]
    if classification.n_classes > 2:
        texts.append("One curve per class, against all others; that of the least area is dark.")
    return texts
