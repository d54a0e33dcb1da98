"""Which features set clusters apart."""

from __future__ import annotations

from majorant.report import numbers
from majorant.report.charts.marks import N_COLOURS
from majorant.report.measures.clustering import Clustering
from majorant.report.words.clustering import feature_name, shown_of
from majorant.report.words.grammar import capital, counted, opening, verb

WEAKLY_EXPLAINED = 0.1


def headline(clustering: Clustering, features: list[int]) -> str:
    """One sentence on those of `features`, best explained first, that set clusters apart."""
    best = features[0]
    share = clustering.explained[best]
    if share < WEAKLY_EXPLAINED:
        return (
            f"No feature tells the clusters apart well: of {feature_name(clustering, best)}, "
            f"the best, they explain {numbers.percent(float(share), 0)}."
        )
    if len(clustering.used) == 2:
        first, second = clustering.used
        high, low = (first, second) if _above(clustering, first, second, best) else (second, first)
        name = feature_name(clustering, best)
        return f"The clusters differ most in {name}: high in cluster {high + 1}, low in cluster {low + 1}."
    traits = sorted((t for j in clustering.used if (t := _trait(clustering, j, features)) is not None), reverse=True)
    if not traits:
        return f"The clusters differ most in {feature_name(clustering, best)}."
    if len(clustering.used) > 3:
        _, j, side, feature = traits[0]
        return f"Cluster {j + 1} stands apart most clearly, by {side} {feature_name(clustering, feature)}."
    clauses = [
        f"cluster {j + 1} {'is set apart ' if i == 0 else ''}by {side} {feature_name(clustering, f)}"
        for i, (_, j, side, f) in enumerate(traits)
    ]
    return f"{capital(', '.join(clauses))}."


def _above(clustering: Clustering, first: int, second: int, feature: int) -> bool:
    return bool(clustering.standard_centres[first, feature] >= clustering.standard_centres[second, feature])


def _trait(clustering: Clustering, cluster: int, features: list[int]) -> tuple[float, int, str, int] | None:
    """Where a cluster is furthest out: (how far from the next centre, cluster, "high" or "low", feature)."""
    centres = clustering.standard_centres
    others = [j for j in clustering.used if j != cluster]
    found: list[tuple[float, int, str, int]] = []
    for feature in features:
        own, rest = centres[cluster, feature], centres[others, feature]
        found.append((float(own - rest.max()), cluster, "high", feature))
        found.append((float(rest.min() - own), cluster, "low", feature))
    best = max(found, key=lambda trait: trait[0])
    return best if best[0] > 0 else None


def notes(clustering: Clustering, n_shown: int, clusters_shown: int) -> list[str]:
    """How to read the profiles, and what is left out of them."""
    n_varying = len(clustering.ranked_features)
    reading = "<b>Each mark is a cluster\u2019s centre.</b>"
    if clustering.k > N_COLOURS:
        reading = "<b>One panel a cluster:</b> its centre in colour, all centres in grey."
        reading += shown_of(clustering, clusters_shown)
    if n_varying > 1:
        reading += " Features run from the one that the clusters explain best to the one that they explain least."
    texts = [reading, _above_half(clustering)]
    left_out = n_varying - n_shown
    if left_out:
        others = f"{counted(left_out, 'other')} {verb(left_out, 'is', 'are')} left out"
        texts.append(f"The {n_shown} best explained features are shown; {others}.")
    constant = clustering.n_features - n_varying
    if constant:
        columns = f"{opening(constant)} constant {verb(constant, 'column', 'columns')}"
        texts.append(f"{columns} cannot tell clusters apart and {verb(constant, 'is', 'are')} left out.")
    return texts


def _above_half(clustering: Clustering) -> str:
    ranked = clustering.ranked_features
    explained = "<b>Explained</b> is the share of a feature\u2019s variance between clusters."
    n = sum(bool(clustering.explained[j] > 0.5) for j in ranked)
    if len(ranked) == 1:
        return explained
    if n == len(ranked):
        return f"{explained} All features stand above one half."
    if n == 0:
        return f"{explained} No feature stands above one half."
    return f"{explained} {opening(n)} {verb(n, 'feature stands', 'features stand')} above one half."
