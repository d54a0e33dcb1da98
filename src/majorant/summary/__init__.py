"""Blocks that models build their one-page summaries from; they do not depend on a model."""

from majorant._numbers import counted
from majorant.summary.clusters import clusters_block
from majorant.summary.search import STOPPED, best_sentences, bound_sentence, luck_sentence, optima_table, search_block
from majorant.summary.summary import Block, Fact, Facts, Summary, Tabled
from majorant.summary.table import Column, Table, part_columns

__all__ = [
    "STOPPED",
    "Block",
    "Column",
    "Fact",
    "Facts",
    "Summary",
    "Table",
    "Tabled",
    "best_sentences",
    "bound_sentence",
    "clusters_block",
    "counted",
    "luck_sentence",
    "optima_table",
    "part_columns",
    "search_block",
]
