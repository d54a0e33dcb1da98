"""Confusion: what the rows of each class are taken for."""

from __future__ import annotations

from majorant.report import numbers
from majorant.report.html import escaped, shortened
from majorant.report.measures.classification import Classification
from majorant.report.section import Section
from majorant.report.words import classification as words

MOST_IN_A_SQUARE = 12
MOST_LISTED = 15
LONGEST_HEAD = 12


def confusion_section(classification: Classification) -> Section | None:
    """A square of counts, or the largest confusions where there are many classes; None with one class."""
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
        _square(classification) if is_square else _list(classification),
        words.confusion_notes(classification, None if is_square else len(listed)),
        is_figure=False,
    )


def _square(classification: Classification) -> str:
    names = [shortened(name, LONGEST_HEAD) for name in classification.names]
    heads = "".join(f'<th class="number">{escaped(name)}</th>' for name in names)
    body = ""
    for i, counts in enumerate(classification.table.tolist()):
        cells = "".join(f'<td class="number">{_count(n, own=i == j)}</td>' for j, n in enumerate(counts))
        body += f"<tr><td>{escaped(names[i])}</td>{cells}</tr>"
    css = "dense" if len(names) > 6 else ""
    return (
        f'<div class="scrolls"><table class="{css}"><thead><tr><th>Class</th>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _count(n: int, *, own: bool) -> str:
    text = numbers.integer(n)
    return f"<strong>{text}</strong>" if own else text if n else f'<span class="quiet">{numbers.DASH}</span>'


def _list(classification: Classification) -> str:
    body = ""
    for confusion in classification.confusions[:MOST_LISTED]:
        share = confusion.rows / int(classification.sizes[confusion.truth])
        body += (
            f"<tr><td>{words.class_name(classification, confusion.truth)}</td>"
            f"<td>{words.class_name(classification, confusion.taken_for)}</td>"
            f'<td class="number">{numbers.integer(confusion.rows)}</td>'
            f'<td class="number">{numbers.percent_in_column(share)}</td></tr>'
        )
    units = f"{classification.unit.capitalize()}s"
    heads = f'<th>Class</th><th>Taken for</th><th class="number">{units}</th><th class="number">Share of the class</th>'
    table = f'<table class="dense"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scrolls">{table}</div>'
