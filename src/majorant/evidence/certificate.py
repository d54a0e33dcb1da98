"""How far a fit can be from the best possible, as a proved number and as a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Literal

PROVED = 1e-5
"""A gap that counts as none."""
LOOSE = 0.05
"""A gap from which on the sentence says that the bound may be what is loose."""

_CONTEXT_DIGITS = 1200  # every float written out in full
_USUAL_DECIMALS = {"SSE": 2}
_OTHER_DECIMALS = 3
_LEAST_DIGITS = 4
_POWERS_FROM, _POWERS_BELOW = 12, -5


@dataclass(frozen=True)
class Certificate:
    r"""A bound that no solution can pass, beside the objective that a fit reached.

    Attributes
    ----------
    bound : float
        Proved: no solution has an objective below it (above it where more is better). Minus (plus) infinity if none is
        known.
    objective : float
        What the fit reached.
    method : str
        How the bound was proved, in words.
    objective_name : str
        "SSE", "log-likelihood", ...
    sense : {"min", "max"}
        Whether the objective is better when lower or when higher.
    solution : str
        What the bound speaks of: "3-centre solution", "mixture of 3 components".
    unit : str, optional
        Given ("nats") for an objective whose differences mean something and whose ratios do not, such as a
        log-likelihood: the sentence then tells a difference. Otherwise it tells per cents.

    Raises
    ------
    ValueError
        If the objective is better than the bound by more than rounding can explain, or one of them is not a number.

    Examples
    --------
    >>> print(Certificate(78.8, 78.85, "set partition", solution="3-centre solution").sentence)
    No 3-centre solution on these data has an SSE below 78.79; this fit is within 0.064 % of the best possible.
    """

    bound: float
    objective: float
    method: str
    objective_name: str = "SSE"
    sense: Literal["min", "max"] = "min"
    solution: str = "solution"
    unit: str = ""

    def __post_init__(self) -> None:
        if self.sense not in ("min", "max"):
            raise ValueError(f"sense must be 'min' or 'max'; got {self.sense!r}")
        if math.isnan(self.bound) or not math.isfinite(self.objective):
            raise ValueError(f"bound and objective must be numbers; got {self.bound} and {self.objective}")
        if self._shortfall < -PROVED * max(abs(self.objective), abs(self.bound)):
            raise ValueError(
                f"the objective {self.objective!r} is better than the bound {self.bound!r}: they do not belong to the "
                "same data, weights and number of parts"
            )

    @property
    def _shortfall(self) -> float:
        away = self.objective - self.bound
        return away if self.sense == "min" else -away

    @property
    def difference(self) -> float:
        """How far the fit can be from the best possible, in units of the objective; at least zero."""
        return max(self._shortfall, 0.0)

    @property
    def gap(self) -> float:
        """The difference as a share of the best possible (where less is better) or of the fit; at least zero.

        Infinite where the bound says nothing.
        """
        if self.difference == 0:
            return 0.0
        base = self.bound if self.sense == "min" and not self.unit else abs(self.objective)
        return math.nextafter(self.difference / base, math.inf) if base > 0 and math.isfinite(base) else math.inf

    @property
    def proved(self) -> bool:
        """Whether the fit is proved optimal, to a relative gap of 1e-5."""
        return self.gap <= PROVED

    @property
    def sentence(self) -> str:
        """What is proved, in a sentence whose numbers are rounded to the safe side."""
        fit = "this fit is"
        if not math.isfinite(self.gap):
            return (
                f"No useful bound on the {self.objective_name} was proved: it is the bound that is loose, "
                "which says nothing against this fit."
            )
        side, rounding = ("below", ROUND_FLOOR) if self.sense == "min" else ("above", ROUND_CEILING)
        article = "an" if self.objective_name.startswith(("SSE", "a", "e", "i", "o", "u", "A", "E", "I", "O")) else "a"
        first = (
            f"No {self.solution} on these data has {article} {self.objective_name} {side} "
            f"{self._objective_text(self.bound, rounding)}"
        )
        if self.proved:
            return f"{first}; {fit} proved optimal to 1e-5."
        if self.unit:
            return f"{first}; {fit} within {rounded_up(Decimal(self.difference))} {self.unit} of the best possible."
        text = f"{first}; {fit} within {rounded_up(self._gap_exactly() * 100)} % of the best possible"
        if self.gap <= LOOSE:
            return f"{text}."
        return f"{text}. The bound may be what is loose: nothing here says that a better fit exists."

    def __str__(self) -> str:
        return self.sentence

    def _gap_exactly(self) -> Decimal:
        context = Context(prec=50, rounding=ROUND_CEILING)
        fit, bound = Decimal(self.objective), Decimal(self.bound)
        return context.divide(abs(fit - bound), abs(bound if self.sense == "min" else fit))

    def _objective_text(self, value: float, rounding: str) -> str:
        """The number to the decimals that the objective needs, rounded to the safe side."""
        exact = Decimal(value)
        size = max(abs(Decimal(self.objective)), abs(exact))
        usual = _USUAL_DECIMALS.get(self.objective_name, _OTHER_DECIMALS)
        if exact == self.objective == 0:
            return f"{0:.{usual}f}"
        power = size.adjusted()
        if power >= _POWERS_FROM or power < _POWERS_BELOW:
            power = exact.adjusted() if exact else 0
            scaled = _rounded(exact.scaleb(-power), 5, rounding)
            return f"{scaled}e{power:+03d}"
        return f"{_rounded(exact, max(usual, _LEAST_DIGITS - 1 - power), rounding):f}"


def rounded_up(value: Decimal) -> str:
    """A number that is proved not to be exceeded, with two digits that count."""
    if value == 0:
        return "0"
    return f"{_rounded(value, max(1 - value.adjusted(), 0), ROUND_CEILING):f}"


def _rounded(value: Decimal, decimals: int, rounding: str) -> Decimal:
    context = Context(prec=_CONTEXT_DIGITS)
    out = value.quantize(Decimal(1).scaleb(-decimals), rounding=rounding, context=context)
    return abs(out) if out == 0 else out
