"""Cells of an experiment, each computed once: hours can be spent in pieces.

An experiment names its cells and says how each is computed. What a cell gives is written to a journal as soon as it is
there, so that a run that is ended goes on where it stood, and several computers can share a table by its cells:

    python experiments/NAME.py ... --journal FILE              every finished cell is a line of FILE
    python experiments/NAME.py ... --journal FILE --resume     cells that FILE has are not computed again
    python experiments/NAME.py ... --cells D31 forgy           only cells whose names hold all of these words
    python experiments/NAME.py ... --jobs 2                    two cells at a time, each in a process of its own

Tables are made of the cells that are there; the last line on stderr says how many there are, and their CPU hours.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib


def add_arguments(parser: ArgumentParser) -> None:
    """Add the settings of `Cells` to those of an experiment."""
    group = parser.add_argument_group("cells")
    group.add_argument("--journal", type=Path, help="file of finished cells, one a line")
    group.add_argument("--resume", action="store_true", help="take finished cells from the journal")
    group.add_argument("--cells", nargs="+", default=[], metavar="WORD", help="only cells with all of these words")
    group.add_argument("--jobs", type=int, default=1, help="cells at a time")


@dataclass
class Cells:
    """Finished cells by name, and how others are computed.

    Attributes
    ----------
    words : sequence of str
        What the name of a cell that is computed holds.
    jobs : int
        Cells at a time.
    journal : Path, optional
        File to which finished cells are added.
    done : dict
        What finished cells gave: numbers, texts, lists and dicts of them.
    cpu : dict
        CPU seconds of finished cells.
    """

    words: Sequence[str] = ()
    jobs: int = 1
    journal: Path | None = None
    done: dict[str, Any] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, chosen: Namespace) -> Cells:
        """Read the journal that is named, if it is to be resumed; without `resume` there must be none."""
        cells = cls(chosen.cells, chosen.jobs, chosen.journal)
        if chosen.resume and chosen.journal is None:
            sys.exit("--resume needs --journal FILE, the file of the cells that are finished")
        if chosen.journal is not None and chosen.journal.exists():
            if not chosen.resume:
                sys.exit(f"{chosen.journal} is there: --resume goes on with it, or name another file")
            whole, _, _ = chosen.journal.read_text(encoding="utf-8").rpartition("\n")  # a line may have been cut off
            for line in filter(None, whole.split("\n")):
                cells._keep(**json.loads(line))
            chosen.journal.write_text(whole + "\n" if whole else "", encoding="utf-8")
        return cells

    def __call__(self, tasks: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
        """Return what cells gave, by name; those that `words` leave out only if they are finished."""
        open_ones = {
            name: task
            for name, task in tasks.items()
            if name not in self.done and all(word in name for word in self.words)
        }
        for name, value, seconds in self._computed(open_ones):
            # As the journal would give it back: a run that is resumed prints what one that is not prints.
            line = json.dumps({"cell": name, "value": value, "cpu": round(seconds, 3)})
            self._keep(**json.loads(line))
            if self.journal is not None:
                self.journal.parent.mkdir(parents=True, exist_ok=True)
                with self.journal.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
        return {name: self.done[name] for name in tasks if name in self.done}

    def _keep(self, cell: str, value: Any, cpu: float) -> None:
        self.done[cell], self.cpu[cell] = value, cpu

    def _computed(self, tasks: Mapping[str, Callable[[], Any]]) -> Iterator[tuple[str, Any, float]]:
        if self.jobs == 1:
            yield from (_timed(name, task) for name, task in tasks.items())
        else:
            run = joblib.Parallel(self.jobs, return_as="generator_unordered")
            yield from run(joblib.delayed(_timed)(name, task) for name, task in tasks.items())

    def close(self) -> None:
        """Say how many cells there are and what they cost."""
        hours = sum(self.cpu.values()) / 3600
        print(f"{len(self.done)} cells, {hours:.2g} CPU hours", file=sys.stderr, flush=True)


def _timed(name: str, task: Callable[[], Any]) -> tuple[str, Any, float]:
    began = time.process_time()
    return name, task(), time.process_time() - began
