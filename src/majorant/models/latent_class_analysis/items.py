"""Kinds and levels of items: learned from the table of the fit, applied to any other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from majorant._cells import code_for_missing
from majorant._numbers import briefly, counted, few_of
from majorant._validation import check_choice, did_you_mean, is_missing
from majorant.models.latent_class_analysis.kinds import KINDS, PREFIXES, Kind, Together, blocks_of, plain
from majorant.registry import value_class

Array = NDArray[np.float64]
FEW_LEVELS = 10
"""Most different whole numbers of a column that is categorical by default."""
MOST_TOLD = 1000
"""Most different values of a column of a stream that are kept."""


@value_class
@dataclass(frozen=True)
class Items:
    """The items of a fit."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]  # the names of `kinds.KINDS`
    levels: tuple[tuple[Any, ...], ...]  # of each categorical or ordinal item, in order; empty for others
    # of each item, levels that its type names and no row of the fit has; they have no probability
    unused: tuple[tuple[Any, ...], ...] = ()
    correlated: Together = ()  # names and columns of blocks of normal items that are correlated within a class
    one_hot: tuple[tuple[str, ...], ...] = ()  # items of 0 and 1 of which exactly one is 1 in every row

    @cached_property
    def blocks(self) -> tuple[Kind, ...]:
        """The items kind by kind, as their densities read them."""
        return blocks_of(self.names, self.kinds, self.levels, self.correlated)

    @property
    def settings(self) -> dict[str, Any]:
        """Parameters of an estimator that reads columns as these items, by number."""
        together = {name: list(columns) for name, columns in self.correlated if name != "normal"}
        return {
            "items": list(self.kinds),
            "correlated": "all" if not together and self.correlated else together or None,
        }

    @property
    def table_sizes(self) -> list[int] | None:
        """The levels of all items, kind by kind, that span a table; None where some item has none."""
        sizes = [len(levels) for block in self.blocks for levels in block.levels]
        return sizes if all(block.has_levels for block in self.blocks) else None

    @property
    def sentence(self) -> str:
        """The items in words: "5 categorical items (a, b, c and 2 more); 1 count (d)"."""
        parts = []
        for block in self.blocks:
            own = block.names
            told = ", ".join(own) if len(own) <= 4 else f"{', '.join(own[:3])} and {len(own) - 3} more"
            parts.append(f"{counted(len(own), block.noun)} ({told})")
        return "; ".join(parts)

    @property
    def remarks(self) -> list[str]:
        """What is odd about the items, in sentences: constant ones, and levels that do not occur."""
        said = [
            f"Item {name!r} is {briefly(own[0])} in every row: it does not distinguish classes."
            for name, own in zip(self.names, self.levels, strict=True)
            if len(own) == 1
        ]
        for name, own in zip(self.names, self.levels, strict=True):
            if (code := code_for_missing(own)) is not None:
                said.append(f"Item {name!r} has the level {code}: if it means a missing cell, make it None or NaN.")
        for name, own in zip(self.names, self.unused, strict=False):
            if own:
                levels = ", ".join(map(repr, own))
                verb = "has the level" if len(own) == 1 else "has the levels"
                said.append(f"No row {verb} {levels} of item {name!r}: left out.")
        said += [
            f"Exactly one of the items {few_of([*map(repr, group)])} is 1 in every row that has them. Items are taken "
            "to be independent within a class: give one categorical item in their place, or too many classes seem "
            "needed."
            for group in self.one_hot
        ]
        return said

    def entry_names(self, estimate: str) -> list[str] | None:
        """Return a name for each number of a class in an estimate of the density: ``vote=left``, or the item."""
        for block in self.blocks:
            if estimate.startswith(f"{block.prefix}_"):
                return block.entries(estimate.removeprefix(f"{block.prefix}_"))
        return None

    def scales(self, model: Any) -> dict[str, Array]:
        """Return the standard deviations of numbers over all classes, by the estimate of a fit that is their mean."""
        blocks = [block for block in self.blocks if not block.has_levels]
        return {f"{block.prefix}_{block.shown}": block.moments(model)[1] for block in blocks}

    def coded(self, table: NDArray[Any], unseen: str = "error") -> Array:
        """Return the cells as numbers: the place of a level among those of its item, NaN where a cell is missing."""
        out = np.empty(table.shape)
        for j, (name, kind, levels) in enumerate(zip(self.names, self.kinds, self.levels, strict=True)):
            out[:, j] = KINDS[kind].coded(column_of(table, j, name), levels, name, unseen)
        return out

    def decoded(self, drawn: Array) -> NDArray[Any]:
        """Return rows, kind by kind, as a user knows them: numbers where all levels are, objects otherwise."""
        codes = np.empty_like(drawn)
        codes[:, [j for block in self.blocks for j in block.columns]] = drawn
        is_text = any(isinstance(level, str) for own in self.levels for level in own)
        out = codes.astype(object) if is_text else codes.copy()
        for j in (j for block in self.blocks if block.has_levels for j in block.columns):
            there = ~np.isnan(codes[:, j])
            own = np.array(self.levels[j], dtype=object)
            out[there, j] = own[codes[there, j].astype(np.intp)]
        return out


def learned(
    table: NDArray[Any],
    names: Sequence[str],
    asked: Any,
    orders: Mapping[int, tuple[Any, ...]] | None = None,
    correlated: Any = None,
) -> Items:
    """Return the items of a table.

    Parameters
    ----------
    table : ndarray of shape (rows, items)
    names : sequence of str
    asked : str, sequence of str or mapping
        The kinds that the user named; see `LatentClassAnalysis`.
    correlated : None, str, sequence or mapping
        The items that are correlated within a class; see there.
    orders : mapping, optional
        Levels in the order that a data frame gives them, by column, without levels that do not occur.
    """
    wanted = _asked(asked, names)
    for j in (j for _, columns in _together(correlated, names, None) for j in columns):
        wanted[j] = "normal" if wanted[j] == "auto" else wanted[j]
    kinds, levels, unused = list[str](), list[tuple[Any, ...]](), list[tuple[Any, ...]]()
    bits = dict[str, Array]()
    for j, name in enumerate(names):
        values = column_of(table, j, name)
        known, order = values[~is_missing(values)], (orders or {}).get(j)
        kind = wanted[j] if wanted[j] != "auto" else _kind_of(known, has_order=order is not None)
        own, left = KINDS[kind].learned(known, order, name)
        kinds.append(kind)
        levels.append(own)
        unused.append(left)
        if kind == "categorical" and own in ((0, 1), (False, True)):
            bits[name] = np.where(is_missing(values), np.nan, values).astype(np.float64)
    together = _together(correlated, names, kinds)
    return Items(tuple(names), tuple(kinds), tuple(levels), tuple(unused), together, _one_hot(bits))


def _one_hot(bits: Mapping[str, Array]) -> tuple[tuple[str, ...], ...]:
    """Return the groups of columns of 0 and 1 of which exactly one is 1 in every row without a gap."""
    if len(bits) < 2:
        return ()
    names, table = list(bits), np.column_stack(list(bits.values()))
    ones = np.nan_to_num(table)
    meet, count, n_whole = ones.T @ ones > 0, ones.sum(axis=0), (~np.isnan(table).any(axis=1)).sum()
    groups, free = [], np.ones(len(names), dtype=np.bool_)
    for first in range(len(names)):
        group, beside = [first], free & ~meet[first]
        beside[: first + 1] = False
        if not free[first] or count[first] + count[beside].sum() < n_whole:  # together they are 1 in too few rows
            continue
        while beside.any():
            group.append(int(beside.argmax()))
            beside &= ~meet[group[-1]]
            beside[group[-1]] = False
        sums = table[:, group].sum(axis=1)
        known = sums[~np.isnan(sums)]
        if len(group) > 1 and len(known) and (known == 1).all():
            groups.append(tuple(names[j] for j in group))
            free[group] = False
    return tuple(groups)


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
            ordered[j] = tuple(map(plain, series.dtype.categories))
        elif is_pandas and series.dtype == nw.Categorical:
            ordered[j] = tuple(map(plain, nw.to_native(series).cat.categories.tolist()))
    return ordered


def column_of(table: NDArray[Any], j: int, name: str) -> NDArray[Any]:
    """Return a column as floats, or as objects of one kind: text or truth values."""
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
            told = " and ".join(f"{kind} ({briefly(v)})" for kind, v in zip(sorted(kinds), examples, strict=True))
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
    return "number" if isinstance(value, Real | Decimal) else type(value).__name__


def _kind_of(known: NDArray[Any], *, has_order: bool) -> str:
    if has_order or known.dtype.kind == "O":
        return "categorical"
    values = np.unique(known)
    is_whole = bool((values == np.rint(values)).all())
    return "categorical" if len(values) <= 2 or (is_whole and len(values) <= FEW_LEVELS) else "normal"


def _asked(asked: Any, names: Sequence[str]) -> list[str]:
    choices = ("auto", *KINDS)
    if isinstance(asked, str):
        return [check_choice("items", asked, choices)] * len(names)
    if isinstance(asked, Mapping):
        out = ["auto"] * len(names)
        for key, kind in asked.items():
            out[_column(key, names, "items")] = check_choice(f"items[{key!r}]", kind, choices)
        return out
    if not isinstance(asked, Sequence):
        raise TypeError(
            f"items must be 'auto', a kind, a kind for each column, or a dict of them; got {briefly(asked)}"
        )
    if len(asked) != len(names):
        raise ValueError(f"items has {len(asked)} kinds, but X has {len(names)} columns")
    return [check_choice(f"items[{j}]", kind, choices) for j, kind in enumerate(asked)]


def _together(asked: Any, names: Sequence[str], kinds: Sequence[str] | None) -> Together:
    """Return names and columns of the blocks of correlated items; "all" are known once the kinds are."""
    if asked is None or (asked == "all" and kinds is None):
        return ()
    if isinstance(asked, str):
        check_choice("correlated", asked, ["all"], or_else=", a list of items, or a dict of lists")
        own = tuple(j for j, kind in enumerate(kinds or ()) if kind == "normal")
        if len(own) < 2:
            raise ValueError(f"correlated='all' needs two normal items or more; X has {len(own)}")
        return (("normal", own),)
    blocks: Mapping[str, Any] = asked if isinstance(asked, Mapping) else {"correlated": asked}
    found: list[tuple[str, tuple[int, ...]]] = []
    seen: set[int] = set()
    for block, items in blocks.items():
        if isinstance(items, str) or not isinstance(items, Iterable):
            raise TypeError(f"correlated must list the items of block {block!r}; got {briefly(items)}")
        columns = tuple(_column(key, names, "correlated") for key in items)
        if not str(block).isidentifier() or block in {PREFIXES.get(kind, kind) for kind in KINDS}:
            raise ValueError(
                f"correlated names a block {block!r}: a name is letters and digits, and not that of a kind"
            )
        if len(set(columns)) < 2 or seen.intersection(columns):
            raise ValueError(
                f"block {block!r} of correlated needs two items or more, none of which is in another block"
            )
        for j in columns:
            if kinds is not None and kinds[j] != "normal":
                raise ValueError(f"correlated names item {names[j]!r}, which is {kinds[j]}: only normal items can be")
        seen.update(columns)
        found.append((str(block), columns))
    return tuple(found)


def _column(key: Any, names: Sequence[str], setting: str) -> int:
    """Return a column by its name or number."""
    if key in names:
        return list(names).index(key)
    if not (isinstance(key, int) and 0 <= key < len(names)):
        raise ValueError(f"{setting} names a column {briefly(key)} that is not there.{did_you_mean(str(key), names)}")
    return key


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
