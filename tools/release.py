"""Prepare a release: its version wherever one is written, and a section of the changelog.

python tools/release.py 0.2.0           # then read the diff, commit, tag v0.2.0 and push the tag
python tools/release.py --check 0.2.0   # is it prepared? prints its notes
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONS = {
    "pyproject.toml": r'^version = "(.+)"$',
    "src/majorant/__init__.py": r'^__version__ = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
    "conda/meta.yaml": r'^{% set version = "(.+)" %}$',
}


def versions(root: Path) -> dict[str, str]:
    """The version that each file names."""
    found = {}
    for name, pattern in VERSIONS.items():
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert match is not None, f"{name} names no version"
        found[name] = match[1]
    return found


def prepare(root: Path, version: str, day: str) -> None:
    """Write the version into every file, and what is unreleased under its name; once prepared, nothing changes.

    Raises
    ------
    ValueError
        If the version is none, or has a section of the changelog while something is unreleased.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ValueError(f"the version is {version}; it must be three numbers, such as 0.2.0")
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    if f"## [{version}]" not in text:
        text = text.replace("## [Unreleased]\n", f"## [Unreleased]\n\n## [{version}] - {day}\n", 1)
    elif not re.search(r"## \[Unreleased\]\s*## ", text):
        raise ValueError(f"the changelog has a section {version} already: move what is unreleased there, or raise it")
    changelog.write_text(text, encoding="utf-8")
    for name, pattern in VERSIONS.items():
        text = (root / name).read_text(encoding="utf-8")
        text = re.sub(pattern, lambda line: line[0].replace(line[1], version), text, count=1, flags=re.MULTILINE)
        (root / name).write_text(text, encoding="utf-8")


def notes(root: Path, version: str) -> str:
    """What the changelog tells of a version.

    Raises
    ------
    ValueError
        If a file names another version, or the changelog tells nothing of this one.
    """
    others = {name: found for name, found in versions(root).items() if found != version}
    if others:
        raise ValueError(f"{version} is not the version of {others}: python tools/release.py {version}")
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(rf"^## \[{re.escape(version)}\].*?\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    if section is None or not section[1].strip():
        raise ValueError(f"CHANGELOG.md has nothing under [{version}]: python tools/release.py {version}")
    return section[1].strip()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.check:
            print(notes(ROOT, chosen.version))
        else:
            prepare(ROOT, chosen.version, datetime.now(UTC).date().isoformat())
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
