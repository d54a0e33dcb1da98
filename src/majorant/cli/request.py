"""What the user asked of ``majorant fit``, as one object."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from majorant.cli.errors import CommandError, did_you_mean, printable
from majorant.cli.later import ASSIGNMENTS, METHODS, NO_LATER_STEPS, LaterSteps, parsed_outcomes
from majorant.cli.settings import joined_names
from majorant.cli.text_tables import AS_USUAL, Reading
from majorant.registry import ESTIMATORS


def program_of(model: str) -> list[str]:
    """Return how the command line is called that knows a model: by the file that registers it, where that was run."""
    return ["python", sys.argv[0]] if getattr(ESTIMATORS.get(model), "__module__", "") == "__main__" else ["majorant"]


LARGEST = 6
"""Largest number of parts that is tried where the user gave none."""


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
    covariates: tuple[str, ...] = ()
    population: str | None = None
    equal_items: tuple[str, ...] = ()
    component_labels: str | None = None
    outcomes: tuple[str, ...] = ()
    method: str | None = None
    assignment: str | None = None
    invariance_tests: bool = False
    missing: str | None = None
    offset: str | None = None
    trials: str | None = None
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
    force: bool = False
    resume: bool = False
    report: bool = True
    quiet: bool = False

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
        options: list[tuple[str, ...]] = []
        options += [("--target", self.target)] if self.target else []
        options += [("--features", joined_names(self.features))] if self.features else []
        options += [("--formula", self.formula)] if self.formula else []
        options += [("--family", self.family)] if self.family else []
        options += [(f"--{name}", value) for name, value in self.roles.items()]
        options += [("--covariates", joined_names(self.covariates))] if self.covariates else []
        options += [("--population", self.population)] if self.population else []
        options += [("--equal-items", joined_names(self.equal_items))] if self.equal_items else []
        options += [("--invariance-tests",)] if self.invariance_tests else []
        options += [("--component-labels", self.component_labels)] if self.component_labels else []
        options += [("--outcomes", joined_names(self.outcomes))] if self.outcomes else []
        options += [("--method", self.method)] if self.method else []
        options += [("--assignment", self.assignment)] if self.assignment else []
        options += [("--missing", self.missing)] if self.missing else []
        options += [("--k", self._k_text())] if self.k is not None else []
        options += [("--vary", values) for values in self.vary]
        options += [("--criterion", self.criterion)] if self.criterion else []
        options += [("--standardise",)] if self.standardise else []
        options += [("--categorical", self.categorical)] if self.categorical != "drop" else []
        options += [("--weights", self.weights)] if self.weights else []
        options += [("--bag", self.bag)] if self.bag else []
        options += [("--time", self.time)] if self.time else []
        options += [("--sequence", self.sequence)] if self.sequence else []
        options += [("--fill-gaps",)] if self.fill_gaps else []
        options += [("--id", joined_names(self.ids))] if self.ids else []
        options += [("--keep", joined_names(self.keep))] if self.keep else []
        options += self.reading.options
        options += [("--views", str(self.views))] if self.views else []
        options += [("--set", setting) for setting in self.settings]
        options += [("--random-state", str(self.random_state))]
        options += [("--no-report",)] if not self.report else []
        options += [("--out", str(self.out))]
        lines = [shlex.join([*program_of(self.model), "fit", self.model, str(self.table)])]
        for option in options:
            joined = f"{lines[-1]} {shlex.join(option)}"
            if len(joined) <= 76:
                lines[-1] = joined
            else:
                lines.append(f"      {shlex.join(option)}")
        return printable(" \\\n".join(lines))

    def _k_text(self) -> str:
        return f"{self.k.start}:{self.k.stop - 1}" if isinstance(self.k, range) else str(self.k)
