"""Sentences about the features that separate the parts."""

from __future__ import annotations

from majorant.report import numbers
from majorant.report.charts.marks import N_COLOURS
from majorant.report.measures.partition import Partition
from majorant.report.words.grammar import capital, counted, opening, verb
from majorant.report.words.partition import feature_name, shown_of

WEAKLY_EXPLAINED = 0.1


def headline(partition: Partition, features: list[int]) -> str:
    """State which of `features`, best explained first, separate the parts, in one sentence."""
    best = features[0]
    share = partition.explained[best]
    if share < WEAKLY_EXPLAINED:
        return (
            f"No feature tells the {partition.parts} apart well: of {feature_name(partition, best)}, "
            f"the best, they explain {numbers.percent(float(share), 0)}."
        )
    if len(partition.used) == 2:
        first, second = partition.used
        high, low = (first, second) if _above(partition, first, second, best) else (second, first)
        name = feature_name(partition, best)
        part = partition.part
        return f"The {partition.parts} differ most in {name}: high in {part} {high + 1}, low in {part} {low + 1}."
    traits = sorted((t for j in partition.used if (t := _trait(partition, j, features)) is not None), reverse=True)
    if not traits:
        return f"The {partition.parts} differ most in {feature_name(partition, best)}."
    if len(partition.used) > 3:
        _, j, side, feature = traits[0]
        by = f"by {side} {feature_name(partition, feature)}"
        return f"{capital(partition.part)} {j + 1} stands apart most clearly, {by}."
    clauses = [
        f"{partition.part} {j + 1} {'is set apart ' if i == 0 else ''}by {side} {feature_name(partition, f)}"
        for i, (_, j, side, f) in enumerate(traits)
    ]
    return f"{capital(', '.join(clauses))}."


def _above(partition: Partition, first: int, second: int, feature: int) -> bool:
    return bool(partition.standard_centres[first, feature] >= partition.standard_centres[second, feature])


def _trait(partition: Partition, part: int, features: list[int]) -> tuple[float, int, str, int] | None:
    """Find where a part is most extreme: (distance from the next centre, part, "high" or "low", feature)."""
    centres = partition.standard_centres
    others = [j for j in partition.used if j != part]
    found: list[tuple[float, int, str, int]] = []
    for feature in features:
        own, rest = centres[part, feature], centres[others, feature]
        found.append((float(own - rest.max()), part, "high", feature))
        found.append((float(rest.min() - own), part, "low", feature))
    best = max(found, key=lambda trait: trait[0])
    return best if best[0] > 0 else None


def notes(partition: Partition, n_shown: int, parts_shown: int) -> list[str]:
    """Explain the profiles, and what they leave out."""
    n_varying = len(partition.ranked_features)
    reading = f"<b>Each mark is a {partition.part}\u2019s centre.</b>"
    if partition.k > N_COLOURS:
        reading = f"<b>One panel per {partition.part}:</b> its centre in colour, all centres in grey."
        reading += shown_of(partition, parts_shown)
    if n_varying > 1:
        reading += (
            f" Features run from the one that the {partition.parts} explain best to the one that they explain least."
        )
    texts = [reading, _above_half(partition)]
    left_out = n_varying - n_shown
    if left_out:
        others = f"{counted(left_out, 'other')} {verb(left_out, 'is', 'are')} left out"
        texts.append(f"The {n_shown} best explained features are shown; {others}.")
    constant = partition.n_features - n_varying
    if constant:
        columns = f"{opening(constant)} constant {verb(constant, 'column', 'columns')}"
        texts.append(f"{columns} cannot tell {partition.parts} apart and {verb(constant, 'is', 'are')} left out.")
    texts.append("<b>The copies</b> below the figure hold means and standard deviations in the table\u2019s own units.")
    return texts


def _above_half(partition: Partition) -> str:
    ranked = partition.ranked_features
    explained = f"<b>Explained</b> is the share of a feature\u2019s variance between {partition.parts}."
    n = sum(bool(partition.explained[j] > 0.5) for j in ranked)
    if len(ranked) == 1:
        return explained
    if n == len(ranked):
        return f"{explained} All features stand above one half."
    if n == 0:
        return f"{explained} No feature stands above one half."
    return f"{explained} {opening(n)} {verb(n, 'feature stands', 'features stand')} above one half."
