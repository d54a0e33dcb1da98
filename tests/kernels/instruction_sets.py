"""What a module of tests answers where the kernels are those of another instruction set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np


def answers_under(isa: str, module: str, folder: Path) -> Any:
    """What `module`, run as a program, writes to the file that it is given: one array, or several by name."""
    done = subprocess.run(
        [sys.executable, "-m", module, str(folder / "answers")],
        env=os.environ | {"MAJORANT_ISA": isa},
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,  # under emulation, too
    )
    assert done.returncode == 0, done.stderr
    return np.load(next(folder.glob("answers.*")))
