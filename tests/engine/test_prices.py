"""The price of a first proposal, on excesses that are known as a function of the price."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from majorant.engine.prices import ENOUGH, spending_price

Array = NDArray[np.float64]


class Counted:
    """A function of prices, and how often it was asked."""

    def __init__(self, excess: Callable[[Array], Array]) -> None:
        self.excess, self.passes = excess, 0

    def __call__(self, prices: Array) -> Array:
        self.passes += 1
        return self.excess(prices)


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 30.0, 1e3])
def test_a_smooth_excess_meets_the_budget_in_two_passes(power: float, scale: float) -> None:
    excess = Counted(lambda prices: 5.0 * (prices / (2.0 * scale)) ** -power)
    price = spending_price(excess, 5.0, 2.0)
    assert excess.passes == 2
    assert ENOUGH <= excess(np.array(price)) / 5.0 <= 1.0 / ENOUGH**4


def test_the_highest_price_that_spends_enough_is_taken() -> None:
    """Where the excess jumps over the budget, above it: the loop blends what is too much."""
    price = spending_price(lambda prices: np.where(prices < 0.37, 40.0, 0.01), 4.0, 1.0)
    assert 0.37 / 8 ** (1 / 12) <= price < 0.37


def test_what_spends_most_is_taken_if_nothing_spends_enough() -> None:
    price = spending_price(lambda prices: 0.2 / (1 + prices), 4.0, 1.0)
    assert price == 8.0**-5


def test_an_infinite_excess_is_none() -> None:
    """Proposals of absent states are of no use at any share."""
    price = spending_price(lambda prices: np.where(prices < 0.1, np.inf, 0.5 / prices), 4.0, 1.0)
    assert 0.1 <= price <= 4.0 / 0.9
    assert spending_price(lambda prices: np.full_like(prices, np.inf), 4.0, 1.0) > 0


def test_a_policy_without_a_price_is_asked_once() -> None:
    excess = Counted(lambda prices: np.full_like(prices, 3.0))
    assert np.isfinite(spending_price(excess, 4.0, 1.0)) and excess.passes == 1
