"""Certificates: a proved bound on how far a fit is from the best possible, as a number and as a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any, Literal

from majorant._numbers import article, briefly, objective_format, rounded_up
from majorant._told import Told
from majorant.search.record import SearchReport

PROVED = 1e-5
"""Largest relative gap that counts as zero."""
PROVED_DIFFERENCE = 0.01
"""Largest difference that counts as zero, for an objective that has a unit."""
LOOSE = 0.05
"""Gap from which on the sentence adds that the bound may be loose."""

_MAYBE_LOOSE = "The bound may be what is loose: nothing here says that a better fit exists."


@dataclass(frozen=True, repr=False)
class Certificate(Told):
    r"""A proved bound on the objective of any solution, with the objective of a fit.

    Attributes
    ----------
    bound : float
        The proved bound: no solution has an objective below it (above it if more is better). Minus (plus) infinity if
        none is known.
    objective : float
        Objective of the fit.
    method : str
        How the bound was proved, in words.
    objective_name : str
        "SSE", "log-likelihood", ...
    sense : {"min", "max"}
        Whether the objective is better when lower or when higher.
    solution : str
        The solutions that the bound is about: "3-centre solution", "mixture of 3 components".
    unit : str, optional
        Unit of differences ("log units") for an objective whose ratios mean nothing, such as a log-likelihood. Without
        a unit the sentence gives per cents.
    attained : float, optional
        Objective of some known solution that the bound is about, which limits how loose the bound can be. Minus
        infinity if none is known.

    unless : str, optional
        Reservation about the proof, beginning with "unless", at the end of the sentence.

    Raises
    ------
    ValueError
        If the objective is better than the bound by more than rounding explains, or one of them is not finite.

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
    attained: float | None = None
    unless: str = ""

    def __post_init__(self) -> None:
        if self.sense not in ("min", "max"):
            raise ValueError(f"sense must be 'min' or 'max'; got {briefly(self.sense)}")
        if math.isnan(self.bound) or not math.isfinite(self.objective):
            raise ValueError(f"bound and objective must be numbers; got {self.bound} and {self.objective}")
        if self._shortfall < -PROVED * max(abs(self.objective), abs(self.bound)):
            raise ValueError(
                f"the objective {self.objective!r} is better than the bound {self.bound!r}: they do not belong to the "
                "same data, weights and number of parts"
            )
        if self._shortfall < 0:  # by rounding: no bound is shown beyond what was reached
            object.__setattr__(self, "bound", self.objective)

    @classmethod
    def of_likelihood(cls, found: Any, reached: float, solution: str) -> Certificate:
        """Return the certificate of an upper bound on a log-likelihood: ``bound``, ``method`` and ``attained``."""
        return cls(
            found.bound,
            reached,
            found.method,
            objective_name="log-likelihood",
            sense="max",
            solution=solution,
            unit="log units",
            attained=found.attained,
        )

    @property
    def _shortfall(self) -> float:
        away = self.objective - self.bound
        return away if self.sense == "min" else -away

    @property
    def difference(self) -> float:
        """Largest possible distance of the fit from the best possible, in units of the objective; at least zero."""
        return max(self._shortfall, 0.0)

    @property
    def gap(self) -> float:
        """The difference as a share of the best possible (where less is better) or of the fit; at least zero.

        Infinite if the bound is uninformative.
        """
        if self.difference == 0:
            return 0.0
        base = self.bound if self.sense == "min" and not self.unit else abs(self.objective)
        return math.nextafter(self.difference / base, math.inf) if base > 0 and math.isfinite(base) else math.inf

    @property
    def proved(self) -> bool:
        """Whether the fit is proved optimal: to a relative gap of 1e-5 or, where there is a unit, to 0.01 of it.

        With the reservation `unless`, if any.
        """
        return self.difference <= PROVED_DIFFERENCE if self.unit else self.gap <= PROVED

    @property
    def sentence(self) -> str:
        """What is proved, in a sentence whose numbers are rounded to the safe side, with any reservation."""
        return f"{self._sentence} All this {self.unless}." if self.unless else self._sentence

    @property
    def _sentence(self) -> str:
        fit = "this fit is"
        if not math.isfinite(self.difference if self.unit else self.gap):
            return (
                f"No useful bound on the {self.objective_name} was proved: it is the bound that is loose, "
                "which says nothing against this fit."
            )
        first = f"No {self.solution} on these data has {article(self.objective_name)} {self.objective_name}"
        if self.proved:  # a bound rounded to the safe side would look farther away than it is
            more = f" by more than {self.gap_text}" if self.difference else " than this"
            return f"{first} {'lower' if self.sense == 'min' else 'higher'}{more}; {fit} proved optimal."
        first += f" {'below' if self.sense == 'min' else 'above'} {self.bound_text}"
        text = f"{first}; {fit} within {self.gap_text} of the best possible."
        return f"{text} {_MAYBE_LOOSE}" if self._is_loose else text

    @property
    def bound_text(self) -> str:
        """The bound, rounded to the safe side."""
        style = objective_format(self.objective_name, [self.objective, self.bound])
        return style.text(self.bound, "down" if self.sense == "min" else "up")

    @property
    def gap_text(self) -> str:
        """The largest possible distance from the best possible, rounded up: per cents, or units of the objective."""
        if self.unit:
            return f"{rounded_up(self._difference_exactly())} {self.unit}"
        return f"{rounded_up(self._gap_exactly() * 100, powers_below=1e-4)} %"

    @property
    def _is_loose(self) -> bool:
        """Whether the gap is large, or where there is a unit, known to come mostly from the bound."""
        if not self.unit:
            return self.gap > LOOSE
        return self.attained is not None and abs(self.bound - self.attained) > 0.5 * self.difference

    def _difference_exactly(self) -> Decimal:
        if not self.difference:
            return Decimal(0)
        low, high = sorted((Decimal(self.objective), Decimal(self.bound)))
        return Context(prec=50, rounding=ROUND_CEILING).subtract(high, low)

    def _gap_exactly(self) -> Decimal:
        base = Decimal(self.bound if self.sense == "min" else self.objective)
        return Context(prec=50, rounding=ROUND_CEILING).divide(self._difference_exactly(), abs(base) or Decimal(1))


def certificate_of(search: SearchReport, objective: float | None = None) -> Certificate | None:
    """Return the certificate of the bound in a search report for a fit, by default its best; None without a bound."""
    if search.proved_bound is None:
        return None
    reached = search.best if objective is None else objective
    bound = (min if search.sense == "min" else max)(search.proved_bound, reached)  # rounding may cross them
    unit = "log units" if search.is_logarithm else ""
    return Certificate(bound, reached, "", search.objective_name, search.sense, solution=search.bound_on, unit=unit)
