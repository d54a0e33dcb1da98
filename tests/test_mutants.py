"""What tools/mutants.py stands on: mutants that differ in one thing, and statements that tell when they are run."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]

SOURCE = '''"""A module."""

from __future__ import annotations

LIMIT: int = 3


def least(values: list[float], floor: float = 1.0) -> float:
    """The least value."""
    if not values or floor > LIMIT - 1:
        raise ValueError(f"{1 + 1} of {values}")
    total: float = min(values)
    for value in values:
        total += value
    return total * 2
'''

CHANGES = [
    ("room/module.py:10", "not values -> values"),
    ("room/module.py:10", "not values or floor > LIMIT - 1 -> not values and floor > LIMIT - 1"),
    ("room/module.py:10", "floor > LIMIT - 1 -> floor >= LIMIT - 1"),
    ("room/module.py:10", "LIMIT - 1 -> LIMIT + 1"),
    ("room/module.py:10", "1 -> 2"),
    ("room/module.py:12", "min -> max"),
    ("room/module.py:14", "total += value -> total -= value"),
    ("room/module.py:15", "total * 2 -> total / 2"),
    ("room/module.py:15", "2 -> 3"),
]
"""Of statements of functions: neither constants of the module nor defaults, annotations, messages or docstrings."""


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The tool, of a package of one module."""
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "tools" / "mutants.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    monkeypatch.setattr(tool, "PACKAGE", tmp_path)
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "module.py").write_text(SOURCE, encoding="utf-8")
    return tool


def test_each_mutant_changes_one_thing(tool: Any) -> None:
    found = list(tool.mutants(tool.PACKAGE / "room" / "module.py"))
    changes = {(where, what) for where, what, _ in found}
    assert set(CHANGES) < changes
    assert len({text for _, _, text in found}) == len(found) == len(CHANGES) + 1  # and the if that is turned round
    plain = ast.unparse(ast.parse(SOURCE)).splitlines()
    for _, _, text in found:
        assert sum(old != new for old, new in zip(plain, text.splitlines(), strict=True)) == 1


def test_statements_tell_that_they_ran(tool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: set[str] = set()
    text = tool.marked(tool.PACKAGE / "room" / "module.py").replace("from majorant._ran import ran as _ran", "")
    module: dict[str, Any] = {"_ran": ran.add}
    exec(compile(text, "module.py", "exec"), module)
    assert module["least"]([1.0, 2.0]) == 8.0
    assert ran == {f"room/module.py:{line}" for line in (10, 12, 13, 14, 15)}
