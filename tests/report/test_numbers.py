import math

import pytest

from majorant.report import numbers


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (1277.934, 2, "1\u202f277.93"),
        (-0.001, 2, "0.00"),
        (-3.25, 1, "\u22123.2"),
        (1234567, 0, "1\u202f234\u202f567"),
        (math.nan, 2, "\u2013"),
        (-math.inf, 2, "\u2212\u221e"),
    ],
)
def test_fixed(value: float, decimals: int, text: str) -> None:
    assert numbers.fixed(value, decimals) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00"),
        (1277.934, "1\u202f277.93"),
        (0.01234, "0.01234"),
        (1.2345e-9, "1.2345\u202f\u00d7\u202f10\u207b\u2079"),
        (-2.5e12, "\u22122.5000\u202f\u00d7\u202f10\u00b9\u00b2"),
    ],
)
def test_objectives_keep_the_digits_that_count(value: float, text: str) -> None:
    assert numbers.objective(value, "SSE") == text


def test_a_lower_bound_is_rounded_down_and_an_upper_bound_up() -> None:
    assert numbers.bound(1266.889, "SSE", 1277.93, "min") == "1\u202f266.88"
    assert numbers.bound(1266.881, "SSE", 1277.93, "max") == "1\u202f266.89"
    assert numbers.bound(-1.001, "SSE", -1.0, "min") == "\u22121.001"
    assert numbers.bound(-1.0001, "SSE", -1.0, "min") == "\u22121.001"
    assert numbers.bound(1.23459e-9, "SSE", 1.3e-9, "min").startswith("1.2345\u202f")


@pytest.mark.parametrize(
    ("share", "decimals", "text"),
    [
        (0.4484, 1, "44.8\u202f%"),
        (0.99996, 1, "99.9\u202f%"),
        (1.0, 0, "100\u202f%"),
        (0.0001, 1, "less than 0.1\u202f%"),
        (0.0, 1, "0.0\u202f%"),
    ],
)
def test_per_cents_read_all_or_none_only_if_they_are(share: float, decimals: int, text: str) -> None:
    assert numbers.percent(share, decimals) == text


@pytest.mark.parametrize(
    ("low", "high"), [(1234.2, 1234.8), (1e-9, 1.1e-9), (-1.0, 1.0), (5e11, 5.001e11), (0.1, 0.1001)]
)
def test_a_cut_lies_between_its_neighbours_as_it_is_printed(low: float, high: float) -> None:
    text = numbers.between(low, high).replace("\u202f", "").replace("\u2212", "-")
    if "\u00d7" in text:
        mantissa, power = text.split("\u00d710")
        raised = power.translate(
            str.maketrans("\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "-0123456789")
        )
        text = f"{mantissa}e{raised}"
    assert low < float(text) < high


@pytest.mark.parametrize(("value", "text"), [(0.832, "0.832"), (31.24, "31.2"), (91365.0, "91\u202f365"), (0, "0")])
def test_distances_have_three_digits(value: float, text: str) -> None:
    assert numbers.distance(value) == text
