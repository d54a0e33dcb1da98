"""Labels: the width of text, shortening it, and keeping labels from overlapping."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from majorant.report.html import shortened

TEXT_SIZE = 12.5
_NARROW_SIGNS = frozenset("iljtfrI.,:;'|!()[]\u202f\u2009 -\u00b7")
_BROAD_SIGNS = frozenset("mwMW@%+\u2026\u2192\u2190\u2212")


def text_width(text: str, *, bold: bool = False) -> float:
    """Return an upper estimate of the width of `text`, for the widest font that the page may have."""
    ems = 0.0
    for sign in text:
        if sign in _NARROW_SIGNS:
            ems += 0.38
        elif sign in _BROAD_SIGNS or ord(sign) > 0x2E80:
            ems += 1.0
        elif sign.isupper():
            ems += 0.72
        else:
            ems += 0.63
    return ems * TEXT_SIZE * (1.08 if bold else 1.0)


def shorten(text: str, room: float, *, bold: bool = False) -> str:
    """Shorten a text to the width `room`, with an ellipsis in the middle: names often differ at their ends only."""
    if text_width(text, bold=bold) <= room:
        return text
    fitting = (shortened(text, length) for length in range(len(text) - 1, 1, -1))
    return next((short for short in fitting if text_width(short, bold=bold) <= room), "\u2026")


def wrapped(text: str, room: float) -> list[str]:
    """Wrap a text to one or two lines, each shortened to the width `room`."""
    if text_width(text) <= room or " " not in text:
        return [shorten(text, room)]
    words = text.split()
    n = max((n for n in range(1, len(words)) if text_width(" ".join(words[:n])) <= room), default=1)
    return [shorten(" ".join(part), room) for part in (words[:n], words[n:])]


def spread(
    positions: Sequence[float], widths: Sequence[float], low: float = -np.inf, high: float = np.inf
) -> NDArray[np.float64]:
    """Return the centres nearest to `positions` at which items of these widths do not overlap.

    Least squares over positions in the same order, within [low, high] if all items fit there.
    """
    order = np.argsort(positions, kind="stable")
    width = np.asarray(widths, dtype=np.float64)[order]
    before = np.concatenate([[0.0], np.cumsum(width)[:-1]])
    wanted = np.asarray(positions, dtype=np.float64)[order] - width / 2 - before
    left = _ascending(wanted)
    last = max(high - float(width.sum()), low)
    centres = np.empty_like(left)
    centres[order] = np.clip(left, low, last) + before + width / 2
    return centres


Box = tuple[NDArray[np.float64], NDArray[np.float64]]
"""The centre of a label, and half its width and height."""


def free_place(
    label: Box,
    labels: Sequence[Box],
    dots: NDArray[np.float64],  # (n, 2)
    corner: tuple[float, float],  # of the picture, which begins at 0, 0
    reach: float,
) -> NDArray[np.float64] | None:
    """Return the nearest centre within reach at which a label covers the fewest dots; None if each covers a label."""
    near, half = label
    turn = 2 * np.pi * np.arange(24)[:, None] / 24 + [0.0, -np.pi / 2]
    centres = near + (np.arange(0.0, reach, 8.0)[:, None, None] * np.cos(turn)).reshape(-1, 2)
    is_free = ((centres > half) & (centres < corner - half)).all(axis=1)
    for other, own in labels:
        is_free &= (np.abs(centres - other) > half + own).any(axis=1)
    free = centres[is_free]
    covered = [(np.abs(dots - centre) < half).all(axis=1).sum() for centre in free]
    return free[int(np.argmin(covered))] if covered else None


def _ascending(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest non-decreasing sequence, by pooling adjacent violators."""
    pools: list[tuple[float, int]] = []
    for value in values:
        mean, size = float(value), 1
        while pools and pools[-1][0] > mean:
            other, n = pools.pop()
            mean, size = (mean * size + other * n) / (size + n), size + n
        pools.append((mean, size))
    return np.array([mean for mean, size in pools for _ in range(size)], dtype=np.float64)


class Shelf:
    """One line of labels, each placed only where it does not touch those already there."""

    def __init__(self, gap: float = 10.0) -> None:
        self.gap = gap
        self._taken: list[tuple[float, float]] = []

    def take(self, start: float, end: float) -> bool:
        """Take the room from `start` to `end` if it is free; return whether it was."""
        if any(start < b + self.gap and end > a - self.gap for a, b in self._taken):
            return False
        self._taken.append((start, end))
        return True
