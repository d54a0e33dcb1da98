"""Components: one row of a table each, with weight, mean and spread on the most informative features."""

from __future__ import annotations

from majorant.report import numbers
from majorant.report.columns import number_column, part_column, shares_column
from majorant.report.fit import largest
from majorant.report.html import column_name
from majorant.report.measures.mixture import Mixture
from majorant.report.section import Section
from majorant.report.table import Column, Table
from majorant.report.words.grammar import capital, counted, in_prose, opening, verb

MOST_ROWS = 60
MOST_FEATURES, ON_NARROW_PAGES = 4, 2
LONGEST_NAME = 14
SMALL = 0.05


def components_section(mixture: Mixture) -> Section:
    """Build the section: weights, rows, means and standard deviations."""
    shown = largest(mixture.weights, MOST_ROWS)
    ranked = mixture.ranked_features if mixture.k > 1 else []
    ranked = [*ranked, *mixture.directions] if ranked else list(range(mixture.n_features))
    features = ranked[:MOST_FEATURES]
    columns = [
        part_column(capital(mixture.part), shown, mixture.k),
        shares_column("Weight", mixture.weights[shown]),
        number_column("Rows", mixture.effective_sizes[shown], 1, "number wide-only"),
    ]
    for place, feature in enumerate(features):
        columns += _columns(mixture, shown, feature, "number" if place < ON_NARROW_PAGES else "number wide-only")
    return Section(
        "components",
        capital(mixture.parts),
        components_headline(mixture),
        _notes(mixture, len(shown), features),
        table=Table("components", columns),
    )


def _columns(mixture: Mixture, shown: list[int], feature: int, css: str) -> list[Column]:
    """Return columns of means and standard deviations with equal decimals; on the page both are in one column."""
    name = mixture.feature_names[feature]
    means = mixture.in_own_units(mixture.centres[shown, feature], feature)
    spreads = mixture.in_own_units(mixture.deviations_within[shown, feature], feature, spread=True)
    write = numbers.writer(means, spreads)
    markup = [
        f'{write(mean)} <small class="quiet">{write(spread)}</small>'
        for mean, spread in zip(means, spreads, strict=True)
    ]
    return [
        number_column(name, means, write, css, markup=markup, head_markup=column_name(name, LONGEST_NAME)),
        number_column(f"{name} (SD)", spreads, write, where="copies"),
    ]


def _notes(mixture: Mixture, n_shown: int, features: list[int]) -> list[str]:
    texts = [
        f"<b>Rows</b> counts every row by its probability. Under each feature stands the {mixture.part}\u2019s mean "
        "and, smaller, its standard deviation."
    ]
    left_out = mixture.n_features - len(features)
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
    if any(j in mixture.directions for j in features):
        texts.append("Means and standard deviations of directions are those on the circle, in radians.")
    return texts


def components_headline(mixture: Mixture) -> str:
    """State the weights of the components, in one sentence."""
    weights = mixture.weights
    if mixture.k == 1:
        return f"One {mixture.part} holds all rows."
    absent = int((weights == 0).sum())
    if absent:
        return f"{opening(absent)} of {in_prose(mixture.k)} {mixture.parts} {verb(absent, 'has', 'have')} no weight."
    most, least = int(weights.argmax()), int(weights.argmin())
    largest_weight, smallest = float(weights[most]), float(weights[least])
    if smallest < SMALL:
        rows = f"about {numbers.integer(round(float(mixture.effective_sizes[least])))} rows"
        return f"{capital(mixture.part)} {least + 1} is small: {numbers.percent(smallest)} of the weight, {rows}."
    if largest_weight <= 1.5 * smallest:
        return f"The {mixture.parts} are of similar weight."
    return (
        f"{capital(mixture.part)} {most + 1} holds {numbers.percent(largest_weight, 0)} of the weight, "
        f"{mixture.part} {least + 1} only {numbers.percent(smallest, 0)}."
    )
