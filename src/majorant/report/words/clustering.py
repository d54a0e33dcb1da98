"""Sentences about clusters: their sizes, what sets them apart, how firmly their rows belong."""

from __future__ import annotations

import math

import numpy as np

from majorant.report import numbers
from majorant.report.html import column_name, escaped, shortened
from majorant.report.measures.clustering import Clustering
from majorant.report.measures.silhouettes import Silhouettes
from majorant.report.words import evidence as evidence_words
from majorant.report.words.grammar import capital, counted, in_prose, in_words, listed, opening, verb

WEAKLY_EXPLAINED = 0.1
MOST_SIZES_IN_LEDE = 6


def parts(clustering: Clustering) -> str:
    """ "three clusters"."""
    return counted(clustering.k, clustering.card.part)


def title(clustering: Clustering) -> str:
    """The title of the page, as markup."""
    name = clustering.run.table_name
    stem = name.rsplit(".", 1)[0] or name
    rows = counted(clustering.n_rows, "row", words=False)
    return f"{rows} of <i>{escaped(shortened(stem, 60))}</i> in {parts(clustering)}"


def plain_title(clustering: Clustering) -> str:
    """The title of the window."""
    rows = counted(clustering.n_rows, "row", words=False)
    return f"{rows} of {clustering.run.table_name} in {parts(clustering)}: {clustering.card.title}"


def lede(clustering: Clustering) -> str:
    """What the clusters explain, and how sure that is."""
    return f"{_explained(clustering)} {_trust(clustering)}"


def _explained(clustering: Clustering) -> str:
    share = clustering.variance_explained
    features = counted(clustering.n_features, "feature")
    if clustering.run.standardised:
        features = features.replace(" feature", " standardised feature")
    if math.isnan(share):
        return "The rows are all equal, so there is nothing for clusters to explain."
    if clustering.k == 1:
        return f"One cluster is the mean of all rows and explains none of the variance of {features}."
    return (
        f"{capital(parts(clustering))} of {_sizes(clustering)} "
        f"explain {numbers.percent(share)} of the variance of {features}."
    )


def _sizes(clustering: Clustering) -> str:
    sizes = [int(n) for n in clustering.sizes]
    if len(sizes) <= MOST_SIZES_IN_LEDE and len(set(sizes)) > 1:
        return f"{listed([numbers.integer(n) for n in sizes])} rows"
    if len(set(sizes)) == 1:
        return f"{counted(sizes[0], 'row', words=False)} each"
    return f"{numbers.integer(min(sizes))} to {numbers.integer(max(sizes))} rows"


def _trust(clustering: Clustering) -> str:
    room, evidence = clustering.room_left, clustering.evidence
    if room is None or room > 0.2:
        return evidence_words.agreement(evidence)
    if room == 0:
        claim = f"<strong>No other {parts(clustering)} can be better</strong>"
    else:
        claim = f"<strong>No other {parts(clustering)} can be more than {numbers.percent_at_most(room)} better</strong>"
    if evidence.n_starts == 1:
        return f"{claim}; one start was made."
    hits = f"{numbers.integer(evidence.n_hits)} of {numbers.integer(evidence.n_starts)} starts"
    return f"{claim}, and {hits} {verb(evidence.n_hits, 'agrees', 'agree')} on these."


def sizes_headline(clustering: Clustering) -> str:
    """One sentence on how the rows are shared and which cluster is loose."""
    sizes, n = clustering.sizes, clustering.n_rows
    if clustering.k == 1:
        return f"One cluster holds {'the only row' if n == 1 else f'all {numbers.integer(n)} rows'}."
    n_empty = clustering.k - len(clustering.used)
    if n_empty:
        return f"{opening(n_empty)} of {in_prose(clustering.k)} clusters {verb(n_empty, 'has', 'have')} no rows."
    alone = [j for j in clustering.used if sizes[j] == 1]
    largest, smallest = int(sizes.max()), int(sizes.min())
    if len(alone) == clustering.k:
        return "Every row is a cluster of its own."
    if alone:
        which = f"Cluster {alone[0] + 1} is" if len(alone) == 1 else f"{opening(len(alone))} clusters are"
        return f"{which} a single row{' each' if len(alone) > 1 else ''}."
    if largest > n / 2 and clustering.k > 2:
        share = f"Cluster {int(sizes.argmax()) + 1} holds {numbers.percent(largest / n, 0)} of the rows"
    elif largest <= 1.5 * smallest:
        share = "The clusters are of similar size"
    else:
        share = f"The largest cluster has {largest / smallest:.1f} times the rows of the smallest"
    return f"{share}{_compactness(clustering)}."


def _compactness(clustering: Clustering) -> str:
    spreads = np.nan_to_num(clustering.spreads)
    order = np.argsort(-spreads)
    if spreads[order[0]] >= 1.1 * spreads[order[1]]:
        return f"; cluster {int(order[0]) + 1} is the least compact"
    if spreads[order[0]] <= 1.15 * spreads[order[-1]]:
        return "; all are about equally compact"
    return ""


def sizes_notes(clustering: Clustering, n_shown: int) -> list[str]:
    """What the columns of the table are, and which sections are missing."""
    silhouettes = clustering.silhouettes
    first = "<b>Spread</b> is the root mean square distance of a row to its centre"
    first += ", in standard deviations." if clustering.run.standardised else "."
    if silhouettes is not None:
        first += (
            " <b>Silhouette</b> runs from \u22121 to 1: near 1, a row is far from every other cluster."
            " <b>Misfits</b> are rows nearer, on average, to another cluster."
        )
    texts = [first]
    if silhouettes is not None and silhouettes.sampled:
        texts.append(f"Silhouettes and misfits are those of {_sample(silhouettes)}.")
    if n_shown < clustering.k:
        texts.append(f"The {n_shown} largest of {clustering.k} clusters are shown.")
    if clustering.weighted:
        texts.append(f"The {escaped(clustering.card.objective_name)} counts rows by their weights; this table counts each once.")
    if clustering.k == 1:
        texts.append("With one cluster there are no profiles, silhouettes or pairs of features to show.")
    elif silhouettes is None:
        texts.append(_why_no_silhouettes(clustering))
    return texts


def _why_no_silhouettes(clustering: Clustering) -> str:
    if len(clustering.used) < 2:
        return "Silhouettes need two clusters with rows; there are none to show."
    if len(clustering.used) == clustering.n_rows:
        return "Silhouettes need a cluster with two rows; there are none to show."
    return "Silhouettes are not shown for so many clusters."


def _sample(silhouettes: Silhouettes) -> str:
    return f"{numbers.integer(len(silhouettes.values))} rows, equally spaced within each cluster"


def profiles_headline(clustering: Clustering, features: list[int]) -> str:
    """One sentence on those of `features`, best explained first, that set clusters apart."""
    best = features[0]
    share = clustering.explained[best]
    if share < WEAKLY_EXPLAINED:
        return (
            f"No feature tells the clusters apart well: of {_name(clustering, best)}, "
            f"the best, they explain {numbers.percent(float(share), 0)}."
        )
    if len(clustering.used) == 2:
        first, second = clustering.used
        high, low = (first, second) if _above(clustering, first, second, best) else (second, first)
        return f"The clusters differ most in {_name(clustering, best)}: high in cluster {high + 1}, low in cluster {low + 1}."
    traits = sorted((t for j in clustering.used if (t := _trait(clustering, j, features)) is not None), reverse=True)
    if not traits:
        return f"The clusters differ most in {_name(clustering, best)}."
    if len(clustering.used) > 3:
        _, j, side, feature = traits[0]
        return f"Cluster {j + 1} stands apart most clearly, by {side} {_name(clustering, feature)}."
    clauses = [f"cluster {j + 1} {'is set apart ' if i == 0 else ''}by {side} {_name(clustering, f)}" for i, (_, j, side, f) in enumerate(traits)]
    return f"{capital(', '.join(clauses))}."


def _above(clustering: Clustering, first: int, second: int, feature: int) -> bool:
    return bool(clustering.standard_centres[first, feature] >= clustering.standard_centres[second, feature])


def _trait(clustering: Clustering, cluster: int, features: list[int]) -> tuple[float, int, str, int] | None:
    """The feature on which a cluster is furthest out: (how far from the next centre, cluster, "high" or "low", feature)."""
    centres = clustering.standard_centres
    others = [j for j in clustering.used if j != cluster]
    found: list[tuple[float, int, str, int]] = []
    for feature in features:
        own, rest = centres[cluster, feature], centres[others, feature]
        found.append((float(own - rest.max()), cluster, "high", feature))
        found.append((float(rest.min() - own), cluster, "low", feature))
    best = max(found, key=lambda trait: trait[0])
    return best if best[0] > 0 else None


def profiles_notes(clustering: Clustering, n_shown: int, clusters_shown: int) -> list[str]:
    """How to read the profiles."""
    ranked = clustering.ranked_features
    above_half = int(sum(clustering.explained[j] > 0.5 for j in ranked))
    first = "<b>Each mark is a cluster\u2019s centre.</b>"
    if len(clustering.used) > 3:
        first = "<b>One panel a cluster:</b> its centre in colour, the others in grey."
        if clusters_shown < len(clustering.used):
            first += f" The {in_prose(clusters_shown)} largest of {in_prose(len(clustering.used))} clusters are shown."
    if len(ranked) > 1:
        first += " Features run from the one that the clusters explain best to the one that they explain least."
    texts = [first]
    explained = "<b>Explained</b> is the share of a feature\u2019s variance between clusters."
    if len(ranked) == 1:
        half = ""
    elif above_half == len(ranked):
        half = " All features stand above one half."
    elif above_half:
        half = f" {opening(above_half)} {verb(above_half, 'feature stands', 'features stand')} above one half."
    else:
        half = " No feature stands above one half."
    texts.append(explained + half if len(clustering.used) <= 3 else half.strip().replace("above one half", "above one half explained") or explained)
    if n_shown < len(ranked):
        left = len(ranked) - n_shown
        texts.append(f"The {n_shown} best explained features are shown; {counted(left, 'other')} {verb(left, 'is', 'are')} left out.")
    constant = clustering.n_features - len(ranked)
    if constant:
        texts.append(f"{opening(constant)} constant {verb(constant, 'column', 'columns')} cannot tell clusters apart and {verb(constant, 'is', 'are')} left out.")
    return texts


def loosest(silhouettes: Silhouettes) -> int:
    """The cluster with the smallest mean silhouette."""
    return int(np.nanargmin(silhouettes.cluster_means))


def silhouettes_headline(silhouettes: Silhouettes) -> str:
    """One sentence on rows that would suit another cluster better."""
    misfits = silhouettes.misfits
    n, total = int(misfits.sum()), len(silhouettes.values)
    loose = loosest(silhouettes) + 1
    of = f"{numbers.integer(total)} {'sampled ' if silhouettes.sampled else ''}rows"
    if n == 0:
        none = f"None of {of} would suit another cluster better"
        if np.nanmax(silhouettes.cluster_means) - np.nanmin(silhouettes.cluster_means) < 0.05:
            return f"{none}; the clusters hold together about equally well."
        return f"{none}; cluster {loose} is the loosest."
    where = int(misfits.argmax())
    subject = f"{opening(n)} of {of} would suit another cluster better"
    if n == 1:
        return f"{subject}; it is in cluster {where + 1}."
    if misfits[where] == n:
        return f"{subject}; {'both' if n == 2 else 'all of them'} are in cluster {where + 1}."
    if misfits[where] > n / 2:
        return f"{subject}; {numbers.integer(int(misfits[where]))} of them are in cluster {where + 1}."
    return f"{subject}, in {in_prose(int((misfits > 0).sum()))} clusters; cluster {loose} is the loosest."


def silhouettes_notes(silhouettes: Silhouettes, n_clusters: int) -> list[str]:
    """How to read the silhouettes."""
    texts = [
        "<b>One thin bar a row</b>, sorted within its cluster; the width of a block is the cluster\u2019s size. "
        "The dashed line is its mean. Bars below zero are rows that another cluster would suit better."
    ]
    if n_clusters > 3:
        texts.append(f"The loosest cluster, {loosest(silhouettes) + 1}, is in colour.")
    if silhouettes.sampled:
        texts.append(f"Drawn from {_sample(silhouettes)}.")
    return texts


def pair_headline(clustering: Clustering) -> str:
    """One sentence on how far two features tell the clusters apart."""
    pair = clustering.pair
    if pair is None:
        return ""
    first, second = _name(clustering, pair.first), _name(clustering, pair.second)
    share = pair.n_agreeing / clustering.n_rows
    apart = f"the {parts(clustering)} apart"
    if share == 1:
        return f"Two features, {first} and {second}, are enough to tell {apart}."
    if share >= 0.9:
        return f"Two features, {first} and {second}, nearly tell {apart}."
    if share >= 0.6:
        return f"Two features, {first} and {second}, tell most rows of {apart}."
    return f"No two features tell {apart}; {first} and {second} do it best."


def pair_notes(clustering: Clustering, n_drawn: int, clusters_shown: int) -> list[str]:
    """How the pair was found, how to read it, what to conclude."""
    pair = clustering.pair
    if pair is None:
        return []
    wilks = f"Wilks\u2019 \u039b {numbers.fixed(pair.wilks, 2)}"
    units = ", in the table\u2019s own units" if clustering.run.raw is not None else ""
    if pair.n_tried == 1:
        first = f"The only two features that vary ({wilks}){units}."
    else:
        first = (
            f"The pair that separates best <b>together</b> (smallest of {numbers.integer(pair.n_tried)} pairs, {wilks}){units}."
        )
    varying = len(clustering.ranked_features)
    if pair.searched < varying:
        first += f" Only pairs among the {pair.searched} features that the clusters explain best were compared."
    if len(clustering.used) <= 3:
        first += " The curves on the edges are each cluster\u2019s density."
    else:
        first += " One panel a cluster: its rows in colour, the others in grey."
        if clusters_shown < len(clustering.used):
            first += f" The {in_prose(clusters_shown)} largest of {in_prose(len(clustering.used))} clusters are shown."
    rest = varying - 2
    placed = f"<b>{numbers.integer(pair.n_agreeing)} of {numbers.integer(clustering.n_rows)} rows</b>"
    second = f"Straight lines on these two alone would place {placed} in the same cluster"
    if rest and pair.n_agreeing < clustering.n_rows:
        second += f"; the other {counted(rest, 'feature') if rest > 1 else 'feature'} {verb(rest, 'decides', 'decide')} the rest"
    texts = [first, f"{second}."]
    if n_drawn < clustering.n_rows:
        texts.append(f"{numbers.integer(n_drawn)} rows are drawn, equally spaced within each cluster.")
    return texts


def strip_headline(cuts: list[str], name: str) -> str:
    """One sentence on a single feature; `cuts` are the points that part the clusters."""
    if not cuts:
        return f"The clusters overlap on {column_name(name)}."
    shown = listed(cuts) if len(cuts) <= 4 else f"{in_words(len(cuts))} points"
    return f"{'A cut' if len(cuts) == 1 else 'Cuts'} at {shown} on {column_name(name)} {verb(len(cuts), 'parts', 'part')} the clusters exactly."


def _name(clustering: Clustering, feature: int) -> str:
    return column_name(clustering.run.feature_names[feature])
