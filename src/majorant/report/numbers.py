"""Numbers on the page: rounded by `majorant._numbers`, with typographic signs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from majorant._numbers import Rounding, html_number, objective_format

MINUS = "\u2212"
NARROW_SPACE = "\u202f"
DASH = "\u2013"
TIMES = "\u00d7"
MOST_DECIMALS = 6
_SUPERSCRIPTS = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


def fixed(value: float, decimals: int = 0, *, group: bool = True) -> str:
    """Format a value with a fixed number of decimals, thousands separated, and a typographic minus sign."""
    if math.isnan(value):
        return DASH
    if math.isinf(value):
        return "\u221e" if value > 0 else f"{MINUS}\u221e"
    text = f"{value:,.{decimals}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("-")
    return text.replace(",", NARROW_SPACE if group else "").replace("-", MINUS)


def integer(value: int) -> str:
    """Format a count."""
    return fixed(value)


def power_of_ten(exponent: int) -> str:
    """Format a power of ten."""
    return "10" + str(exponent).translate(_SUPERSCRIPTS)


def scientific(value: float, digits: int = 3) -> str:
    """Format a value with `digits` digits times a power of ten."""
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa.replace('-', MINUS)}{NARROW_SPACE}{TIMES}{NARROW_SPACE}{power_of_ten(int(exponent))}"


def shared_decimals(values: NDArray[np.float64], spreads: NDArray[np.float64]) -> int | None:
    """Return the decimals that show two digits of the smallest spread, at most five; None for powers of ten."""
    largest = float(max(np.abs(values).max(), spreads.max()))
    positive = spreads[spreads > 0]
    if largest >= 1e7 or (0 < largest < 1e-3):
        return None
    least = float(positive.min()) if len(positive) else largest or 1.0
    return int(np.clip(1 - np.floor(np.log10(least)), 0, 5))


def writer(values: NDArray[np.float64], spreads: NDArray[np.float64]) -> Callable[[float], str]:
    """Return what writes values and their spreads, all with the decimals that they share."""
    decimals = shared_decimals(values, spreads)
    return scientific if decimals is None else lambda value: fixed(value, decimals)


def objective(
    value: float,
    name: str,
    like: float | None = None,
    apart: float | None = None,
    rounding: Rounding = "nearest",
) -> str:
    """Format an objective as it is on the screen.

    Parameters
    ----------
    value : float
        The objective.
    name : str
        Name of the objective ("SSE"), which sets its usual decimals.
    like : float, optional
        Objective shown beside it, whose decimals it takes.
    apart : float, optional
        A difference that must be visible, if six decimals are enough for that.
    rounding : {"nearest", "down", "up"}
        Direction in which it is rounded.
    """
    if not math.isfinite(value):
        return fixed(value)
    style = objective_format(name, [value if like is None else like])
    if apart and not style.powers:
        style = replace(style, decimals=max(style.decimals, min(math.ceil(-math.log10(apart)), MOST_DECIMALS)))
    mantissa, _, power = style.text(value, rounding).partition("e")
    return html_number(mantissa) + (f"{NARROW_SPACE}{TIMES}{NARROW_SPACE}{power_of_ten(int(power))}" if power else "")


def bound(value: float, name: str, like: float, sense: str, apart: float | None = None) -> str:
    """Format a proved bound of what is minimised ("min"), rounded down, or maximised, rounded up; `like` as itself."""
    rounding: Rounding = "nearest" if value == like else "down" if sense == "min" else "up"
    return objective(value, name, like, apart, rounding)


def distance(value: float) -> str:
    """Format a difference of objectives with three significant digits."""
    size = abs(value)
    if size == 0:
        return "0"
    if not 1e-4 <= size < 1e6:
        return scientific(value)
    return fixed(value, max(0, 2 - math.floor(math.log10(size))))


def between(low: float, high: float) -> str:
    """Format a number strictly between two others, with three significant digits or as many as needed."""
    middle = low + (high - low) / 2
    digits = next((n for n in range(3, 18) if low < float(f"{middle:.{n - 1}e}") < high), 17)
    size = abs(float(f"{middle:.{digits - 1}e}"))
    if size != 0 and not 1e-4 <= size < 1e9:
        return scientific(middle, digits)
    return fixed(middle, max(0, digits - 1 - math.floor(math.log10(size))) if size else 0)


def percent(share: float, decimals: int = 1) -> str:
    """Format a share as per cents; it reads 100 or 0 only if it is exactly that."""
    if math.isnan(share):
        return DASH
    shown = round(100 * share, decimals)
    least = 10.0**-decimals
    if shown >= 100 > 100 * share:
        shown = 100 - least
    if shown == 0 < share:
        return f"less than {fixed(least, decimals)}{NARROW_SPACE}%"
    return f"{fixed(shown, decimals)}{NARROW_SPACE}%"


def percent_briefly(share: float, decimals: int = 1) -> str:
    """Format a share as `percent`, as markup with a sign for "less than"."""
    return percent(share, decimals).replace("less than ", f"&lt;{NARROW_SPACE}")


def percent_in_column(share: float, decimals: int = 1) -> str:
    """Format a share for a column, where every number has the same form."""
    return f"{fixed(100 * share, decimals)}{NARROW_SPACE}%"


def p_value(p: float) -> str:
    """Format a p-value with four decimals."""
    return f"<{NARROW_SPACE}0.0001" if p < 0.0001 else fixed(p, 4)
