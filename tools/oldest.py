"""The oldest versions that pyproject.toml allows, as constraints for pip.

python tools/oldest.py [EXTRA ...] > constraints.txt
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def constraints(extras: Sequence[str]) -> list[str]:
    """A line for each package that the project or one of the extras asks for, pinned to its lowest version.

    Raises
    ------
    ValueError
        If a package has no lowest version.
    """
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    found = {}
    for line in asked:
        name, lowest = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?(?:>=([\d.]+))?.*", line).groups()  # type: ignore[union-attr]
        if name == project["name"]:
            continue
        if lowest is None:
            raise ValueError(f"{line} names no lowest version")
        found[name] = f"{name}=={lowest}"
    return sorted(found.values())


if __name__ == "__main__":
    print("\n".join(constraints(sys.argv[1:])))
