"""Covariates of the weights of a mixture: numbers, and text with a column for each level but the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from majorant._frames import column_names
from majorant._numbers import MOST_NAMED, counted
from majorant._validation import is_missing
from majorant.data.measure import safe_scales
from majorant.registry import value_class
from majorant.solvers.orthonormal import CONSTANT

Array = NDArray[np.float64]
MOST_LEVELS = 50
"""Most levels of a covariate of text."""
ALIKE = 1e-10
"""Relative size below which a difference is one of rounding."""
TINY = 1e-300
NEARLY = 1e-3
"""Share of a column, apart from those before it, up to which the information of rows, of squares, has no inverse."""
LINEAR, NEARLY_LINEAR = (f"is {how} function of those before it" for how in ("a linear", "nearly a linear"))
BY_FORMULA = "a formula (from_formula, or --formula) leaves out one level of each category by itself"
"""What goes with the advice to leave out a column of 0 and 1."""
WIDE = 100
"""Covariates up to which there may be more than rows."""


@value_class
@dataclass(frozen=True)
class Covariates:
    """The covariates of a fit."""

    names: tuple[str, ...]
    # of each covariate of text, in order, the reference level first; empty for numbers
    levels: tuple[tuple[str, ...], ...]

    @classmethod
    def learned(cls, given: Any, n: int) -> Covariates:
        """Return the covariates of a table: text and ordered categories have levels, anything else is a number."""
        names, columns, orders = _columns(given, n)
        return cls(tuple(names), tuple(map(_levels, names, columns, orders)))

    @property
    def column_names(self) -> list[str]:
        """The names of the columns of numbers: a covariate of numbers itself, or ``sex=male``."""
        both = zip(self.names, self.levels, strict=True)
        return [
            column for name, own in both for column in ([f"{name}={level}" for level in own[1:]] if own else [name])
        ]

    @property
    def references(self) -> Mapping[str, str]:
        """The level that a column is told against, by the name of the column; of numbers there is none."""
        both = zip(self.names, self.levels, strict=True)
        return {f"{name}={level}": own[0] for name, own in both for level in own[1:]}

    def in_words(self, name: str) -> str:
        """Return the name of a column in words: ``sex: male against female`` for ``sex=male``."""
        reference = self.references.get(name)
        return name if reference is None else f"{name.replace('=', ': ', 1)} against {reference}"

    def table(self, given: Any, n: int) -> Array:
        """Return the covariates of n rows as columns of numbers, (n, columns)."""
        names, columns, _ = _columns(given, n)
        if len(columns) != len(self.names):
            raise ValueError(f"gating has {len(columns)} columns; the fit had {len(self.names)}")
        are_told = hasattr(given, "columns") and self.names != tuple(f"z{j + 1}" for j in range(len(names)))
        if are_told and names != list(self.names):
            if sorted(names) != sorted(self.names):
                raise ValueError(f"gating has the columns {', '.join(names)}; the fit had {', '.join(self.names)}")
            columns = [columns[names.index(name)] for name in self.names]
        parts = [np.empty((n, 0))]
        for name, own, column in zip(self.names, self.levels, columns, strict=True):
            if not own:
                parts.append(_numbers(name, column)[:, None])
                continue
            _refuse_missing(name, column)
            known = np.isin(column.astype(str), own)
            if not known.all():
                row = int(np.argmin(known))
                raise ValueError(
                    f"covariate {name!r} is {column[row]!r} in row {row}, a level that the fit has not seen (it saw "
                    f"{', '.join(map(repr, own))}): correct the cell, or leave the row out"
                )
            parts.append((column.astype(str)[:, None] == np.array(own[1:], dtype=str)).astype(np.float64))
        return np.concatenate(parts, axis=1)


def completed(given: Any, n: int, learned: Covariates | None = None) -> tuple[Any, NDArray[np.bool_], str]:
    """Return covariates of n rows, those of incomplete rows replaced; which rows these are, and how many, in words."""
    names, columns, _ = _columns(given, n)
    missing = {name: is_missing(column) for name, column in zip(names, columns, strict=True)}
    lacking = np.logical_or.reduce(list(missing.values()))
    if not lacking.any():
        return given, lacking, ""
    told = ", ".join(f"{name} in {int(where.sum())}" for name, where in missing.items() if where.any())
    verb = "lacks" if lacking.sum() == 1 else "lack"
    said = f"{lacking.sum()} of {counted(n, 'row')} {verb} a covariate"
    if len(missing) == 1 or any((where != lacking).any() for where in missing.values()):
        said += f" ({told})"  # a row of a formula's design lacks all columns
    if lacking.all():
        if learned is not None and len(learned.levels) == len(names):
            filled = np.array([own[0] if own else 0.0 for own in learned.levels], dtype=object)
            return np.tile(filled, (n, 1)), lacking, said
        raise ValueError(f"{said}: there is nothing to fit; leave out the covariates that are rarely known")
    at = np.where(lacking, int(lacking.argmin()), np.arange(n))
    frame = nw.from_native(given, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(frame, nw.DataFrame | nw.Series):
        return nw.to_native(frame[at.tolist()]), lacking, said
    return (given if isinstance(given, np.ndarray) else np.asarray(given, dtype=object))[at], lacking, said


def refuse_wide_covariates(table: Array) -> None:
    """Raise ValueError for many covariates that outnumber the rows."""
    n, width = table.shape
    if width > max(WIDE, n):
        raise ValueError(f"{n:,} rows determine no effects of {width:,} covariates on the weights: choose fewer")


def undetermined(
    table: Array, names: Sequence[str], *, beside_constant: bool = True, alike: float = ALIKE
) -> dict[str, str]:
    """Return which columns have no effect of their own on rows (n, columns), by name, and why.

    They are `alike` where no larger share of a column is apart from those before it.
    """
    table = table * safe_scales(table)
    found, away = {}, table - (table.mean(axis=0) if beside_constant else 0.0)
    for j, name in enumerate(names):
        beside = away[:, :j] / np.maximum(np.linalg.norm(away[:, :j], axis=0), TINY)
        size = float(np.linalg.norm(away[:, j]))
        if size <= CONSTANT * np.linalg.norm(table[:, j]):
            found[name] = "does not vary" if beside_constant else "is zero"
        else:
            rest = np.linalg.norm(away[:, j] - beside @ np.linalg.lstsq(beside, away[:, j], rcond=None)[0])
            if rest <= alike * size:
                found[name] = LINEAR if rest <= ALIKE * size else NEARLY_LINEAR
    return found


def told(found: Mapping[str, str]) -> str:
    """Write what `undetermined` returns, of many columns the first few."""
    each = [f"{name} {why}" for name, why in found.items()]
    more = [f"and {len(each) - MOST_NAMED} more columns"] if len(each) > MOST_NAMED else []
    return "; ".join(each[:MOST_NAMED] + more)


def of_undetermined(table: Array, names: Sequence[str], alike: float = NEARLY) -> str:
    """Say of which gating covariates the rows determine no coefficients; empty where they determine all."""
    found = undetermined(table, names, alike=alike)
    if not found:
        return ""
    return (
        f"Gating covariates have no effect of their own: {told(found)}. The rows do not tell their coefficients from "
        "those of the covariates before, or from the constant; log-likelihood and predictions are right. Leave them out"
    )


def _columns(given: Any, n: int) -> tuple[list[str], list[NDArray[Any]], list[list[str] | None]]:
    """Return names, cells, and the order of the levels where the type of a column has one."""
    if hasattr(given, "columns"):
        names = [str(name) for name in column_names(given) or []]
        series = [given.iloc[:, j] if hasattr(given, "iloc") else given[name] for j, name in enumerate(names)]
    elif hasattr(given, "dtype") and hasattr(given, "name"):
        names, series = ["z1" if given.name is None else str(given.name)], [given]
    else:
        table = given if isinstance(given, np.ndarray) else np.asarray(given, dtype=object)
        table = table[:, None] if table.ndim == 1 else table
        if table.ndim != 2:
            raise ValueError(f"gating must have a row for each of the {n} rows of X; got shape {np.shape(given)}")
        names, series = [f"z{j + 1}" for j in range(table.shape[1])], list(table.T)
    columns = [np.asarray(column) for column in series]
    if not columns or any(len(column) != n for column in columns):
        raise ValueError(f"gating must have a row for each of the {n} rows of X; got shape {np.shape(given)}")
    ordered = [getattr(getattr(column, "dtype", None), "categories", None) for column in series]
    return names, columns, [None if own is None else [str(level) for level in own] for own in ordered]


def _levels(name: str, column: NDArray[Any], order: list[str] | None) -> tuple[str, ...]:
    """Return the levels of a column of text or of ordered categories; none for numbers."""
    missing = is_missing(column)
    known = column[~missing].tolist()
    if order is None and not any(isinstance(value, str) for value in known):
        _numbers(name, column)
        return ()
    _refuse_missing(name, column)
    if order is None and not all(isinstance(value, str) for value in known):
        row = next(i for i, value in enumerate(known) if not isinstance(value, str))
        raise ValueError(f"covariate {name!r} mixes text and numbers: row {row} has {known[row]!r}; write all as text")
    met = {str(value) for value in known}
    levels = sorted(met) if order is None else [level for level in order if level in met]
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"covariate {name!r} has {len(levels)} different texts, more than {MOST_LEVELS}: join some, or leave it out"
        )
    return tuple(levels)


def _numbers(name: str, column: NDArray[Any]) -> Array:
    missing = is_missing(column)
    wrong = [v for v in column[~missing].tolist() if not isinstance(v, Real)] if column.dtype.kind == "O" else []
    if wrong or column.dtype.kind not in "biufO":
        raise ValueError(
            f"covariate {name!r} must hold numbers, or text in every row; got {(wrong or [column.dtype])[0]!r}"
        )
    numbers = np.full(len(column), np.nan)
    numbers[~missing] = column[~missing].astype(np.float64)
    lacking = np.flatnonzero(~np.isfinite(numbers))
    if len(lacking):
        raise ValueError(
            f"covariates must be finite numbers, or text; row {lacking[0]} has {column[lacking[0]]} in column {name}: "
            "leave such rows out, of all arguments, or fill them in"
        )
    return numbers


def _refuse_missing(name: str, column: NDArray[Any]) -> None:
    missing = is_missing(column)
    if missing.any():
        raise ValueError(
            f"covariate {name!r} is missing in row {int(missing.argmax())}: leave such rows out, or give them a level "
            "of their own"
        )
