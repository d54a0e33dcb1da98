"""Lines with their bands over the rows assigned to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant.report.charts.labels import spread, text_width
from majorant.report.charts.marks import N_COLOURS, component_class, scatter, shaded_class
from majorant.report.charts.scales import Linear, padded
from majorant.report.charts.svg import Canvas, coordinate

Array = NDArray[np.float64]
BAND = 1.96
"""Standard deviations of the noise on either side of a line."""
ROOM_FOR_BANDS = 0.25
"""Largest extension of the vertical axis for lines and bands, as a share of the range of the rows."""


@dataclass(frozen=True)
class Drawn:
    """The data of a drawing of lines and rows.

    Attributes
    ----------
    x, y : array of shape (n,)
        The rows.
    labels : array of shape (n,)
        Most probable component of each row.
    probability : array of shape (n,)
        Probability of that component.
    at : array of shape (2,)
        Horizontal positions of the ends of the lines.
    ends : array of shape (2, k)
        Values of the lines there.
    scale : array of shape (k,)
        Standard deviation of the noise of each line.
    """

    x: Array
    y: Array
    labels: NDArray[np.int64]
    probability: Array
    at: Array
    ends: Array
    scale: Array

    @property
    def k(self) -> int:
        return len(self.scale)


def ranges_of(several: Sequence[Drawn]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ranges of the axes that some drawings share."""
    x = np.concatenate([d.x for d in several])
    y = np.concatenate([d.y for d in several])
    low, high = float(y.min()), float(y.max())
    reach = np.concatenate([[(d.ends - BAND * d.scale).min(), (d.ends + BAND * d.scale).max()] for d in several])
    room = ROOM_FOR_BANDS * (high - low)
    low, high = max(min(low, float(reach.min())), low - room), min(max(high, float(reach.max())), high + room)
    return padded(float(x.min()), float(x.max())), padded(low, high)


def draw_lines(
    canvas: Canvas, drawn: Drawn, x_scale: Linear, y_scale: Linear, radius: float, name: str, only: int | None = None
) -> None:
    """Draw bands, lines and rows within the axes; with more components than colours, those of component `only`."""
    left, right, top, bottom = x_scale.start, x_scale.end, y_scale.end, y_scale.start
    c = coordinate
    clip = canvas.define(
        f"clip-{name}",
        f'<clipPath id="{{id}}"><rect x="{c(left)}" y="{c(top)}" width="{c(right - left)}" '
        f'height="{c(bottom - top)}"/></clipPath>',
    )
    shown = range(drawn.k) if only is None else [only]
    xs = [x_scale(float(v)) for v in drawn.at] if drawn.at[0] < drawn.at[1] else [left, right]
    canvas.add(f'<g clip-path="url(#{clip})">')
    for j in shown:
        colour, (first, last) = component_class(j, drawn.k, only), drawn.ends[:, j].tolist()
        half = BAND * float(drawn.scale[j])
        above, below = ([y_scale(first + h), y_scale(last + h)] for h in (half, -half))
        corners = [(xs[0], above[0]), (xs[1], above[1]), (xs[1], below[1]), (xs[0], below[0])]
        canvas.polygon(corners, f"fill-{colour} band")
    for j in shown:
        heights = [y_scale(float(v)) for v in drawn.ends[:, j]]
        canvas.polyline(list(zip(xs, heights, strict=True)), f"stroke-{component_class(j, drawn.k, only)} fitted-line")
    canvas.add("</g>")
    for j in shown:
        shades: dict[str, list[tuple[float, float]]] = {}
        for i in np.flatnonzero(drawn.labels == j).tolist():
            colour = shaded_class(j, drawn.k, float(drawn.probability[i]), only)
            shades.setdefault(colour, []).append((x_scale(float(drawn.x[i])), y_scale(float(drawn.y[i]))))
        for colour, points in sorted(shades.items()):
            scatter(canvas, points, j if drawn.k <= N_COLOURS else 0, colour, radius)


def name_lines(canvas: Canvas, drawn: Drawn, x_scale: Linear, y_scale: Linear) -> None:
    """Write each component's name at the right end of its line, moved vertically where two would touch."""
    top, bottom = y_scale.end + 12, y_scale.start - 6
    heights = [min(max(y_scale(float(v)) - 8, top), bottom) for v in drawn.ends[1]]
    x = x_scale(float(drawn.at[1])) if drawn.at[0] < drawn.at[1] else x_scale.end
    x = max(x, x_scale.start + text_width("Component 1", bold=True))
    for j, y in enumerate(spread(heights, [18.0] * drawn.k, top - 9, bottom + 9).tolist()):
        colour = component_class(j, drawn.k)
        css = "quiet" if colour == "mid" else f"text-{colour}"
        canvas.text(x, y, f"Component {j + 1}", f"{css} strong-weight halo", anchor="end")
