"""Whether an installed majorant works: run by `make release-check` with the interpreter of a clean environment.

    python tools/smoke.py [--not-from FOLDER] [--no-commands]

It is an error if the package comes from that folder. The command line is looked for beside the interpreter.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

import majorant as mj
from majorant import _kernels


def check_package(source: Path | None) -> None:
    """It is complete, and it is the one that was installed."""
    home = Path(mj.__file__).resolve().parent
    assert source is None or not home.is_relative_to(source.resolve()), f"{home} is not what was installed"
    assert mj.__version__ == version("majorant"), (mj.__version__, version("majorant"))
    assert (home / "py.typed").is_file(), "types are not marked as such"
    for name in mj.__all__:
        getattr(mj, name)


def check_fits(folder: Path) -> None:
    """Fit, certify, save, load, predict."""
    X = np.repeat([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]], 20, axis=0) + np.random.default_rng(0).normal(size=(60, 2))
    model = mj.KMeans(3, random_state=0).fit(X)
    assert model.certify(X).bound <= model.inertia_ * (1 + 1e-9)
    model.save(folder / "model.majorant")
    assert (mj.load(folder / "model.majorant").predict(X) == model.predict(X)).all()
    assert mj.GaussianMixture(3, random_state=0).fit(X).regular_


def check_commands(folder: Path) -> None:
    """The demo, its report again, and predictions for its own table."""
    program = str(Path(sys.executable).with_name("majorant"))
    for command in (
        ["--version"],
        ["demo", "kmeans", "--out", "demo"],
        ["report", "demo/run"],
        ["predict", "demo/run", "demo/wine.csv", "--out", "predicted.csv"],
    ):
        done = subprocess.run([program, *command], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"majorant {' '.join(command)}: {done.stderr}"
    assert "</html>" in (folder / "demo" / "run" / "report.html").read_text(encoding="utf-8")
    assert len((folder / "predicted.csv").read_text(encoding="utf-8").splitlines()) == 179


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--not-from", type=Path)
    parser.add_argument("--no-commands", action="store_true", help="under emulation, which cannot start programs")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        check_package(chosen.not_from)
        check_fits(Path(name))
        if not chosen.no_commands:
            check_commands(Path(name))
    where = f"{Path(mj.__file__).parent}, on {platform.machine()} ({_kernels.isa()})"
    print(f"majorant {mj.__version__} works, in {where}")


if __name__ == "__main__":
    main()
