"""The command ``majorant demo``: a first run on a table of the package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from majorant._atomic import replacing
from majorant.cli.checked import checked
from majorant.cli.errors import CommandError
from majorant.cli.outcome import fit_and_write
from majorant.cli.request import FitRequest
from majorant.cli.runs import REPORT, check_free
from majorant.cli.settings import find_model
from majorant.datasets import earthquake_csv, tone_csv, wine_csv
from majorant.registry import ModelCard


@dataclass(frozen=True)
class Demonstration:
    """A table and the options of its demo."""

    name: str  # the table's file
    content: Callable[[], bytes]  # returns the file's bytes
    options: Mapping[str, Any]  # options of the request


WINES = Demonstration("wine.csv", wine_csv, {"k": 3, "standardise": True})
TONES = Demonstration("tones.csv", tone_csv, {"k": 2, "target": "tuned"})
EARTHQUAKES = Demonstration(
    "earthquakes.csv", earthquake_csv, {"k": range(1, 4), "time": "year", "settings": ("emission=poisson",)}
)
CULTIVARS = Demonstration("wines.csv", lambda: wine_csv(cultivars=True), {"target": "cultivar", "standardise": True})
PROLINE = Demonstration("wine.csv", wine_csv, {"target": "proline"})
SHOWN = {
    "clustering": WINES,
    "mixture": WINES,
    "regression": TONES,
    "classification": CULTIVARS,
    "representation": WINES,
}
"""Demonstrations by kind of model."""


def demonstration_of(card: ModelCard) -> Demonstration:
    """Return the table for a model, and the options of its fit."""
    if card.in_order:
        return EARTHQUAKES
    return PROLINE if card.kind == "representation" and card.needs_target else SHOWN[card.kind]


def run_demo(model: str, out: Path, force: bool) -> None:
    """Write the table, show the command, and run it."""
    card = find_model(model)
    demonstration = demonstration_of(card)
    run_folder, table = out / "run", out / demonstration.name
    check_free(run_folder, force)
    _write_table(table, demonstration.content(), force)
    request = FitRequest(model, table, run_folder, force=force, **demonstration.options)
    print(f"$ {request.command()}\n")
    fit_and_write(request, checked(request))
    print(f"\nOpen {run_folder / REPORT} in a browser.")


def _write_table(path: Path, content: bytes, force: bool) -> None:
    if path.exists() and not force and path.read_bytes() != content:
        raise CommandError(f"{path} is there already and is another table.", "Choose another --out, or use --force.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as stream:
            stream.write(content)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
