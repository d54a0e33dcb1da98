"""Tables of numbers, written for the terminal, HTML, markdown and as a data frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from majorant._frames import data_frame
from majorant._numbers import NumberFormat, Rounding, html_number, number_format
from majorant.summary.text import WIDTH, bar, display_width, is_ascii_only, on_two_lines, padded, plain, shortened

Cell = str | int | float | None

_INDENT = "  "
_GAP = 3
_LONGEST_TEXT = 32
_LONGEST_BAR = 30
_LEAST_WIDTH_OF_DECIMALS = 6


@dataclass(frozen=True)
class Column:
    """Format of a column of a table.

    Attributes
    ----------
    header : str
        Header of the column.
    decimals : int or None
        Digits after the point; None for text and whole numbers. More are shown where numbers would round to zero.
    min_width : int
        Smallest width on the terminal.
    spills : bool
        Whether a long header may extend over an empty one at its left, instead of widening the column.
    key : str
        Name of the column in data frames and JSON; the header if empty.
    rounding : {"nearest", "down", "up"}
        Direction in which numbers are rounded.
    empty : str
        Text of an empty cell.
    lists : bool
        Whether cells are lists with commas, of which the terminal shows as many whole entries as fit on two lines.
    """

    header: str
    decimals: int | None = None
    min_width: int = 0
    spills: bool = False
    key: str = ""
    rounding: Rounding = "nearest"
    empty: str = ""
    lists: bool = False

    @property
    def name(self) -> str:
        return self.key or self.header


@dataclass(frozen=True)
class Table:
    """Rows and columns with a name.

    Attributes
    ----------
    title : str
        Name of the table, lower case: its key in ``Summary.tables``.
    columns : sequence of Column
        From left to right; the first names the row.
    rows : sequence of sequences
        Text, numbers, or None for an empty cell.
    bars : str
        Name of the column whose counts are drawn as bars at the right, if any.
    grouped : bool
        Whether rows with equal first cells form a group: the cell is written once, groups are separated.
    marked : tuple of int, optional
        Row and column of a cell to mark: with a star on the terminal, in bold type elsewhere.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    bars: str = ""
    grouped: bool = False
    marked: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table {self.title!r} has {len(self.columns)} columns, but a row has {len(row)} cells: {list(row)}"
                )
        if self.bars and self.bars not in [column.name for column in self.columns]:
            raise ValueError(f"table {self.title!r} has no column {self.bars!r} to draw as bars")

    def __str__(self) -> str:
        return "\n".join(self.to_lines())

    def values(self, name: str) -> list[Cell]:
        """Return the cells of the column of that name."""
        place = [column.name for column in self.columns].index(name)
        return [row[place] for row in self.rows]

    def head(self, n_rows: int) -> Table:
        """Return the first rows."""
        marked = self.marked if self.marked is not None and self.marked[0] < n_rows else None
        return replace(self, rows=self.rows[:n_rows], marked=marked)

    def to_lines(self, width: int = WIDTH - 2, ascii_only: bool | None = None) -> list[str]:
        """Return lines for the terminal; columns that do not fit follow below, next to a copy of the first one."""
        ascii_only = is_ascii_only() if ascii_only is None else ascii_only
        key = _LaidOutColumn.of(self.columns[0], self._cells(0), self._mark(0))
        room = width - len(_INDENT) - key.width - _GAP
        others = [
            _LaidOutColumn.of(column, self._cells(i), self._mark(i), room) for i, column in enumerate(self.columns) if i
        ]
        lines: list[str] = []
        for part in _parts_that_fit([key, *others], width - len(_INDENT)):
            lines += [""] if lines else []
            lines += self._part_lines(part)
        if self.bars and len(lines) == len(self.rows) + 1:
            lines = self._with_bars(lines, width, ascii_only)
        return [line.rstrip() for line in lines]

    def _cells(self, place: int) -> list[Cell]:
        return [row[place] for row in self.rows]

    def _mark(self, place: int) -> int | None:
        """Return the row of the marked cell, if it is in that column."""
        return self.marked[0] if self.marked is not None and self.marked[1] == place else None

    def _starts_group(self) -> Iterator[bool]:
        previous: object = object()
        for row in self.rows:
            yield row[0] != previous
            previous = row[0]

    def _part_lines(self, part: Sequence[_LaidOutColumn]) -> list[str]:
        lines = [_header_line(part)]
        for i, starts in enumerate(self._starts_group()):
            cells = [column.cells[i] for column in part]
            if self.grouped:
                lines += [""] if starts else []
                cells[0] = cells[0] if starts else " " * part[0].width
            lines.append(_INDENT + (" " * _GAP).join(cells))
            if any(column.second[i].strip() for column in part):
                lines.append(_INDENT + (" " * _GAP).join(column.second[i] for column in part))
        return lines

    def _with_bars(self, lines: list[str], width: int, ascii_only: bool) -> list[str]:
        counts = [float(c) if isinstance(c, (int, float)) else 0.0 for c in self.values(self.bars)]
        used = max(display_width(line) for line in lines) + 2
        room = min(_LONGEST_BAR, width - used)
        if room < 8:
            return lines
        bars = ["", *(bar(count, max(counts), room, ascii_only) for count in counts)]
        return [padded(line, used) + drawn for line, drawn in zip(lines, bars, strict=True)]

    def to_html(self) -> str:
        """Return an HTML table without styles; number cells have the class ``n``."""
        laid_out = [_LaidOutColumn.of(column, self._cells(i)) for i, column in enumerate(self.columns)]
        marks = [' class="n"' if c.right else "" for c in laid_out]
        head = "".join(f"<th{m}>{escape(c.column.header)}</th>" for c, m in zip(laid_out, marks, strict=True))
        body = ""
        for i, starts in enumerate(self._starts_group()):
            cells = [html_number(c.cells[i].strip()) if c.right else escape(c.full[i]) for c in laid_out]
            if self.grouped and not starts:
                cells[0] = ""
            if self.marked is not None and self.marked[0] == i:
                cells[self.marked[1]] = f"<strong>{cells[self.marked[1]]}</strong>"
            body += "<tr>" + "".join(f"<td{m}>{t}</td>" for t, m in zip(cells, marks, strict=True)) + "</tr>"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def to_markdown(self) -> str:
        """Return a pipe table."""
        laid_out = [_LaidOutColumn.of(column, self._cells(i)) for i, column in enumerate(self.columns)]
        lines = ["| " + " | ".join(_pipe_safe(c.column.header) for c in laid_out) + " |"]
        lines.append("|" + "|".join("---:" if c.right else "---" for c in laid_out) + "|")
        for i in range(len(self.rows)):
            cells = [_pipe_safe(c.full[i]) for c in laid_out]
            if self.marked is not None and self.marked[0] == i:
                cells[self.marked[1]] = f"**{cells[self.marked[1]]}**"
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """Return the table as a data frame (pandas if installed, otherwise polars), with all digits."""
        return data_frame({column.name: self._cells(i) for i, column in enumerate(self.columns)})

    def to_records(self) -> list[dict[str, Cell]]:
        """Return one dictionary per row, with all digits."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class _LaidOutColumn:
    """A column whose cells are text of one width."""

    column: Column
    header: str
    full: list[str]
    cells: list[str]
    second: list[str]
    width: int
    right: bool

    @classmethod
    def of(
        cls, column: Column, values: Sequence[Cell], marked: int | None = None, room: int = _LONGEST_TEXT
    ) -> _LaidOutColumn:
        numbers = [v for v in values if v is not None and not isinstance(v, str)]
        style = NumberFormat(0) if column.decimals is None else number_format(numbers, column.decimals)
        full = [
            column.empty if v is None else plain(v) if isinstance(v, str) else style.text(v, column.rounding)
            for v in values
        ]
        right = bool(numbers)
        header = shortened(plain(column.header), _LONGEST_TEXT)
        texts = full if right or column.lists else [shortened(t, _LONGEST_TEXT) for t in full]
        below = [""] * len(full)
        if column.lists:
            texts, below = [on_two_lines(t, room)[0] for t in full], [on_two_lines(t, room)[1] for t in full]
        if marked is not None:  # the others keep their places below and above the marked one
            texts = [text + (" *" if i == marked else "  ") for i, text in enumerate(texts)]
            header += "  "
        least = max(column.min_width, _LEAST_WIDTH_OF_DECIMALS if column.decimals else 0)
        width = max([least, 0 if column.spills else display_width(header), *map(display_width, [*texts, *below])])
        cells, second = ([padded(t, width, right) for t in lines] for lines in (texts, below))
        return cls(column, header, full, cells, second, width, right)


def _parts_that_fit(columns: Sequence[_LaidOutColumn], width: int) -> Iterator[list[_LaidOutColumn]]:
    key, others = columns[0], columns[1:]
    part, used = [key], key.width
    for column in others:
        if used + _GAP + column.width > width and len(part) > 1:
            yield part
            part, used = [key], key.width
        part.append(column)
        used += _GAP + column.width
    yield part


def _header_line(part: Sequence[_LaidOutColumn]) -> str:
    line, end = "", 0
    for column in part:
        end += column.width + (_GAP if end else len(_INDENT))
        if column.right:
            line = padded(line, end - display_width(column.header)) + column.header
        else:
            line = padded(line, end - column.width) + padded(column.header, column.width)
    return line


def _pipe_safe(text: str) -> str:
    return plain(text).replace("|", "\\|")
