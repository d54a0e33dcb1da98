"""Criterion: the sizes and forms that were compared, or the criteria of the only one."""

from __future__ import annotations

from majorant.report import numbers
from majorant.report.fit import Fit
from majorant.report.html import escaped, facts
from majorant.report.measures.memberships import Memberships
from majorant.report.section import Section
from majorant.report.table import Column, Table
from majorant.report.words import criteria as words
from majorant.results.selection import Selection


def criteria_section(fit: Fit) -> Section | None:
    """Build the section; without fits that were compared, None for a model without criteria and a degenerate fit."""
    selection = fit.run.selection
    if selection is not None:
        said, table = words.of_selection(selection), criterion_table(selection)
        return Section("criterion", "Criterion", escaped(selection.sentence), "", said, is_figure=False, table=table)
    if not isinstance(fit, Memberships) or not fit.criteria or not fit.regular:
        return None
    return Section("criterion", "Criterion", words.headline(fit), _only(fit), words.notes(fit), is_figure=False)


def criterion_table(selection: Selection) -> Table:
    """Return the table of the criterion: one row per size, one column per setting, the best in bold type."""
    matrix = selection.matrix()
    columns = [Column(words.row_name(selection), [row[0] for row in matrix.rows])]
    for j, column in enumerate(matrix.columns[1:], 1):
        values = [row[j] for row in matrix.rows]
        found = [isinstance(value, float) for value in values]
        decimals = column.decimals or 0
        texts = [numbers.fixed(value, decimals) if isinstance(value, float) else column.empty for value in values]
        markup = [
            text if is_found else f'<span class="quiet">{escaped(text)}</span>'
            for text, is_found in zip(texts, found, strict=True)
        ]
        bold = [matrix.marked[0]] if matrix.marked is not None and matrix.marked[1] == j else []
        columns.append(Column(column.header, values, texts, markup, css="number", bold=bold))
    return Table("criterion", columns)


def _only(fit: Memberships) -> str:
    return facts([(name.upper(), numbers.fixed(value, 2), "") for name, value in fit.criteria.items()], "four-figures")
