"""Profiles: the centre of each cluster on each feature."""

from __future__ import annotations

import numpy as np

from majorant.report import numbers
from majorant.report.charts.labels import Shelf, shorten, spread, text_width
from majorant.report.charts.marks import N_COLOURS, mark
from majorant.report.charts.scales import Linear, padded, signed_labels
from majorant.report.charts.svg import Canvas, Size, dots_path, figure
from majorant.report.measures.clustering import Clustering
from majorant.report.section import Section
from majorant.report.words import profiles as words

MOST_FEATURES = 20
MOST_FEATURES_IN_PANELS = 12
MOST_PANELS = 12
AXIS_TITLE = "standard deviations from the mean of all rows"


def profiles_section(clustering: Clustering) -> Section | None:
    """None with fewer than two clusters, one feature (which has a section of its own) or none that varies."""
    if len(clustering.used) < 2 or clustering.n_features < 2 or not clustering.ranked_features:
        return None
    one_plot = clustering.k <= N_COLOURS
    features = clustering.ranked_features[: MOST_FEATURES if one_plot else MOST_FEATURES_IN_PANELS]
    clusters = largest_clusters(clustering, MOST_PANELS)
    label = (
        f"Centre of each cluster on {len(features)} features, in standard deviations from the mean, "
        "features ordered by how much of their variance the clusters explain"
    )

    def draw(size: Size) -> Canvas:
        if one_plot:
            return draw_profiles(size, clustering, features)
        return draw_profile_panels(size, clustering, features, clusters)

    return Section(
        "profiles",
        "Profiles",
        words.headline(clustering, features),
        figure("profiles", label, draw),
        words.notes(clustering, len(features), len(clusters)),
    )


def largest_clusters(clustering: Clustering, most: int) -> list[int]:
    """The largest clusters with rows, in their usual order."""
    by_size = sorted(clustering.used, key=lambda j: -int(clustering.sizes[j]))[:most]
    return sorted(by_size)


def draw_profiles(size: Size, clustering: Clustering, features: list[int]) -> Canvas:
    """One row a feature, one mark a cluster."""
    canvas, narrow = Canvas(size), size.narrow
    step, top = (40.0, 64.0) if narrow else (31.0, 50.0)
    x1, x2 = (8.0, size.width - 52.0) if narrow else (190.0, size.width - 84.0)
    bottom = top + step * len(features)
    scale = _scale(clustering, features, x1, x2)
    _vertical_grid(canvas, scale, top - (12 if narrow else 0), bottom, 5)
    canvas.text(x2, bottom + 40, AXIS_TITLE, anchor="end")
    canvas.text(size.width, 28, "explained", "quiet", anchor="end")
    centres = clustering.standard_centres
    for i, feature in enumerate(features):
        y = top + step * (i + 0.5) + (8 if narrow else 0)
        name, share = clustering.run.feature_names[feature], float(clustering.explained[feature])
        if narrow:
            canvas.text(0, y - 13, shorten(name, size.width - 60), "clear halo", full=name)
        else:
            canvas.text(0, y + 4, shorten(name, x1 - 24), "clear", full=name)
        css = "clear" if share > 0.5 else "quiet"
        canvas.text(size.width, y + 4, numbers.percent_in_column(share, 0), css, anchor="end")
        row = [(float(centres[j, feature]), j) for j in clustering.used]
        canvas.line(scale(min(row)[0]), y, scale(max(row)[0]), y, "range")
        for value, j in row:
            mark(canvas, j, str(j + 1), scale(value), y)
    _name_clusters(canvas, clustering, scale, features[0], top + step / 2 + (8 if narrow else 0))
    canvas.height = bottom + 48
    return canvas


def draw_profile_panels(size: Size, clustering: Clustering, features: list[int], clusters: list[int]) -> Canvas:
    """One panel a cluster with its own centre in colour; panels share both axes."""
    canvas, narrow = Canvas(size), size.narrow
    n_across, room, gap = (2, 112.0, 12.0) if narrow else (4, 150.0, 16.0)
    step, head, foot = 17.0, 26.0, 34.0
    panel_width = (size.width - room - gap * (n_across - 1)) / n_across
    height = step * len(features) + 6
    backdrop = _backdrop(canvas, clustering, features, panel_width, step)
    for i, cluster in enumerate(clusters):
        row, column = divmod(i, n_across)
        x1, y1 = room + column * (panel_width + gap), row * (height + head + foot) + head
        scale = _scale(clustering, features, x1 + 8, x1 + panel_width - 8)
        canvas.text(x1, y1 - 8, f"Cluster {cluster + 1}", "strong")
        _vertical_grid(canvas, scale, y1, y1 + height, 3)
        canvas.rect(x1, y1, panel_width, height, "frame")
        ys = [y1 + 3 + step * (r + 0.5) for r in range(len(features))]
        if column == 0:
            for y, feature in zip(ys, features, strict=True):
                name = clustering.run.feature_names[feature]
                canvas.text(0, y + 4, shorten(name, room - 12), "clear", full=name)
        centres = clustering.standard_centres
        canvas.add(f'<use href="#{backdrop}" x="{x1:.1f}" y="{y1:.1f}"/>')
        for y, feature in zip(ys, features, strict=True):
            mark(canvas, 0, "1", scale(float(centres[cluster, feature])), y, 4.2)
    n_down = -(-len(clusters) // n_across)
    bottom = n_down * (height + head + foot)
    canvas.text(size.width, bottom + 10, AXIS_TITLE, anchor="end")
    canvas.height = bottom + 18
    return canvas


def _backdrop(canvas: Canvas, clustering: Clustering, features: list[int], panel_width: float, step: float) -> str:
    """The centres of all clusters in grey, defined once and used in every panel."""
    scale, centres = _scale(clustering, features, 8, panel_width - 8), clustering.standard_centres
    points = [
        (scale(float(centres[j, f])), 3 + step * (r + 0.5)) for j in clustering.used for r, f in enumerate(features)
    ]
    return canvas.define("centres", f'<path id="{{id}}" class="dot stroke-hair small" d="{dots_path(points)}"/>')


def _scale(clustering: Clustering, features: list[int], x1: float, x2: float) -> Linear:
    values = clustering.standard_centres[np.ix_(clustering.used, features)]
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


def _name_clusters(canvas: Canvas, clustering: Clustering, scale: Linear, feature: int, first_y: float) -> None:
    """The clusters' names above their marks of the first feature."""
    narrow = canvas.size.narrow
    names = [str(j + 1) if narrow else f"Cluster {j + 1}" for j in clustering.used]
    at = [scale(float(clustering.standard_centres[j, feature])) for j in clustering.used]
    widths = [text_width(name, bold=True) + 12 for name in names]
    y = 48.0 if narrow else 28.0
    for j, name, x, x_name in zip(clustering.used, names, at, spread(at, widths, 0, canvas.width - 76), strict=True):
        canvas.text(float(x_name), y, name, f"text-{j + 1} strong", anchor="middle")
        if not narrow:
            canvas.line(float(x_name), y + 6, x, first_y - 9, f"leader stroke-{j + 1}")
