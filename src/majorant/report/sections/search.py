"""The search: where every start ended, one dot each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from majorant.report import numbers
from majorant.report.charts.labels import Shelf, shorten, spread, text_width, wrapped
from majorant.report.charts.scales import Log, around_decades, log_tick_label
from majorant.report.charts.svg import NARROW, WIDE, Canvas, Point, Size, figure
from majorant.report.fit import Fit
from majorant.report.html import facts
from majorant.report.section import Section
from majorant.report.words import search as words
from majorant.report.words.grammar import counted
from majorant.search.record import SearchReport

PITCH = 6.4
HEIGHTS_AND_UNITS = ((5, 1), (8, 1), (8, 2), (8, 5), (8, 10), (8, 20), (8, 50), (8, 100))
FARTHEST_SHIFT = 14.0

Group = tuple[float, int]


@dataclass(frozen=True)
class Stacking:
    """How dots are stacked: at most `height` of them, each for `unit` counts (the last for the remainder)."""

    height: int
    unit: int


def choose_stacking(rows: Sequence[tuple[Sequence[Group], float, float]]) -> Stacking:
    """Return the finest stacking with which every row (its groups, and the range of its room) fits.

    A group is a position and the number of counts at it.
    """
    for height, unit in HEIGHTS_AND_UNITS:
        stacking = Stacking(height, unit)
        if all(_fits(groups, low, high, stacking) for groups, low, high in rows):
            return stacking
    largest = max((count for groups, _, _ in rows for _, count in groups), default=1)
    return Stacking(8, 10 ** math.ceil(math.log10(max(largest, 100))))


def stack(groups: Sequence[Group], base: float, low: float, high: float, stacking: Stacking) -> list[Point]:
    """Return the centres of the dots of one row above the line at `base`."""
    if not groups:
        return []
    merged = _merge(groups)
    columns = [_n_columns(count, stacking) for _, count in merged]
    centres = spread([x for x, _ in merged], [PITCH * n for n in columns], low, high)
    points: list[Point] = []
    for centre, n, (_, count) in zip(centres, columns, merged, strict=True):
        n_dots = math.ceil(count / stacking.unit)
        tall = math.ceil(n_dots / n)
        left = centre - PITCH * n / 2
        points += [(left + PITCH * (i // tall + 0.5), base - 5 - PITCH * (i % tall)) for i in range(n_dots)]
    return points


def _n_columns(count: int, stacking: Stacking) -> int:
    return math.ceil(math.ceil(count / stacking.unit) / stacking.height)


def _merge(groups: Sequence[Group]) -> list[Group]:
    """Merge groups whose dots would overlap."""
    merged: list[Group] = []
    for x, count in sorted(groups):
        if merged and x - merged[-1][0] < 0.75 * PITCH:
            before, n = merged.pop()
            merged.append(((before * n + x * count) / (n + count), n + count))
        else:
            merged.append((x, count))
    return merged


def _fits(groups: Sequence[Group], low: float, high: float, stacking: Stacking) -> bool:
    if not groups:
        return True
    merged = _merge(groups)
    widths = [PITCH * _n_columns(count, stacking) for _, count in merged]
    if sum(widths) > high - low:
        return False
    positions = np.array([x for x, _ in merged])
    shift = np.abs(spread(positions.tolist(), widths, low, high) - positions)
    return bool(len(merged) == 1 or shift.max() <= FARTHEST_SHIFT)


MOST_KINDS = 8
ROW_GAP = 24
FARTHEST_LABEL = 40.0


@dataclass(frozen=True)
class Kind:
    """The starts of one kind: how many, and how many ended at each distance from the best (0 at the best)."""

    name: str
    counts: dict[float, int]

    @property
    def n_starts(self) -> int:
        return sum(self.counts.values())

    @property
    def n_hits(self) -> int:
        return self.counts.get(0.0, 0)


@dataclass(frozen=True)
class Layout:
    """Horizontal positions of the dot plot."""

    far: float
    near: float
    axis_start: float
    best: float
    best_low: float
    best_high: float
    label_room: float
    label_height: float

    @classmethod
    def of(cls, size: Size) -> Layout:
        if size.narrow:
            return cls(
                far=12, near=212, axis_start=0, best=254, best_low=231, best_high=277, label_room=330, label_height=22
            )
        return cls(
            far=188, near=540, axis_start=168, best=594, best_low=565, best_high=623, label_room=156, label_height=0
        )


def search_section(fit: Fit) -> Section:
    """State how many starts there were and where each ended."""
    search = fit.search
    kinds = starts_by_kind(search)
    scale_range = distance_range(search)
    stacking = _stacking(kinds, scale_range)
    drawing = figure(
        "search", words.figure_label(search), lambda size: draw_starts(size, search, kinds, scale_range, stacking)
    )
    return Section(
        "search",
        "Search",
        words.headline(search),
        words.notes(search, fit.objective, stacking.unit, fit.why_certain),
        _figures(search, len({s.source for s in search.starts})) + drawing,
    )


def starts_by_kind(search: SearchReport) -> list[Kind]:
    """Group starts by kind, in the order of their first start; rare kinds together if there are many."""
    snapped = _optimum_distances(search)
    by_kind: dict[str, list[float]] = {}
    for start, distance in zip(search.starts, snapped, strict=True):
        by_kind.setdefault(start.source, []).append(distance)
    if len(by_kind) > MOST_KINDS:
        kept = sorted(by_kind, key=lambda name: -len(by_kind[name]))[: MOST_KINDS - 1]
        rest = [d for name, ds in by_kind.items() if name not in kept for d in ds]
        n_rest = len(by_kind) - len(kept)
        by_kind = {name: ds for name, ds in by_kind.items() if name in kept} | {f"{n_rest} other kinds": rest}
    return [Kind(name, {d: ds.count(d) for d in sorted(set(ds))}) for name, ds in by_kind.items()]


def distance_range(search: SearchReport) -> tuple[float, float] | None:
    """Return the range of the log axis; None if every start reached the best."""
    others = [o.distance for o in search.optima if o.distance > search.tolerance]
    return around_decades(min(others), max(others)) if others else None


def draw_starts(
    size: Size, search: SearchReport, kinds: list[Kind], scale_range: tuple[float, float] | None, stacking: Stacking
) -> Canvas:
    """Draw one row per kind of start, one dot per start, the best at the right behind a break."""
    canvas, layout = Canvas(size), Layout.of(size)
    top, step = 58.0, stacking.height * 6.4 + ROW_GAP + layout.label_height
    bottom = top + step * len(kinds)
    scale = None if scale_range is None else Log(scale_range[1], scale_range[0], layout.far, layout.near)
    if scale is not None and scale_range is not None:
        shelf = Shelf(6)
        for tick in Log(scale_range[0], scale_range[1], 0, 1).ticks(4 if size.narrow else 6):
            x, label = scale(tick), log_tick_label(tick)
            half = text_width(label) / 2
            canvas.line(x, top, x, bottom, "grid")
            if shelf.take(x - half, x + half):
                canvas.text(x, bottom + 20, label, "quiet", anchor="middle")
        title = f"\u2190 worse: {words.distance_title(search)}"
        low, room = (60, size.width) if size.narrow else (40, layout.near - layout.axis_start)
        canvas.text(layout.axis_start, bottom + low, shorten(title, room), "quiet", full=title)
    canvas.line(layout.best, top, layout.best, bottom, "axis")
    canvas.text(layout.best, bottom + 20, "0", "strong", anchor="middle")
    canvas.text(layout.best, bottom + 40, "best", "strong", anchor="middle")
    _label_optima(canvas, layout, search, scale)
    for i, kind in enumerate(kinds):
        base = top + step * (i + 1) - 6
        canvas.line(layout.axis_start, base, layout.near + 9, base, "axis")
        canvas.line(layout.near + 17, base, size.width, base, "axis")
        name_y = base - stacking.height * 6.4 - 12 if size.narrow else base - 7
        for above, line in enumerate(reversed(wrapped(kind.name, layout.label_room))):
            canvas.text(0, name_y - 15 * above, line, "clear", full=kind.name)
        missed, hits = _groups(kind, layout, scale)
        canvas.dots(stack(missed, base, layout.axis_start, layout.near + 6, stacking), "stroke-mid")
        canvas.dots(stack(hits, base, layout.best_low, layout.best_high, stacking), "stroke-ink")
        canvas.text(size.width, base - 8, str(kind.n_hits), "strong", anchor="end", quiet=f"of {kind.n_starts}")
    if scale is None and search.n_starts > 1:
        middle = (layout.axis_start + layout.near) / 2
        canvas.text(middle, bottom - 16, f"no {search.noun} ended anywhere else", "quiet halo", anchor="middle")
    canvas.height = bottom + (68 if size.narrow and scale is not None else 48)
    return canvas


def _figures(search: SearchReport, n_kinds: int) -> str:
    second = search.gap_to_second
    relative = None if second is None else words.relative(search, second)
    share = "" if relative is None else numbers.percent_briefly(relative, 2)
    none = '<span class="quiet">none</span>'
    hit_share = numbers.percent(words.hit_rate(search), 0)
    if search.n_perturbations:  # a share of runs that are not independent says nothing
        hit_share = words.descents(search.n_hits, search.optima[0].n_perturbations)
    figures = [
        (f"{search.noun.capitalize()}s", numbers.integer(search.n_starts), f"{n_kinds} kinds" if n_kinds > 1 else ""),
        (f"Distinct {search.ends[1]}", numbers.integer(search.n_distinct), ""),
        (f"{search.noun.capitalize()}s at the best", numbers.integer(search.n_hits), hit_share),
        ("Gap to the second", none if second is None else numbers.distance(second), share),
    ]
    return facts(figures, "four-figures")


def _optimum_distances(search: SearchReport) -> list[float]:
    """Return the distance of each start's optimum, so that starts of one optimum share one number."""
    steps = [o.distance for o in search.optima]
    return [max(d for d in steps if d <= distance) for distance in search.distances.tolist()]


def _groups(kind: Kind, layout: Layout, scale: Log | None) -> tuple[list[Group], list[Group]]:
    hits = [(layout.best, kind.n_hits)] if kind.n_hits else []
    missed = [] if scale is None else [(scale(d), n) for d, n in kind.counts.items() if d > 0]
    return missed, hits


def _stacking(kinds: list[Kind], scale_range: tuple[float, float] | None) -> Stacking:
    """Return the stacking for both versions of the figure, so that one note explains both."""
    rows = []
    for width in (WIDE, NARROW):
        layout = Layout.of(Size("", width))
        scale = None if scale_range is None else Log(scale_range[1], scale_range[0], layout.far, layout.near)
        for kind in kinds:
            missed, hits = _groups(kind, layout, scale)
            rows += [(missed, layout.axis_start, layout.near + 6), (hits, layout.best_low, layout.best_high)]
    return choose_stacking(rows)


def _label_optima(canvas: Canvas, layout: Layout, search: SearchReport, scale: Log | None) -> None:
    """Label the best optimum, and others where there is room: the second best first, then by number of starts."""
    width = canvas.width
    canvas.text(width, 42, "at best", "quiet", anchor="end")
    shelf = Shelf()
    best = numbers.objective(search.best, search.objective_name, apart=search.gap_to_second)
    hits = counted(search.n_hits, search.noun, words=False)
    half = max(text_width(best, bold=True), text_width(hits)) / 2
    end = min(layout.best + half, width - text_width("at best") - 10)
    shelf.take(end - 2 * half, end)
    end_of_room = end - 2 * half - shelf.gap
    canvas.text(end - half, 26, best, "strong", anchor="middle")
    canvas.text(end - half, 42, hits, "quiet", anchor="middle")
    canvas.line(layout.best, 48, layout.best, 56, "axis")
    if scale is None:
        return
    others = list(search.optima[1:])
    for optimum in [*others[:1], *sorted(others[1:], key=lambda o: -o.n_hits)]:
        if optimum.distance <= 0:
            continue
        x, name = scale(optimum.distance), search.objective_name
        text = numbers.objective(optimum.objective, name, search.best, search.gap_to_second)
        half = text_width(text) / 2
        centre = max(x, half)
        if optimum is others[0]:
            centre = max(min(centre, end_of_room - half), centre - FARTHEST_LABEL)
        if shelf.take(centre - half, centre + half):
            canvas.text(centre, 26, text, "clear", anchor="middle")
            canvas.text(centre, 42, numbers.integer(optimum.n_hits), "quiet", anchor="middle")
            canvas.line(centre, 48, x, 56, "axis")
