"""The folder of a run: its files, and how it is written completely or not at all."""

from __future__ import annotations

import copy
import errno
import json
import os
import re
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._atomic import abandoned, draft_of, remove_abandoned, replacing
from majorant.cli.categories import Categories
from majorant.cli.errors import CommandError
from majorant.cli.later import NO_LATER_STEPS, LaterSteps
from majorant.cli.matrix import Columns
from majorant.cli.text_tables import AS_USUAL, Reading
from majorant.models.units import SUFFIX, Standardisation
from majorant.results.selection import Selection

MODEL = "model.majorant"
REPORT = "report.html"
ASSIGNMENTS = "assignments.csv"
SUMMARY = "summary.json"
WORKBOOK = "results.xlsx"
TABLES = "tables"
FIGURES = "figures"
ENDINGS = (".csv", ".tex", ".svg", ".pdf")
"""Those of tables and pictures."""
FIGURE = f"{FIGURES}/class-profile.pdf"
"""The figure of a latent class analysis."""
CHECKPOINT = "checkpoint.majorant"
FILES = (MODEL, REPORT, ASSIGNMENTS, WORKBOOK, SUMMARY, CHECKPOINT)

Writer = Callable[[Path], None]


@dataclass(frozen=True)
class Recipe:
    """How the model's rows were made from a table; saved beside the model."""

    columns: Columns  # the columns used, with their roles
    standardisation: Standardisation | None  # units of the features, if they were standardised
    drop_missing: bool  # whether rows with missing values were left out
    table_path: str  # path of the table relative to the run's folder
    # the table's name and SHA-256
    table_name: str
    checksum: str
    command: str  # the command that repeats the run
    created: str  # day of the fit, ISO 8601
    selection: Selection | None = None  # the fits that this one was chosen from, without their estimators
    ids: tuple[str, ...] = ()  # columns that identify rows, which the model does not use
    reading: Reading = AS_USUAL  # how the table was read
    # smallest and largest value of each feature, where all are numbers
    ranges: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    categories: Categories = field(default_factory=Categories)  # columns of text that became numbers
    fill_gaps: bool = False  # whether rows were added for times that lack

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Feature names of the saved model; standardised ones have other names, so that raw columns are rejected."""
        names = self.columns.features
        return names if self.standardisation is None else tuple(name + SUFFIX for name in names)

    def to_state(self) -> dict[str, Any]:
        """Return the state as plain values, for saving."""
        units = self.standardisation
        return {
            "features": list(self.columns.features),
            "target": self.columns.target,
            "weights": self.columns.weights,
            "bag": self.columns.bag,
            "time": self.columns.time,
            "sequence": self.columns.sequence,
            "covariates": list(self.columns.covariates),
            "labels": self.columns.labels,
            "later": self.columns.later.to_state(),
            "means": None if units is None else units.means,
            "scales": None if units is None else units.scales,
            "drop_missing": self.drop_missing,
            "table_path": self.table_path,
            "table_name": self.table_name,
            "checksum": self.checksum,
            "command": self.command,
            "created": self.created,
            "selection": None if self.selection is None else self.selection.to_state(),
            "ids": list(self.ids),
            "reading": self.reading.to_state(),
            "ranges": self.ranges,
            "levels": dict(self.categories.levels),
            "ordered": list(self.categories.ordered),
            "are_contrasts": self.categories.are_contrasts,
            "fill_gaps": self.fill_gaps,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Recipe:
        """Build a recipe from the values of `to_state`."""
        units = None if state["means"] is None else Standardisation(state["means"], state["scales"])
        roles = (state["target"], state["weights"], state["bag"], state["time"], state["sequence"])
        beside = state.get("labels"), LaterSteps.from_state(state["later"]) if "later" in state else NO_LATER_STEPS
        columns = Columns(tuple(state["features"]), *roles, tuple(state["covariates"]), *beside)
        texts: dict[str, Any] = {
            name: str(state[name]) for name in ("table_path", "table_name", "checksum", "command", "created")
        }
        selected = state["selection"]
        selection = None if selected is None else Selection.from_state(selected)
        ids = tuple(state["ids"])
        reading = Reading(**{**state["reading"], "levels": tuple(state["reading"].get("levels", ()))})
        kept: dict[str, Any] = {"selection": selection, "ids": ids, "reading": reading, "ranges": state.get("ranges")}
        orders = tuple(state.get("ordered", ()))
        kept["categories"] = Categories(state.get("levels", {}), orders, bool(state.get("are_contrasts", False)))
        kept["fill_gaps"] = bool(state.get("fill_gaps", False))
        return cls(columns, units, bool(state["drop_missing"]), **kept, **texts)

    def n_far(self, values: NDArray[np.float64]) -> int:
        """Count rows that lie beyond the range of a feature in the fit by more than its width."""
        if self.ranges is None:
            return 0
        low, high = self.ranges
        return int(((values < 2 * low - high) | (values > 2 * high - low)).any(axis=1).sum())


def read_run(folder: Path) -> tuple[Any, Recipe]:
    """Read the fitted model of a run and its recipe."""
    if not (folder / MODEL).is_file():
        is_there = f"it holds no {MODEL}" if folder.is_dir() else "it is not a folder"
        what = is_there if os.path.lexists(folder) else "there is nothing of that name"
        raise CommandError(f"{folder} is not a run: {what}.", "A run is the folder that majorant fit wrote.")
    from majorant.persistence import SavedModelError, UnknownModelError, load_with_extra

    try:
        estimator, extra = load_with_extra(folder / MODEL)
        recipe = Recipe.from_state(extra)
    except UnknownModelError as error:
        raise CommandError(f"{error}.", "Call the command as the fit was: python FILE.py predict ...") from error
    except SavedModelError as error:
        raise CommandError(f"{error}.", "Fit the model again.") from error
    except (KeyError, TypeError) as error:
        raise CommandError(
            f"{folder / MODEL} was saved by Python, not by majorant fit.", "Load it with majorant.load."
        ) from error
    except OSError as error:
        raise CommandError(f"{folder / MODEL} cannot be opened: {error.strerror}.") from error
    vars(estimator).pop("units_", None)  # rows are standardised here
    return with_feature_names(estimator, recipe.columns.features), recipe


def with_feature_names(estimator: Any, names: Sequence[str]) -> Any:
    """Return the fit with other feature names, if it has any."""
    if not hasattr(estimator, "feature_names_in_") or len(estimator.feature_names_in_) != len(names):
        return estimator
    renamed = copy.copy(estimator)
    renamed.feature_names_in_ = np.array(names, dtype=object)
    return renamed


def copied_files(folder: Path) -> list[str]:
    """Return the files of a run's tables and pictures: its summary lists them, and its page names them."""
    page, summary = _text(folder / REPORT), _text(folder / SUMMARY)
    tables = re.findall(r'download="([\w-]+\.(?:csv|tex))"', page)
    sections = re.findall(r'<section id="([\w-]+)"', page)
    listed = re.findall(rf'"((?:{TABLES}|{FIGURES})/[\w-]+\.\w+)"', summary)
    return [FIGURE, *listed, *(f"{TABLES}/{name}" for name in tables), *(f"{FIGURES}/{name}.svg" for name in sections)]


def list_files(folder: Path, names: Sequence[str]) -> None:
    """Add files of tables and pictures to those that the summary of a run lists, if it can be read."""
    with suppress(ValueError, TypeError, AttributeError):
        told = json.loads(_text(folder / SUMMARY))
        write_json(folder / SUMMARY, {**told, "files": sorted({*told.get("files", ()), *names})})


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write numbers of a run with all digits."""
    with replacing(path) as stream:
        stream.write((json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def check_free(folder: Path, force: bool) -> None:
    """Raise CommandError for a folder that cannot or must not be written, before any work is done."""
    try:
        _check_free(folder, force)
    except OSError as error:
        raise CommandError(f"{folder} cannot be written: {error.strerror}.") from error


def _check_free(folder: Path, force: bool) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        folder.stat()  # from Python 3.14 on exists() keeps to itself that a name is too long
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder} is a file; --out names a folder.")
    _recover(folder.resolve())
    if folder.is_dir() and any(folder.iterdir()):
        if not force:
            raise CommandError(
                f"{folder} is there already and is not empty.",
                "Choose another --out, or let --force replace the run in it.",
            )
        if not (folder / MODEL).is_file():
            raise CommandError(
                f"{folder} holds no {MODEL}: --force replaces runs alone.", "Choose another --out, or empty the folder."
            )
    for name in (TABLES, FIGURES):
        if (folder / name).is_file():
            raise CommandError(
                f"{folder / name} is a file; a run writes a folder of that name.", "Choose another --out, or rename it."
            )
    copies = [path for name in (TABLES, FIGURES) for path in (folder / name).glob("*") if path.suffix in ENDINGS]
    for path in (*(folder / name for name in FILES), *copies):
        if path.is_dir():  # a rename onto it would fail when others have already been replaced
            raise CommandError(f"{path} is a folder; a run writes a file of that name.", "Choose another --out.")
    parent = _existing_parent(folder)
    if not parent.is_dir():
        raise CommandError(f"{folder} cannot be made: {parent} is a file.")
    if not os.access(folder if folder.is_dir() else parent, os.W_OK):
        raise CommandError(f"{folder} cannot be written: no permission.")


def _recover(folder: Path) -> None:
    """Give a folder back that a run was replacing when it was killed, and remove what such runs left."""
    for old in abandoned(folder, "old"):
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.rename(folder)
    for place in (folder, _existing_parent(folder) / folder.name, folder / folder.name):
        remove_abandoned(place)


def write_run(folder: Path, writers: Mapping[str, Writer], *, force: bool = False) -> None:
    """Write the files of a run: all of them or, if anything goes wrong, none.

    They are made in a folder beside the final one, which then gets its name. With `force` that takes the place of an
    earlier run's folder as a whole; files in it that no run writes are linked or copied into the new one, and a report
    or a table that was left out goes, as it would be another run's: those of `copied_files`. Where a folder cannot
    change its name (it is the working directory, a mount, or in a folder that cannot be written), files are replaced
    one by one, the model last.
    """
    place = folder.resolve()
    is_fixed = place.is_dir() and (
        Path.cwd().is_relative_to(place) or place.is_mount() or not os.access(place.parent, os.W_OK)
    )
    draft = draft_of((place if is_fixed else _existing_parent(place)) / (place.name or "run"))
    try:
        draft.mkdir()
        for name, write in writers.items():
            write(draft / name)
        with _uninterrupted():
            if is_fixed:
                if not force and any(path != draft for path in place.iterdir()):
                    raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
                _replace_files(place, draft)
            elif force and place.is_dir():
                _swap(place, draft)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                draft.rename(place)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise CommandError(
                f"another run was written to {folder} meanwhile.",
                "Choose another --out, or let --force replace the run in it.",
            ) from error
        raise CommandError(f"{folder} cannot be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _swap(folder: Path, draft: Path) -> None:
    """Let a draft take the place of an earlier run's folder, with the files that no run writes."""
    ours = {*FILES, *copied_files(folder)}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.is_dir() and not path.is_symlink():
            if name.as_posix() not in (TABLES, FIGURES):
                (draft / name).mkdir(parents=True, exist_ok=True)
        elif name.as_posix() not in ours and not (draft / name).exists():
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            _link(path, draft / name)
    draft.chmod(folder.stat().st_mode)
    old = draft_of(folder, "old")
    folder.rename(old)
    try:
        draft.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # a file system without links
        shutil.copy2(source, target, follow_symlinks=False)


def _replace_files(folder: Path, draft: Path) -> None:
    was_a_run, copies = (folder / MODEL).is_file(), copied_files(folder)
    written = [path.relative_to(draft).as_posix() for path in draft.rglob("*") if path.is_file()]
    for name in sorted(written, key=MODEL.__eq__):
        (folder / name).parent.mkdir(exist_ok=True)
        (draft / name).replace(folder / name)
    if not was_a_run:
        return
    for name in {REPORT, WORKBOOK, CHECKPOINT, *copies}.difference(written):
        (folder / name).unlink(missing_ok=True)
    for own in (folder / TABLES, folder / FIGURES):
        if own.is_dir() and not any(own.iterdir()):
            own.rmdir()


def _existing_parent(folder: Path) -> Path:
    return next((p for p in folder.parents if p.exists()), folder)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C during the few renames that must happen together."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
