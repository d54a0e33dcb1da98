"""A table of the report, written as HTML, as CSV with all digits, and as LaTeX."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from majorant import summary
from majorant._frames import unlike_formula
from majorant.report import latex
from majorant.report.html import escaped, visible
from majorant.summary.table import check_lengths

Value = str | int | float | None
DENSE_FROM = 13
"""Number of rows from which on they are set closer."""
MANY_COLUMNS = 9
"""Number of columns up to which a table has room on paper in type of the usual size."""
LONGEST, UNFOLDED = 16, 12
"""Longer tables show so many rows at first, and the rest on demand."""
WIDEST = 96
"""Characters of a line of a table in LaTeX that fits on a page."""


@dataclass(frozen=True, kw_only=True)
class Column(summary.Column):
    """One column: `majorant.summary.Column`, whose values are those of the CSV, and how the page shows it.

    Attributes
    ----------
    texts : sequence of str
        Cells as shown, as plain text; by default the values.
    markup : sequence of str
        Cells of the page, where they are more than text.
    head_markup : str or None
        The column's name on the page, if it is not `head`.
    css : str
        CSS classes of its cells; "number" is right-aligned.
    where : {"everywhere", "page", "copies", "csv"}
        Where the column is included: on the page, in the copies, both, or in one of these.
    aligns : bool
        Whether LaTeX pads its numbers so that their points align.
    printed : sequence of str
        Cells of LaTeX, as plain text, where they are others than those shown: a number with its interval.
    """

    texts: Sequence[str] = ()
    markup: Sequence[str] = ()
    head_markup: str | None = None
    css: str = ""
    where: Literal["everywhere", "page", "copies", "csv"] = "everywhere"
    aligns: bool = True
    printed: Sequence[str] = ()

    @property
    def is_number(self) -> bool:
        return "number" in self.css.split()

    @property
    def shown(self) -> Sequence[str]:
        """The cells as plain text."""
        return self.texts or ["" if value is None else str(value) for value in self.values]

    def extended(self, value: Value, text: str, markup: str = "") -> Column:
        """Return the column with one more cell."""
        cells = [*self._plain_cells, markup or escaped(text)] if self.markup or markup else []
        return replace(self, values=[*self.values, value], texts=[*self.shown, text], markup=cells)

    @property
    def cells(self) -> list[str]:
        """The cells as markup."""
        return [f"<b>{cell}</b>" if i in self.bold else cell for i, cell in enumerate(self._plain_cells)]

    @property
    def _plain_cells(self) -> Sequence[str]:
        return self.markup or [escaped(text) for text in self.shown]


@dataclass(frozen=True)
class Table:
    """Columns of equal length.

    Attributes
    ----------
    name : str
        Name of its files.
    columns : sequence of Column
        From left to right.
    css : str
        CSS classes on the page.
    dense : bool or None
        Whether rows are set close together; by default in long tables.
    groups : mapping of int to str
        Markup of a heading row above the row of that number. In LaTeX a space precedes that row, and the first
        column, which names the group, is empty in all other rows.
    has_total : bool
        Whether the last row sums up the others.
    is_on_page : bool
        Whether the page shows the table; otherwise it can only be copied, as the numbers behind a figure.
    only_in_copies : collection of int
        Rows that the page leaves out.
    rules : collection of int
        Rows above which LaTeX has a line.
    note : str
        What LaTeX says below the table.
    keys : int
        Where LaTeX has more columns than fit on a page, it repeats so many of the first before the others, set below;
        with none, it never does.
    """

    name: str
    columns: Sequence[Column]
    css: str = ""
    dense: bool | None = None
    groups: Mapping[int, str] = field(default_factory=dict)
    has_total: bool = False
    is_on_page: bool = True
    only_in_copies: Collection[int] = ()
    rules: Collection[int] = ()
    note: str = ""
    keys: int = 0

    def __post_init__(self) -> None:
        check_lengths(self.name, [part for c in self.columns for part in (c.values, c.shown, c.cells)])

    @property
    def n_rows(self) -> int:
        return len(self.columns[0].values)

    def to_html(self, caption: str = "") -> str:
        """Return the table as HTML; the caption is for screen readers. Long tables are folded."""
        shown = [c for c in self.columns if c.where in ("everywhere", "page")]
        heads = "".join(f'<th scope="col"{_class(c.css)}>{_head(c)}</th>' for c in shown)
        cells = [c.cells for c in shown]
        rows = [i for i in range(self.n_rows) if i not in self.only_in_copies]
        last_open = self._last_open(rows)
        body = ""
        for i in rows:
            first, *rest = (f"{_class(c.css)}>{of[i]}</" for c, of in zip(shown, cells, strict=True))
            row = f'<th scope="row"{first}th>' + "".join(f"<td{cell}td>" for cell in rest)
            is_total = self.has_total and i == self.n_rows - 1
            css = "total" if is_total else "more" if i > last_open else ""
            head = self.groups.get(i, "")
            if css == "more":
                head = head.replace('<tr class="', '<tr class="more ')
            body += f"{head}<tr{_class(css)}>{row}</tr>"
        is_dense = self.n_rows >= DENSE_FROM if self.dense is None else self.dense
        css = f"{'dense ' * is_dense}{'many ' * (len(shown) > MANY_COLUMNS)}{self.css}"
        said = f"<caption>{escaped(caption)}</caption>" if caption else ""
        table = f"<table{_class(css.strip())}>{said}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
        if last_open == rows[-1] if rows else True:
            return f'<div class="scrolls">{table}</div>'
        unfold = f'<label class="unfold"><input type="checkbox">Show all {len(rows) - self.has_total} rows</label>'
        return f'<div class="folds"><div class="scrolls">{table}</div>{unfold}</div>'

    def _last_open(self, rows: Sequence[int]) -> int:
        """Return the last row that is shown at first, with all rows of its group."""
        if len(rows) - self.has_total <= LONGEST:
            return rows[-1] if rows else -1
        later = [i for i in rows if i > rows[UNFOLDED - 1] and (not self.groups or i in self.groups)]
        return max(i for i in rows if i < later[0]) if later and later[0] < rows[-1] - self.has_total else rows[-1]

    def to_csv(self) -> str:
        """Return the table as CSV with all digits and a header, without a total; missing values are empty."""
        copied = [c for c in self.columns if c.where != "page"]
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([unlike_formula(visible(c.head)) for c in copied])
        for i in range(self.n_rows - self.has_total):
            writer.writerow([_csv_cell(c.values[i]) for c in copied])
        return stream.getvalue()

    def to_latex(self) -> str:
        r"""Return the table as a ``tabular`` with booktabs rules, numbers as shown and aligned at the decimal point.

        Where it is too wide for a page, and has `keys`, there are several below each other.
        """
        copied = [c for c in self.columns if c.where in ("everywhere", "copies")]
        keys, parts = copied[: self.keys], [copied[: self.keys]]
        for column in copied[self.keys :]:
            is_full = sum(map(_width, [*parts[-1], column])) > WIDEST and len(parts[-1]) > len(keys)
            if self.keys and is_full:
                parts.append(list(keys))
            parts[-1].append(column)
        tables = [self._tabular(part, is_last=part is parts[-1]) for part in parts]
        return "\n".join(["% \\usepackage{booktabs}", "\n\\par\\medskip\n".join(tables), ""])

    def _tabular(self, copied: Sequence[Column], *, is_last: bool) -> str:
        n_prose = sum("prose" in c.css.split() for c in copied)
        alignment = "".join(_alignment(c, n_prose) for c in copied)
        cells = [_latex_cells(c) for c in copied]
        if self.groups:
            cells[0] = [cell if i in self.groups else "" for i, cell in enumerate(cells[0])]
        heads = [latex.escaped(c.head) for c in copied]
        widths = [max(map(len, [head, *column])) for head, column in zip(heads, cells, strict=True)]

        def line(texts: Sequence[str]) -> str:
            padded = [
                text.rjust(width) if c.is_number else text.ljust(width)
                for text, width, c in zip(texts, widths, copied, strict=True)
            ]
            written = " & ".join(padded)
            # after a row's \\ LaTeX would take a bracket or a star for an option of it
            return ("{}" if written.lstrip().startswith(("[", "*")) else "") + written + r" \\"

        lines = [
            f"\\begin{{tabular}}{{{alignment}}}",
            r"\toprule",
            line(heads),
            r"\midrule",
        ]
        for i in range(self.n_rows):
            if i in self.rules or (self.has_total and i == self.n_rows - 1):
                lines.append(r"\midrule")
            elif i and i in self.groups:
                lines.append(r"\addlinespace")
            lines.append(line([column[i] for column in cells]))
        lines.append(r"\bottomrule")
        if self.note and is_last:
            lines.append(f"\\multicolumn{{{len(copied)}}}{{l}}{{\\footnotesize {latex.escaped(self.note)}}}")
        return "\n".join([*lines, r"\end{tabular}"])

    def with_copies(self, caption: str = "", *, is_named: bool = False) -> str:
        """Return the table with its copies (CSV, LaTeX) below it, which may say what they are of."""
        what = f"{self.name.replace('-', ' ')} " if is_named else ""
        as_csv = _copy(f"{what}as CSV", f"{self.name}.csv", "text/csv", self.to_csv())
        as_latex = _copy(f"{what}as LaTeX", f"{self.name}.tex", "text/x-tex", self.to_latex())
        shown = self.to_html(caption) if self.is_on_page else ""
        return f'{shown}<div class="copies">{as_csv}{as_latex}</div>'


def _copy(what: str, file: str, mime: str, text: str) -> str:
    """Return the markup of one copy, collapsed at first; it can be opened and selected without the script."""
    return (
        f'<details class="copy" data-type="{mime}"><summary>Copy {what}</summary>'
        f'<textarea readonly spellcheck="false" rows="6" aria-label="{file}">\n{escaped(text)}</textarea>'
        f'<p><span role="status"></span> <a hidden download="{file}">Save {file}</a></p></details>'
    )


def _class(css: str) -> str:
    return f' class="{css}"' if css else ""


def _head(column: Column) -> str:
    return escaped(column.head) if column.head_markup is None else column.head_markup


def _csv_cell(value: Value) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return (
        unlike_formula(visible(value))
        if isinstance(value, str)
        else repr(float(value))
        if isinstance(value, float)
        else str(value)
    )


def _width(column: Column) -> int:
    """Return the characters that a column takes of a line, with the space beside it."""
    return 2 + max(map(len, [column.head, *(column.printed or column.shown)]))


def _latex_cells(column: Column) -> list[str]:
    written = latex.number if column.is_number else latex.escaped
    if column.printed:
        return list(map(written, column.printed))
    is_aligned = column.is_number and column.aligns
    cells = latex.aligned(column.shown) if is_aligned else [written(text) for text in column.shown]
    return [f"\\textbf{{{cell}}}" if i in column.bold else cell for i, cell in enumerate(cells)]


def _alignment(column: Column, n_prose: int) -> str:
    if "prose" in column.css.split():
        return f"p{{{0.7 / n_prose:.2g}\\linewidth}}"
    return "r" if column.is_number else "l"
