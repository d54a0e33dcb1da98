"""The names of things in the report of any model that assigns each row to a part."""

from __future__ import annotations

from majorant.report.html import column_name
from majorant.report.measures.partition import Partition
from majorant.report.words.grammar import counted, in_prose
from majorant.report.words.table import rows_of


def parts(partition: Partition) -> str:
    """Return the number of parts in words: "three clusters"."""
    return counted(partition.k, partition.card.part)


def feature_name(partition: Partition, feature: int) -> str:
    """Return a feature's name in prose, as markup."""
    return column_name(partition.run.feature_names[feature])


def shown_of(partition: Partition, n_shown: int) -> str:
    """Return a sentence, after a space, on how many clusters are shown; "" if all are."""
    n = len(partition.used)
    return f" The {in_prose(n_shown)} largest of {in_prose(n)} {partition.parts} are shown." if n_shown < n else ""


def title(partition: Partition) -> str:
    """Return the title of the page, as markup."""
    return f"{rows_of(partition.n_rows - partition.n_lacking, partition.run.table_name)} in {parts(partition)}"


def plain_title(partition: Partition) -> str:
    """Return the title of the window."""
    rows = counted(partition.n_rows - partition.n_lacking, "row", words=False)
    return f"{rows} of {partition.run.table_name} in {parts(partition)}: {partition.card.title}"
