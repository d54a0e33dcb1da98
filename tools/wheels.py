"""Build wheels of this checkout and try each: run by `make wheels` on Linux; the hosted build is in .github/workflows.

    python tools/wheels.py x86_64 [PYTHON ...]   # with each of these interpreters
    python tools/wheels.py aarch64               # cross-compiled, tried under emulation

Wheels go to dist/. One that Python 3.12 or later builds serves all later versions. For aarch64 it takes the packages
g++-aarch64-linux-gnu, qemu-user and apt-get of Debian 12 or a distribution whose packages of Python work as well.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "wheels"
DIST = ROOT / "dist"
SMOKE = ROOT / "tools" / "smoke.py"
ARM_PYTHON = "3.11"
MANYLINUX = ["manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"]
"""Tags of the wheels that other packages have for aarch64."""


def run(*command: object, **environment: str) -> None:
    """Run a command in the work folder; it is printed, and its failure is ours."""
    words = [str(word) for word in command]
    print("+", *words, flush=True)
    subprocess.run(words, cwd=WORK, env=os.environ | environment, check=True)


def built(python: object, name: str, **environment: str) -> Path:
    """The wheel that an interpreter builds, in a folder of its own."""
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    build = "-C", f"build-dir={WORK / ('build-' + name)}"
    run(python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, *build, ROOT, **environment)
    return next(folder.glob("*.whl"))


def audited(wheel: Path) -> Path:
    """The wheel under the tag of the oldest systems that it runs on, in dist/."""
    folder = WORK / "audited"
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", folder, wheel)
    return Path(shutil.copy(next(folder.glob("*.whl")), DIST))


def native(python: str) -> None:
    """A wheel for the machine at hand, installed into an empty environment of the same interpreter and tried there."""
    wheel = audited(built(python, "native"))
    run(python, "-m", "venv", "--clear", "venv")
    run("venv/bin/python", "-m", "pip", "install", "--quiet", f"{wheel}[cli]")
    run("venv/bin/python", SMOKE, "--not-from", ROOT / "src")


def arm_system() -> Path:
    """A folder with Python for aarch64, from the distribution's packages; without root or a setting of apt."""
    system, apt = WORK / "aarch64-system", WORK / "aarch64-apt"
    python = system / "usr" / "bin" / f"python{ARM_PYTHON}"
    if not python.exists():
        for folder in ("state/lists/partial", "cache/archives/partial"):
            (apt / folder).mkdir(parents=True, exist_ok=True)
        (apt / "status").touch()
        where = {"State": apt / "state", "Cache": apt / "cache", "State::status": apt / "status"}
        options = [f"-oDir::{key}={path}" for key, path in where.items()]
        options += ["-qq", "-oAPT::Architecture=arm64", "-oAPT::Architectures=arm64"]
        run("apt-get", *options, "update")
        wanted = f"python{ARM_PYTHON}", "libstdc++6", "zlib1g"
        run("apt-get", *options, "install", "--yes", "--download-only", "--no-install-recommends", *wanted)
        for package in sorted((apt / "cache" / "archives").glob("*.deb")):
            run("dpkg", "--extract", package, system)
    return system


def emulator(site: Path) -> Path:
    """A program that runs Python for aarch64, with the packages of a folder."""
    system, program = arm_system(), WORK / "aarch64-python"
    options = f"-L {system} -E PYTHONPATH={site} -E OPENBLAS_NUM_THREADS=1"
    program.write_text(f'#!/bin/sh\nexec qemu-aarch64 {options} {system}/usr/bin/python{ARM_PYTHON} "$@"\n')
    program.chmod(0o755)
    return program


def emulated(tests: bool) -> None:
    """A wheel for aarch64, tried under emulation: the smoke test but for its commands, and kernels' tests if asked."""
    python = f"python{ARM_PYTHON}"
    wheel = built(
        python,
        "aarch64",
        CXX="aarch64-linux-gnu-g++",
        CMAKE_ARGS="-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64",
        SETUPTOOLS_EXT_SUFFIX=f".cpython-{ARM_PYTHON.replace('.', '')}-aarch64-linux-gnu.so",
    )
    run(sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", "linux_aarch64", wheel)
    wheel = audited(next(wheel.parent.glob("*_aarch64.whl")))
    site = WORK / "aarch64-site"
    shutil.rmtree(site, ignore_errors=True)
    platforms = [f"--platform={tag}" for tag in (*wheel.stem.rpartition("-")[2].split("."), *MANYLINUX)]
    install = "-m", "pip", "install", "--quiet", *platforms, "--python-version", ARM_PYTHON, "--only-binary", ":all:"
    run(sys.executable, *install, "--target", site, wheel, "pytest", "hypothesis")
    emulated_python = emulator(site)
    run(emulated_python, SMOKE, "--not-from", ROOT / "src", "--no-commands")
    if tests:  # those that start Python anew have to start it under emulation too
        start = f"import sys, pytest; sys.executable = '{emulated_python}'; sys.exit(pytest.main(sys.argv[1:]))"
        run(emulated_python, "-c", start, "-q", "-p", "no:cacheprovider", "--rootdir", ROOT, ROOT / "tests" / "kernels")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machine", choices=["x86_64", "aarch64"])
    parser.add_argument("pythons", nargs="*", default=[sys.executable])
    parser.add_argument("--tests", action="store_true", help="run the kernels' tests under emulation too")
    chosen = parser.parse_args(arguments)
    WORK.mkdir(parents=True, exist_ok=True)
    DIST.mkdir(exist_ok=True)
    if chosen.machine == "aarch64":
        emulated(chosen.tests)
    else:
        for python in chosen.pythons:
            native(python)


if __name__ == "__main__":
    main()
