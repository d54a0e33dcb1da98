"""Kinds and levels of items: learned from the table of the fit, applied to any other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from majorant._numbers import counted
from majorant._validation import check_choice, did_you_mean, is_missing
from majorant.registry import value_class

Array = NDArray[np.float64]
Kind = Literal["categorical", "ordinal", "normal", "count"]
KINDS: tuple[Kind, ...] = ("categorical", "ordinal", "normal", "count")
OF_LEVELS = ("categorical", "ordinal")
"""Kinds of items whose cells are levels."""
MOST_LEVELS = 10
"""Most different whole numbers of a column that is categorical by default."""

MOST_TOLD = 1000
"""Most different values of a column of a stream that are kept, and most levels of an item."""
MOST_ROWS_OF_NAMES = 20
"""Rows up to which an item of text may be different in every one of them."""


@value_class
@dataclass(frozen=True)
class Items:
    """The items of a fit.

    Attributes
    ----------
    names : tuple of str
    kinds : tuple of str
        "categorical", "ordinal", "normal" or "count".
    levels : tuple of tuple
        Of each categorical or ordinal item, in order; empty for others.
    unused : tuple of tuple
        Of each item, levels that its type names and no row of the fit has; they have no probability.
    """

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    levels: tuple[tuple[Any, ...], ...]
    unused: tuple[tuple[Any, ...], ...] = ()

    def of_kind(self, kind: str) -> list[int]:
        """Return the columns of a kind."""
        return [j for j, own in enumerate(self.kinds) if own == kind]

    def sizes(self, kind: str = "categorical") -> list[int]:
        """Return the number of levels of each item of a kind."""
        return [len(self.levels[j]) for j in self.of_kind(kind)]

    @property
    def table_sizes(self) -> list[int] | None:
        """The levels of all items, kind by kind, that span a table; None where some item has none."""
        return self.sizes() + self.sizes("ordinal") if set(self.kinds) <= set(OF_LEVELS) else None

    @property
    def sentence(self) -> str:
        """The items in words: "5 categorical items (a, b, c and 2 more); 1 count (d)"."""
        parts = []
        for kind in KINDS:
            own = [self.names[j] for j in self.of_kind(kind)]
            if own:
                more = f" and {len(own) - 3} more" if len(own) > 4 else ""
                noun = "count" if kind == "count" else f"{kind} item"
                parts.append(f"{counted(len(own), noun)} ({', '.join(own if not more else own[:3])}{more})")
        return "; ".join(parts)

    @property
    def remarks(self) -> list[str]:
        """What is odd about the items, in sentences: constant ones, and levels that do not occur."""
        said = [
            f"Item {name!r} is {own[0]!r} in every row: it does not distinguish classes."
            for name, own in zip(self.names, self.levels, strict=True)
            if len(own) == 1
        ]
        for name, own in zip(self.names, self.unused, strict=False):
            if own:
                levels = ", ".join(map(repr, own))
                verb = "has the level" if len(own) == 1 else "has the levels"
                said.append(f"No row {verb} {levels} of item {name!r}: left out.")
        return said

    def entry_names(self, estimate: str) -> list[str] | None:
        """Return a name for each number of a class in an estimate of the density: ``vote=left``, or the item."""
        if estimate in ("item_probabilities", "ordinal_probabilities"):
            own = self.of_kind("categorical" if estimate == "item_probabilities" else "ordinal")
            return [f"{self.names[j]}={level}" for j in own for level in self.levels[j]]
        kind = {
            "ordinal_effects": "ordinal",
            "normal_means": "normal",
            "normal_variances": "normal",
            "count_rates": "count",
        }.get(estimate)
        return None if kind is None else [self.names[j] for j in self.of_kind(kind)]

    def coded(self, table: NDArray[Any], unseen: str = "error") -> Array:
        """Return the cells as numbers: the place of a level among those of its item, NaN where a cell is missing.

        Raises
        ------
        ValueError
            If a level was not seen in the fit, unless `unseen` is "missing"; if a cell must be a number and is none.
        """
        out = np.empty(table.shape)
        for j, (name, kind, levels) in enumerate(zip(self.names, self.kinds, self.levels, strict=True)):
            values = column_of(table, j, name)
            if kind in OF_LEVELS:
                out[:, j] = _places(values, levels, name, unseen)
            elif values.dtype.kind != "f":
                row = int(np.argmin(is_missing(values)))
                raise ValueError(f"item {name!r} is a {kind} item and must hold numbers; row {row} is {values[row]!r}")
            else:
                out[:, j] = values
        return out

    def decoded(self, drawn: Array) -> NDArray[Any]:
        """Return rows, kind by kind, as a user knows them: numbers where all levels are, objects otherwise."""
        codes = np.empty_like(drawn)
        codes[:, [j for kind in KINDS for j in self.of_kind(kind)]] = drawn
        is_text = any(isinstance(level, str) for own in self.levels for level in own)
        out = codes.astype(object) if is_text else codes.copy()
        for j in (j for kind in OF_LEVELS for j in self.of_kind(kind)):
            there = ~np.isnan(codes[:, j])
            own = np.array(self.levels[j], dtype=object)
            out[there, j] = own[codes[there, j].astype(np.intp)]
        return out


def learned(
    table: NDArray[Any], names: Sequence[str], asked: Any, orders: Mapping[int, tuple[Any, ...]] | None = None
) -> Items:
    """Return the items of a table.

    Parameters
    ----------
    table : ndarray of shape (rows, items)
    names : sequence of str
    asked : str, sequence of str or mapping
        The kinds that the user named; see `LatentClassAnalysis`.
    orders : mapping, optional
        Levels in the order that a data frame gives them, by column, without levels that do not occur.

    Raises
    ------
    ValueError, TypeError
        If a kind is not known, or a column cannot be of its kind.
    """
    wanted = _asked(asked, names)
    kinds: list[Kind] = []
    levels: list[tuple[Any, ...]] = []
    unused: list[tuple[Any, ...]] = []
    for j, name in enumerate(names):
        unused.append(())
        values = column_of(table, j, name)
        known = values[~is_missing(values)]
        kind = wanted[j] if wanted[j] != "auto" else _kind_of(known, has_order=j in (orders or {}))
        if kind in OF_LEVELS:
            met = set(known.tolist())
            ordered = (orders or {}).get(j)
            _check_levels(known, len(met), name)
            if kind == "ordinal" and not ordered:
                _check_order(sorted(met), name)
            unused[j] = tuple(v for v in ordered or () if v not in met)
            levels.append(tuple(v for v in ordered if v in met) if ordered else tuple(map(_plain, sorted(met))))
        else:
            _check_numbers(known, kind, name)
            levels.append(())
        kinds.append(kind)  # type: ignore[arg-type]
    return Items(tuple(names), tuple(kinds), tuple(levels), tuple(unused))


def orders_of(X: Any) -> dict[int, tuple[Any, ...]]:
    """Return ordered levels of columns of a data frame (pandas' categories, enumerations of polars)."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return {}
    is_pandas = nw.dependencies.is_pandas_dataframe(nw.to_native(frame))
    ordered = {}
    for j in range(frame.shape[1]):
        series = frame[:, j]
        if isinstance(series.dtype, nw.Enum):
            ordered[j] = tuple(map(_plain, series.dtype.categories))
        elif is_pandas and series.dtype == nw.Categorical:
            ordered[j] = tuple(map(_plain, nw.to_native(series).cat.categories.tolist()))
    return ordered


def column_of(table: NDArray[Any], j: int, name: str) -> NDArray[Any]:
    """Return a column as floats, or as objects of one kind: text or truth values.

    Raises
    ------
    ValueError, TypeError
        If it mixes text and numbers, holds infinity, or neither text nor numbers.
    """
    values = table[:, j]
    if values.dtype.kind in "iuf":
        numbers = values.astype(np.float64)
    elif values.dtype.kind in "bUT":
        return values.astype(object)
    else:
        missing = is_missing(values)
        known = values[~missing]
        kinds = {_kind_of_cell(v) for v in known.tolist()}
        strange = kinds - {"text", "number", "truth value"}
        if strange:
            raise TypeError(f"item {name!r} holds a {strange.pop()}: the argument must be a string or a number")
        if len(kinds) > 1:
            examples = (next(v for v in known.tolist() if _kind_of_cell(v) == kind) for kind in sorted(kinds))
            told = " and ".join(f"{kind} ({v!r})" for kind, v in zip(sorted(kinds), examples, strict=True))
            raise ValueError(f"item {name!r} mixes {told}: use one kind of cells")
        if kinds and kinds != {"number"}:
            return values
        numbers = np.full(len(values), np.nan)
        numbers[~missing] = known.astype(np.float64)
    if np.isinf(numbers).any():
        row = int(np.argmax(np.isinf(numbers)))
        raise ValueError(f"Input X contains infinity: item {name!r}, row {row}")
    return numbers


def _kind_of_cell(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool | np.bool_):
        return "truth value"
    return "number" if isinstance(value, Real) else type(value).__name__


def _kind_of(known: NDArray[Any], *, has_order: bool) -> str:
    if has_order or known.dtype.kind == "O":
        return "categorical"
    values = np.unique(known)
    is_whole = bool((values == np.rint(values)).all())
    return "categorical" if len(values) <= 2 or (is_whole and len(values) <= MOST_LEVELS) else "normal"


def _check_numbers(known: NDArray[Any], kind: str, name: str) -> None:
    if known.dtype.kind != "f":
        raise ValueError(f"item {name!r} holds text such as {known[0]!r}: it can be categorical or ordinal, not {kind}")
    if kind == "normal" and len(known) and (known == known[0]).all():
        raise ValueError(
            f"normal item {name!r} is constant, {known[0]:g}: it does not distinguish classes; leave it out"
        )
    if kind == "count" and not ((known >= 0) & (known == np.rint(known))).all():
        wrong = known[~((known >= 0) & (known == np.rint(known)))][0]
        raise ValueError(f"count item {name!r} must hold whole numbers from 0; got {wrong:g}")


def _check_levels(known: NDArray[Any], n_levels: int, name: str) -> None:
    if known.dtype.kind == "O" and n_levels == len(known) > MOST_ROWS_OF_NAMES:
        raise ValueError(
            f"item {name!r} is a different text in every row, such as {known[0]!r}: it names the rows and says nothing "
            "of classes; leave it out"
        )
    if n_levels > MOST_TOLD:
        raise ValueError(
            f"item {name!r} has {n_levels:,} levels, more than {MOST_TOLD:,}: every level takes a probability of each "
            "class; join levels, or leave the item out (a number can be 'normal' or 'count')"
        )


def _check_order(levels: Sequence[Any], name: str) -> None:
    """Refuse text of more than two levels that neither categories nor numbers at its beginning put in order."""
    begin = [re.match(r"\s*\d+", level) if isinstance(level, str) else None for level in levels]
    is_numbered = all(begin) and bool(np.all(np.diff([float(found[0]) for found in begin if found]) > 0))
    if len(levels) > 2 and isinstance(levels[0], str) and not is_numbered:
        raise ValueError(
            f"ordinal item {name!r} holds text, {', '.join(map(repr, levels[:4]))}, whose order is not told: give "
            "numbers in its order, text that begins with them, or a pandas.Categorical with ordered categories"
        )


def _asked(asked: Any, names: Sequence[str]) -> list[str]:
    choices = ("auto", *KINDS)
    if isinstance(asked, str):
        return [check_choice("items", asked, choices)] * len(names)
    if isinstance(asked, Mapping):
        out = ["auto"] * len(names)
        for key, kind in asked.items():
            if key not in names and not (isinstance(key, int) and 0 <= key < len(names)):
                raise ValueError(f"items names a column {key!r} that is not there.{did_you_mean(str(key), names)}")
            out[names.index(key) if key in names else key] = check_choice(f"items[{key!r}]", kind, choices)
        return out
    if not isinstance(asked, Sequence):
        raise TypeError(f"items must be 'auto', a kind, a kind for each column, or a dict of them; got {asked!r}")
    if len(asked) != len(names):
        raise ValueError(f"items has {len(asked)} kinds, but X has {len(names)} columns")
    return [check_choice(f"items[{j}]", kind, choices) for j, kind in enumerate(asked)]


def _plain(value: Any) -> Any:
    """Return a level as Python writes it: whole numbers without a point."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value.item() if isinstance(value, np.generic) else value


def _places(values: NDArray[Any], levels: tuple[Any, ...], name: str, unseen: str) -> Array:
    """Return the place of each value among the levels; NaN where missing."""
    out = np.full(len(values), np.nan)
    known = np.flatnonzero(~is_missing(values))
    place = {level: float(i) for i, level in enumerate(levels)}
    distinct, inverse = np.unique(values[known], return_inverse=True) if values.dtype.kind == "f" else (None, None)
    if distinct is not None and inverse is not None:
        out[known] = np.array([place.get(v, -1.0) for v in distinct.tolist()])[inverse]
    else:
        out[known] = [place.get(v, -1.0) for v in values[known].tolist()]
    wrong = np.flatnonzero(out == -1.0)
    if len(wrong) and unseen == "error":
        shown = ", ".join(repr(level) for level in levels[:8]) + (", ..." if len(levels) > 8 else "")
        raise ValueError(
            f"item {name!r} is {_plain(values[wrong[0]])!r} in row {wrong[0]}, a level that the fit has not seen (it "
            f"saw {shown}); correct the cell, or set unseen='missing' to take such cells for missing ones"
        )
    out[wrong] = np.nan
    return out


def moments(x: Array, weights: Array) -> tuple[Array, Array]:
    """Return the mean and standard deviation of each column, over the cells that are there.

    Raises
    ------
    ValueError
        If squares of the numbers leave the range of floating point.
    """
    there = ~np.isnan(x)
    with np.errstate(all="ignore"):  # what overflows is refused below
        mass = weights @ there
        center = weights @ np.where(there, x, 0.0) / mass
        away = np.where(there, x - center, 0.0)
        top = np.abs(away).max(axis=0)
        scale = top * np.sqrt(weights @ (away / top) ** 2 / mass)
    if not ((scale > 1e-152) & (scale < 1e152)).all():
        size = "small" if (scale <= 1e-152).any() else "large"
        raise ValueError(f"numbers of X are too {size} for their squares: give them in other units")
    return center, scale


def levels_met(blocks: Iterable[NDArray[Any]], n_items: int) -> Array:
    """Return the different values of each column of a stream, NaN below; of a column of many, the first thousand."""
    levels: list[set[float]] = [set() for _ in range(n_items)]
    for block in blocks:
        for own, column in zip(levels, block.T.astype(np.float64), strict=True):
            if len(own) <= MOST_TOLD:
                own.update(np.unique(column[~np.isnan(column)]).tolist())
    table = np.full((max(map(len, levels)), n_items), np.nan)
    for j, own in enumerate(levels):
        table[: len(own), j] = sorted(own)
    return table
