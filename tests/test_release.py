"""What `make release-check`, `make oldest` and the pinned versions of CI stand on."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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


def test_ci_pins_every_dependency() -> None:
    """For every Python that the project names, and at no less than its lowest version."""
    pins = runpy.run_path(str(ROOT / "tools" / "pins.py"))
    lines = (ROOT / ".ci" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = [Requirement(line) for line in lines if not line.startswith("#")]
    assert "3.11" in pins["pythons"]()
    for asked in map(Requirement, pins["requirements"]()):
        for python in pins["pythons"]():
            name, here = canonicalize_name(asked.name), {"python_version": python}
            found = [pin for pin in pinned if pin.name == name and (pin.marker is None or pin.marker.evaluate(here))]
            assert len(found) == 1, (asked, python)
            assert asked.specifier.contains(next(iter(found[0].specifier)).version), (asked, found)
