"""Every test that tests/tiers.py names is there, under that name: one that is renamed would silently be quick."""

from __future__ import annotations

import re
from pathlib import Path

from .tiers import NEEDS, SAMPLED, SLOW, tier

TESTS = {
    f"{path.name}::{function}"
    for path in Path(__file__).parent.rglob("test_*.py")
    for function in re.findall(r"^ *def (test_\w+)\(", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
}


def test_what_waits_exists() -> None:
    files = {name.partition("::")[0] for name in TESTS}
    assert not {*SAMPLED, *SLOW} - TESTS
    assert not set(NEEDS) - TESTS - files
    assert not set(SAMPLED) & SLOW


def test_of_many_cases_alike_one_of_so_many_is_quick() -> None:
    for name, each in SAMPLED.items():
        quick = [number for number in range(3 * each) if tier(*name.split("::"), number) is None]
        assert quick == [0, each, 2 * each] and each > 1
    assert tier("test_any.py", "test_anything", 1) is None
