"""Stacks of dots: one dot per count, or a few counts a dot when they would not fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from majorant.report.charts.labels import spread
from majorant.report.charts.svg import Point

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
