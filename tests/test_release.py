"""What `make release-check`, `make oldest` and the pinned versions of CI stand on."""

from __future__ import annotations

import re
import runpy
import shutil
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


def test_the_recipe_of_conda_asks_for_the_same() -> None:
    """For the package and its commands, as conda has no extras; matplotlib is called otherwise there."""
    recipe = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
    listed = set(re.findall(r"^    - ([\w-]+ >=[\d.]+)$", recipe.split("  run:\n")[1], flags=re.MULTILINE))
    asked = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["cli"]]
    assert listed == {line.replace(">=", " >=").replace("matplotlib ", "matplotlib-base ") for line in asked}


def test_a_release_is_one_command(tmp_path: Path) -> None:
    release = runpy.run_path(str(ROOT / "tools" / "release.py"))
    for name in ("CHANGELOG.md", *release["VERSIONS"]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changelog = tmp_path / "CHANGELOG.md"
    with_news = changelog.read_text(encoding="utf-8").replace(
        "## [Unreleased]\n", "## [Unreleased]\n\n- Something.\n", 1
    )
    changelog.write_text(with_news, encoding="utf-8")
    assert set(release["versions"](tmp_path).values()) == {PROJECT["version"]}
    with pytest.raises(ValueError, match=r"is not the version of .*python tools/release.py 98\.7\.6"):
        release["notes"](tmp_path, "98.7.6")
    release["prepare"](tmp_path, "98.7.6", "2030-01-01")
    assert set(release["versions"](tmp_path).values()) == {"98.7.6"}
    changes = with_news.split("## [Unreleased]")[1].split("\n## ")[0]
    assert release["notes"](tmp_path, "98.7.6") == changes.strip()
    prepared = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    release["prepare"](tmp_path, "98.7.6", "2030-01-02")
    assert (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8") == prepared
    later = prepared.replace("## [Unreleased]\n", "## [Unreleased]\n\n- Something new.\n")
    (tmp_path / "CHANGELOG.md").write_text(later, encoding="utf-8")
    with pytest.raises(ValueError, match="already"):
        release["prepare"](tmp_path, "98.7.6", "2030-01-02")
    with pytest.raises(ValueError, match="three numbers"):
        release["prepare"](tmp_path, "next", "2030-01-01")
