"""The summary of a fitted model: a title and blocks, written for the terminal, HTML, markdown and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from majorant._frames import data_frame
from majorant._numbers import NumberFormat, html_number, number_format
from majorant.summary.table import Table
from majorant.summary.text import WIDTH, display_width, is_ascii_only, padded, plain, rule, wrapped

_HEADING_WIDTH = 11
_STYLE = (
    "<style>.majorant-summary{font-variant-numeric:tabular-nums;max-width:60em}"
    ".majorant-summary table{border-collapse:collapse;margin:8px 0}"
    ".majorant-summary th{font-weight:400;opacity:.7;text-align:left;padding:2px 20px 2px 0}"
    ".majorant-summary td{text-align:left;padding:2px 20px 2px 0}"
    ".majorant-summary .n{text-align:right}"
    ".majorant-summary p{margin:4px 0}"
    ".majorant-summary .block{margin-top:16px}</style>"
)


@dataclass(frozen=True)
class Fact:
    """One labelled value.

    Attributes
    ----------
    label : str
        Name of the value.
    value : str, int or float
        The value.
    decimals : int or None
        Digits after the point; None for text and whole numbers.
    """

    label: str
    value: str | int | float
    decimals: int | None = None

    @property
    def text(self) -> str:
        if isinstance(self.value, str):
            return plain(self.value)
        style = NumberFormat(0) if self.decimals is None else number_format([self.value], self.decimals)
        return style.text(self.value)


@dataclass(frozen=True)
class Facts:
    """Labelled values, set in two columns.

    Attributes
    ----------
    title : str
        Name of the group, lower case: its key in ``Summary.tables``.
    left, right : sequence of Fact
        The two columns, each from top to bottom.
    """

    title: str
    left: Sequence[Fact]
    right: Sequence[Fact] = ()

    @property
    def all(self) -> tuple[Fact, ...]:
        return (*self.left, *self.right)

    def to_lines(self) -> list[str]:
        """Return lines for the terminal."""
        left, right = _fact_lines(self.left), _fact_lines(self.right)
        width = max(map(display_width, left), default=0)
        lines = []
        for i in range(max(len(left), len(right))):
            first = padded(left[i] if i < len(left) else "", width)
            lines.append(f"  {first}      {right[i] if i < len(right) else ''}".rstrip())
        return lines


def _fact_lines(facts: Sequence[Fact]) -> list[str]:
    labels = max((display_width(f.label) for f in facts), default=0)
    values = max((display_width(f.text) for f in facts), default=0)
    return [padded(f.label, labels) + padded(f.text, values + 4, right=True) for f in facts]


@dataclass(frozen=True)
class Block:
    """A part of a summary.

    Attributes
    ----------
    heading : str
        One or two words in capitals ("SEARCH").
    note : str
        Text beside the heading.
    content : sequence of Table, Facts and str
        From top to bottom; texts are sentences.
    """

    heading: str
    note: str = ""
    content: Sequence[Table | Facts | str] = ()

    def to_lines(self, width: int, ascii_only: bool) -> list[str]:
        """Return lines for the terminal."""
        opening = f"{self.heading:<{_HEADING_WIDTH}}"
        lines = wrapped(self.note, width, opening, " " * _HEADING_WIDTH) if self.note else [self.heading]
        return lines + _content_lines(self.content, width, ascii_only)


def _content_lines(content: Sequence[Table | Facts | str], width: int, ascii_only: bool) -> list[str]:
    """Return lines for the terminal, the first one blank."""
    lines: list[str] = []
    previous: Table | Facts | str = ""
    for item in content:
        if not (isinstance(item, str) and isinstance(previous, str) and lines):
            lines.append("")
        if isinstance(item, str):
            lines += wrapped(item, width, "  ")
        else:
            lines += item.to_lines(width - 2, ascii_only) if isinstance(item, Table) else item.to_lines()
        previous = item
    return lines


class Tabled:
    """A result that says itself in tables and sentences, as text and in notebooks."""

    @property
    def content(self) -> Sequence[Table | str]:
        """What the result says, from top to bottom."""
        raise NotImplementedError(f"{type(self).__name__} must say what it holds")

    def __repr__(self) -> str:
        return "\n".join(_content_lines(self.content, WIDTH, ascii_only=True)[1:])

    def _repr_html_(self) -> str:
        return f'{_STYLE}<div class="majorant-summary">{"".join(map(_item_html, self.content))}</div>'


@dataclass(frozen=True)
class Summary:
    """The summary of a fitted model on one page.

    Attributes
    ----------
    title : str
        The model.
    subtitle : str
        The data.
    blocks : sequence of Block
        The search report first.
    look_out : sequence of str
        Warnings, if any; they are the last block.

    Examples
    --------
    >>> from majorant.summary import Block, Fact, Facts, Summary
    >>> facts = Facts("fit", [Fact("SSE", 78.851, 2)], [Fact("rows", 150)])
    >>> summary = Summary("k-means, 3 clusters", "150 rows", [Block("FIT", "reached in 4 iterations", [facts])])
    >>> print(summary.to_text(40, ascii_only=True))
    k-means, 3 clusters
    150 rows
    --------------------------------------
    <BLANKLINE>
    FIT        reached in 4 iterations
    <BLANKLINE>
      SSE    78.85      rows    150
    """

    title: str
    subtitle: str
    blocks: Sequence[Block]
    look_out: Sequence[str] = ()

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return self.to_text()

    def to_text(self, width: int = WIDTH, ascii_only: bool | None = None) -> str:
        """Return text for a terminal.

        Parameters
        ----------
        width : int
            Columns of the terminal.
        ascii_only : bool or None
            Whether to draw bars and rules with plain characters; by default when standard output cannot show others.
        """
        ascii_only = is_ascii_only() if ascii_only is None else ascii_only
        lines = [*wrapped(self.title, width), *wrapped(self.subtitle, width), rule(width - 2, ascii_only)]
        for block in self.blocks:
            lines += ["", *block.to_lines(width, ascii_only)]
        if self.look_out:
            lines.append("")
            opening = f"{'WARNINGS':<{_HEADING_WIDTH}}"
            for sentence in self.look_out:
                lines += wrapped(sentence, width, opening)
                opening = " " * _HEADING_WIDTH
        return "\n".join(lines)

    def block_of(self, title: str) -> Block | None:
        """Return the block that holds the table of that name, or None."""
        return next((b for b in self.blocks if any(isinstance(t, Table) and t.name == title for t in b.content)), None)

    @property
    def tables(self) -> dict[str, Any]:
        """Every table as a data frame, by its name."""
        frames: dict[str, Any] = {}
        for block in self.blocks:
            for item in block.content:
                if isinstance(item, Table):
                    frames[item.name] = item.to_frame()
                elif isinstance(item, Facts):
                    frames[item.title] = _facts_frame(item)
        return frames

    def _repr_html_(self) -> str:
        parts = [f"<p><strong>{escape(self.title)}</strong><br>{escape(self.subtitle)}</p>"]
        for block in self.blocks:
            parts.append(f'<p class="block"><strong>{escape(block.heading)}</strong> {escape(block.note)}</p>')
            parts += [_item_html(item) for item in block.content]
        if self.look_out:
            parts.append(f'<p class="block"><strong>WARNINGS</strong> {escape(" ".join(self.look_out))}</p>')
        return f'{_STYLE}<div class="majorant-summary">{"".join(parts)}</div>'

    def to_markdown(self) -> str:
        """Return Markdown: a heading for each block, pipe tables."""
        parts = [f"## {plain(self.title)}", plain(self.subtitle)]
        for block in self.blocks:
            parts.append(f"### {block.heading.capitalize()}")
            parts += [plain(block.note)] if block.note else []
            parts += [_item_markdown(item) for item in block.content]
        if self.look_out:
            parts += ["### Warnings", *map(plain, self.look_out)]
        return "\n\n".join(parts) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values with all digits, as `to_json` writes them."""
        blocks: dict[str, Any] = {}
        for block in self.blocks:
            blocks[block.heading.lower()] = {
                "note": block.note,
                "facts": {f.label: _json_value(f.value) for c in block.content if isinstance(c, Facts) for f in c.all},
                "tables": {
                    t.name: [{k: _json_value(v) for k, v in record.items()} for record in t.to_records()]
                    for t in block.content
                    if isinstance(t, Table)
                },
                "sentences": [s for s in block.content if isinstance(s, str)],
            }
        return {"title": self.title, "subtitle": self.subtitle, "blocks": blocks, "look_out": list(self.look_out)}

    def to_json(self, indent: int | None = 2) -> str:
        """Return JSON with all digits; values that are not finite are null."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)


def _item_html(item: Table | Facts | str) -> str:
    if isinstance(item, str):
        return f"<p>{escape(item)}</p>"
    if isinstance(item, Table):
        return item.to_html()
    rows = "".join(
        f'<tr><td>{escape(f.label)}</td><td class="n">{escape(html_number(f.text))}</td></tr>' for f in item.all
    )
    return f"<table><tbody>{rows}</tbody></table>"


def _item_markdown(item: Table | Facts | str) -> str:
    if isinstance(item, str):
        return plain(item)
    if isinstance(item, Table):
        return item.to_markdown()
    return "\n".join(["| | |", "|---|---:|", *(f"| {f.label} | {f.text} |" for f in item.all)])


def _facts_frame(facts: Facts) -> Any:
    values = [f.value for f in facts.all]
    if any(isinstance(v, str) for v in values):
        return data_frame({"quantity": [f.label for f in facts.all], "value": [f.text for f in facts.all]})
    return data_frame({"quantity": [f.label for f in facts.all], "value": [float(v) for v in values]})


def _json_value(value: str | int | float | None) -> str | int | float | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value
