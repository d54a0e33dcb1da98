"""Sentences about how well one or two features separate the parts."""

from __future__ import annotations

from majorant.report import numbers
from majorant.report.charts.marks import N_COLOURS
from majorant.report.html import column_name
from majorant.report.measures.pair import BestPair
from majorant.report.measures.partition import Partition
from majorant.report.words.grammar import counted, in_prose, listed, opening, verb
from majorant.report.words.partition import feature_name, parts, shown_of

MOST_CUTS = 4


def headline(partition: Partition) -> str:
    """State how well two features separate the parts, in one sentence."""
    pair = partition.pair
    if pair is None:
        return ""
    first, second = feature_name(partition, pair.first), feature_name(partition, pair.second)
    share = pair.n_agreeing / partition.n_rows
    apart = f"the {parts(partition)} apart"
    if share == 1:
        return f"Two features, {first} and {second}, are enough to tell {apart}."
    if share >= 0.9:
        return f"Two features, {first} and {second}, nearly tell {apart}."
    if share >= 0.6:
        return f"Two features, {first} and {second}, tell most rows of {apart}."
    return f"No two features tell {apart}; {first} and {second} do it best."


def notes(partition: Partition, n_drawn: int, n_gaps: int, parts_shown: int) -> list[str]:
    """Explain how the pair was found, how to read it, and what follows."""
    pair = partition.pair
    if pair is None:
        return []
    texts = [f"{_choice(partition, pair)} {_reading(partition, parts_shown)}"]
    placed = f"<b>{numbers.integer(pair.n_agreeing)} of {numbers.integer(partition.n_rows)} rows</b>"
    conclusion = f"Straight lines on these two alone would place {placed} in the same {partition.part}"
    rest = len(partition.ranked_features) - 2
    if rest and pair.n_agreeing < partition.n_rows:
        others = "the other feature decides" if rest == 1 else f"the other {counted(rest, 'feature')} decide"
        conclusion += f"; {others} the rest"
    texts.append(f"{conclusion}.")
    if n_gaps:
        rows = f"{opening(n_gaps)} {verb(n_gaps, 'row lacks', 'rows lack')} one of the two"
        texts.append(f"{rows} and {verb(n_gaps, 'is', 'are')} not drawn.")
    if n_drawn < partition.n_rows - n_gaps:
        texts.append(f"{numbers.integer(n_drawn)} rows are drawn, equally spaced within each {partition.part}.")
    return texts


def strip_headline(cuts: list[str], name: str, parts: str) -> str:
    """State how a single feature separates the parts, in one sentence; `cuts` are the cut points."""
    column = column_name(name)
    if not cuts:
        return f"The {parts} overlap on {column}."
    if len(cuts) == 1:
        return f"A cut at {cuts[0]} on {column} parts the {parts} exactly."
    shown = listed(cuts) if len(cuts) <= MOST_CUTS else f"{in_prose(len(cuts))} points"
    return f"Cuts at {shown} on {column} part the {parts} exactly."


def _choice(partition: Partition, pair: BestPair) -> str:
    wilks = "Wilks\u2019 \u039b " + (numbers.fixed(pair.wilks, 2) if pair.wilks >= 0.005 else "below 0.01")
    units = ", in the table\u2019s own units" if partition.run.raw is not None else ""
    if pair.n_tried == 1:
        return f"The only two features to choose from ({wilks}){units}."
    tried = f"smallest of {numbers.integer(pair.n_tried)} pairs"
    text = f"The pair that separates best <b>together</b> ({tried}, {wilks}){units}."
    if pair.searched < len(partition.ranked_features):
        text += f" Only pairs among the {pair.searched} features that the {partition.parts} explain best were compared."
    return text


def _reading(partition: Partition, parts_shown: int) -> str:
    around = f" An ellipse holds nine tenths of a {partition.part}." if partition.has_outlines else ""
    if partition.k <= N_COLOURS:
        return f"The curves on the edges are the density of each {partition.part}\u2019s rows.{around}"
    return (
        f"One panel per {partition.part}: its rows in colour, all rows in grey.{around}"
        f"{shown_of(partition, parts_shown)}"
    )
