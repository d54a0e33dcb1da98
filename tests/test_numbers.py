"""Numbers: decimals, safe rounding, minus signs."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from majorant._numbers import NumberFormat, briefly, counted, html_number, number_format, p_value, percent, ratio


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (145.4171, 3, "145.417"),
        (-276.834, 3, "-276.834"),
        (-0.0001, 2, "0.00"),
        (150, 0, "150"),
        (2.5e9, 1, "2500000000.0"),
    ],
)
def test_nearest(value: float, decimals: int, text: str) -> None:
    assert NumberFormat(decimals).text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0012, "0.00120"), (1.95, "1.95"), (1.009, "1.0090"), (1.00005, "1.000050"), (12345.6, "12346"), (0.0, "0")],
)
def test_a_ratio_keeps_its_digits_and_those_of_its_distance_from_one(value: float, text: str) -> None:
    assert ratio(value) == text
    assert [ratio(2.3e-7), ratio(float("inf"))] == ["2.3e-07", "inf"]
    assert [p_value(0.0), p_value(0.03124), p_value(1.0)] == ["<0.0001", "0.0312", "1.0000"]


def test_whole_numbers_keep_all_digits() -> None:
    assert NumberFormat(0).text(2**70 + 1) == str(2**70 + 1)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_what_is_not_finite_is_said(value: float) -> None:
    assert NumberFormat(3).text(value) == str(value)


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(0, 8),
    st.booleans(),
)
def test_safe_rounding_never_crosses_the_number(value: float, decimals: int, powers: bool) -> None:
    style = NumberFormat(decimals, powers)
    down, up = Fraction(style.text(value, "down")), Fraction(style.text(value, "up"))
    assert down <= Fraction(value) <= up
    if not powers:
        assert up - down <= Fraction(1, 10**decimals)
    assert not style.text(value).startswith("-0.00000000")


@given(st.floats(min_value=1e-300, max_value=1e300), st.integers(0, 4))
def test_format_shows_at_least_two_digits(value: float, decimals: int) -> None:
    style = number_format([value, 0.0], decimals)
    shown = float(style.text(value))
    assert abs(shown - value) <= 0.05 * value + 1e-300
    assert style.powers or style.decimals >= decimals


def test_powers_where_all_numbers_are_tiny_or_huge() -> None:
    assert number_format([3.2e-14], 2).text(3.2e-14) == "3.2000e-14"
    assert NumberFormat(1, powers=True).text(9.99e5) == "1.0e+06"
    assert number_format([], 2) == NumberFormat(2)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("-1277.93", "\u22121\u202f277.93"),
        ("999.5", "999.5"),
        ("-inf", "\u2212inf"),
        ("nan", "nan"),
        ("1.5e-09", "1.5e\u221209"),
    ],
)
def test_html_number(text: str, html: str) -> None:
    assert html_number(text) == html


def test_percent_and_counts() -> None:
    assert percent(0.448, 1) == "44.8 %"
    assert percent(0.00864, 2, "up") == "0.87 %"
    assert (counted(1, "start"), counted(2, "optimum", "optima")) == ("1 start", "2 optima")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.int64(36), "36"),
        (np.float32(0.1), "0.1"),
        (np.bool_(True), "True"),
        (np.str_("red"), "'red'"),
        ([np.float64(2.5), {np.int8(3): np.nan}], "[2.5, {3: nan}]"),
        (np.datetime64("2020-01-02"), "2020-01-02"),
        (date(2020, 1, 2), "2020-01-02"),
    ],
)
def test_what_was_got_is_written_without_the_names_of_types(value: Any, text: str) -> None:
    assert briefly(value) == text
