"""Columns: which were used and how, which were left out and why, and what to know of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from majorant.report.fit import Fit
from majorant.report.section import Section
from majorant.report.table import Column, Table
from majorant.report.words.grammar import capital, counted

LEFT_OUT = "left out"


@dataclass(frozen=True)
class ColumnUse:
    """What became of one column of a table."""

    name: str
    use: str  # its role ("feature", "target", "weights", ...), or `LEFT_OUT`
    notes: tuple[str, ...] = ()  # why it was left out, and what to know of it
    n_empty: int = 0  # number of its empty cells; 0 if it was left out
    source: str = ""  # the column of text whose level it tells, if it is one of 0 and 1

    @property
    def is_left_out(self) -> bool:
        return self.use == LEFT_OUT


def columns_section(fit: Fit) -> Section | None:
    """Build the section; None where a model was not fitted to a table of a file."""
    uses: Sequence[ColumnUse] = fit.run.columns
    if not uses:
        return None
    left_out, noted = [u for u in uses if u.is_left_out], [u for u in uses if u.notes and not u.is_left_out]
    headline = f"{counted(len(uses) - len(left_out), 'column', words=False)} used, {len(left_out)} left out."
    if fit.n_left_out:
        share = f" ({fit.run.n_without_covariate} in covariates)" if fit.run.n_without_covariate else ""
        headline += f" {capital(counted(fit.n_left_out, 'row'))} left out for empty cells{share}."
    columns = [Column("Column", [u.name or '""' for u in uses]), Column("Use", [u.use for u in uses])]
    if any(u.n_empty for u in uses):
        columns.append(Column("Empty cells", [u.n_empty or None for u in uses]))
    table = Table("columns", [*columns, Column("Note", ["; ".join(u.notes) for u in uses])])
    notes = ["<code>--features</code> or <code>--formula</code> names the columns to use."] if left_out or noted else []
    return Section("columns", "Columns", headline, notes, table=table)
