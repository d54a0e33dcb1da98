"""Classes of respondents: their sizes, what each answers, and what they depend on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._numbers import html_number, ratio
from majorant.report import numbers
from majorant.report.charts.labels import text_width
from majorant.report.charts.marks import N_COLOURS, mark
from majorant.report.charts.scales import Linear, padded, tick_labels
from majorant.report.charts.svg import Canvas, Size, coordinate, figure
from majorant.report.columns import INTERVAL, interval_columns, number_column, once, part_column, shares_column
from majorant.report.fit import largest
from majorant.report.html import column_name, escaped
from majorant.report.measures.latent_class_analysis import LatentClasses
from majorant.report.section import Section
from majorant.report.sections.profiles import AXIS_TITLE, draw_rows
from majorant.report.table import Column, Table
from majorant.report.words.grammar import listed, verb

Array = NDArray[np.float64]
MOST_ROWS, MOST_IN_TABLE = 24, 8
MOST_PANELS = 8
METHODS = {
    "ml": "three steps, maximum likelihood",
    "bch": "three steps, BCH",
    "two-step": "two steps",
    "naive": "three steps that take assignments for true, which is biased",
}


def class_sizes_section(classes: LatentClasses) -> Section:
    """Build the section: share, interval, rows and certainty of each class."""
    k, shares, found = classes.k, classes.weights, classes.share_intervals
    own = [classes.certainty[classes.labels == j].mean() if classes.sizes[j] else None for j in range(k)]
    columns = [part_column("Class", range(k), k), shares_column("Share", shares)]
    if found is not None:
        ends = [
            numbers.DASH if np.isnan(low) else f"{numbers.fixed(100 * low, 1)} to {numbers.fixed(100 * high, 1)}"
            for low, high in zip(*found, strict=True)
        ]
        columns.append(Column(f"{INTERVAL}, %", ends, css="number", where="page"))
        columns += [
            shares_column(head, end, where="copies") for head, end in zip(("95 % low", "95 % high"), found, strict=True)
        ]
    columns.append(Column("Rows", classes.sizes, css="number"))
    notes = [
        "<b>Share</b> is the estimated share of the population. <b>Rows</b> counts those whose most probable class it "
        "is, and <b>certainty</b> is their mean probability of it."
    ]
    if classes.known_rows is not None:
        columns.append(Column("Known", classes.known_rows, css="number"))
        notes.append("<b>Known</b> counts the rows whose class was known before, which belong to it for certain.")
    columns.append(number_column("Certainty", own, 3))
    if classes.n_missing:
        notes.append(
            f"<b>Missing cells:</b> {classes.missing_cells}. They are left out of their row only; none is filled in."
        )
    largest, smallest = (numbers.percent(float(share), 0) for share in (shares.max(), shares.min()))
    headline = f"The largest class has {largest} of the rows, the smallest {smallest}."
    if k == 1:
        headline = "One class holds all rows."
    return Section("class-sizes", "Classes", headline, notes, table=Table("class-sizes", columns))


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
            f"Class {j + 1}", shares[j], *ends, lambda v, _: numbers.percent_in_column(v), shown="wide-only"
        )
    apart = int(np.ptp(shares, axis=1).argmax())
    most, least = (
        f"{numbers.percent(float(shares[apart, g]), 0)} of {escaped(populations.levels[g])}"
        for g in (shares[apart].argmax(), shares[apart].argmin())
    )
    names, free = populations.items.names, populations.free
    if not free:
        which = "all items: their answers have the same probabilities in all populations, class by class"
    elif populations.all_free:
        which = "none: each population has probabilities of its own"
    else:
        which = f"all items but {listed([column_name(names[j]) for j in free])}"
    note = (
        f"<b>Populations</b> are those of {column_name(populations.name)}. <b>Measured alike:</b> {which}. "
        "<code>--invariance-tests</code>, or the method <code>invariance_tests</code>, compares these restrictions."
    )
    headline = f"Class {apart + 1} differs most between populations: {most}, {least}."
    return Section("populations", "Populations", headline, [note], table=Table("population-shares", columns, keys=1))


def class_profile_section(classes: LatentClasses) -> Section:
    """Build the section: probabilities of answers and means of numbers in each class, with intervals."""
    profile = classes.profile
    drawn = profile.distinct_rows
    order = np.argsort(-_spread(profile)[drawn], kind="stable")[:MOST_ROWS]
    shown = sorted(drawn[i] for i in order.tolist())
    label = "Answers of each class: probabilities of levels, and means of numbers, with 95 % intervals"
    notes = [
        "<b>Each mark</b> is the probability of an answer in a class, its line a 95\u202f% interval. A probability of "
        "0 or 1 has no interval. Of an item with two answers one is drawn and listed."
    ]
    if not profile.is_probability.all():
        notes.append("<b>Numbers</b> are drawn as means, in standard deviations from the mean of all rows.")
    if len(shown) < len(drawn):
        notes.append(
            f"The {len(shown)} rows that differ most between classes are drawn; all {len(drawn)} are in the copies of "
            "the table."
        )
    return Section(
        "class-profile",
        "Profile",
        _profile_headline(classes, profile),
        notes,
        figure("class-profile", label, lambda size: draw_profile(size, profile, shown)),
        table=_table(classes, profile, drawn),
    )


def _profile_headline(classes: LatentClasses, profile: Any) -> str:
    """Name the answer, or the mean where there are none, that sets two classes most apart."""
    nominal = profile.is_probability
    if classes.k == 1:
        return "What all rows answer." if nominal.any() else "Means of all rows."
    values = profile.estimates if nominal.any() else profile.standardised[0]
    top = int(np.where(nominal | ~nominal.any(), np.ptp(values, axis=1), -1.0).argmax())
    item, high, low = column_name(profile.items[top]), int(values[top].argmax()), int(values[top].argmin())
    if nominal.any():
        return (
            f"\u201c{escaped(profile.levels[top])}\u201d to {item}: {numbers.percent(float(values[top, high]), 0)} in "
            f"class {high + 1}, {numbers.percent(float(values[top, low]), 0)} in class {low + 1}."
        )
    return f"The classes differ most in {item}: class {high + 1} has the largest mean, class {low + 1} the smallest."


def _spread(profile: Any) -> Array:
    """Return how far classes lie apart in each row, numbers by a third of a standard deviation."""
    apart = np.ptp(profile.standardised[0], axis=1)
    return np.asarray(np.where(profile.is_probability, apart, apart / 3))


def draw_profile(size: Size, profile: Any, shown: list[int]) -> Canvas:
    """Draw probabilities above and means below; classes side by side where there are too many for one plot."""
    canvas, nominal, k = Canvas(size), profile.is_probability, len(profile.shares)
    y = _legend(canvas, profile.shares) if 1 < k <= N_COLOURS else 0.0
    for is_share, title in ((True, "probability"), (False, AXIS_TITLE)):
        if rows := [i for i in shown if nominal[i] == is_share]:
            y = _draw_block(canvas, profile, rows, is_share, y)
            canvas.text(size.width, y + 6, title, anchor="end")
            y += 20
    canvas.height = y
    return canvas


def _legend(canvas: Canvas, shares: Array) -> float:
    """Draw the mark of each class before its number and share; return where the legend ends."""
    x, y = 6.0, 16.0
    for j, share in enumerate(shares.tolist()):
        name = f"class {j + 1} ({numbers.percent(share, 0)})"
        if x + 12 + text_width(name) > canvas.width:
            x, y = 6.0, y + 20
        mark(canvas, j, str(j + 1), x, y - 4, 4.2)
        canvas.text(x + 12, y, name, f"text-{j + 1}")
        x += 30 + text_width(name)
    return y + 10


def _draw_block(canvas: Canvas, profile: Any, rows: list[int], is_share: bool, top: float) -> float:
    """Draw rows of one axis: marks on their intervals, in panels beside those of other classes in grey."""
    estimates, low, high = (part[rows] for part in profile.standardised)
    k = estimates.shape[1]
    in_one = k <= N_COLOURS
    panels = [0] if in_one else largest(profile.shares, MOST_PANELS)
    every = np.concatenate([estimates, low, high])
    ends = (0.0, 1.0) if is_share else padded(float(np.nanmin(every)), float(np.nanmax(every)), 0.06)

    def grid(scale: Linear, y1: float, y2: float) -> None:
        ticks = [0.0, 0.5, 1.0] if is_share else scale.ticks(5 if in_one else 3)
        for tick, text in zip(ticks, tick_labels(ticks), strict=True):
            canvas.line(scale(tick), y1, scale(tick), y2, "grid")
            canvas.text(scale(tick), y2 + 16, text, "quiet", anchor="middle")

    def inside(i: int, row: int, y: float, scale: Linear) -> None:
        if not in_one:
            for value in estimates[row].tolist():
                mark(canvas, 0, "hair", scale(value), y, 2.6)
        for j in range(k) if in_one else [panels[i]]:
            colour, shape = (str(j + 1), j) if in_one else ("1", 0)
            at = y + (4.5 * (j - (k - 1) / 2) if in_one else 0.0)
            if np.isfinite(high[row, j] - low[row, j]):
                x1, x2 = coordinate(scale(float(low[row, j]))), coordinate(scale(float(high[row, j])))
                canvas.path(f"M{x1} {coordinate(at)}L{x2} {coordinate(at)}", f"stroke-{colour} interval")
            mark(canvas, shape, colour, scale(float(estimates[row, j])), at, 4.2)

    return draw_rows(
        canvas,
        [f"{profile.items[row]}: {profile.levels[row]}" if is_share else profile.items[row] for row in rows],
        [""] if in_one else [f"Class {panel + 1}" for panel in panels],
        ends,
        inside,
        grid,
        room=96.0 if canvas.size.narrow else 190.0,
        step=22.0 if in_one else 17.0,
        across=1 if in_one else (2 if canvas.size.narrow else min(4, len(panels))),
        top=top,
    )


def _table(classes: LatentClasses, profile: Any, distinct: list[int]) -> Table:
    """Return every row of the profile, with intervals in the copies; the page leaves those out that others tell."""
    columns = [Column("Item", profile.items, printed=once(profile.items)), Column("Level", profile.levels)]
    told = set(range(len(profile.items))).difference(distinct)
    decimals = [3 if is_share else 2 for is_share in profile.is_probability]
    for j in range(classes.k):
        values, low, high = profile.estimates[:, j], profile.low[:, j], profile.high[:, j]
        columns += interval_columns(f"Class {j + 1}", values, low, high, lambda v, i: numbers.fixed(v, decimals[i]))
    is_short = len(distinct) <= 2 * MOST_ROWS and classes.k <= MOST_IN_TABLE
    return Table("class-profile", columns, is_on_page=is_short, only_in_copies=told, keys=2)


def effects_section(classes: LatentClasses) -> Section | None:
    """Build the section: odds ratios of the covariates; None without covariates."""
    effects = classes.effects
    if effects is None:
        return None
    frame = effects.to_frame()
    told = {head: list(frame[head]) for head in frame.columns}

    def odds(name: str) -> list[str]:
        """Write odds ratios; an intercept has odds where covariates are zero, which may be far from any row."""
        return [
            numbers.DASH if of == "Intercept" or np.isnan(value) else html_number(ratio(value))
            for value, of in zip(told[name], told["name"], strict=True)
        ]

    low, high = odds("low"), odds("high")
    known = [np.array([value for value in told[name] if np.isfinite(value)]) for name in ("coef", "standard_error")]
    write = numbers.writer(*known) if all(map(len, known)) else numbers.distance
    intervals = [a if a == numbers.DASH else f"{a} to {b}" for a, b in zip(low, high, strict=True)]
    columns = [
        Column(
            "Covariate",
            [
                f"{name} (against {ref})" if ref else name
                for name, ref in zip(told["name"], told["against"], strict=True)
            ],
        ),
        Column("Class", told["class"], css="number"),
        number_column("Coefficient", told["coef"], write),
        number_column("Standard error", told["standard_error"], write),
        Column("Odds ratio", told["odds_ratio"], texts=odds("odds_ratio"), css="number"),
        Column(INTERVAL, intervals, css="number", where="page"),
        Column("95 % low", told["low"], texts=low, css="number", where="copies"),
        Column("95 % high", told["high"], texts=high, css="number", where="copies"),
        number_column("p", told["p_value"], numbers.p_value),
    ]
    return Section(
        "effects", "Covariates", _effects_headline(effects), _effects_notes(effects), table=Table("effects", columns)
    )


def _effects_headline(effects: Any) -> str:
    """Name the covariates whose interval of the odds ratio leaves out 1."""
    known = np.isfinite(effects.standard_errors[1:]) & (effects.standard_errors[1:] > 0)
    z = np.divide(effects.coef[1:], effects.standard_errors[1:], out=np.zeros_like(effects.coef[1:]), where=known)
    telling = [column_name(n) for j, n in enumerate(effects.names) if j and (np.abs(z[:, j]) > 1.96).any()]
    if not telling:
        return "No covariate changes the odds of a class beyond chance."
    return f"{listed(telling)} {verb(len(telling), 'changes', 'change')} the odds of the classes."


def _effects_notes(effects: Any) -> list[str]:
    how, is_later = "Effects and classes are estimated together, in one step.", effects.method != "one-step"
    if is_later:
        how = (
            f"The classes were found first, and the effects after them ({METHODS[effects.method]}); errors account for "
            "the classes having been estimated."
        )
    texts = [
        "<b>An odds ratio</b> tells by how much the odds of a class against class 1 are multiplied for one unit more "
        "of a covariate, or for a level of text against the level in brackets; 1 is no change. " + how
    ]
    return (
        [*texts, f"<b>Note:</b> {escaped(effects.left_out)}: left out here."]
        if effects.left_out and is_later
        else texts
    )
