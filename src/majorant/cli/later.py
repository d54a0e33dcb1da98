"""What comes after the classes: covariates and outcomes in later steps, tests of invariance; and known classes."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from majorant.cli.errors import CommandError, sentence

KINDS = ("normal", "count", "categorical")
"""What an outcome can be said to be."""
METHODS = ("one-step", "ml", "bch", "two-step", "naive")
ASSIGNMENTS = ("modal", "proportional")


@dataclass(frozen=True)
class LaterSteps:
    """What is computed of a fit once its classes are found."""

    # as of `LatentClassAnalysis.covariate_effects`; None for its defaults
    method: str | None = None
    assignment: str | None = None
    covariates: tuple[str, ...] = ()  # columns that the classes depend on, where these were found without them
    # columns that depend on the classes, and their kinds: of `KINDS`, or "auto"
    outcomes: Mapping[str, str] | None = None
    tests_invariance: bool = False  # whether populations are compared

    @property
    def roles(self) -> dict[str, str]:
        """The columns and what they are."""
        return dict.fromkeys(self.covariates, "covariate") | dict.fromkeys(self.outcomes or (), "outcome")

    def to_state(self) -> dict[str, Any]:
        """Return the state as plain values, for saving."""
        return {**vars(self), "covariates": list(self.covariates), "outcomes": dict(self.outcomes or {})}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> LaterSteps:
        """Build the steps from the values of `to_state`."""
        return cls(**{**state, "covariates": tuple(state["covariates"])})

    def results(
        self, estimator: Any, items: pl.DataFrame, table: pl.DataFrame, weights: NDArray[np.float64] | None
    ) -> tuple[dict[str, Any], list[str]]:
        """Return ``effects``, ``outcomes`` by name and ``invariance_tests``, and sentences on what is to know of them.

        Parameters
        ----------
        items : polars.DataFrame
            The rows of the fit.
        table : polars.DataFrame
            The same rows with all columns.
        weights : array of shape (n,) or None
        """
        found: dict[str, Any] = {}
        said: list[str] = []
        given = {"method": self.method, "assignment": self.assignment}
        settings = {name: value for name, value in given.items() if value is not None}
        if self.covariates:
            with _told(said, "covariates"):
                covariates = table.select(self.covariates)
                found["effects"] = estimator.covariate_effects(items, covariates, weights, **settings)
        for name, kind in (self.outcomes or {}).items():
            with _told(said, f'outcome "{name}"'):
                y = table[name].to_numpy()
                outcome = estimator.distal_outcome(items, y, weights, kind=kind, **settings)
                found.setdefault("outcomes", {})[name] = outcome
        if self.tests_invariance:
            with _told(said, "tests of invariance"):
                found["invariance_tests"] = estimator.invariance_tests(items, weights)
        return found, list(dict.fromkeys(said))


NO_LATER_STEPS = LaterSteps()


@contextmanager
def _told(said: list[str], what: str) -> Iterator[None]:
    """Add warnings, and a refusal, to what is said: the classes are found, and a later step cannot undo them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except (ValueError, TypeError) as error:
            said.append(sentence(f"{what}: {' '.join(str(error).split())}"))
    said += [" ".join(str(one.message).split()) for one in caught if issubclass(one.category, UserWarning)]


def parsed_outcomes(given: Sequence[str], columns: Collection[str]) -> dict[str, str]:
    """Return outcomes with their kinds, each given as a column or as ``column=kind``."""
    found = {}
    for text in given:
        name, equals, kind = text.rpartition("=")
        if text in columns or not equals:
            name, kind = text, "auto"
        elif kind not in KINDS:
            raise CommandError(
                f'--outcomes takes columns, or column=kind; got "{text}".', f"Kinds: {', '.join(KINDS)}."
            )
        if name in found:
            raise CommandError(f'"{name}" is named twice.', "Name every outcome once.")
        found[name] = kind
    return found


def known_classes(column: pl.Series, most: int | None = None) -> tuple[NDArray[np.intp], str]:
    """Return the class of each row, -1 where the cell is empty, and which classes these are, in words.

    Parameters
    ----------
    column : polars.Series
        Whole numbers from 1; or text, whose values in alphabetical order are class 1, 2 and so on.
    most : int, optional
        The smallest number of classes that is fitted.
    """
    if column.dtype.is_numeric():
        column = column.cast(pl.Float64).fill_nan(None)
        values = column.fill_null(0.0).to_numpy()
        given = values[column.is_not_null().to_numpy()]
        if len(wrong := given[(given < 1) | (given != np.floor(given)) | np.isinf(given)]):
            raise CommandError(
                f'"{column.name}" must number the known classes from 1; it holds {wrong[0]:g}.',
                "Leave a cell empty where the class is not known.",
            )
        labels, told = values.astype(np.intp) - 1, f'classes are numbered by "{column.name}"'
    else:
        text = column.cast(pl.String)
        levels = text.drop_nulls().unique().sort().to_list()
        place = {level: k for k, level in enumerate(levels)}
        labels = np.array([place.get(value, -1) for value in text.to_list()], dtype=np.intp)
        of = ", ".join(f'{k + 1} is "{level}"' for level, k in place.items())
        told = f'classes are those of "{column.name}": {of}'
    n = int(labels.max(initial=-1)) + 1
    if most is not None and n > most:
        raise CommandError(
            f'"{column.name}" names {n} classes, more than the {most} that --k begins with.', f"Begin with --k {n}."
        )
    return labels, told


def later_numbers(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return results of later steps as JSON takes them, table by table, a mapping for each row."""
    tables = {name: found[name].to_frame() for name in ("effects", "invariance_tests") if name in found}
    of = {name: outcome.to_frame() for name, outcome in found.get("outcomes", {}).items()}
    out: dict[str, Any] = {name: _records(table) for name, table in tables.items()}
    return out | ({"outcomes": {name: _records(table) for name, table in of.items()}} if of else {})


def _records(table: Any) -> list[dict[str, Any]]:
    columns = {head: [_plain(value) for value in table[head]] for head in table.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _plain(value: Any) -> Any:
    """Return a cell as Python writes it; None where it is no number, which JSON cannot say."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value
