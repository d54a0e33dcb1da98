"""Sentences about the table that a model was fitted to."""

from __future__ import annotations

from majorant.report.html import escaped, shortened
from majorant.report.words.grammar import capital, counted


def rows_of(n_rows: int, table_name: str, unit: str = "row") -> str:
    """Write the number of rows and the table's name without its extension, as markup: "Nine rows of <i>iris</i>"."""
    stem = table_name.rsplit(".", 1)[0] or table_name
    return f"{capital(counted(n_rows, unit))} of <i>{escaped(shortened(stem, 60))}</i>"
