"""What the user asked of ``majorant fit``, as one object."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from majorant.cli.beside import EVERY
from majorant.cli.errors import CommandError, did_you_mean, printable
from majorant.cli.later import ASSIGNMENTS, METHODS, NO_LATER_STEPS, LaterSteps, parsed_outcomes
from majorant.cli.settings import joined_names, parsed_names, parsed_size
from majorant.cli.text_tables import AS_USUAL, Reading
from majorant.registry import ESTIMATORS


def program_of(model: str) -> list[str]:
    """Return how the command line is called that knows a model: by the file that registers it, where that was run."""
    return ["python", sys.argv[0]] if getattr(ESTIMATORS.get(model), "__module__", "") == "__main__" else ["majorant"]


LARGEST = 6
"""Largest number of parts that is tried where the user gave none."""


NAMES = {"features", "covariates", "equal_items", "outcomes", "ids", "keep"}
"""Options that are names with commas between them."""
SPELLED = {"ids": "id", "settings": "set"}
NOT_REPEATED = ("model", "table", "out", "force", "resume", "quiet")
"""Fields that are no options, or say nothing of what is fitted."""


@dataclass(frozen=True)
class FitRequest:
    """The options of the command, under their names."""

    model: str
    table: Path
    out: Path
    target: str | None = None
    features: tuple[str, ...] = ()
    formula: str | None = None
    family: str | None = None
    groups: str | None = None
    gating: str | None = None
    offset: str | None = None
    trials: str | None = None
    covariates: tuple[str, ...] = ()
    population: str | None = None
    equal_items: tuple[str, ...] = ()
    invariance_tests: bool = False
    component_labels: str | None = None
    outcomes: tuple[str, ...] = ()
    method: str | None = None
    assignment: str | None = None
    missing: str | None = None
    k: int | range | None = None
    vary: tuple[str, ...] = ()
    criterion: str | None = None
    standardise: bool = False
    categorical: str = "drop"
    weights: str | None = None
    bag: str | None = None
    time: str | None = None
    sequence: str | None = None
    fill_gaps: bool = False
    ids: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    reading: Reading = AS_USUAL
    views: Path | None = None
    settings: tuple[str, ...] = ()
    random_state: int = 0
    workbook: bool = False
    no_report: bool = False
    force: bool = False
    resume: bool = False
    quiet: bool = False

    @classmethod
    def asked(cls, model: str, table: Path, out: Path, given: dict[str, Any], reading: dict[str, Any]) -> FitRequest:
        """Return the request of options as they were written: names with commas, and a number or range of parts."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
        }
        if values.pop("drop_missing"):
            values.setdefault("missing", "drop")
        read = Reading(**reading, levels=values.pop("levels", ()))
        if "k" in values:
            values["k"] = parsed_size(values["k"])
        for name in NAMES & values.keys():
            values[name] = parsed_names(values[name])
        if values.get("workbook"):
            values.setdefault("keep", EVERY)
        return cls(model, table, out, reading=read, **values)

    @property
    def compares(self) -> bool:
        """Whether several sizes or settings are fitted and compared."""
        return isinstance(self.k, range) or bool(self.vary)

    @property
    def leaves_out(self) -> bool:
        """Whether rows that lack what the model needs are left out; otherwise they are an error."""
        return self.missing in ("drop", "fit")

    @property
    def roles(self) -> dict[str, str]:
        """Further roles of columns by option: groups, gating and so on."""
        given = {"groups": self.groups, "gating": self.gating, "offset": self.offset, "trials": self.trials}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def series(self) -> tuple[str, ...]:
        """Columns of the sequence and the time of each row."""
        return tuple(name for name in (self.sequence, self.time) if name is not None)

    @property
    def named_columns(self) -> dict[str, tuple[str, ...]]:
        """Columns of every option that names columns the model uses."""
        one = {"target": self.target, "weights": self.weights, "bag": self.bag, "time": self.time}
        one |= {"sequence": self.sequence, "groups": self.groups, "trials": self.trials}
        one |= {"population": self.population, "component-labels": self.component_labels}
        several = {"features": self.features, "covariates": self.covariates}
        several["equal-items"] = () if self.equal_items in (("all",), ("none",)) else self.equal_items
        return several | {option: (name,) for option, name in one.items() if name is not None}

    def later(self, columns: Collection[str]) -> LaterSteps:
        """Return what is computed after the fit; `columns` are those of the table.

        Covariates are taken in with the classes, in one step, unless a method or outcomes ask for later steps.
        """
        for option, value, known in (("method", self.method, METHODS), ("assignment", self.assignment, ASSIGNMENTS)):
            if value is not None and value not in known:
                raise CommandError(f'--{option} must be {", ".join(known)}; got "{value}".{did_you_mean(value, known)}')
            if value is not None and not (self.covariates or self.outcomes):
                raise CommandError(f"--{option} is for covariates and outcomes.", "Name --covariates or --outcomes.")
        outcomes = parsed_outcomes(self.outcomes, columns)
        if self.method == "one-step" and outcomes:
            raise CommandError("outcomes are compared after the classes are found, not in one step.", "Leave it out.")
        if self.assignment is not None and self.method in ("one-step", "two-step"):
            raise CommandError(f"--assignment is for three steps, not for --method {self.method}.", "Leave it out.")
        is_later = outcomes or self.assignment or self.method not in (None, "one-step")
        covariates = self.covariates if is_later else ()
        if not (is_later or self.invariance_tests):
            return NO_LATER_STEPS
        return LaterSteps(self.method, self.assignment, covariates, outcomes, self.invariance_tests)

    def command(self) -> str:
        """Return the shell command that repeats the run, with line breaks if it is long."""
        lines = [shlex.join([*program_of(self.model), "fit", self.model, str(self.table)])]
        for option in [*self._options(), ("--out", str(self.out))]:
            joined = f"{lines[-1]} {shlex.join(option)}"
            if len(joined) <= 76:
                lines[-1] = joined
            else:
                lines.append(f"      {shlex.join(option)}")
        return printable(" \\\n".join(lines))

    def _options(self) -> Iterator[tuple[str, ...]]:
        """Yield the options that differ from their defaults, and the seed."""
        for option in fields(self):
            name, value = option.name, getattr(self, option.name)
            flag = f"--{SPELLED.get(name, name).replace('_', '-')}"
            if name in NOT_REPEATED or (value == option.default and name != "random_state"):
                continue
            if isinstance(value, Reading):
                yield from value.options
            elif isinstance(value, bool):
                yield (flag,)
            elif isinstance(value, range):
                yield flag, f"{value.start}:{value.stop - 1}"
            elif isinstance(value, tuple) and name not in NAMES:
                yield from ((flag, one) for one in value)
            else:
                yield flag, joined_names(value) if isinstance(value, tuple) else str(value)
