"""Numbers in words, plurals, and lists."""

from __future__ import annotations

from collections.abc import Sequence

from majorant._numbers import plural_of
from majorant.report.numbers import integer

_SMALL = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def in_words(n: int) -> str:
    """Write a count up to ninety-nine in words, a larger one in figures."""
    if not 0 <= n < 100:
        return integer(n)
    if n < 20:
        return _SMALL[n]
    tens, ones = divmod(n, 10)
    return _TENS[tens - 2] + (f"-{_SMALL[ones]}" if ones else "")


def in_prose(n: int) -> str:
    """Write a count within a sentence: in words up to twelve."""
    return in_words(n) if n <= 12 else integer(n)


def opening(n: int) -> str:
    """Write a count at the beginning of a sentence."""
    return capital(in_words(n))


def capital(text: str) -> str:
    """Return `text` with a capital first letter."""
    return text[:1].upper() + text[1:]


def counted(n: int, noun: str, *, words: bool = True) -> str:
    """Write a count and its noun: "one row", "13 rows"."""
    return f"{in_prose(n) if words else integer(n)} {noun if n == 1 else plural_of(noun)}"


def verb(n: int, singular: str, plural: str) -> str:
    """Return the form of a verb for a count."""
    return singular if n == 1 else plural


def listed(items: Sequence[str]) -> str:
    """Join items: "a", "a and b", "a, b and c"."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def chance(share: float) -> str:
    """Write a share of attempts in words: "two times in five", "one time in 290"."""
    simple = ((0.9, "nine times in ten"), (0.8, "four times in five"), (0.75, "three times in four"))
    middle = ((2 / 3, "two times in three"), (0.6, "three times in five"), (0.5, "one time in two"))
    low = (
        (0.4, "two times in five"),
        (1 / 3, "one time in three"),
        (0.25, "one time in four"),
        (0.2, "one time in five"),
    )
    if share >= 0.95:
        return "more than nine times in ten"
    if share < 0.18:
        return one_in(share)
    return min((*simple, *middle, *low), key=lambda choice: abs(choice[0] - share))[1]


def one_in(share: float) -> str:
    """Write a small share in words, with two significant digits: "one time in 290"."""
    if share <= 1e-4:
        return "less than one time in " + integer(10_000)
    times = 1 / share
    if round(times) < 100:
        return f"one time in {in_prose(round(times))}"
    return f"one time in {integer(int(round(times, -1 if times < 1000 else -2)))}"
