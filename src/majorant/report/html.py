"""Small pieces of HTML; everything that comes from a table or a user passes through `escaped`."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable

LONGEST_NAME_IN_PROSE = 28
REPLACEMENT = "\ufffd"


def visible(text: str) -> str:
    """Replace control and direction characters, which could reverse the rest of a line."""
    return "".join(
        sign if sign in "\n\t" or unicodedata.category(sign) not in ("Cc", "Cf", "Cs") else REPLACEMENT for sign in text
    )


def escaped(text: object) -> str:
    """Escape a text for use as character data or attribute value."""
    return html.escape(visible(str(text)), quote=True)


def shortened(text: str, length: int) -> str:
    """Shorten a text to at most `length` characters, with an ellipsis in the middle: names often differ at the end."""
    if len(text) <= length:
        return text
    tail = text[len(text) - (length - 1) // 3 :]
    head = text[: length - 1 - len(tail)]
    return head.rstrip() + "\u2026" + (tail[tail.find(" ") + 1 :] or tail)


def column_name(name: str, longest: int = LONGEST_NAME_IN_PROSE) -> str:
    """Return the name of a column in prose: in italics, unchanged, but shortened if very long."""
    short = shortened(name, longest)
    title = f' title="{escaped(name)}"' if short != name else ""
    return f"<i{title}>{escaped(short)}</i>"


def facts(pairs: Iterable[tuple[str, str, str]], css: str) -> str:
    """Return a list of numbers: the name of each, its value, and a small addition (all markup)."""
    items = "".join(
        f"<div><dt>{name}</dt><dd>{value}{f'<small>{addition}</small>' if addition else ''}</dd></div>"
        for name, value, addition in pairs
    )
    return f'<dl class="{css}">{items}</dl>'
