"""Latent classes: how many rows each holds, which label it gives and which features define it."""

from __future__ import annotations

from majorant.models.latent_class.summary import MOST_FEATURES
from majorant.report import numbers
from majorant.report.html import column_name, escaped, shortened
from majorant.report.measures.classification import Classification, LatentClass
from majorant.report.section import Section
from majorant.report.words import latent_classes as words

MOST_ROWS = 30
MOST_LABELS = 3


def latent_classes_section(classification: Classification) -> Section | None:
    """None for a model without latent classes."""
    found = classification.latent_classes
    if found is None:
        return None
    shown = found[:MOST_ROWS]
    largest = max(c.share for c in shown)
    body = "".join(_row(classification, c, largest) for c in shown)
    heads = '<th class="number">Class</th><th class="number">Share</th><th class="bar-cell"></th>'
    heads += '<th class="gives">Gives</th>'
    heads += "" if found[0].speaks is None else "<th>More of</th><th>Less of</th>"
    css = "stacks dense" if len(shown) > 12 else "stacks"
    table = f'<table class="{css}"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
    return Section(
        "latent-classes",
        "Latent classes",
        words.headline(classification, found),
        table,
        words.notes(classification, found, len(shown)),
        is_figure=False,
    )


def _row(classification: Classification, one: LatentClass, largest: float) -> str:
    cells = [
        f'<td class="number">{one.number + 1}</td>',
        f'<td class="number">{numbers.percent_in_column(one.share)}</td>',
        f'<td class="bar-cell"><span class="bar fill-mid" style="width:{100 * one.share / largest:.1f}%"></span></td>',
        f"<td>{_labels(classification, one)}</td>",
    ]
    if one.speaks is not None:
        cells += [
            f'<td><small class="narrow-only">{what}</small>{_features(classification, one, sign)}</td>'
            for what, sign in (("More of", 1), ("Less of", -1))
        ]
    return f"<tr>{''.join(cells)}</tr>"


def _labels(classification: Classification, one: LatentClass) -> str:
    given = words.given_labels(one)[:MOST_LABELS]
    return ", ".join(
        f"{escaped(shortened(classification.names[m], words.LONGEST_LABEL))}: {words.probability(float(one.labels[m]))}"
        for m in given
    )


def _features(classification: Classification, one: LatentClass, sign: int) -> str:
    telling = one.telling_features(sign)[:MOST_FEATURES]
    names = [column_name(classification.run.feature_names[j]) for j in telling]
    return ", ".join(names) or numbers.DASH
