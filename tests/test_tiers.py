"""Tiers hold their budget, and what they name is there: a test that is renamed would silently be quick."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from . import tiers

TESTS = {
    f"{path.name}::{function}"
    for path in Path(__file__).parent.rglob("test_*.py")
    for function in re.findall(r"^ *def (test_\w+)\(", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
}


def quick(name: str, cases: int) -> list[int]:
    return [number for number in range(cases) if tiers.tier(name, number, cases) is None]


def test_what_waits_exists() -> None:
    files = {name.partition("::")[0] for name in TESTS}
    assert not set(tiers.SECONDS) - TESTS
    assert not set(tiers.NEEDS) - TESTS - files


@pytest.mark.parametrize("cases", [1, 2, 14, 16, 17, 100, 686])
@pytest.mark.parametrize("seconds", [0.0, 0.03, 0.2, 0.9])
def test_quick_cases_take_half_a_second_and_lie_evenly(
    monkeypatch: pytest.MonkeyPatch, seconds: float, cases: int
) -> None:
    monkeypatch.setitem(tiers.SECONDS, "test_any.py::test_anything", seconds)
    found = quick("test_any.py::test_anything", cases)
    asked = min(cases, max(1, min(16, 0.5 / seconds if seconds else 16)))
    assert found[0] == 0
    assert abs(len(found) - asked) <= 1
    gaps = [b - a for a, b in zip(found, [*found[1:], cases], strict=True)]
    assert max(gaps) <= 3 * cases / asked


def test_what_takes_longer_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tiers.SECONDS, "test_any.py::test_anything", 1.0)
    assert quick("test_any.py::test_anything", 5) == []
    assert quick("test_any.py::test_another", 5) == list(range(5))
    assert tiers.tier("test_cluster.py::test_any", 0, 1) == "cluster"


def test_a_record_is_kept_as_means_where_they_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = tmp_path / "record"
    lines = ["2.0 test_a.py::dear", *["0.1 test_a.py::many", "0.3 test_a.py::many"] * 5, "0.9 test_a.py::one"]
    record.write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(tiers, "MEASURED", tmp_path / "seconds.txt")
    tiers.main(str(record))
    assert (tmp_path / "seconds.txt").read_text(encoding="utf-8") == "1.00 test_a.py::dear\n0.20 test_a.py::many\n"
