"""Components: one row of a table each, with its weight, and its mean and spread on the features that tell most."""

from __future__ import annotations

import numpy as np

from majorant.report import numbers
from majorant.report.charts.marks import N_COLOURS, legend_mark
from majorant.report.html import column_name
from majorant.report.measures.mixture import Mixture
from majorant.report.section import Section
from majorant.report.words import mixture as words

MOST_ROWS = 60
MOST_FEATURES = 4
ON_NARROW_PAGES = 2
LONGEST_NAME = 14


def components_section(mixture: Mixture) -> Section:
    """Weights, rows, means and standard deviations."""
    shown = list(range(mixture.k))
    if mixture.k > MOST_ROWS:
        shown = sorted(np.argsort(-mixture.weights, kind="stable")[:MOST_ROWS].tolist())
    ranked = mixture.ranked_features if mixture.k > 1 else []
    features = (ranked or list(range(mixture.n_features)))[:MOST_FEATURES]
    return Section(
        "components",
        "Components",
        words.components_headline(mixture),
        _table(mixture, shown, features),
        words.components_notes(mixture, len(shown), len(features)),
        is_figure=False,
    )


def _table(mixture: Mixture, shown: list[int], features: list[int]) -> str:
    heads = ["<th>Component</th>", '<th class="number">Weight</th>', '<th class="number wide-only">Rows</th>']
    heads += [
        f'<th class="{_css(i)}">{column_name(mixture.run.feature_names[feature], LONGEST_NAME)}</th>'
        for i, feature in enumerate(features)
    ]
    columns = [_column(mixture, shown, feature) for feature in features]
    body = ""
    for row, j in enumerate(shown):
        mark = legend_mark(j) if mixture.k <= N_COLOURS else ""
        cells = [
            f"<td>{mark}{j + 1}</td>",
            f'<td class="number">{numbers.percent_in_column(float(mixture.weights[j]))}</td>',
            f'<td class="number wide-only">{numbers.fixed(float(mixture.effective_sizes[j]), 1)}</td>',
        ]
        cells += [f'<td class="{_css(i)}">{column[row]}</td>' for i, column in enumerate(columns)]
        body += f"<tr>{''.join(cells)}</tr>"
    css = "dense" if len(shown) > 12 else ""
    table = f'<table class="{css}"><thead><tr>{"".join(heads)}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scrolls">{table}</div>'


def _css(place: int) -> str:
    return "number" if place < ON_NARROW_PAGES else "number wide-only"


def _column(mixture: Mixture, shown: list[int], feature: int) -> list[str]:
    """Means with their standard deviations, with one number of decimals."""
    means = mixture.in_own_units(mixture.centres[shown, feature], feature)
    spreads = mixture.in_own_units(mixture.deviations_within[shown, feature], feature, spread=True)
    decimals = numbers.shared_decimals(means, spreads)
    if decimals is None:
        texts = [
            (numbers.scientific(float(m)), numbers.scientific(float(s))) for m, s in zip(means, spreads, strict=True)
        ]
    else:
        texts = [
            (numbers.fixed(float(m), decimals), numbers.fixed(float(s), decimals))
            for m, s in zip(means, spreads, strict=True)
        ]
    return [f'{mean} <small class="quiet">{spread}</small>' for mean, spread in texts]
