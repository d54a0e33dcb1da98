"""Latent-variable models whose answer does not depend on a lucky start."""

from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.2.0"

# The stub beside this file is the one list of names, for type checkers and for here. Names are imported when they are
# first used, so that `majorant --help` need not wait for scipy.
_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOMES = {line.split()[-1]: line.split()[1] for line in _STUB.splitlines() if line.startswith("from ")}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'majorant' has no attribute {name!r}")
    home = _HOMES[name]
    value = import_module(f"majorant.{name}") if home == "majorant" else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
