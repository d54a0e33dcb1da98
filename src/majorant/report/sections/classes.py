"""Classes: the rows of each, what they are taken for, and how good their probabilities are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from majorant.report import numbers
from majorant.report.charts.axes import draw_grid
from majorant.report.charts.scales import Linear, evenly
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.columns import bar_column, name_column, number_column, shares_column
from majorant.report.fit import largest
from majorant.report.html import column_name, escaped, shortened
from majorant.report.measures.classification import Classification
from majorant.report.section import Section
from majorant.report.table import Column, Table
from majorant.report.words.grammar import capital, counted, in_prose, opening, verb

Array = NDArray[np.float64]
MOST_ROWS = 60
MOST_IN_A_SQUARE, MOST_LISTED, LONGEST_HEAD = 12, 15, 12
ALIKE = 0.02
"""Largest difference of recalls that is not mentioned."""
MOST_CURVES, N_POINTS, N_BINS = 12, 80, 10
FAR_OFF = 0.05
AXES = (
    "false positives (ROC), predicted probability (calibration)",
    "true positives (ROC), observed share (calibration)",
)


def classes_section(classification: Classification) -> Section:
    """Build the section: rows, recall and precision, and the number of poses where a model has them."""
    sizes, prototypes, unit = classification.sizes, classification.prototypes, classification.unit
    shown = largest(sizes, MOST_ROWS)
    columns = [
        name_column("Class", [classification.names[c] for c in shown]),
        number_column(f"{unit.capitalize()}s", sizes[shown]),
        bar_column([float(size / sizes.max()) for size in sizes[shown]]),
        shares_column("Recall", classification.recalls[shown]),
        shares_column("Precision", classification.precisions[shown]),
    ]
    if prototypes is not None:
        columns.append(Column("Poses", [len(prototypes[c]) for c in shown], css="number wide-only"))
    notes = [
        f"<b>Recall</b> is the share of the {unit}s of a class that are put into it; <b>precision</b> is the share "
        f"of the {unit}s put into it that belong there."
    ]
    if len(shown) < len(sizes):
        notes.append(f"The {in_prose(len(shown))} largest of {in_prose(len(sizes))} are shown.")
    return Section("classes", "Classes", classes_headline(classification), notes, table=Table("classes", columns))


def classes_headline(classification: Classification) -> str:
    """State which class has the lowest recall."""
    recalls = classification.recalls
    if classification.n_classes == 1:
        return f"One class holds all {classification.unit}s."
    if float(np.nanmax(recalls) - np.nanmin(recalls)) < ALIKE:
        return "All classes are predicted about equally well."
    worst = int(np.nanargmin(recalls))
    share = numbers.percent(float(recalls[worst]), 0)
    share += f" of its {classification.unit}s are predicted right"
    return f"The hardest class is {column_name(classification.names[worst])}: {share}."


def confusion_section(classification: Classification) -> Section | None:
    """Build the section: a square of counts, or the largest confusions of many classes; None with one class."""
    n = classification.n_classes
    is_square = n <= MOST_IN_A_SQUARE
    listed = classification.confusions[:MOST_LISTED]
    if n < 2 or not (is_square or listed):
        return None
    return Section(
        "confusion",
        "Confusion",
        confusion_headline(classification),
        confusion_notes(classification, None if is_square else len(listed)),
        table=_square(classification) if is_square else _list(classification),
    )


def _square(classification: Classification) -> Table:
    names = classification.names
    columns = [name_column("Class", names, LONGEST_HEAD)]
    for j, counts in enumerate(classification.table.T.tolist()):
        empty = f'<span class="quiet">{numbers.DASH}</span>'
        markup = [numbers.integer(n) if n or i == j else empty for i, n in enumerate(counts)]
        head = escaped(shortened(names[j], LONGEST_HEAD))
        columns.append(number_column(names[j], counts, markup=markup, head_markup=head, bold=[j]))
    return Table("confusion", columns, dense=len(names) > 6)


def _list(classification: Classification) -> Table:
    listed, names = classification.confusions[:MOST_LISTED], classification.names
    rows = [confusion.rows for confusion in listed]
    shares = [n / int(classification.sizes[c.truth]) for n, c in zip(rows, listed, strict=True)]
    columns = [
        Column(head, [names[c] for c in classes], markup=[column_name(names[c]) for c in classes])
        for head, classes in (("Class", [c.truth for c in listed]), ("Taken for", [c.taken_for for c in listed]))
    ]
    columns += [
        number_column(f"{classification.unit.capitalize()}s", rows),
        shares_column("Share of the class", shares),
    ]
    return Table("confusion", columns, dense=True)


def confusion_headline(classification: Classification) -> str:
    """State the most frequent confusion."""
    wrong, unit = int(classification.sizes.sum()) - classification.right, classification.unit
    if wrong == 0:
        return f"Every {unit} is put into its own class."
    worst = classification.confusions[0]
    truth, other = (column_name(classification.names[c]) for c in (worst.truth, worst.taken_for))
    rows = f"{opening(wrong)} {verb(wrong, f'{unit} is', f'{unit}s are')} put into another class"
    often = ":" if len(classification.confusions) == 1 else ", most often"
    return f"{rows}{often} {truth} into {other}."


def confusion_notes(classification: Classification, n_listed: int | None) -> list[str]:
    """Explain the table: a list of `n_listed` confusions or, if None, a square of all classes."""
    unit, n = classification.unit, len(classification.confusions)
    texts = [f"<b>One line per class</b>, one column for what its {unit}s are taken for; those in bold are right."]
    if n_listed is not None:
        classes = counted(classification.n_classes, "class")
        texts = [f"<b>One line per confusion</b>, most {unit}s first; {classes} are too many for a square."]
    if n_listed is not None and n_listed < n:
        texts.append(f"The {in_prose(n_listed)} largest of {in_prose(n)} are shown.")
    texts.append(f"These are the {unit}s of the fit. {unit.capitalize()}s that it has not seen will do worse.")
    if classification.run.weights is not None:
        texts.append(f"Every {unit} counts once, whatever its weight.")
    unknown = int((~classification.known).sum())
    if unknown:
        rows = capital(counted(unknown, unit))
        texts.append(f"{rows} of classes without weight {verb(unknown, 'is', 'are')} left out.")
    return texts


def probabilities_section(classification: Classification) -> Section | None:
    """Build the section: ROC and calibration of each class, against all others.

    None without probabilities, or with one class.
    """
    proba = classification.probabilities
    if proba is None or not 2 <= classification.n_classes <= MOST_CURVES:
        return None
    truth, n = classification.truth, classification.n_classes
    of = [c for c in range(n == 2, n) if 0 < (truth == c).sum() < len(truth)]
    if not of:
        return None
    curves = {c: roc(truth == c, proba[:, c]) for c in of}
    from sklearn.metrics import roc_auc_score  # takes time to load

    areas = {c: float(roc_auc_score(truth == c, proba[:, c])) for c in of}
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
        titles, unit = ["ROC", "Calibration"], (0.0, 1.0)
        return draw_grid(
            size, titles, [unit], unit, inside, x_title=AXES[0], y_title=AXES[1], height=220.0, narrow_across=1
        )

    columns = [
        name_column("Class", [classification.names[c] for c in of]),
        number_column("Base rate", [(truth == c).mean() for c in of], 3),
        number_column("Mean probability", [proba[:, c].mean() for c in of], 3),
        number_column("Area under ROC", areas.values(), 3),
        number_column("Brier score", [((proba[:, c] - (truth == c)) ** 2).mean() for c in of], 3),
    ]
    label = "Curves of true against false positives, and of observed shares against predicted probabilities"
    off = max(float((abs(b[:, 0] - b[:, 1]) * b[:, 2]).sum() / b[:, 2].sum()) for b in bins.values())
    off_by = "about right" if off <= FAR_OFF else f"off by {numbers.percent(off, 0)} on average"
    least = f"least for {column_name(classification.names[worst])}, " if len(areas) > 1 else ""
    return Section(
        "probabilities",
        "Probabilities",
        f"The area under the ROC curve is {least}{numbers.fixed(areas[worst], 2)}; probabilities are {off_by}.",
        _probabilities_notes(classification),
        figure("probabilities", label, draw),
        table=Table("probabilities", columns),
    )


def roc(is_class: NDArray[np.bool_], probability: Array) -> Array:
    """Return shares of false and of true positives at every threshold, from (0, 0) to (1, 1), thinned."""
    from sklearn.metrics import roc_curve  # takes time to load

    curve = np.column_stack(roc_curve(is_class, probability, drop_intermediate=False)[:2])
    kept = 1 + evenly(len(curve) - 1, N_POINTS)
    return curve[[0, *kept]]


def calibration(is_class: NDArray[np.bool_], probability: Array) -> Array:
    """Return mean probability, observed share and number of rows of bins of equal width that hold rows."""
    own = np.minimum((probability * N_BINS).astype(np.int64), N_BINS - 1)
    counts = np.bincount(own, minlength=N_BINS)
    kept = counts > 0
    sums = [np.bincount(own, weights=values, minlength=N_BINS)[kept] for values in (probability, is_class)]
    return np.column_stack([*(s / counts[kept] for s in sums), counts[kept]])


def _probabilities_notes(classification: Classification) -> list[str]:
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
