"""Profiles: the centre of each part on each feature."""

from __future__ import annotations

import numpy as np

from majorant.report import numbers
from majorant.report.charts.labels import shorten, spread, text_width
from majorant.report.charts.marks import N_COLOURS, mark
from majorant.report.charts.scales import Linear
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.measures.partition import Partition
from majorant.report.section import Section
from majorant.report.sections.panels import AXIS_TITLE, draw_panels, scale_of, vertical_grid
from majorant.report.table import Column, Table
from majorant.report.words import profiles as words
from majorant.report.words.grammar import capital

MOST_FEATURES = 20
MOST_FEATURES_IN_PANELS = 12
MOST_PANELS = 12
MOST_FEATURES_IN_COPIES = 100


def profiles_section(partition: Partition) -> Section | None:
    """Build the section; None with fewer than two parts, with one feature or with none that varies."""
    if len(partition.used) < 2 or partition.n_features < 2 or not partition.ranked_features:
        return None
    one_plot = partition.k <= N_COLOURS
    features = partition.ranked_features[: MOST_FEATURES if one_plot else MOST_FEATURES_IN_PANELS]
    shown = largest_parts(partition, MOST_PANELS)
    label = (
        f"Centre of each {partition.part} on {len(features)} features, in standard deviations from the mean, "
        f"features ordered by how much of their variance the {partition.parts} explain"
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
        table=profiles_table(partition, shown),
    )


def profiles_table(partition: Partition, parts: list[int]) -> Table:
    """Return mean and standard deviation of each part on each feature, in the table's own units, for copying."""
    features = partition.ranked_features[:MOST_FEATURES_IN_COPIES]
    names = [partition.run.feature_names[feature] for feature in features]
    means, spreads, texts = [], [], []
    for feature in features:
        means.append(partition.in_own_units(partition.centres[parts, feature], feature).tolist())
        spread_of = partition.in_own_units(partition.deviations_within[parts, feature], feature, spread=True)
        spreads.append(spread_of.tolist())
        decimals = numbers.shared_decimals(np.array(means[-1]), np.array(spreads[-1]))
        both = [*means[-1], *spreads[-1]]
        texts.append([numbers.scientific(v) if decimals is None else numbers.fixed(v, decimals) for v in both])
    columns = [Column("Feature", names)]
    for place, part in enumerate(parts):
        head = f"{capital(partition.part)} {part + 1}"
        for name, values, at in ((head, means, place), (f"{head} (SD)", spreads, len(parts) + place)):
            of_one = [row[place] for row in values]
            columns.append(Column(name, of_one, [row[at] for row in texts], css="number"))
    shares = [float(partition.explained[feature]) for feature in features]
    columns.append(Column("Explained", shares, list(map(numbers.percent_in_column, shares)), css="number"))
    return Table("profiles", columns, is_on_page=False)


def largest_parts(partition: Partition, most: int) -> list[int]:
    """Return the largest parts with rows, in their usual order."""
    by_size = sorted(partition.used, key=lambda j: -int(partition.sizes[j]))[:most]
    return sorted(by_size)


def draw_profiles(size: Size, partition: Partition, features: list[int]) -> Canvas:
    """Draw one row per feature, one mark per part."""
    canvas, narrow = Canvas(size), size.narrow
    step, top = (40.0, 64.0) if narrow else (31.0, 50.0)
    x1, x2 = (8.0, size.width - 52.0) if narrow else (190.0, size.width - 84.0)
    bottom = top + step * len(features)
    scale = _scale(partition, features, x1, x2)
    vertical_grid(canvas, scale, top - (12 if narrow else 0), bottom, 5)
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
    """Draw one panel per part with its own centre in colour."""
    centres = partition.standard_centres[:, features]
    panels = [(f"{capital(partition.part)} {part + 1}", centres[[part]]) for part in shown]
    names = [partition.run.feature_names[feature] for feature in features]
    return draw_panels(size, names, panels, centres[partition.used])


def _scale(partition: Partition, features: list[int], x1: float, x2: float) -> Linear:
    return scale_of(partition.standard_centres[np.ix_(partition.used, features)], x1, x2)


def _name_parts(canvas: Canvas, partition: Partition, scale: Linear, feature: int, first_y: float) -> None:
    """Label the parts above their marks of the first feature."""
    narrow = canvas.size.narrow
    names = [str(j + 1) if narrow else f"{capital(partition.part)} {j + 1}" for j in partition.used]
    at = [scale(float(partition.standard_centres[j, feature])) for j in partition.used]
    widths = [text_width(name, bold=True) + 12 for name in names]
    y = 48.0 if narrow else 28.0
    for j, name, x, x_name in zip(partition.used, names, at, spread(at, widths, 0, canvas.width - 76), strict=True):
        canvas.text(float(x_name), y, name, f"text-{j + 1} strong", anchor="middle")
        if not narrow:
            canvas.line(float(x_name), y + 6, x, first_y - 9, f"leader stroke-{j + 1}")
