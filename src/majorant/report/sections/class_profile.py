"""Classes of respondents: their sizes, what each answers, and what they depend on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.report import numbers
from majorant.report.charts.labels import shorten
from majorant.report.charts.marks import N_COLOURS, legend_mark, mark
from majorant.report.charts.scales import Linear, padded, tick_labels
from majorant.report.charts.svg import Canvas, Size, coordinate, figure
from majorant.report.measures.latent_class_analysis import LatentClasses
from majorant.report.section import Section
from majorant.report.sections.by_class import interval_columns, known, once
from majorant.report.table import Column, Table
from majorant.report.words import latent_class_analysis as words

Array = NDArray[np.float64]
MOST_ROWS, MOST_IN_TABLE = 24, 8
MOST_PANELS = 8


def class_sizes_section(classes: LatentClasses) -> Section:
    """Build the section: share, interval, rows and certainty of each class."""
    k, shares = classes.k, classes.weights.tolist()
    found = classes.share_intervals
    low, high = (np.full(k, np.nan),) * 2 if found is None else found
    ends = [_percents(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    own = [float(classes.certainty[classes.labels == j].mean()) if classes.sizes[j] else np.nan for j in range(k)]
    marks = [legend_mark(j) if k <= N_COLOURS else "" for j in range(k)]
    known_rows = classes.known_rows
    columns = [
        Column("Class", list(range(1, k + 1)), markup=[f"{m}{j + 1}" for j, m in enumerate(marks)]),
        Column("Share", shares, list(map(numbers.percent_in_column, shares)), css="number"),
        *(
            []
            if found is None
            else [Column("95\u202f% interval, %", ends, css="number", where="page"), *_ends(low, high)]
        ),
        Column("Rows", classes.sizes.tolist(), css="number"),
        *([] if known_rows is None else [Column("Known", known_rows, css="number")]),
        Column("Certainty", known(own), [numbers.fixed(value, 3) for value in own], css="number"),
    ]
    table = Table("class-sizes", columns)
    head, notes = words.sizes_headline(classes), words.sizes_notes(classes)
    return Section("class-sizes", "Classes", head, notes, table=table)


def populations_section(classes: LatentClasses) -> Section | None:
    """Build the section: shares of the classes in each population, with intervals; None without populations."""
    found = classes.population_shares
    if found is None:
        return None
    shares, low, high = found
    populations = classes.run.estimator.populations_
    columns = [Column("Population", list(map(str, populations.levels)))]
    for j in range(classes.k):
        ends = low[j], high[j]
        columns += interval_columns(
            f"Class {j + 1}", shares[j], *ends, lambda v, _: numbers.percent(v), shown="wide-only"
        )
    head, notes = words.populations_headline(populations, shares), words.populations_notes(populations)
    table = Table("population-shares", columns, keys=1)
    return Section("populations", "Populations", head, notes, table=table)


def _percents(low: float, high: float) -> str:
    """Write an interval of a share in per cents."""
    if np.isnan(low):
        return numbers.DASH
    return f"{numbers.fixed(100 * low, 1)} to {numbers.fixed(100 * high, 1)}"


def _ends(low: Array, high: Array) -> list[Column]:
    return [
        Column(head, known(ends), [numbers.fixed(end, 4) for end in ends], css="number", where="copies")
        for head, ends in (("95 % low", low), ("95 % high", high))
    ]


def class_profile_section(classes: LatentClasses) -> Section:
    """Build the section: probabilities of answers and means of numbers in each class, with intervals."""
    profile = classes.profile
    drawn = profile.distinct_rows
    apart = np.ptp(profile.estimates, axis=1)
    nominal = profile.is_probability
    head: str
    if nominal.any():
        top = int(np.where(nominal, apart, -1.0).argmax())
        values = profile.estimates[top]
        ends = int(values.argmax()), int(values.argmin())
        head = words.profile_headline(classes, profile.items[top], profile.levels[top], *ends, values)
    else:
        standard = profile.standardised[0]
        top = int(np.ptp(standard, axis=1).argmax())
        head = words.means_headline(
            classes, profile.items[top], int(standard[top].argmax()), int(standard[top].argmin())
        )
    order = np.argsort(-_spread(profile)[drawn], kind="stable")[:MOST_ROWS]
    shown = sorted(drawn[i] for i in order.tolist())
    label = "Answers of each class: probabilities of levels, and means of numbers, with 95 % intervals"
    return Section(
        "class-profile",
        "Profile",
        head,
        words.profile_notes(len(shown), len(drawn), not nominal.all()),
        figure("class-profile", label, lambda size: draw_profile(size, profile, shown)),
        table=_table(classes, profile),
    )


def _spread(profile: Any) -> Array:
    """Return how far classes lie apart in each row, numbers by a third of a standard deviation."""
    apart = np.ptp(profile.standardised[0], axis=1)
    return np.asarray(np.where(profile.is_probability, apart, apart / 3))


def draw_profile(size: Size, profile: Any, shown: list[int]) -> Canvas:
    """Draw probabilities above and means below; classes side by side where there are too many for one plot."""
    canvas = Canvas(size)
    values = profile.standardised
    nominal = profile.is_probability
    y = 8.0
    for rows, title in (
        ([i for i in shown if nominal[i]], "probability"),
        ([i for i in shown if not nominal[i]], "standard deviations from the mean of all rows"),
    ):
        if rows:
            y = _draw_block(canvas, size, profile, values, rows, title, y)
    canvas.height = y
    return canvas


def _draw_block(
    canvas: Canvas,
    size: Size,
    profile: Any,
    values: tuple[Array, Array, Array],
    rows: list[int],
    title: str,
    top: float,
) -> float:
    """Draw rows of one axis; return where the next block begins."""
    estimates, low, high = values
    k = estimates.shape[1]
    in_one = k <= N_COLOURS
    shown = [0] if in_one else np.sort(np.argsort(-profile.shares, kind="stable")[:MOST_PANELS]).tolist()
    across = 1 if in_one else (2 if size.narrow else min(4, len(shown)))
    room, gap, step, head = (96.0 if size.narrow else 190.0), 14.0, 22.0 if in_one else 17.0, 24.0
    width = (size.width - room - gap * across) / across
    height = step * len(rows)
    every = np.concatenate([part[rows].ravel() for part in values])
    is_share = title == "probability"
    ends = (0.0, 1.0) if is_share else padded(float(np.nanmin(every)), float(np.nanmax(every)), 0.06)
    n_down = -(-len(shown) // across)
    for place, panel in enumerate(shown):
        down, over = divmod(place, across)
        x1, y1 = room + over * (width + gap), top + head + down * (height + head + 26.0)
        scale = Linear(*ends, x1 + 4, x1 + width - 4)
        ticks = [0.0, 0.5, 1.0] if is_share else scale.ticks(3 if not in_one else 5)
        for tick, text in zip(ticks, tick_labels(ticks), strict=True):
            canvas.line(scale(tick), y1, scale(tick), y1 + height, "grid")
            canvas.text(scale(tick), y1 + height + 16, text, "quiet", anchor="middle")
        if not in_one:
            canvas.text(x1, y1 - 7, f"Class {panel + 1}", "strong")
        for i, row in enumerate(rows):
            y = y1 + step * (i + 0.5)
            if over == 0:
                name = profile.items[row] if not is_share else f"{profile.items[row]}: {profile.levels[row]}"
                canvas.text(0, y + 4, shorten(name, room - 14), "clear", full=name)
            _draw_row(canvas, scale, y, estimates[row], low[row], high[row], range(k) if in_one else [panel], in_one)
    bottom = top + n_down * (head + height + 26.0)
    canvas.text(size.width, bottom + 12, title, anchor="end")
    return bottom + 26


def _draw_row(
    canvas: Canvas, scale: Linear, y: float, values: Array, low: Array, high: Array, shown: Any, in_one: bool
) -> None:
    """Draw the marks of some classes on their intervals, beside those of the others in grey."""
    c = coordinate
    if not in_one:
        for value in values.tolist():
            mark(canvas, 0, "hair", scale(value), y, 2.6)
    for j in shown:
        colour = str(j + 1) if in_one else "1"
        at = y + (4.5 * (j - (len(shown) - 1) / 2) if in_one else 0.0)
        if np.isfinite(high[j] - low[j]):
            x1, x2 = scale(float(low[j])), scale(float(high[j]))
            canvas.add(f'<path class="stroke-{colour} interval" d="M{c(x1)} {c(at)}L{c(x2)} {c(at)}"/>')
        mark(canvas, j if in_one else 0, colour, scale(float(values[j])), at, 4.2)


def _table(classes: LatentClasses, profile: Any) -> Table:
    """Return every row of the profile: on the page the estimates of each class, in the copies intervals too."""
    columns = [Column("Item", profile.items, printed=once(profile.items)), Column("Level", profile.levels)]
    decimals = [3 if is_share else 2 for is_share in profile.is_probability]
    for j in range(classes.k):
        values, low, high = profile.estimates[:, j], profile.low[:, j], profile.high[:, j]
        columns += interval_columns(f"Class {j + 1}", values, low, high, lambda v, i: numbers.fixed(v, decimals[i]))
    is_short = len(profile.items) <= 2 * MOST_ROWS
    return Table("class-profile", columns, is_on_page=is_short and classes.k <= MOST_IN_TABLE, keys=2)


def effects_section(classes: LatentClasses) -> Section | None:
    """Build the section: odds ratios of the covariates; None without covariates."""
    effects = classes.effects
    if effects is None:
        return None
    frame = effects.to_frame()
    told = {head: list(frame[head]) for head in frame.columns}
    names = [
        f"{name} (against {ref})" if ref else name for name, ref in zip(told["name"], told["against"], strict=True)
    ]

    def odds(value: float, name: str) -> str:
        """Write an odds ratio; an intercept has odds where covariates are zero, which may be far from any row."""
        if name == "Intercept" or np.isnan(value):
            return numbers.DASH
        return numbers.fixed(value, 3) if 1e-3 <= value < 1e4 else numbers.scientific(value)

    intervals = [
        numbers.DASH if odds(a, name) == numbers.DASH else f"{odds(a, name)} to {odds(b, name)}"
        for a, b, name in zip(told["low"], told["high"], told["name"], strict=True)
    ]
    ratios = [odds(value, name) for value, name in zip(told["odds_ratio"], told["name"], strict=True)]

    def column(head: str, name: str) -> Column:
        values = [float(value) for value in told[name]]
        return Column(head, known(values), [numbers.fixed(value, 3) for value in values], css="number")

    columns = [
        Column("Covariate", names),
        Column("Class", told["class"], css="number"),
        column("Coefficient", "coef"),
        column("Standard error", "standard_error"),
        Column("Odds ratio", known(told["odds_ratio"]), ratios, css="number"),
        Column("95\u202f% interval", intervals, css="number", where="page"),
        *(
            Column(
                f"95 % {end}",
                known(told[end]),
                [odds(value, name) for value, name in zip(told[end], told["name"], strict=True)],
                css="number",
                where="copies",
            )
            for end in ("low", "high")
        ),
        Column("p", known(told["p_value"]), list(map(numbers.p_value, told["p_value"])), css="number"),
    ]
    head, notes = words.effects_headline(effects), words.effects_notes(effects)
    return Section("effects", "Covariates", head, notes, table=Table("effects", columns))
