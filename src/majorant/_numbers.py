"""Formatting of numbers, rounded to nearest or to the safe side."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, localcontext
from reprlib import Repr
from typing import Any, Literal

import numpy as np

Rounding = Literal["nearest", "down", "up"]

_MINUS = "\u2212"
_NARROW_SPACE = "\u202f"
_MODES = {"nearest": ROUND_HALF_EVEN, "down": ROUND_FLOOR, "up": ROUND_CEILING}
_ENOUGH_DIGITS = 1200  # every float and its neighbours, written out in full
_MOST_DECIMALS = 8
_POWERS_FROM = 1e12
_POWER_DECIMALS = 4
_USUAL_DECIMALS = {"SSE": 2}
_OTHER_DECIMALS = 3
_OBJECTIVE_DIGITS = 4
_BOUND_DIGITS = 2
_MOST_SHOWN = 10
MOST_NAMED = 5
"""Columns up to which a sentence names each."""


class _Brief(Repr):
    """Writes numbers and dates as what they are: 3, not np.int64(3)."""

    def repr1(self, x: Any, level: int) -> str:
        if isinstance(x, np.number | np.bool_ | np.datetime64 | date | timedelta):
            return str(x)
        return super().repr1(x.item() if isinstance(x, np.generic) else x, level)


_BRIEF = _Brief()
_BRIEF.maxlist = _BRIEF.maxtuple = _BRIEF.maxset = _BRIEF.maxfrozenset = _BRIEF.maxdict = _MOST_SHOWN
_BRIEF.maxstring = _BRIEF.maxother = 200


@dataclass(frozen=True)
class NumberFormat:
    """The format of the numbers of one column."""

    decimals: int  # digits after the decimal point
    powers: bool = False  # whether to write ``1.2345e-15``, for columns whose numbers are all very large or very small

    def text(self, value: float, rounding: Rounding = "nearest") -> str:
        """Format a number for the terminal: with a plain minus and no thousands separator.

        Parameters
        ----------
        value : float
            The number; a whole number keeps all its digits.
        rounding : {"nearest", "down", "up"}
            "down" for lower bounds, "up" for upper bounds and for gaps, so that the printed number is still valid.
        """
        if not math.isfinite(value):
            return str(float(value))
        with localcontext() as context:
            context.prec = _ENOUGH_DIGITS
            exact = Decimal(value)
            if not self.powers or exact == 0:
                return _written(rounded(exact, self.decimals, rounding))
            power = exact.adjusted()
            mantissa = rounded(exact.scaleb(-power), self.decimals, rounding)
            if abs(mantissa) == 10:
                mantissa, power = rounded(mantissa.scaleb(-1), self.decimals, rounding), power + 1
            return f"{_written(mantissa)}e{power:+03d}"


def rounded(value: float | Decimal, decimals: int, rounding: Rounding = "nearest") -> Decimal:
    """Round the exact value to `decimals` digits after the point."""
    context = Context(prec=_ENOUGH_DIGITS)
    return Decimal(value).quantize(Decimal(1).scaleb(-decimals), rounding=_MODES[rounding], context=context)


def rounded_up(value: float | Decimal, powers_below: float = 0.0) -> str:
    """Return an upper bound rounded up to two significant digits, or to all digits before the point.

    Below `powers_below` it is written with a power of ten.
    """
    exact = Decimal(value)
    if exact == 0:
        return "0"
    if exact < powers_below:
        return f"{rounded(exact, _BOUND_DIGITS - 1 - exact.adjusted(), 'up'):.1e}"
    return _written(rounded(exact, max(_BOUND_DIGITS - 1 - exact.adjusted(), 0), "up"))


def _written(value: Decimal) -> str:
    return f"{abs(value) if value == 0 else value:f}"


def number_format(
    values: Iterable[float],  # the numbers of the column
    decimals: int,  # usual number of digits after the point
    digits: int = 2,  # smallest number of significant digits of the largest number
) -> NumberFormat:
    """Return the usual number of decimals, or more where these would round the numbers to nothing."""
    largest = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
    if largest == 0.0:
        return NumberFormat(decimals)
    needed = digits - 1 - math.floor(math.log10(largest))
    if largest >= _POWERS_FROM or needed > _MOST_DECIMALS:
        return NumberFormat(_POWER_DECIMALS, powers=True)
    return NumberFormat(max(decimals, needed))


def objective_format(objective_name: str, values: Iterable[float]) -> NumberFormat:
    """Return the number format of an objective, given its name and all values that are shown together."""
    return number_format(values, _USUAL_DECIMALS.get(objective_name, _OTHER_DECIMALS), _OBJECTIVE_DIGITS)


def percent(share: float, decimals: int = 0, rounding: Rounding = "nearest") -> str:
    """Format a share as per cents, with a space before the sign: ``44.8 %``."""
    return f"{NumberFormat(decimals).text(100 * share, rounding)} %"


def html_number(text: str) -> str:
    """Format a number for a page: with a true minus, and thousands separated by a narrow space."""
    found = re.fullmatch(r"(-?)(\d+)(.*)", text)
    if found is None:
        return text.replace("-", _MINUS) if text == "-inf" else text
    sign, whole, rest = found.groups()
    grouped = f"{int(whole):,}".replace(",", _NARROW_SPACE) if len(whole) < 40 else whole
    return (_MINUS if sign else "") + grouped + rest.replace("e-", f"e{_MINUS}")


def ratio(value: float) -> str:
    """Format a ratio with three significant digits, and with two of how far it is from 1: ``0.00120``, ``1.00010``."""
    if not math.isfinite(value) or not 1e-4 <= abs(value) < 1e6:
        return f"{value:.3g}"
    near = 1 - math.floor(math.log10(abs(value - 1) or 1.0))
    return f"{value:.{min(max(2 - math.floor(math.log10(abs(value))), near, 0), _MOST_DECIMALS)}f}"


def p_value(p: float) -> str:
    """Format a p-value with four decimals."""
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


def told_p(p: float) -> str:
    """Format a p-value within a sentence: ``p = 0.0312``, ``p < 0.0001``."""
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Write a count with its noun: ``1 start``, ``80 starts``."""
    return f"{number} {singular if number == 1 else plural or plural_of(singular)}"


def few_of(names: Sequence[str]) -> str:
    """Join names by commas, of many the first five."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def plural_of(noun: str) -> str:
    """Return the plural of a noun: ``starts``, ``classes``."""
    return f"{noun}es" if noun.endswith("s") else f"{noun}s"


def article(noun: str) -> str:
    """Return ``a`` or ``an``; a noun in capitals is spelled out ("an SSE")."""
    sounds = "AEFHILMNORSX" if noun[:3].isupper() else "AEIOUaeiou"
    return "an" if noun[:1] in sounds else "a"


def briefly(value: Any) -> str:
    """Return what was got as an error shows it: tables by their kind and shape, long lists cut."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and math.prod(shape) > _MOST_SHOWN:
        return f"{type(value).__name__} of shape {shape}"
    return _BRIEF.repr(value)
