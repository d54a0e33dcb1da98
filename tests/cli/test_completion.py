"""The Tab key: bash asks the command itself, as the script of ``--show-completion`` does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from majorant.cli.completion import parameters_by_model
from majorant.cli.settings import build_estimator, known_models
from majorant.registry import ESTIMATORS

BASH = shutil.which("bash")
HEAVY = {"scipy", "sklearn", "polars", "pyarrow", "majorant.models"}
ASKED = "; ".join(
    [
        "import os, sys",
        "os.environ.update(_MAJORANT_COMPLETE='complete_bash', COMP_CWORD='4')",
        "os.environ.update(COMP_WORDS='majorant fit kmeans --set ')",
        "from majorant.cli import main",
        "import atexit",
        f"atexit.register(lambda: print(sorted(set(sys.modules) & {HEAVY!r}), file=sys.stderr))",
        "main([])",
    ]
)

Bash = Callable[[str], str]


@pytest.fixture
def bash(tmp_path: Path, command: list[str]) -> Bash:
    """Run lines in a bash of an empty home in which the command is called majorant."""
    if BASH is None:
        pytest.skip("needs bash")
    program = tmp_path / "bin" / "majorant"
    program.parent.mkdir()
    program.write_text(f'#!{BASH}\nexec {" ".join(command)} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    home = {"HOME": str(tmp_path), "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}

    def run(lines: str) -> str:
        done = subprocess.run(
            [str(BASH), "--norc", "-c", lines],
            cwd=tmp_path,
            env={**os.environ, **home},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


COMPLETED = {
    "pre": "predict",
    "fit harmonium-": "harmonium-classifier harmonium-regressor",
    "fit kmeans t.csv --set n_": "n_clusters=8 n_init=auto n_jobs=None",
    "fit kmeans t.csv --set tol=1 --vary eff": "effort=default",
    "fit no-such-model t.csv --set n_": "",
    "fit kmeans t.csv --standardise --fea": "--features",
}


def test_bash_completes(bash: Bash) -> None:
    lines = ["source <(_MAJORANT_COMPLETE=source_bash majorant)"]
    for typed in COMPLETED:
        lines += [f"COMP_WORDS=(majorant {typed})", f"COMP_CWORD={len(typed.split())}", "_majorant_completion majorant"]
        lines += ['echo "${COMPREPLY[*]}"']
    assert dict(zip(COMPLETED, bash("\n".join(lines)).splitlines(), strict=True)) == COMPLETED


def test_completion_is_installed_for_the_shell_that_asks(bash: Bash, tmp_path: Path) -> None:
    bash("majorant --install-completion; true")
    scripts = [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*majorant*") if path.is_file()]
    assert any("_majorant_completion()" in text for text in scripts)
    assert "majorant" in (tmp_path / ".bashrc").read_text(encoding="utf-8")


def test_names_that_are_read_are_those_of_the_models() -> None:
    found = parameters_by_model()
    defaults = {name: ESTIMATORS[name]().get_params(deep=False) for name in known_models()}
    assert {name: list(given) for name, given in found.items()} == {n: sorted(given) for n, given in defaults.items()}
    for name, given in found.items():
        settings = [f"{parameter}={value}" for parameter, value in given.items() if value]
        taken = build_estimator(known_models()[name], None, settings, 0).get_params(deep=False)
        assert {p: taken[p] for p in given if given[p]} == {p: defaults[name][p] for p in given if given[p]}


def test_completion_imports_nothing_heavy(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", ASKED], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "[]\n")
    assert "n_clusters=8\n" in done.stdout
