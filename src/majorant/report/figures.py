"""The pictures of the page as files: SVG that opens alone, in print colours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from majorant.report.section import Section

MARGIN = 12
_PICTURE = re.compile(r'<svg class="wide" viewBox="0 0 ([\d.]+) ([\d.]+)"(.*?)</svg>', re.DOTALL)
_MIX = re.compile(r"color-mix\(in oklab, #(\w{6}) (\d+)%, #(\w{6})\)")


class Picture(str):
    """An SVG file as text, which a notebook shows."""

    def _repr_svg_(self) -> str:
        return str(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a file, SVG by its kind whatever the ending."""
        Path(path).write_text(self, encoding="utf-8")


def figures(sections: Sequence[Section], css: str) -> dict[str, Picture]:
    """Return every picture by the name of its section; further ones of a section have a number behind it.

    Parameters
    ----------
    sections : sequence of Section
    css : str
        The page's style sheet, of which the rules of charts are kept, with its light colours written out: many
        programs know neither variables nor mixed colours.
    """
    rules, found = _rules(css), dict[str, Picture]()
    for section in sections:
        for i, (width, height, rest) in enumerate(_PICTURE.findall(section.figure), 1):
            w, h = float(width) + 2 * MARGIN, float(height) + 2 * MARGIN
            found[section.name if i == 1 else f"{section.name}-{i}"] = Picture(
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{w:g}" height="{h:g}" '
                f'viewBox="{-MARGIN} {-MARGIN} {w:g} {h:g}"{rest.replace(">", f"><style>{rules}</style>", 1)}</svg>\n'
            )
    return found


def _rules(css: str) -> str:
    """Return the rules of charts, with their colours written out."""
    colours = {**dict(re.findall(r"(--[\w-]+): ([^;]+);", css.split("@media")[0])), "--paper": "#ffffff"}
    charts = css.split("/* Charts")[1].split("*/", 1)[1].split("/* Narrower")[0]
    kept = re.sub(r"/\*.*?\*/|^svg(?:\.\w+)? \{.*?\}$", "", charts, flags=re.DOTALL | re.MULTILINE)
    known = re.sub(r"var\((--[\w-]+)\)", lambda name: colours[name[1]], kept)
    return re.sub(r"\s*\n\s*", "\n", _MIX.sub(lambda mix: _mixed(mix[1], int(mix[2]), mix[3]), known)).strip()


def _mixed(first: str, percent: int, second: str) -> str:
    """Return a colour between two."""
    pairs = zip(bytes.fromhex(first), bytes.fromhex(second), strict=True)
    return "#" + bytes(round((a * percent + b * (100 - percent)) / 100) for a, b in pairs).hex()
