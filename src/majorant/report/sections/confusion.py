"""Confusion: predicted classes of the rows of each class."""

from __future__ import annotations

from majorant.report import numbers
from majorant.report.html import escaped, shortened
from majorant.report.measures.classification import Classification
from majorant.report.section import Section
from majorant.report.table import Column, Table
from majorant.report.words import classification as words

MOST_IN_A_SQUARE = 12
MOST_LISTED = 15
LONGEST_HEAD = 12


def confusion_section(classification: Classification) -> Section | None:
    """Build the section: a square of counts, or the largest confusions of many classes; None with one class."""
    if classification.n_classes < 2:
        return None
    is_square = classification.n_classes <= MOST_IN_A_SQUARE
    listed = classification.confusions[:MOST_LISTED]
    if not is_square and not listed:
        return None
    return Section(
        "confusion",
        "Confusion",
        words.confusion_headline(classification),
        words.confusion_notes(classification, None if is_square else len(listed)),
        table=_square(classification) if is_square else _list(classification),
    )


def _square(classification: Classification) -> Table:
    names = classification.names
    columns = [Column("Class", names, markup=[escaped(shortened(name, LONGEST_HEAD)) for name in names])]
    for j, counts in enumerate(classification.table.T.tolist()):
        columns.append(
            Column(
                names[j],
                counts,
                list(map(numbers.integer, counts)),
                [_count(n, own=i == j) for i, n in enumerate(counts)],
                escaped(shortened(names[j], LONGEST_HEAD)),
                "number",
                bold=[j],
            )
        )
    return Table("confusion", columns, dense=len(names) > 6)


def _count(n: int, *, own: bool) -> str:
    return numbers.integer(n) if n or own else f'<span class="quiet">{numbers.DASH}</span>'


def _list(classification: Classification) -> Table:
    listed, names = classification.confusions[:MOST_LISTED], classification.names
    rows = [confusion.rows for confusion in listed]
    shares = [n / int(classification.sizes[c.truth]) for n, c in zip(rows, listed, strict=True)]
    columns = [
        Column(
            head,
            [names[c] for c in classes],
            markup=[words.class_name(classification, c) for c in classes],
        )
        for head, classes in (("Class", [c.truth for c in listed]), ("Taken for", [c.taken_for for c in listed]))
    ]
    columns += [
        Column(f"{classification.unit.capitalize()}s", rows, list(map(numbers.integer, rows)), css="number"),
        Column("Share of the class", shares, list(map(numbers.percent_in_column, shares)), css="number"),
    ]
    return Table("confusion", columns, dense=True)
