"""Tables of numbers, written for the terminal, HTML, markdown and as a data frame."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from typing import Any

from numpy.typing import NDArray

from majorant._frames import data_frame
from majorant._numbers import NumberFormat, Rounding, html_number, number_format
from majorant.summary.text import WIDTH, bar, display_width, is_ascii_only, on_two_lines, padded, plain, shortened

Cell = str | int | float | None

_INDENT = "  "
_GAP = 3
_LONGEST_TEXT = 32
_LONGEST_KEY = 44
"""Text of the one column that names the rows of a table may be longer."""
_LONGEST_BAR = 30
_LEAST_WIDTH_OF_DECIMALS = 6


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    head : str
        Name of the column.
    values : sequence or array
        Text, numbers, or None or NaN for an empty cell.
    decimals : int or None
        Digits after the point; None for text and whole numbers. More are shown where numbers would round to zero.
    key : str
        Name of the column in data frames and JSON; the head if empty.
    bold : collection of int
        Rows whose cells are in bold type; on the terminal they have a star.
    min_width : int
        Smallest width on the terminal.
    rounding : {"nearest", "down", "up"}
        Direction in which numbers are rounded.
    empty : str
        Text of an empty cell, None or NaN.
    lists : bool
        Whether cells are lists with commas, of which the terminal shows as many whole entries as fit on two lines.
    write : callable, optional
        Writes each number, where no number of decimals suits them all, as with p-values or ratios.
    """

    head: str
    values: Sequence[Any] | NDArray[Any]
    decimals: int | None = None
    key: str = ""
    bold: Collection[int] = ()
    min_width: int = 0
    rounding: Rounding = "nearest"
    empty: str = ""
    lists: bool = False
    write: Callable[[float], str] | None = None

    def __post_init__(self) -> None:
        values = self.values.tolist() if hasattr(self.values, "tolist") else list(self.values)
        object.__setattr__(self, "values", values)

    @property
    def name(self) -> str:
        return self.key or self.head


@dataclass(frozen=True)
class Table:
    """Columns of equal length.

    Attributes
    ----------
    name : str
        Name of the table, lower case: its key in ``Summary.tables``.
    columns : sequence of Column
        From left to right.
    bars : str
        Name of the column whose counts are drawn as bars at the right, if any.
    keys : int
        How many of the first columns name the row; they are repeated beside each part of a table that is too wide.
    """

    name: str
    columns: Sequence[Column]
    bars: str = ""
    keys: int = 1

    def __post_init__(self) -> None:
        check_lengths(self.name, [column.values for column in self.columns])
        if self.bars and self.bars not in [column.name for column in self.columns]:
            raise ValueError(f"table {self.name!r} has no column {self.bars!r} to draw as bars")

    def __str__(self) -> str:
        return "\n".join(self.to_lines())

    @property
    def n_rows(self) -> int:
        return len(self.columns[0].values)

    def head(self, n_rows: int) -> Table:
        """Return the first rows."""
        columns = [
            replace(column, values=column.values[:n_rows], bold=[i for i in column.bold if i < n_rows])
            for column in self.columns
        ]
        return replace(self, columns=columns)

    def without(self, *names: str) -> Table:
        """Return the table without some columns."""
        return replace(self, columns=[column for column in self.columns if column.name not in names])

    def to_lines(self, width: int = WIDTH - 2, ascii_only: bool | None = None) -> list[str]:
        """Return lines for the terminal; those that do not fit follow below, beside copies of the keys."""
        ascii_only = is_ascii_only() if ascii_only is None else ascii_only
        longest = _LONGEST_KEY if self.keys == 1 else _LONGEST_TEXT
        keys = [_LaidOutColumn.of(column, longest, longest) for column in self.columns[: self.keys]]
        room = width - len(_INDENT) - sum(key.width + _GAP for key in keys)
        others = [_LaidOutColumn.of(column, room) for column in self.columns[self.keys :]]
        lines: list[str] = []
        for part in _parts_that_fit(keys, others, room):
            lines += [""] if lines else []
            lines += _part_lines(part)
        if self.bars and len(lines) == self.n_rows + 1:
            lines = self._with_bars(lines, width, ascii_only)
        return [line.rstrip() for line in lines]

    def _with_bars(self, lines: list[str], width: int, ascii_only: bool) -> list[str]:
        drawn = next(column for column in self.columns if column.name == self.bars)
        counts = [float(c) if isinstance(c, (int, float)) else 0.0 for c in drawn.values]
        used = max(display_width(line) for line in lines) + 2
        room = min(_LONGEST_BAR, width - used)
        if room < 8:
            return lines
        bars = ["", *(bar(count, max(counts), room, ascii_only) for count in counts)]
        return [padded(line, used) + bar_of for line, bar_of in zip(lines, bars, strict=True)]

    def to_html(self) -> str:
        """Return an HTML table without styles; number cells have the class ``n``."""
        columns = [_LaidOutColumn.of(column) for column in self.columns]
        marks = [' class="n"' if c.right else "" for c in columns]
        head = "".join(f"<th{m}>{escape(c.column.head)}</th>" for c, m in zip(columns, marks, strict=True))
        texts = [[html_number(text) if c.right else escape(text) for text in c.full] for c in columns]
        rows = _rows(columns, texts, "<strong>", "</strong>")
        body = "".join(
            "<tr>" + "".join(f"<td{m}>{cell}</td>" for cell, m in zip(row, marks, strict=True)) + "</tr>"
            for row in rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def to_markdown(self) -> str:
        """Return a pipe table."""
        columns = [_LaidOutColumn.of(column) for column in self.columns]
        rows = _rows(columns, [list(map(_pipe_safe, c.full)) for c in columns], "**", "**")
        heads = [[_pipe_safe(c.column.head) for c in columns]]
        lines = ["| " + " | ".join(cells) + " |" for cells in [*heads, *rows]]
        return "\n".join([lines[0], "|" + "|".join("---:" if c.right else "---" for c in columns) + "|", *lines[1:]])

    def to_frame(self) -> Any:
        """Return the table as a data frame (pandas if installed, otherwise polars), with all digits."""
        return data_frame({column.name: column.values for column in self.columns})

    def to_records(self) -> list[dict[str, Cell]]:
        """Return one dictionary per row, with all digits."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in zip(*(c.values for c in self.columns), strict=True)]


def check_lengths(name: str, columns: Iterable[Sequence[Any] | NDArray[Any]]) -> None:
    """Refuse columns of different lengths for a table of that name."""
    lengths = set(map(len, columns))
    if len(lengths) > 1:
        raise ValueError(f"columns of table {name!r} have different lengths: {sorted(lengths)}")


def part_columns(values: NDArray[Any]) -> list[Column]:
    """Return one column of three decimals for each part, a row of `values`, headed by its number from 1."""
    return [Column(str(j), own, 3, min_width=9) for j, own in enumerate(values, 1)]


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
    def of(cls, column: Column, room: int = _LONGEST_TEXT, longest: int = _LONGEST_TEXT) -> _LaidOutColumn:
        values = column.values
        numbers = [v for v in values if v is not None and not isinstance(v, str)]
        style = NumberFormat(0) if column.decimals is None else number_format(numbers, column.decimals)
        write = column.write or partial(style.text, rounding=column.rounding)
        full = [column.empty if v is None or v != v else plain(v) if isinstance(v, str) else write(v) for v in values]
        right = bool(numbers)
        header = shortened(plain(column.head), room)
        texts = full if right or column.lists else [shortened(t, longest) for t in full]
        below = [""] * len(full)
        if column.lists:
            texts, below = [on_two_lines(t, room)[0] for t in full], [on_two_lines(t, room)[1] for t in full]
        if column.bold:  # the others keep their places below and above those with a star
            texts = [text + (" *" if i in column.bold else "  ") for i, text in enumerate(texts)]
            header += "  "
        least = max(column.min_width, _LEAST_WIDTH_OF_DECIMALS if column.decimals else 0)
        width = max([least, *map(display_width, [header, *texts, *below])])
        cells, second = ([padded(t, width, right) for t in lines] for lines in (texts, below))
        return cls(column, header, full, cells, second, width, right)


def _parts_that_fit(
    keys: Sequence[_LaidOutColumn], others: Sequence[_LaidOutColumn], room: int
) -> Iterator[list[_LaidOutColumn]]:
    part, used = list[_LaidOutColumn](), -_GAP
    for column in others:
        if part and used + _GAP + column.width > room:
            yield [*keys, *part]
            part, used = [], -_GAP
        part.append(column)
        used += _GAP + column.width
    yield [*keys, *part]


def _part_lines(part: Sequence[_LaidOutColumn]) -> list[str]:
    lines = [[padded(column.header, column.width, column.right) for column in part]]
    for i in range(len(part[0].cells)):
        lines.append([column.cells[i] for column in part])
        if any(column.second[i].strip() for column in part):
            lines.append([column.second[i] for column in part])
    return [_INDENT + (" " * _GAP).join(line) for line in lines]


def _rows(columns: Sequence[_LaidOutColumn], texts: Sequence[Sequence[str]], start: str, end: str) -> list[list[str]]:
    """Return the cells row by row, those in bold type between two marks."""
    marked = [
        [f"{start}{text}{end}" if i in c.column.bold else text for i, text in enumerate(own)]
        for c, own in zip(columns, texts, strict=True)
    ]
    return [list(row) for row in zip(*marked, strict=True)]


def _pipe_safe(text: str) -> str:
    return plain(text).replace("|", "\\|")
