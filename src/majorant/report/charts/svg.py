"""A canvas that collects SVG elements; colours come from the page's style sheet, never from here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from majorant.report.html import escaped

WIDE = 688
NARROW = 340

Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]

ANCHOR_CLASS = {"start": "", "middle": "mid-anchored", "end": "end-anchored"}


def coordinate(value: float) -> str:
    """Return a length in user units with at most one decimal."""
    text = f"{value:.1f}"
    if text.endswith(".0"):
        text = text[:-2]
    return "0" if text == "-0" else text


def path_of(points: Iterable[Point]) -> str:
    """Return path data of straight lines through `points`."""
    data = "L".join(f"{coordinate(x)} {coordinate(y)}" for x, y in points)
    return f"M{data}" if data else ""


def dots_path(points: Iterable[Point]) -> str:
    """Return path data of dots: strokes of zero length, each position once."""
    places = dict.fromkeys(f"M{coordinate(x)} {coordinate(y)}h0" for x, y in points)
    return "".join(places)


@dataclass(frozen=True)
class Size:
    """The version of a figure that is drawn, for wide or for narrow pages."""

    name: str
    width: int

    @property
    def narrow(self) -> bool:
        return self.width < WIDE


class Canvas:
    """SVG elements in drawing order.

    Parameters
    ----------
    size : Size
        The version that is drawn; its name is the prefix of all ids.
    height : float
        In user units; may be set later.
    """

    def __init__(self, size: Size, height: float = 0.0) -> None:
        self.size = size
        self.height = height
        self._elements: list[str] = []
        self._definitions: list[str] = []

    @property
    def width(self) -> int:
        return self.size.width

    def add(self, markup: str) -> None:
        """Append an element given as markup."""
        self._elements.append(markup)

    def define(self, name: str, template: str) -> str:
        """Add a definition, `template` with ``{id}`` filled in; return its id, unique on the page."""
        identity = f"{self.size.name}-{'n' if self.size.narrow else 'w'}-{name}"
        markup = template.replace("{id}", identity)
        if markup not in self._definitions:
            self._definitions.append(markup)
        return identity

    def line(self, x1: float, y1: float, x2: float, y2: float, css: str) -> None:
        c = coordinate
        to = f"V{c(y2)}" if x1 == x2 else f"H{c(x2)}" if y1 == y2 else f"L{c(x2)} {c(y2)}"
        self.add(f'<path class="{css}" d="M{c(x1)} {c(y1)}{to}"/>')

    def rect(self, x: float, y: float, width: float, height: float, css: str, fill: str = "") -> None:
        style = f' style="fill:{fill}"' if fill else ""
        self.add(
            f'<rect class="{css}" x="{coordinate(x)}" y="{coordinate(y)}" '
            f'width="{coordinate(max(width, 0.0))}" height="{coordinate(max(height, 0.0))}"{style}/>'
        )

    def path(self, data: str, css: str, attributes: str = "") -> None:
        if data:
            self.add(f'<path class="{css}" d="{data}"{" " + attributes if attributes else ""}/>')

    def polyline(self, points: Sequence[Point], css: str) -> None:
        self.path(path_of(points), css)

    def polygon(self, points: Sequence[Point], css: str) -> None:
        if points:
            self.path(path_of(points) + "Z", css)

    def dots(self, points: Iterable[Point], css: str) -> None:
        """Draw round dots as one path of zero-length strokes; the CSS class sets their width."""
        self.path(dots_path(points), f"dot {css}")

    def text(
        self,
        x: float,
        y: float,
        content: str,
        css: str = "",
        *,
        anchor: Anchor = "start",
        full: str = "",
        quiet: str = "",
    ) -> None:
        """Write text at a baseline.

        Parameters
        ----------
        x, y : float
            The anchor, on the baseline.
        content : str
            Plain text; it is escaped here.
        css : str
            CSS classes.
        anchor : {"start", "middle", "end"}
            Which end of the text is at `x`.
        full : str
            The full text of a shortened `content`, shown as a tooltip.
        quiet : str
            Further plain text after it, less prominent.
        """
        classes = f"{css} {ANCHOR_CLASS[anchor]}".strip()
        title = f"<title>{escaped(full)}</title>" if full and full != content else ""
        tail = f'<tspan class="quiet"> {escaped(quiet)}</tspan>' if quiet else ""
        attribute = f' class="{classes}"' if classes else ""
        self.add(f'<text{attribute} x="{coordinate(x)}" y="{coordinate(y)}">{title}{escaped(content)}{tail}</text>')

    def render(self, label: str) -> str:
        """Return the ``<svg>`` element; `label` describes its content for screen readers."""
        definitions = f"<defs>{''.join(self._definitions)}</defs>" if self._definitions else ""
        return (
            f'<svg class="{"narrow" if self.size.narrow else "wide"}" '
            f'viewBox="0 0 {self.width} {coordinate(self.height)}" role="img" aria-label="{escaped(label)}">'
            f"{definitions}{''.join(self._elements)}</svg>"
        )


def figure(name: str, label: str, draw: Callable[[Size], Canvas]) -> str:
    """Return a figure drawn for wide and for narrow pages; the style sheet shows one of the two."""
    return "".join(draw(Size(name, width)).render(label) for width in (WIDE, NARROW))
