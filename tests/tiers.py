"""Which tests wait for `make test-all`; every other test is one of `make test`.

A function of tests has a second of CPU in `make test`: a case that takes longer waits, and of many cases so many are
quick as a second allows, sixteen at most. What each function takes is in tests/seconds.txt, which `make seconds`
measures anew; one that is not in it is taken to be quick, so a new test needs no entry.
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

BUDGET = 1.0
"""Seconds of CPU of all quick cases of a function."""

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
"""The mean of a case, no more than the budget."""


def tier(name: str, number: int, cases: int) -> str | None:
    """The marker of the case of that number of a function, of so many: None where it is quick."""
    needed = NEEDS.get(name.partition("::")[0]) or NEEDS.get(name)
    if needed is not None:
        return needed
    seconds = SECONDS.get(name, 0.0)
    if seconds >= BUDGET:
        return "slow"
    quick = min(MOST, int(BUDGET / seconds) if seconds else MOST)
    # Multiples of the golden ratio lie evenly whatever number of them is taken, and whatever grid the cases are of.
    return "slow" if number * GOLDEN % 1.0 >= quick / cases else None


def main(record: str) -> None:
    """Keep the means of a record of cases (see conftest.py), where they decide anything."""
    taken = read(Path(record).read_text(encoding="utf-8").splitlines())
    lines = [
        f"{min(mean(cases), BUDGET):.2f} {name}\n"
        for name, cases in sorted(taken.items())
        if mean(cases) * min(MOST, len(cases)) > BUDGET
    ]
    MEASURED.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
