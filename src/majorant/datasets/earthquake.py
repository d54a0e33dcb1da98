"""The earthquake table: how many earthquakes of magnitude 7 or more there were in each year from 1900 to 2006.

Counts by the US Geological Survey, as listed in W. Zucchini, I. MacDonald, R. Langrock, "Hidden Markov Models for Time
Series", 2nd edition, 2016.
"""

from __future__ import annotations

FIRST_YEAR = 1900
# fmt: off
COUNTS = (
    13, 14, 8, 10, 16, 26, 32, 27, 18, 32, 36, 24, 22, 23, 22, 18, 25, 21, 21, 14, 8, 11, 14, 23, 18, 17, 19, 20, 22,
    19, 13, 26, 13, 14, 22, 24, 21, 22, 26, 21, 23, 24, 27, 41, 31, 27, 35, 26, 28, 36, 39, 21, 17, 22, 17, 19, 15, 34,
    10, 15, 22, 18, 15, 20, 15, 22, 19, 16, 30, 27, 29, 23, 20, 16, 21, 21, 25, 16, 18, 15, 18, 14, 10, 15, 8, 15, 6,
    11, 8, 7, 18, 16, 13, 12, 13, 20, 15, 16, 12, 18, 15, 16, 13, 15, 16, 11, 11,
)
# fmt: on


def earthquake_csv() -> bytes:
    """Return the table as CSV, one row per year: the year and its number of earthquakes."""
    rows = "".join(f"{year},{count}\n" for year, count in enumerate(COUNTS, FIRST_YEAR))
    return f"year,earthquakes\n{rows}".encode()
