"""Criterion: the sizes and forms that were compared, or the criteria of the only one."""

from __future__ import annotations

from majorant.evidence.selection import Selection
from majorant.report import numbers
from majorant.report.html import escaped, facts
from majorant.report.measures.memberships import Memberships
from majorant.report.section import Section
from majorant.report.words import criteria as words


def criteria_section(fit: Memberships) -> Section | None:
    """None for a model without criteria, and for an irregular one, whose criteria mean nothing."""
    selection = fit.run.selection
    if selection is None and (not fit.criteria or not fit.regular):
        return None
    block = _only(fit) if selection is None else criterion_table(selection)
    return Section("criterion", "Criterion", words.headline(fit), block, words.notes(fit), is_figure=False)


def criterion_table(selection: Selection) -> str:
    """Sizes below each other, forms side by side, the best in bold type."""
    matrix = selection.matrix()
    decimals = matrix.columns[1].decimals or 0
    heads = "".join(f'<th class="number">{escaped(column.header)}</th>' for column in matrix.columns[1:])
    body = ""
    for i, (size, *values) in enumerate(matrix.rows):
        cells = f"<td>{size}</td>"
        for j, value in enumerate(values, 1):
            text = '<span class="quiet">excluded</span>'
            if isinstance(value, float):
                text = numbers.fixed(value, decimals)
            cells += f'<td class="number">{f"<b>{text}</b>" if (i, j) == matrix.marked else text}</td>'
        body += f"<tr>{cells}</tr>"
    css = ' class="dense"' if len(matrix.rows) > 12 else ""
    name = words.row_name(selection)
    return (
        f'<div class="scrolls"><table{css}><thead><tr><th>{escaped(name)}</th>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _only(fit: Memberships) -> str:
    return facts([(name.upper(), numbers.fixed(value, 2), "") for name, value in fit.criteria.items()], "four-figures")
