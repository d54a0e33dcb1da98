"""What `make release-check` and `make oldest` stand on."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_smoke_test_passes(tmp_path: Path) -> None:
    """But for its commands, which tests/cli runs."""
    smoke = runpy.run_path(str(ROOT / "tools" / "smoke.py"))
    smoke["check_package"](tmp_path)
    smoke["check_fits"](tmp_path)


def test_the_smoke_test_sees_where_the_package_is() -> None:
    with pytest.raises(AssertionError, match="is not what was installed"):
        runpy.run_path(str(ROOT / "tools" / "smoke.py"))["check_package"](Path(ROOT.anchor))


def test_every_dependency_has_a_lowest_version() -> None:
    constraints = runpy.run_path(str(ROOT / "tools" / "oldest.py"))["constraints"]
    for extras in ([], list(PROJECT["optional-dependencies"])):
        found = constraints(extras)
        assert all(re.fullmatch(r"[\w-]+==[\d.]+", line) for line in found)
        assert "numpy==1.26" in found and not any(line.startswith("majorant") for line in found)
