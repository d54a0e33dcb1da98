"""Classes: the number of rows of each, and how well it is separated from the others."""

from __future__ import annotations

import numpy as np

from majorant.report import numbers
from majorant.report.columns import bar_column
from majorant.report.html import escaped, shortened
from majorant.report.measures.classification import Classification
from majorant.report.section import Section
from majorant.report.table import Column, Table
from majorant.report.words import classification as words

MOST_ROWS = 60


def classes_section(classification: Classification) -> Section:
    """Build the section: rows, recall and precision, and the number of poses where a model has them."""
    shown = list(range(classification.n_classes))
    if classification.n_classes > MOST_ROWS:
        shown = sorted(np.argsort(-classification.sizes, kind="stable")[:MOST_ROWS].tolist())
    return Section(
        "classes",
        "Classes",
        words.classes_headline(classification),
        _classes_notes(classification, len(shown)),
        table=_table(classification, shown),
    )


def _table(classification: Classification, shown: list[int]) -> Table:
    prototypes = classification.prototypes
    names = [classification.names[c] for c in shown]
    sizes = classification.sizes[shown].tolist()
    largest = int(classification.sizes.max())
    columns = [
        Column("Class", names, markup=[escaped(shortened(name, words.LONGEST_CLASS)) for name in names]),
        Column(f"{classification.unit.capitalize()}s", sizes, list(map(numbers.integer, sizes)), css="number"),
        bar_column([size / largest for size in sizes]),
    ]
    for head, shares in (("Recall", classification.recalls), ("Precision", classification.precisions)):
        values = shares[shown].tolist()
        columns.append(Column(head, values, list(map(_share_text, values)), css="number"))
    if prototypes is not None:
        columns.append(Column("Poses", [len(prototypes[c]) for c in shown], css="number wide-only"))
    return Table("classes", columns)


def _classes_notes(classification: Classification, n_shown: int) -> list[str]:
    unit = classification.unit
    texts = [
        f"<b>Recall</b> is the share of the {unit}s of a class that are put into it; <b>precision</b> is the share "
        f"of the {unit}s put into it that belong there."
    ]
    if n_shown < classification.n_classes:
        texts.append(f"{words.shown_of(n_shown, classification.n_classes)}.")
    return texts


def _share_text(share: float) -> str:
    return numbers.DASH if np.isnan(share) else numbers.percent_in_column(share)
