"""Certificates: gaps, the word "proved", and sentences that stay true after rounding."""

from __future__ import annotations

import math
import re
from dataclasses import FrozenInstanceError
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from majorant.results.certificate import Certificate


def test_gap_of_a_smaller_is_better_objective() -> None:
    made = Certificate(100.0, 101.0, "set partition", solution="3-centre solution")
    assert made.gap == pytest.approx(0.01)
    assert made.difference == 1.0
    assert not made.proved
    assert made.sentence == (
        "No 3-centre solution on these data has an SSE below 100.00; this fit is within 1.0 % of the best possible."
    )
    assert str(made) == made.sentence


def test_proved_optimal() -> None:
    made = Certificate(108.61899, 108.619, "set partition", solution="15-centre solution")
    assert made.proved
    assert made.sentence == (
        "No 15-centre solution on these data has an SSE lower by more than 9.3e-6 %; this fit is proved optimal."
    )


@pytest.mark.parametrize(
    ("gap", "text"), [(0.0, "0 %"), (0.0087, "0.87 %"), (0.125, "13 %"), (0.00031, "0.032 %"), (3.214, "322 %")]
)
def test_a_gap_is_rounded_up(gap: float, text: str) -> None:
    """A sum of 1 and 0.00031 is a little more than that."""
    assert Certificate(1.0, 1.0 + gap, "any").gap_text == text


@pytest.mark.parametrize(("bound", "proved"), [(1 - 1e-5, False), (1 - 0.99e-5, True), (1.0, True), (1 + 1e-9, True)])
def test_edge_of_proved(bound: float, proved: bool) -> None:
    assert Certificate(bound, 1.0, "any").proved is proved


def test_loose_bound_is_said_to_be_loose() -> None:
    sentence = Certificate(50.0, 100.0, "any").sentence
    assert "within 100 % of the best possible" in sentence
    assert "bound may be what is loose" in sentence
    assert "bound may" not in Certificate(99.0, 100.0, "any").sentence


@pytest.mark.parametrize("bound", [0.0, -1.0, -math.inf])
def test_bound_that_says_nothing(bound: float) -> None:
    made = Certificate(bound, 3.0, "none found")
    assert math.isinf(made.gap)
    assert not made.proved
    assert "it is the bound that is loose" in made.sentence


def test_zero_objective_is_optimal() -> None:
    made = Certificate(0.0, 0.0, "no more distinct points than centres")
    assert (made.gap, made.proved) == (0.0, True)
    assert "has an SSE lower than this; this fit is proved optimal" in made.sentence


def test_larger_is_better_objective_in_its_own_unit() -> None:
    made = Certificate(
        -100.0004,
        -103.2,
        "nonparametric",
        objective_name="log-likelihood",
        sense="max",
        solution="mixture of 3 components",
        unit="log units",
    )
    assert made.difference == pytest.approx(3.1996)
    assert made.sentence == (
        "No mixture of 3 components on these data has a log-likelihood above -100.000; "
        "this fit is within 3.2 log units of the best possible."
    )


def test_contradictions_are_refused() -> None:
    with pytest.raises(ValueError, match="better than the bound"):
        Certificate(2.0, 1.0, "any")
    with pytest.raises(ValueError, match="better than the bound"):
        Certificate(1.0, 2.0, "any", sense="max")
    with pytest.raises(ValueError, match="must be numbers"):
        Certificate(math.nan, 1.0, "any")
    with pytest.raises(ValueError, match="must be numbers"):
        Certificate(0.0, math.inf, "any")
    with pytest.raises(ValueError, match="sense"):
        Certificate(0.0, 1.0, "any", sense="up")  # type: ignore[arg-type]


def test_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Certificate(1.0, 1.0, "any").bound = 2.0  # type: ignore[misc]


@given(
    objective=st.floats(1e-280, 1e280),
    share=st.floats(0.0, 1.0),
)
def test_printed_numbers_are_still_proved(objective: float, share: float) -> None:
    made = Certificate(objective * share, objective, "any")
    if not math.isfinite(made.gap):
        return
    if made.proved:
        more = re.search(r"lower by more than (\S+) %", made.sentence)
        assert (more is None) == (made.difference == 0)
        gap = (Decimal(made.objective) - Decimal(made.bound)) / Decimal(made.bound) * 100
        assert more is None or Decimal(more.group(1)) >= gap
        return
    printed = re.search(r"below (\S+);", made.sentence)
    assert printed is not None
    assert Decimal(printed.group(1)) <= Decimal(made.bound)
    within = re.search(r"within (\S+) %", made.sentence)
    assert within is not None
    gap = (Decimal(made.objective) - Decimal(made.bound)) / Decimal(made.bound)
    assert Decimal(within.group(1)) >= 100 * gap * (1 - Decimal("1e-25"))
    assert Decimal(within.group(1)) <= 110 * gap + 1


@pytest.mark.parametrize(("sense", "away"), [("min", 1e-9), ("max", -1e-9)])
def test_no_bound_is_shown_beyond_what_was_reached(sense: Any, away: float) -> None:
    made = Certificate(100.005 * (1 + away), 100.005, "any", "SSE", sense)
    assert (made.bound, made.difference) == (100.005, 0.0) and made.proved
    assert made.sentence.startswith(f"No solution on these data has an SSE {'lower' if away > 0 else 'higher'} than")


@given(objective=st.floats(-1e9, 1e9), room=st.floats(0.0, 1e6))
def test_upper_bounds_are_rounded_up(objective: float, room: float) -> None:
    made = Certificate(objective + room, objective, "any", "log-likelihood", "max", unit="log units")
    if not math.isfinite(made.difference):
        return
    if made.proved:
        more = re.search(r"higher by more than (\S+) log units", made.sentence)
        assert (more is None) == (made.difference == 0)
        assert more is None or Decimal(more.group(1)) >= Decimal(made.bound) - Decimal(made.objective)
        return
    printed = re.search(r"above (\S+);", made.sentence)
    assert printed is not None
    assert Decimal(printed.group(1)) >= Decimal(made.bound)


def test_a_unit_decides_what_is_proved() -> None:
    near = Certificate(-100.0, -100.009, "any", "log-likelihood", "max", unit="log units")
    assert near.proved
    assert near.sentence.endswith("higher by more than 0.0091 log units; this fit is proved optimal.")
    assert not Certificate(-1e6, -1e6 - 1, "any", "log-likelihood", "max", unit="log units").proved


def test_a_bound_that_may_be_loose_says_so_where_that_is_known() -> None:
    def sentence(attained: float | None) -> str:
        return Certificate(-90.0, -100.0, "any", "log-likelihood", "max", unit="log units", attained=attained).sentence

    assert "bound may be what is loose" in sentence(-math.inf)
    assert "bound may be what is loose" in sentence(-99.0)
    assert "loose" not in sentence(-90.5)
    assert "loose" not in sentence(None)
    zero = Certificate(3.0, 0.0, "any", "log-likelihood", "max", unit="log units")
    assert zero.sentence.endswith("within 3.0 log units of the best possible.")
