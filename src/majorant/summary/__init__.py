"""Blocks that models build their one-page summaries from; they do not depend on a model."""

from majorant._numbers import NumberFormat, counted, html_number, number_format, percent
from majorant.summary.clusters import clusters_block
from majorant.summary.search import STOPPED, best_sentences, bound_sentence, luck_sentence, optima_table, search_block
from majorant.summary.summary import Block, Fact, Facts, Summary
from majorant.summary.table import Column, Table, part_columns

__all__ = [
    "STOPPED",
    "Block",
    "Column",
    "Fact",
    "Facts",
    "NumberFormat",
    "Summary",
    "Table",
    "best_sentences",
    "bound_sentence",
    "clusters_block",
    "counted",
    "html_number",
    "luck_sentence",
    "number_format",
    "optima_table",
    "part_columns",
    "percent",
    "search_block",
]
