"""Profiles: the centre of each part on each feature, as marks on lines, or as a heat map under a tree of the parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from majorant.report import numbers
from majorant.report.charts.labels import Shelf, shorten, spread, text_width
from majorant.report.charts.marks import N_COLOURS, mark
from majorant.report.charts.scales import Linear, padded, signed_labels
from majorant.report.charts.svg import Canvas, Point, Size, coordinate, figure
from majorant.report.columns import shares_column
from majorant.report.measures.partition import Partition
from majorant.report.section import Section
from majorant.report.table import Column, Table
from majorant.report.words.grammar import capital, counted, in_prose, opening, verb

MOST_FEATURES, MOST_FEATURES_IN_MAP = 20, 30
MOST_PARTS, MOST_PARTS_IN_TABLE, MOST_PARTS_ON_PAGE, MOST_WITH_SPREADS = 30, 10, 6, 4
MOST_FEATURES_IN_COPIES = 100
STEPS, STEP = 5, 0.4
"""Shades on either side of the mean, and standard deviations a shade."""
WEAKLY_EXPLAINED = 0.1
AXIS_TITLE = "standard deviations from the mean of all rows"


def profiles_section(partition: Partition) -> Section | None:
    """Build the section; None with fewer than two parts, with one feature or with none that varies."""
    if len(partition.used) < 2 or partition.n_features < 2 or not partition.ranked_features:
        return None
    one_plot = partition.k <= N_COLOURS
    features = partition.ranked_features[: MOST_FEATURES if one_plot else MOST_FEATURES_IN_MAP]
    shown = largest_parts(partition, MOST_PARTS)
    label = (
        f"Centre of each {partition.part} on {len(features)} features, in standard deviations from the mean, "
        f"features ordered by how much of their variance the {partition.parts} explain"
    )

    def draw(size: Size) -> Canvas:
        if one_plot:
            return draw_profiles(size, partition, features)
        return draw_heat_map(size, partition, features, shown)

    return Section(
        "profiles",
        "Profiles",
        headline(partition, features),
        notes(partition, len(features), len(shown)),
        figure("profiles", label, draw),
        table=profiles_table(partition, largest_parts(partition, MOST_PARTS_IN_TABLE)),
    )


def profiles_table(partition: Partition, parts: list[int]) -> Table:
    """Return mean and standard deviation of each part on each feature, in the table's own units."""
    features = partition.ranked_features[:MOST_FEATURES_IN_COPIES]
    names = [partition.feature_names[feature] for feature in features]
    means, spreads, texts = list[list[float]](), list[list[float]](), list[list[str]]()
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
        of_mean, of_spread = ([row[at] for row in texts] for at in (place, len(parts) + place))
        beside = [f'{a} <small class="quiet">{b}</small>' for a, b in zip(of_mean, of_spread, strict=True)]
        markup = beside if len(parts) <= MOST_WITH_SPREADS else []
        css = "number" if place < N_COLOURS else "number wide-only"
        columns.append(Column(head, [row[place] for row in means], texts=of_mean, markup=markup, css=css))
        own = [row[place] for row in spreads]
        columns.append(Column(f"{head} (SD)", own, texts=of_spread, css="number", where="copies"))
    columns.append(shares_column("Explained", partition.explained[features]))
    return Table("profiles", columns, is_on_page=len(parts) <= MOST_PARTS_ON_PAGE)


def shown_of(partition: Partition, n_shown: int) -> str:
    """Return a sentence, after a space, on how many parts are shown; "" if all are."""
    n = len(partition.used)
    return f" The {in_prose(n_shown)} largest of {in_prose(n)} {partition.parts} are shown." if n_shown < n else ""


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
    scale = Linear(*around(partition.standard_centres[np.ix_(partition.used, features)]), x1, x2)
    vertical_grid(canvas, scale, top - (12 if narrow else 0), bottom, 5)
    canvas.text(x2, bottom + 40, AXIS_TITLE, anchor="end")
    canvas.text(size.width, 28, "explained", "quiet", anchor="end")
    centres = partition.standard_centres
    for i, feature in enumerate(features):
        y = top + step * (i + 0.5) + (8 if narrow else 0)
        name, share = partition.feature_names[feature], float(partition.explained[feature])
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


def around(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the range of a scale of standard deviations, which holds the mean."""
    return padded(float(min(values.min(), -0.5)), float(max(values.max(), 0.5)), 0.06)


def draw_rows(
    canvas: Canvas,
    names: Sequence[str],
    titles: Sequence[str],
    ends: tuple[float, float],
    inside: Callable[[int, int, float, Linear], None],
    grid: Callable[[Linear, float, float], None],
    *,
    room: float,
    step: float,
    across: int,
    top: float = 0.0,
) -> float:
    """Draw panels of rows with their names at the left, and the title of each panel; return where they end.

    `inside` draws a row of a panel at its height, `grid` the lines and numbers of a panel between two heights.
    """
    gap, head, foot, height = 14.0, 26.0, 30.0, step * len(names) + 4
    width = (canvas.width - room - gap * across) / across
    for i, title in enumerate(titles):
        row, column = divmod(i, across)
        x1, y1 = room + column * (width + gap), top + head + row * (height + head + foot)
        scale = Linear(*ends, x1 + 8, x1 + width - 8)
        canvas.text(x1, y1 - 8, shorten(title, width - 4, bold=True), "strong", full=title)
        grid(scale, y1, y1 + height)
        for r, name in enumerate(names):
            y = y1 + 2 + step * (r + 0.5)
            if column == 0:
                canvas.text(0, y + 4, shorten(name, room - 10), "clear", full=name)
            inside(i, r, y, scale)
    return top + -(-len(titles) // across) * (height + head + foot)


def vertical_grid(canvas: Canvas, scale: Linear, y1: float, y2: float, count: int) -> None:
    """Draw lines at round numbers of standard deviations, with their names below."""
    ticks = scale.ticks(count)
    shelf = Shelf(6)
    ordered = sorted(zip(ticks, signed_labels(ticks, "mean"), strict=True), key=lambda pair: abs(pair[0]))
    for tick, text in ordered:
        x, half = scale(tick), text_width(text) / 2
        canvas.line(x, y1, x, y2, "axis" if tick == 0 else "grid")
        if shelf.take(x - half, x + half):
            canvas.text(x, y2 + 18, text, "quiet", anchor="middle")


def merge_tree(centres: NDArray[np.float64], sizes: NDArray[np.int64]) -> list[tuple[int, int, float]]:
    """Merge the two parts whose merging raises the sum of squares least, until one is left (Ward's criterion).

    Returns
    -------
    list of (int, int, float)
        The two that are merged, and the square root of the rise per row; the part of merge i has the number k + i.
    """
    points = {j: (centre, float(size)) for j, (centre, size) in enumerate(zip(centres, sizes, strict=True))}
    merges: list[tuple[int, int, float]] = []

    def rise(a: int, b: int) -> float:
        (x, n), (y, m) = points[a], points[b]
        return float(n * m / (n + m) * ((x - y) ** 2).sum())

    while len(points) > 1:
        a, b = min(combinations(points, 2), key=lambda pair: rise(*pair))
        merges.append((a, b, float(np.sqrt(rise(a, b) / sizes.sum()))))
        (x, n), (y, m) = points.pop(a), points.pop(b)
        points[len(centres) + len(merges) - 1] = ((n * x + m * y) / (n + m), n + m)
    return merges


def leaves_of(merges: list[tuple[int, int, float]], node: int, k: int) -> list[int]:
    """Return the parts below a node of a tree, from left to right."""
    if node < k:
        return [node]
    a, b, _ = merges[node - k]
    return leaves_of(merges, a, k) + leaves_of(merges, b, k)


def draw_heat_map(size: Size, partition: Partition, features: list[int], shown: list[int]) -> Canvas:
    """Draw one row per feature and one column per part, both in the order of a tree; that of the parts is drawn."""
    canvas, narrow = Canvas(size), size.narrow
    merges = merge_tree(np.nan_to_num(partition.standard_centres[shown]), partition.sizes[shown])
    order = leaves_of(merges, 2 * len(shown) - 2, len(shown))
    centres = partition.standard_centres[np.ix_([shown[j] for j in order], features)]
    alike = merge_tree(centres.T, np.ones(len(features), dtype=np.int64))
    rows = leaves_of(alike, 2 * len(features) - 2, len(features))
    room, tree, step = (112.0, 50.0, 17.0) if narrow else (190.0, 70.0, 20.0)
    top, width = tree + 24, (size.width - room) / len(order)
    cells: dict[str, list[Point]] = {}
    _tree(canvas, merges, order, room, width, tree)
    shelf = Shelf(3)
    for i, j in enumerate(order):
        x, name = room + width * (i + 0.5), str(shown[j] + 1)
        half = text_width(name, bold=True) / 2
        if shelf.take(x - half, min(x + half, size.width)):
            canvas.text(min(x, size.width - half), tree + 17, name, "strong", anchor="middle")
    for r, at in enumerate(rows):
        y, name = top + step * r, partition.feature_names[features[at]]
        canvas.text(0, y + step / 2 + 4, shorten(name, room - 12), "clear", full=name)
        for i, value in enumerate(centres[:, at].tolist()):
            cells.setdefault(shade(value), []).append((room + width * i, y))
    for css, corners in sorted(cells.items()):
        _cells(canvas, corners, width, step, css)
    bottom = top + step * len(rows)
    _legend(canvas, room, bottom + 12)
    canvas.height = bottom + 48
    return canvas


def _cells(canvas: Canvas, corners: list[Point], width: float, height: float, css: str) -> None:
    """Draw cells of one shade as strokes, which take least room on the page."""
    c, rim = coordinate, 0.6
    data = "".join(f"M{c(x)} {c(y + height / 2)}h{c(width - rim)}" for x, y in corners)
    canvas.path(data, f"heat {css}", f'style="stroke-width:{c(height - rim)}"')


def shade(value: float) -> str:
    """Return the class of a cell: steps above or below the mean, by standard deviations."""
    steps = min(round(abs(value) / STEP), STEPS)
    return "level" if not steps else f"{'high' if value > 0 else 'low'}-{steps}"


def _tree(
    canvas: Canvas, merges: list[tuple[int, int, float]], order: list[int], x0: float, width: float, base: float
) -> None:
    """Draw the tree of the parts above their columns, the last merge highest."""
    scale = Linear(0.0, merges[-1][2] or 1.0, base, 4.0)
    places = {j: (x0 + width * (i + 0.5), base) for i, j in enumerate(order)}
    for i, (a, b, height) in enumerate(merges):
        (x1, y1), (x2, y2), y = places[a], places[b], scale(height)
        canvas.polyline([(x1, y1), (x1, y), (x2, y), (x2, y2)], "stroke-ink3 curve")
        places[len(order) + i] = ((x1 + x2) / 2, y)


def _legend(canvas: Canvas, x: float, y: float) -> None:
    """Draw the shades, with the standard deviations at both ends."""
    end, step = numbers.fixed(STEPS * STEP), 14.0
    for i, at in enumerate(range(-STEPS, STEPS + 1)):
        _cells(canvas, [(x + step * i, y)], step, 8, shade(at * STEP))
    for place, text in ((0.5, f"{numbers.MINUS}{end}"), (STEPS + 0.5, "mean"), (2 * STEPS + 0.5, f"+{end}")):
        canvas.text(x + step * place, y + 24, text, "quiet", anchor="middle")
    title = "SD" if canvas.size.narrow else AXIS_TITLE
    canvas.text(
        x + step * (2 * STEPS + 1) + 10, y + 8, shorten(title, canvas.width - x - step * 11 - 10), full=AXIS_TITLE
    )


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


def headline(partition: Partition, features: list[int]) -> str:
    """State which of `features`, best explained first, separate the parts, in one sentence."""
    best = features[0]
    share = partition.explained[best]
    if share < WEAKLY_EXPLAINED:
        return (
            f"No feature tells the {partition.parts} apart well: of {partition.feature(best)}, "
            f"the best, they explain {numbers.percent(float(share), 0)}."
        )
    if len(partition.used) == 2:
        high, low = sorted(partition.used, key=lambda j: -float(partition.standard_centres[j, best]))
        name = partition.feature(best)
        part = partition.part
        return f"The {partition.parts} differ most in {name}: high in {part} {high + 1}, low in {part} {low + 1}."
    traits = sorted((t for j in partition.used if (t := _trait(partition, j, features)) is not None), reverse=True)
    if not traits:
        return f"The {partition.parts} differ most in {partition.feature(best)}."
    if len(partition.used) > 3:
        _, j, side, feature = traits[0]
        by = f"by {side} {partition.feature(feature)}"
        return f"{capital(partition.part)} {j + 1} stands apart most clearly, {by}."
    clauses = [
        f"{partition.part} {j + 1} {'is set apart ' if i == 0 else ''}by {side} {partition.feature(f)}"
        for i, (_, j, side, f) in enumerate(traits)
    ]
    return f"{capital(', '.join(clauses))}."


def _trait(partition: Partition, part: int, features: list[int]) -> tuple[float, int, str, int] | None:
    """Find where a part is most extreme: (distance from the next centre, part, "high" or "low", feature)."""
    centres = partition.standard_centres
    others = [j for j in partition.used if j != part]
    found: list[tuple[float, int, str, int]] = []
    for feature in features:
        own, rest = centres[part, feature], centres[others, feature]
        found.append((float(own - rest.max()), part, "high", feature))
        found.append((float(rest.min() - own), part, "low", feature))
    best = max(found, key=lambda trait: trait[0])
    return best if best[0] > 0 else None


def notes(partition: Partition, n_shown: int, parts_shown: int) -> list[str]:
    """Explain the profiles, and what they leave out."""
    n_varying = len(partition.ranked_features)
    reading = f"<b>Each mark is a {partition.part}\u2019s centre.</b>"
    if partition.k > N_COLOURS:
        reading = (
            f"<b>A column is a {partition.part}</b>, blue where its centre is above the mean, orange where "
            f"below. The tree joins, from the bottom, the {partition.parts} whose merging loses least (Ward\u2019s "
            f"criterion).{shown_of(partition, parts_shown)} Features of like profiles stand "
            "together."
        )
    elif n_varying > 1:
        reading += (
            f" Features run from the one that the {partition.parts} explain best to the one that they explain least."
        )
    in_table = len(partition.used) <= MOST_PARTS_ON_PAGE
    texts = [reading, _above_half(partition)] if in_table else [reading]
    left_out = n_varying - n_shown
    if left_out:
        others = f"{counted(left_out, 'other')} {verb(left_out, 'is', 'are')} left out"
        texts.append(f"The {n_shown} best explained features are shown; {others}.")
    constant = partition.n_features - n_varying - len(partition.directions)
    if constant:
        columns = f"{opening(constant)} constant {verb(constant, 'column', 'columns')}"
        texts.append(f"{columns} cannot tell {partition.parts} apart and {verb(constant, 'is', 'are')} left out.")
    if turning := len(partition.directions):
        columns = f"{opening(turning)} {verb(turning, 'column', 'columns')} of directions"
        texts.append(
            f"{columns}, which {verb(turning, 'lies', 'lie')} on a circle, {verb(turning, 'is', 'are')} left out."
        )
    if len(partition.used) <= MOST_WITH_SPREADS:
        told = "The table</b> has means and, smaller, standard deviations in the units of the rows."
    elif in_table:
        told = "The table</b> has means in the units of the rows, its copies standard deviations too."
    else:
        told = "The copies</b> below the figure hold means and standard deviations in the units of the rows."
    texts.append(f"<b>{told}")
    return texts


def _above_half(partition: Partition) -> str:
    ranked = partition.ranked_features
    explained = f"<b>Explained</b> is the share of a feature\u2019s variance between {partition.parts}."
    n = sum(bool(partition.explained[j] > 0.5) for j in ranked)
    if len(ranked) == 1:
        return explained
    if n == len(ranked):
        return f"{explained} All features stand above one half."
    if n == 0:
        return f"{explained} No feature stands above one half."
    return f"{explained} {opening(n)} {verb(n, 'feature stands', 'features stand')} above one half."
