"""How far two features, or the only one, tell the clusters apart."""

from __future__ import annotations

from majorant.report import numbers
from majorant.report.charts.marks import N_COLOURS
from majorant.report.html import column_name
from majorant.report.measures.clustering import Clustering
from majorant.report.measures.pair import BestPair
from majorant.report.words.clustering import feature_name, parts, shown_of
from majorant.report.words.grammar import counted, in_prose, listed

MOST_CUTS = 4


def headline(clustering: Clustering) -> str:
    """One sentence on how far two features tell the clusters apart."""
    pair = clustering.pair
    if pair is None:
        return ""
    first, second = feature_name(clustering, pair.first), feature_name(clustering, pair.second)
    share = pair.n_agreeing / clustering.n_rows
    apart = f"the {parts(clustering)} apart"
    if share == 1:
        return f"Two features, {first} and {second}, are enough to tell {apart}."
    if share >= 0.9:
        return f"Two features, {first} and {second}, nearly tell {apart}."
    if share >= 0.6:
        return f"Two features, {first} and {second}, tell most rows of {apart}."
    return f"No two features tell {apart}; {first} and {second} do it best."


def notes(clustering: Clustering, n_drawn: int, clusters_shown: int) -> list[str]:
    """How the pair was found, how to read it, what to conclude."""
    pair = clustering.pair
    if pair is None:
        return []
    texts = [f"{_choice(clustering, pair)} {_reading(clustering, clusters_shown)}"]
    placed = f"<b>{numbers.integer(pair.n_agreeing)} of {numbers.integer(clustering.n_rows)} rows</b>"
    conclusion = f"Straight lines on these two alone would place {placed} in the same cluster"
    rest = len(clustering.ranked_features) - 2
    if rest and pair.n_agreeing < clustering.n_rows:
        others = "the other feature decides" if rest == 1 else f"the other {counted(rest, 'feature')} decide"
        conclusion += f"; {others} the rest"
    texts.append(f"{conclusion}.")
    if n_drawn < clustering.n_rows:
        texts.append(f"{numbers.integer(n_drawn)} rows are drawn, equally spaced within each cluster.")
    return texts


def strip_headline(cuts: list[str], name: str) -> str:
    """One sentence on a single feature; `cuts` are the points that part the clusters."""
    column = column_name(name)
    if not cuts:
        return f"The clusters overlap on {column}."
    if len(cuts) == 1:
        return f"A cut at {cuts[0]} on {column} parts the clusters exactly."
    shown = listed(cuts) if len(cuts) <= MOST_CUTS else f"{in_prose(len(cuts))} points"
    return f"Cuts at {shown} on {column} part the clusters exactly."


def _choice(clustering: Clustering, pair: BestPair) -> str:
    wilks = "Wilks\u2019 \u039b " + (numbers.fixed(pair.wilks, 2) if pair.wilks >= 0.005 else "below 0.01")
    units = ", in the table\u2019s own units" if clustering.run.raw is not None else ""
    if pair.n_tried == 1:
        return f"The only two features to choose from ({wilks}){units}."
    tried = f"smallest of {numbers.integer(pair.n_tried)} pairs"
    text = f"The pair that separates best <b>together</b> ({tried}, {wilks}){units}."
    if pair.searched < len(clustering.ranked_features):
        text += f" Only pairs among the {pair.searched} features that the clusters explain best were compared."
    return text


def _reading(clustering: Clustering, clusters_shown: int) -> str:
    if clustering.k <= N_COLOURS:
        return "The curves on the edges are each cluster\u2019s density."
    return f"One panel a cluster: its rows in colour, all rows in grey.{shown_of(clustering, clusters_shown)}"
