"""How the tests call the command line: as a real process, or in this one where only the words matter."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from majorant.cli import main, outcome


class Answer(NamedTuple):
    """What a command gave back."""

    status: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """Standard error without its line breaks."""
        return " ".join(self.err.split())


@pytest.fixture(scope="session")
def command() -> list[str]:
    """What starts the command in a process of its own."""
    return [sys.executable, "-m", "majorant.cli"]


@pytest.fixture(scope="session")
def process(command: list[str]) -> Callable[..., Answer]:
    """Run the command in a process of its own."""

    def run(*arguments: str, cwd: Path) -> Answer:
        done = subprocess.run(
            [*command, *arguments], cwd=cwd, capture_output=True, text=True, encoding="utf-8", timeout=60
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def majorant(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Answer]:
    """Run the command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(outcome, "_SOON", math.inf)  # a busy machine would tell how far a fit is

    def run(*arguments: str) -> Answer:
        status = main(arguments)
        return Answer(status, *capsys.readouterr())

    return run


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Twelve rows in two clear clusters, a column of text, a missing value, and row numbers."""
    lines = ["id,name,height,width"]
    for i in range(12):
        width = "" if i == 5 else f"{(i % 2) * 10 + i / 10}"
        lines.append(f"{i + 1},n{i},{(i % 2) * 8 + i / 7},{width}")
    path = tmp_path / "plants.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
