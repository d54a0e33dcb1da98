"""Components: one row of a table each, with weight, mean and spread on the most informative features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from majorant.report import numbers
from majorant.report.charts.marks import N_COLOURS, legend_mark
from majorant.report.html import column_name
from majorant.report.measures.mixture import Mixture
from majorant.report.section import Section
from majorant.report.table import Column, Table
from majorant.report.words import mixture as words
from majorant.report.words.grammar import capital, counted, verb

MOST_ROWS = 60
MOST_FEATURES = 4
ON_NARROW_PAGES = 2
LONGEST_NAME = 14


def components_section(mixture: Mixture) -> Section:
    """Build the section: weights, rows, means and standard deviations."""
    shown = list(range(mixture.k))
    if mixture.k > MOST_ROWS:
        shown = sorted(np.argsort(-mixture.weights, kind="stable")[:MOST_ROWS].tolist())
    ranked = mixture.ranked_features if mixture.k > 1 else []
    ranked = [*ranked, *mixture.directions] if ranked else list(range(mixture.n_features))
    features = ranked[:MOST_FEATURES]
    notes = _components_notes(mixture, len(shown), len(features))
    if any(j in mixture.directions for j in features):
        notes.append("Means and standard deviations of directions are those on the circle, in radians.")
    return Section(
        "components",
        capital(mixture.parts),
        words.components_headline(mixture),
        notes,
        table=_table(mixture, shown, features),
    )


def _table(mixture: Mixture, shown: list[int], features: list[int]) -> Table:
    marks = [legend_mark(j) if mixture.k <= N_COLOURS else "" for j in shown]
    weights, sizes = mixture.weights[shown].tolist(), mixture.effective_sizes[shown].tolist()
    columns = [
        Column(
            capital(mixture.part),
            [j + 1 for j in shown],
            markup=[f"{m}{j + 1}" for m, j in zip(marks, shown, strict=True)],
        ),
        Column("Weight", weights, list(map(numbers.percent_in_column, weights)), css="number"),
        Column("Rows", sizes, [numbers.fixed(size, 1) for size in sizes], css="number wide-only"),
    ]
    for place, feature in enumerate(features):
        columns += _columns(mixture, shown, feature, "number" if place < ON_NARROW_PAGES else "number wide-only")
    return Table("components", columns)


def _columns(mixture: Mixture, shown: list[int], feature: int, css: str) -> list[Column]:
    """Return columns of means and standard deviations with equal decimals; on the page both are in one column."""
    name = mixture.run.feature_names[feature]
    means = mixture.in_own_units(mixture.centres[shown, feature], feature)
    spreads = mixture.in_own_units(mixture.deviations_within[shown, feature], feature, spread=True)
    decimals = numbers.shared_decimals(means, spreads)

    def texts(values: NDArray[np.float64]) -> list[str]:
        if decimals is None:
            return list(map(numbers.scientific, values.tolist()))
        return [numbers.fixed(value, decimals) for value in values.tolist()]

    markup = [
        f'{mean} <small class="quiet">{spread}</small>'
        for mean, spread in zip(texts(means), texts(spreads), strict=True)
    ]
    return [
        Column(name, means.tolist(), texts(means), markup, column_name(name, LONGEST_NAME), css),
        Column(f"{name} (SD)", spreads.tolist(), texts(spreads), css="number", where="copies"),
    ]


def _components_notes(mixture: Mixture, n_shown: int, n_features_shown: int) -> list[str]:
    texts = [
        f"<b>Rows</b> counts every row by its probability. Under each feature stands the {mixture.part}\u2019s mean "
        "and, smaller, its standard deviation."
    ]
    left_out = mixture.n_features - n_features_shown
    if left_out > 0:
        texts.append(
            f"The features that the {mixture.parts} explain best are shown; {counted(left_out, 'other')} "
            f"{verb(left_out, 'is', 'are')} in <code>summary.json</code>."
        )
    if n_shown < mixture.k:
        texts.append(f"The {n_shown} heaviest of {mixture.k} {mixture.parts} are shown.")
    if mixture.n_missing:
        texts.append(
            f"<b>Missing values:</b> {mixture.missing_cells}. The fit uses the values that are there and fills in none."
        )
    if mixture.run.weights is not None:
        texts.append("The fit counted rows by their weights; this table counts each once.")
    return texts
