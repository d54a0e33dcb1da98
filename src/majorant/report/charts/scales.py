"""Scales from numbers to positions, and the round numbers beside an axis."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant.report.numbers import MINUS, TIMES, fixed, power_of_ten


@dataclass(frozen=True)
class Linear:
    """A linear scale."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        share = (value - self.low) / span if span != 0 else 0.5
        return self.start + share * (self.end - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        """Return at most about `count` round numbers within the scale."""
        return round_numbers(self.low, self.high, count)


@dataclass(frozen=True)
class Log:
    """A logarithmic scale."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return self.start + share * (self.end - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        """Return powers of ten within the scale, with 2 and 5 times them if few, only some of them if many."""
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        if last - first <= 1:
            between = [m * 10.0**e for e in range(first - 1, last + 1) for m in (1.0, 2.0, 5.0)]
            return [t for t in between if self.low <= t <= self.high]
        every = max(1, math.ceil((last - first + 1) / count))
        return [10.0**e for e in range(first, last + 1) if e % every == 0]


def evenly(n: int, most: int) -> NDArray[np.int64]:
    """Return at most so many of n places, equally spaced, with the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def padded(low: float, high: float, share: float = 0.04) -> tuple[float, float]:
    """Return a range a little wider than the data, never empty."""
    span = high - low
    if not span > 1e-12 * max(abs(low), abs(high)):
        span = abs(low) or 1.0
        return low - 0.5 * span, high + 0.5 * span
    return low - share * span, high + share * span


def around_decades(low: float, high: float) -> tuple[float, float]:
    """Return a range for a log scale: a little wider than the data, and at least one decade."""
    a, b = math.log10(low), math.log10(high)
    missing = max(1.0 - (b - a), 0.0)
    a, b = a - 0.12 - missing / 2, b + 0.12 + missing / 2
    if math.floor(b) < math.ceil(a):
        b = float(math.ceil(a))
    return float(10.0 ** max(a, -300.0)), float(10.0 ** min(b, 300.0))


def round_numbers(low: float, high: float, count: int = 5) -> list[float]:
    """Return multiples of 1, 2 or 5 times a power of ten from `low` to `high`, at least two."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    raw = span / max(count, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9))
    found = _multiples(low, high, step)
    smaller = (m * power for m in (5, 2, 1, 0.5) if m * power < step)
    while len(found) < 2 and (finer := next(smaller, None)) is not None:
        found = _multiples(low, high, finer)
    return found


def _multiples(low: float, high: float, step: float) -> list[float]:
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def tick_labels(ticks: list[float], *, group_from: int = 10_000) -> list[str]:
    """Format ticks, all with the number of decimals that their step needs."""
    if not ticks:
        return []
    largest = max(abs(t) for t in ticks)
    step = min((b - a for a, b in itertools.pairwise(ticks)), default=largest or 1.0)
    if largest >= 1e7 or (0 < largest < 1e-3):
        return [_in_powers(t, step) for t in ticks]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0 else 0
    return [fixed(t, decimals, group=largest >= group_from) for t in ticks]


def log_tick_label(value: float) -> str:
    """Format a tick of a log scale: plain between 0.01 and 10 000, otherwise as a power of ten."""
    exponent = math.floor(math.log10(value) + 1e-9)
    if -2 <= exponent <= 4:
        return fixed(value, max(0, -exponent), group=exponent == 4)
    times = round(value / 10.0**exponent)
    return power_of_ten(exponent) if times == 1 else f"{times}{TIMES}{power_of_ten(exponent)}"


def signed_labels(ticks: list[float], zero: str) -> list[str]:
    """Format ticks with a sign, and a word in place of zero."""
    texts = tick_labels(ticks)
    return [
        zero if t == 0 else text if text.startswith(MINUS) else f"+{text}" for t, text in zip(ticks, texts, strict=True)
    ]


def _in_powers(value: float, step: float) -> str:
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)) + 1e-12)
    digits = max(0, exponent - math.floor(math.log10(step) + 1e-9))
    mantissa = fixed(value / 10.0**exponent, digits)
    return f"{mantissa}{TIMES}{power_of_ten(exponent)}"
