"""Layout of text on a terminal of fixed width."""

from __future__ import annotations

import sys
import textwrap
import unicodedata

WIDTH = 80
_EIGHTHS = "▏▎▍▌▋▊▉█"
_RULE = "─"


def plain(text: str) -> str:
    """Return the text without control characters, which could change the state of a terminal."""
    return "".join("?" if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") else c for c in text)


def display_width(text: str) -> int:
    """Return the width of a text on a terminal: two for wide East Asian characters, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in ("W", "F") else 1 for c in text
    )


def padded(text: str, width: int, right: bool = False) -> str:
    """Pad the text with spaces to `width` columns, on the left if `right`."""
    space = " " * (width - display_width(text))
    return space + text if right else text + space


def shortened(text: str, width: int) -> str:
    """Shorten the text to `width` columns, ending in three dots if it was cut; "item=level" keeps its level."""
    if display_width(text) <= width:
        return text
    item, equals, level = text.rpartition("=")
    if equals and display_width(level) <= width // 2:
        return f"{shortened(item, width - 1 - display_width(level))}={level}"
    kept = ""
    for character in text:
        if display_width(kept + character) > width - 3:
            break
        kept += character
    return kept + "..."


def on_two_lines(listed: str, width: int) -> tuple[str, str]:
    """Wrap a list with commas to at most two lines of `width` columns.

    Entries are not split unless one is longer than a line; three dots replace those that do not fit.
    """
    entries = [shortened(entry, width - len(", ...")) for entry in listed.split(", ")]
    lines = ["", ""]
    at = 0
    for i, entry in enumerate(entries):
        last = i == len(entries) - 1
        text = entry if last else f"{entry},"
        joined = f"{lines[at]} {text}".lstrip()
        if lines[at] and display_width(joined) + (0 if last or at == 0 else 4) > width:
            if at:
                lines[at] += " ..."
                break
            at, joined = 1, text
        lines[at] = joined
    return lines[0], lines[1]


def wrapped(text: str, width: int, first: str = "", rest: str | None = None) -> list[str]:
    """Wrap the text to lines of at most `width` columns; `first` begins the first line and `rest` all others."""
    rest = " " * len(first) if rest is None else rest
    lines = textwrap.wrap(
        plain(text), width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False, break_long_words=False
    )
    return lines or [first.rstrip()]


def is_ascii_only(encoding: str | None = None) -> bool:
    """Return whether an encoding, by default standard output's, lacks the characters of bars and rules."""
    encoding = encoding or getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        (_EIGHTHS + _RULE).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return True
    return False


def bar(count: float, most: float, width: int, ascii_only: bool = False) -> str:
    """Draw a bar of eighth blocks for a count, `width` columns long for the largest; never empty above 0."""
    if count <= 0 or most <= 0:
        return ""
    if ascii_only:
        return "#" * max(1, round(count / most * width))
    whole, eighths = divmod(max(1, round(8 * count / most * width)), 8)
    return _EIGHTHS[-1] * whole + (_EIGHTHS[eighths - 1] if eighths else "")


def rule(width: int, ascii_only: bool = False) -> str:
    """Return a horizontal line."""
    return ("-" if ascii_only else _RULE) * width
