"""What the user asked of ``majorant fit``, as one object."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from majorant.cli.errors import printable
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
    drop_missing: bool = False
    force: bool = False
    resume: bool = False
    report: bool = True
    quiet: bool = False

    @property
    def compares(self) -> bool:
        """Whether several sizes or settings are fitted and compared."""
        return isinstance(self.k, range) or bool(self.vary)

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
        one |= {"population": self.population}
        several = {"features": self.features, "covariates": self.covariates}
        return several | {option: (name,) for option, name in one.items() if name is not None}

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
        options += [("--drop-missing",)] if self.drop_missing else []
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
