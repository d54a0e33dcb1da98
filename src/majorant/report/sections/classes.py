"""Classes: how many rows each has, and how well it is told from the others."""

from __future__ import annotations

import numpy as np

from majorant.report import numbers
from majorant.report.html import escaped, shortened
from majorant.report.measures.classification import Classification
from majorant.report.section import Section
from majorant.report.words import classification as words

MOST_ROWS = 60


def classes_section(classification: Classification) -> Section:
    """Rows, recall and precision, and the number of poses where a model has them."""
    shown = list(range(classification.n_classes))
    if classification.n_classes > MOST_ROWS:
        shown = sorted(np.argsort(-classification.sizes, kind="stable")[:MOST_ROWS].tolist())
    return Section(
        "classes",
        "Classes",
        words.classes_headline(classification),
        _table(classification, shown),
        words.classes_notes(classification, len(shown)),
        is_figure=False,
    )


def _table(classification: Classification, shown: list[int]) -> str:
    prototypes = classification.prototypes
    heads = f'<th>Class</th><th class="number">{classification.unit.capitalize()}s</th><th class="bar-cell"></th>'
    heads += '<th class="number">Recognised</th><th class="number">Correct</th>'
    heads += '<th class="number wide-only">Poses</th>' if prototypes is not None else ""
    largest = int(classification.sizes.max())
    body = ""
    for c in shown:
        size = int(classification.sizes[c])
        bar = f'<span class="bar fill-mid" style="width:{100 * size / largest:.1f}%"></span>' if size else ""
        cells = [
            f"<td>{escaped(shortened(classification.names[c], words.LONGEST_CLASS))}</td>",
            f'<td class="number">{numbers.integer(size)}</td>',
            f'<td class="bar-cell">{bar}</td>',
            f'<td class="number">{words.share_text(float(classification.recalls[c]))}</td>',
            f'<td class="number">{words.share_text(float(classification.precisions[c]))}</td>',
        ]
        if prototypes is not None:
            cells.append(f'<td class="number wide-only">{len(prototypes[c])}</td>')
        body += f"<tr>{''.join(cells)}</tr>"
    css = "dense" if len(shown) > 12 else ""
    table = f'<table class="{css}"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scrolls">{table}</div>'
