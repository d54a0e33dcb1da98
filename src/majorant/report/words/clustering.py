"""The introduction of a clustering's report."""

from __future__ import annotations

import math

from majorant.report import numbers
from majorant.report.measures.clustering import Clustering
from majorant.report.section import Header
from majorant.report.words import facts
from majorant.report.words import search as search_words
from majorant.report.words.grammar import counted, listed, opening, verb
from majorant.report.words.partition import parts, plain_title, title

MOST_SIZES_IN_LEDE = 6


def lede(clustering: Clustering) -> str:
    """State what the clusters explain, and how reliable that is."""
    return f"{_explained(clustering)} {_trust(clustering)}"


def header(clustering: Clustering) -> Header:
    """Return title, lede and five facts of a clustering."""
    explained = clustering.variance_explained
    told = (
        facts.shape(clustering),
        facts.objective(clustering),
        ("Variance explained", numbers.DASH if math.isnan(explained) else numbers.percent(explained), ""),
        facts.hits(clustering),
        _fifth_fact(clustering),
    )
    return Header(plain_title(clustering), title(clustering), lede(clustering), told)


def _fifth_fact(clustering: Clustering) -> facts.Fact:
    gap, silhouettes = clustering.gap_to_bound, clustering.silhouettes
    if gap is not None:
        return ("Gap to the bound", numbers.percent_at_most(gap), "at most, proved")
    if silhouettes is not None:
        return ("Mean silhouette", numbers.fixed(silhouettes.mean, 2), "of 1 at most")
    return ("Spread", numbers.distance(clustering.spread), "root mean square")


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
        f"{opening(clustering.k)} {clustering.parts} of {_sizes(clustering)} "
        f"explain {numbers.percent(share)} of the variance of {features}."
    )


def _sizes(clustering: Clustering) -> str:
    sizes = [int(n) for n in clustering.sizes]
    if len(sizes) <= MOST_SIZES_IN_LEDE and len(set(sizes)) > 1:
        return f"{listed([numbers.integer(n) for n in sizes])} rows"
    if len(set(sizes)) == 1:
        return f"{counted(sizes[0], 'row')} each"
    return f"{numbers.integer(min(sizes))} to {numbers.integer(max(sizes))} rows"


def _trust(clustering: Clustering) -> str:
    gap, search = clustering.gap_to_bound, clustering.search
    if gap is None:
        return search_words.agreement(search)
    if not search_words.excludes_much(search, gap):
        open_ = f"A proved bound leaves {clustering.gap_text} open: it excludes little."
        return f"{search_words.agreement(search)} {open_}"
    if gap == 0:
        claim = f"<strong>No other {parts(clustering)} can be better</strong>"
    elif search_words.is_proved(search):
        claim = f"<strong>These {parts(clustering)} are proved to be the best possible</strong>"
    else:
        claim = f"<strong>No other {parts(clustering)} can be more than {numbers.percent_at_most(gap)} better</strong>"
    if search.n_starts == 1:
        return f"{claim}; one start was run to convergence."
    if search.n_perturbations:
        return f"{claim}. {search_words.of_perturbations(search)}."
    hits = f"{numbers.integer(search.n_hits)} of {numbers.integer(search.n_starts)} starts"
    return f"{claim}, and {hits} {verb(search.n_hits, 'agrees', 'agree')} on these."
