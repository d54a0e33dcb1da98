"""Text in LaTeX, with special characters escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence

from majorant.report import numbers
from majorant.report.html import visible

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\symbol{34}",
    "\n": " ",
    "\t": " ",
}
_SUPERSCRIPTS = "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
_PLAIN = str.maketrans(_SUPERSCRIPTS, "-0123456789")
_SIGNS = {
    numbers.MINUS: "$-$",
    numbers.TIMES: r"$\times$",
    numbers.NARROW_SPACE: r"\,",
    numbers.DASH: "--",
    "\u00a0": "~",
    "\u221e": r"$\infty$",
}
_NUMBER = re.compile(rf"({numbers.MINUS}?[\d{numbers.NARROW_SPACE}]+)(\.\d+)?({numbers.NARROW_SPACE}%)?")


def escaped(text: str) -> str:
    """Escape a text so that LaTeX prints it unchanged, in any font encoding; characters outside ASCII are kept.

    Examples
    --------
    >>> print(escaped("50 % of R&D_1 {~}"))
    50 \\% of R\\&D\\_1 \\{\\textasciitilde{}\\}
    """
    return "".join(_ESCAPES.get(sign, sign) for sign in visible(text)).replace("--", "-{}-")


def number(text: str) -> str:
    """Convert a number of the page to LaTeX: minus signs, powers of ten and thin spaces become commands."""
    raised = re.sub(f"[{_SUPERSCRIPTS}]+", lambda found: f"\0{found.group().translate(_PLAIN)}\1", text)
    written = "".join(_SIGNS.get(sign, _ESCAPES.get(sign, sign)) for sign in raised)
    return written.replace("\0", "$^{").replace("\1", "}$")


def aligned(texts: Sequence[str]) -> list[str]:
    """Convert the numbers of one column to LaTeX so that their decimal points align in a right-aligned column.

    Shorter fractions are padded with empty space of the width of the longest one.
    """
    found = [_NUMBER.fullmatch(text) for text in texts]
    longest = max((len(match.group(2) or "") for match in found if match), default=0)
    cells = []
    for text, match in zip(texts, found, strict=True):
        if match is None or len(fraction := match.group(2) or "") == longest:
            cells.append(number(text))
            continue
        missing = ("" if fraction else ".") + "0" * (longest - max(len(fraction), 1))
        cells.append(f"{number(match.group(1) + fraction)}\\phantom{{{missing}}}{number(match.group(3) or '')}")
    return cells
