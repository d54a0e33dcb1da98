"""The job behind ``majorant demo``: a first run on a table that comes along."""

from __future__ import annotations

from pathlib import Path

from majorant.cli.errors import CommandError
from majorant.cli.outcome import fit_and_write
from majorant.cli.request import FitRequest
from majorant.cli.runs import REPORT, check_free
from majorant.cli.settings import find_model, known_models
from majorant.datasets import wine_csv
from majorant.persistence import replacing

SHOWN = ("clustering", "mixture")
"""Kinds of models that need nothing but the columns of the table."""


def run_demo(model: str, out: Path, force: bool) -> None:
    """Write the table, show the command, run it, and print the summary."""
    card = find_model(model)
    if card.kind not in SHOWN:
        able = [name for name, other in known_models().items() if other.kind in SHOWN]
        raise CommandError(f"there is no demo of {card.title}.", f"Models with one: {', '.join(able)}.")
    run_folder, table = out / "run", out / "wine.csv"
    check_free(run_folder, force)
    _write_table(table, force)
    request = FitRequest(model, table, run_folder, k=3, standardise=True, force=force)
    print(f"$ {request.command()}\n")
    run = fit_and_write(request)
    print(f"\n\n{run.summary}\n\nOpen {run_folder / REPORT} in a browser.")


def _write_table(path: Path, force: bool) -> None:
    content = wine_csv()
    if path.exists() and not force and path.read_bytes() != content:
        raise CommandError(f"{path} is there already and is another table.", "Choose another --out, or use --force.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as stream:
            stream.write(content)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
