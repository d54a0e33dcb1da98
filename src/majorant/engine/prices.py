"""At which price does a policy's first proposal spend its budget?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

RUNGS = (8.0 ** np.arange(5, -6, -1)).astype(np.float64)
"""Prices of the first pass, relative to one over the mean budget of a unit, in descending order."""
STEPS = 12
"""Prices of the second pass, from one rung down to the next."""
ENOUGH = 0.9
"""A proposal that spends this share of the budget needs no lower price."""


def spending_price(
    # excesses of the proposals at several prices, by one pass
    excesses: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    budget: float,
    unit: float,  # weight of the data over the budget
) -> float:
    """Return the highest price at which a proposal spends its budget, by two passes over the data.

    The excess of a proposal is a sum over units, so one pass gives it at several prices.

    A proposal at this price may exceed the budget, and is blended then. Where none spends enough, it is
    the price of the one that spends most.
    """
    prices = np.asarray(unit * RUNGS, dtype=np.float64)
    spent = excesses(prices)
    at = _first(spent, budget)
    if at == 0 or spent[at] == spent[at - 1]:  # the price makes no difference, or the proposal too little
        return float(prices[at])
    prices = np.geomspace(prices[at - 1], prices[at], STEPS + 1)[1:].astype(np.float64)
    return float(prices[_first(excesses(prices), budget)])


def _first(spent: NDArray[np.float64], budget: float) -> int:
    """Return the index of the first excess that is large enough and finite, or else of the largest finite one."""
    spent = np.where(np.isfinite(spent), spent, -np.inf)
    enough = spent >= ENOUGH * budget
    return int(enough.argmax() if enough.any() else spent.argmax())
