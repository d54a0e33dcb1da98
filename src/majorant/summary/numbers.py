"""How is a number written? For the terminal and for HTML, to the nearest or to the safe side."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, localcontext
from typing import Literal

Rounding = Literal["nearest", "down", "up"]

_MINUS = "\u2212"
_NARROW_SPACE = "\u202f"
_MODES = {"nearest": ROUND_HALF_EVEN, "down": ROUND_FLOOR, "up": ROUND_CEILING}
_ENOUGH_DIGITS = 1200  # every float and its neighbours, written out in full
_MOST_DECIMALS = 8
_POWERS_FROM = 1e12
_POWER_DECIMALS = 4


@dataclass(frozen=True)
class NumberFormat:
    """A way of writing the numbers of one column.

    Attributes
    ----------
    decimals : int
        Digits after the decimal point.
    powers : bool
        Whether to write ``1.2345e-15``, for columns whose numbers are all very large or very small.
    """

    decimals: int
    powers: bool = False

    def text(self, value: float, rounding: Rounding = "nearest") -> str:
        """The number with a plain minus and no thousands mark, as the terminal shows it.

        Parameters
        ----------
        value : float
            The number; a whole number keeps all its digits.
        rounding : {"nearest", "down", "up"}
            "down" for lower bounds, "up" for upper bounds and for gaps: what is printed is then still true.
        """
        if not math.isfinite(value):
            return str(float(value))
        with localcontext() as context:
            context.prec = _ENOUGH_DIGITS
            exact = Decimal(value)
            if not self.powers or exact == 0:
                return _written(_rounded(exact, self.decimals, rounding))
            power = exact.adjusted()
            mantissa = _rounded(exact.scaleb(-power), self.decimals, rounding)
            if abs(mantissa) == 10:
                mantissa, power = _rounded(mantissa.scaleb(-1), self.decimals, rounding), power + 1
            return f"{_written(mantissa)}e{power:+03d}"


def _rounded(value: Decimal, decimals: int, rounding: Rounding) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-decimals), rounding=_MODES[rounding])


def _written(value: Decimal) -> str:
    return f"{abs(value) if value == 0 else value:f}"


def number_format(values: Iterable[float], decimals: int, digits: int = 2) -> NumberFormat:
    """The usual number of decimals, or more where that would hide the numbers.

    Parameters
    ----------
    values : iterable of float
        The numbers of the column.
    decimals : int
        Digits after the point that such a column usually has.
    digits : int
        Significant digits that the largest number must at least show.
    """
    largest = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
    if largest == 0.0:
        return NumberFormat(decimals)
    needed = digits - 1 - math.floor(math.log10(largest))
    if largest >= _POWERS_FROM or needed > _MOST_DECIMALS:
        return NumberFormat(_POWER_DECIMALS, powers=True)
    return NumberFormat(max(decimals, needed))


def percent(share: float, decimals: int = 0, rounding: Rounding = "nearest") -> str:
    """A share as per cents, with the space before the sign: ``44.8 %``."""
    return f"{NumberFormat(decimals).text(100 * share, rounding)} %"


def html_number(text: str) -> str:
    """The number of the terminal as a page shows it: a true minus, thousands set apart by a narrow space."""
    found = re.fullmatch(r"(-?)(\d+)(.*)", text)
    if found is None:
        return text.replace("-", _MINUS) if text == "-inf" else text
    sign, whole, rest = found.groups()
    grouped = f"{int(whole):,}".replace(",", _NARROW_SPACE) if len(whole) < 40 else whole
    return (_MINUS if sign else "") + grouped + rest.replace("e-", f"e{_MINUS}")


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """A count with its noun: ``1 start``, ``80 starts``."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"
