"""Profiles: the centre of each part on each feature."""

from __future__ import annotations

import numpy as np

from majorant.report import numbers
from majorant.report.charts.labels import Shelf, shorten, spread, text_width
from majorant.report.charts.marks import N_COLOURS, mark
from majorant.report.charts.scales import Linear, padded, signed_labels
from majorant.report.charts.svg import Canvas, Size, dots_path, figure
from majorant.report.measures.partition import Partition
from majorant.report.section import Section
from majorant.report.words import profiles as words
from majorant.report.words.grammar import capital

MOST_FEATURES = 20
MOST_FEATURES_IN_PANELS = 12
MOST_PANELS = 12
AXIS_TITLE = "standard deviations from the mean of all rows"


def profiles_section(partition: Partition) -> Section | None:
    """None with fewer than two parts, one feature (which has a section of its own) or none that varies."""
    if len(partition.used) < 2 or partition.n_features < 2 or not partition.ranked_features:
        return None
    one_plot = partition.k <= N_COLOURS
    features = partition.ranked_features[: MOST_FEATURES if one_plot else MOST_FEATURES_IN_PANELS]
    shown = largest_parts(partition, MOST_PANELS)
    label = (
        f"Centre of each {partition.part} on {len(features)} features, in standard deviations from the mean, "
        f"features ordered by how much of their variance the {partition.part}s explain"
    )

    def draw(size: Size) -> Canvas:
        if one_plot:
            return draw_profiles(size, partition, features)
        return draw_profile_panels(size, partition, features, shown)

    return Section(
        "profiles",
        "Profiles",
        words.headline(partition, features),
        figure("profiles", label, draw),
        words.notes(partition, len(features), len(shown)),
    )


def largest_parts(partition: Partition, most: int) -> list[int]:
    """The largest parts with rows, in their usual order."""
    by_size = sorted(partition.used, key=lambda j: -int(partition.sizes[j]))[:most]
    return sorted(by_size)


def draw_profiles(size: Size, partition: Partition, features: list[int]) -> Canvas:
    """One row a feature, one mark a part."""
    canvas, narrow = Canvas(size), size.narrow
    step, top = (40.0, 64.0) if narrow else (31.0, 50.0)
    x1, x2 = (8.0, size.width - 52.0) if narrow else (190.0, size.width - 84.0)
    bottom = top + step * len(features)
    scale = _scale(partition, features, x1, x2)
    _vertical_grid(canvas, scale, top - (12 if narrow else 0), bottom, 5)
    canvas.text(x2, bottom + 40, AXIS_TITLE, anchor="end")
    canvas.text(size.width, 28, "explained", "quiet", anchor="end")
    centres = partition.standard_centres
    for i, feature in enumerate(features):
        y = top + step * (i + 0.5) + (8 if narrow else 0)
        name, share = partition.run.feature_names[feature], float(partition.explained[feature])
        if narrow:
            canvas.text(0, y - 13, shorten(name, size.width - 60), "clear halo", full=name)
        else:
            canvas.text(0, y + 4, shorten(name, x1 - 24), "clear", full=name)
        css = "clear" if share > 0.5 else "quiet"
        canvas.text(size.width, y + 4, numbers.percent_in_column(share, 0), css, anchor="end")
        row = [(float(centres[j, feature]), j) for j in partition.used]
        canvas.line(scale(min(row)[0]), y, scale(max(row)[0]), y, "range")
        for value, j in row:
            mark(canvas, j, str(j + 1), scale(value), y)
    _name_parts(canvas, partition, scale, features[0], top + step / 2 + (8 if narrow else 0))
    canvas.height = bottom + 48
    return canvas


def draw_profile_panels(size: Size, partition: Partition, features: list[int], shown: list[int]) -> Canvas:
    """One panel a part with its own centre in colour; panels share both axes."""
    canvas, narrow = Canvas(size), size.narrow
    n_across, room, gap = (2, 112.0, 12.0) if narrow else (4, 150.0, 16.0)
    step, head, foot = 17.0, 26.0, 34.0
    panel_width = (size.width - room - gap * (n_across - 1)) / n_across
    height = step * len(features) + 6
    backdrop = _backdrop(canvas, partition, features, panel_width, step)
    for i, part in enumerate(shown):
        row, column = divmod(i, n_across)
        x1, y1 = room + column * (panel_width + gap), row * (height + head + foot) + head
        scale = _scale(partition, features, x1 + 8, x1 + panel_width - 8)
        canvas.text(x1, y1 - 8, f"{capital(partition.part)} {part + 1}", "strong")
        _vertical_grid(canvas, scale, y1, y1 + height, 3)
        canvas.rect(x1, y1, panel_width, height, "frame")
        ys = [y1 + 3 + step * (r + 0.5) for r in range(len(features))]
        if column == 0:
            for y, feature in zip(ys, features, strict=True):
                name = partition.run.feature_names[feature]
                canvas.text(0, y + 4, shorten(name, room - 12), "clear", full=name)
        centres = partition.standard_centres
        canvas.add(f'<use href="#{backdrop}" x="{x1:.1f}" y="{y1:.1f}"/>')
        for y, feature in zip(ys, features, strict=True):
            mark(canvas, 0, "1", scale(float(centres[part, feature])), y, 4.2)
    n_down = -(-len(shown) // n_across)
    bottom = n_down * (height + head + foot)
    canvas.text(size.width, bottom + 10, AXIS_TITLE, anchor="end")
    canvas.height = bottom + 18
    return canvas


def _backdrop(canvas: Canvas, partition: Partition, features: list[int], panel_width: float, step: float) -> str:
    """The centres of all parts in grey, defined once and used in every panel."""
    scale, centres = _scale(partition, features, 8, panel_width - 8), partition.standard_centres
    points = [
        (scale(float(centres[j, f])), 3 + step * (r + 0.5)) for j in partition.used for r, f in enumerate(features)
    ]
    return canvas.define("centres", f'<path id="{{id}}" class="dot stroke-hair small" d="{dots_path(points)}"/>')


def _scale(partition: Partition, features: list[int], x1: float, x2: float) -> Linear:
    values = partition.standard_centres[np.ix_(partition.used, features)]
    return Linear(*padded(float(min(values.min(), -0.5)), float(max(values.max(), 0.5)), 0.06), x1, x2)


def _vertical_grid(canvas: Canvas, scale: Linear, y1: float, y2: float, count: int) -> None:
    ticks = scale.ticks(count)
    shelf = Shelf(6)
    ordered = sorted(zip(ticks, signed_labels(ticks, "mean"), strict=True), key=lambda pair: abs(pair[0]))
    for tick, text in ordered:
        x, half = scale(tick), text_width(text) / 2
        canvas.line(x, y1, x, y2, "axis" if tick == 0 else "grid")
        if shelf.take(x - half, x + half):
            canvas.text(x, y2 + 18, text, "quiet", anchor="middle")


def _name_parts(canvas: Canvas, partition: Partition, scale: Linear, feature: int, first_y: float) -> None:
    """The parts' names above their marks of the first feature."""
    narrow = canvas.size.narrow
    names = [str(j + 1) if narrow else f"{capital(partition.part)} {j + 1}" for j in partition.used]
    at = [scale(float(partition.standard_centres[j, feature])) for j in partition.used]
    widths = [text_width(name, bold=True) + 12 for name in names]
    y = 48.0 if narrow else 28.0
    for j, name, x, x_name in zip(partition.used, names, at, spread(at, widths, 0, canvas.width - 76), strict=True):
        canvas.text(float(x_name), y, name, f"text-{j + 1} strong", anchor="middle")
        if not narrow:
            canvas.line(float(x_name), y + 6, x, first_y - 9, f"leader stroke-{j + 1}")
