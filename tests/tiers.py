"""Which tests wait for `make test-all`; every other test is one of `make test`.

A case that takes a second of CPU waits. Of the cases of a function so many are quick as half a second allows, one at
least and sixteen at most. What a case of each takes is in tests/seconds.txt, which `make seconds` measures anew; a
function that is not in it is taken to be quick, so a new test needs no entry.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import mean

NEEDS = {
    "test_browser.py": "browser",
    "test_cluster.py": "cluster",
    "test_layout.py": "browser",
    "test_docs.py::test_every_block_runs": "site",
    "test_docs.py::test_the_site_builds_without_a_warning": "site",
}
"""What has to be installed or built first, by file or by file and function."""

LONGEST = 1.0
"""Seconds of CPU from which on a case waits."""

BUDGET = 0.5
"""Seconds of all quick cases of a function, unless one takes more."""

MOST = 16
"""Cases of a function that are quick however little they take: more of a kind seldom find more."""

GOLDEN = (5**0.5 - 1) / 2

MEASURED = Path(__file__).with_name("seconds.txt")


def read(lines: Iterable[str]) -> dict[str, list[float]]:
    """What each case of a function took; functions go by file and name, wherever the file lies."""
    seconds = defaultdict(list)
    for line in lines:
        taken, name = line.split()
        seconds[name].append(float(taken))
    return seconds


SECONDS = {name: taken for name, [taken] in read(MEASURED.read_text(encoding="utf-8").splitlines()).items()}
"""The mean of a case, or where it is longer what is longest."""


def tier(name: str, number: int, cases: int) -> str | None:
    """The marker of the case of that number of a function, of so many: None where it is quick."""
    needed = NEEDS.get(name.partition("::")[0]) or NEEDS.get(name)
    if needed is not None:
        return needed
    seconds = SECONDS.get(name, 0.0)
    if seconds >= LONGEST:
        return "slow"
    # Multiples of the golden ratio lie evenly whatever number of them is taken, and whatever grid the cases are of.
    return "slow" if number * GOLDEN % 1.0 >= quick_cases(seconds) / cases else None


def quick_cases(seconds: float) -> float:
    """How many quick cases a function has whose cases take so long."""
    return max(1, min(MOST, BUDGET / seconds)) if seconds else MOST


def main(record: str) -> None:
    """Keep the means of a record of cases (see conftest.py), where they decide anything."""
    taken = read(Path(record).read_text(encoding="utf-8").splitlines())
    lines = [
        f"{min(mean(cases), LONGEST):.2f} {name}\n"
        for name, cases in sorted(taken.items())
        if mean(cases) >= LONGEST or quick_cases(mean(cases)) < min(MOST, len(cases))
    ]
    MEASURED.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
