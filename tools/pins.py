"""Exact versions of all that the project and its extras need, as constraints for pip: what CI installs.

    python tools/pins.py > .ci/constraints.txt

The newest that pip finds together, on Linux, for each Python that the classifiers of pyproject.toml name; where they
differ, there is a line for each.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
TOOLS = ["cmake", "ninja", "pip"]


def requirements() -> list[str]:
    """What pyproject.toml asks for: to build, to run, and by every extra."""
    settings = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    project = settings["project"]
    extras = (line for lines in project["optional-dependencies"].values() for line in lines)
    asked = {*settings["build-system"]["requires"], *project["dependencies"], *extras, *TOOLS}
    return sorted(line for line in asked if not line.startswith(f"{project['name']}["))


def pythons() -> list[str]:
    """The versions of Python that the project names."""
    classifiers = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["classifiers"]
    return re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))


def resolved(python: str) -> dict[str, str]:
    """Versions by package, as pip would install them."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--report", "-", "--target", folder]
        command += ["--only-binary", ":all:", "--python-version", python, *requirements()]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found = (one["metadata"] for one in json.loads(done.stdout)["install"])
    return {re.sub(r"[-_.]+", "-", one["name"]).lower(): one["version"] for one in found}


def constraints() -> list[str]:
    """A line for each package, or for each of its versions."""
    pythons_by_pin: defaultdict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for python in pythons():
        for name, version in resolved(python).items():
            pythons_by_pin[name][version].append(python)
    lines = []
    for name, versions in sorted(pythons_by_pin.items()):
        for version, needed_by in versions.items():
            marker = " or ".join(f'python_version == "{python}"' for python in needed_by)
            lines.append(f"{name}=={version}" + (f" ; {marker}" if len(versions) > 1 else ""))
    return lines


if __name__ == "__main__":
    print("# The pinned versions of CI, made by: python tools/pins.py > .ci/constraints.txt", *constraints(), sep="\n")
