"""Populations: groups of rows whose classes are compared, with items measured alike in all of them or not.

An item whose parameters differ between populations is an item of its own in each of them, missing in the rows of the
others: a missing cell drops out of its row, so that nothing else of the model needs to know of populations.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

from majorant._numbers import briefly
from majorant._validation import did_you_mean, is_missing
from majorant.models.latent_class_analysis.items import Items, column_of
from majorant.models.latent_class_analysis.kinds import KINDS, plain
from majorant.registry import value_class

Array = NDArray[np.float64]
MOST_POPULATIONS = 50


@value_class
@dataclass(frozen=True)
class Populations:
    """The populations of a fit."""

    name: str  # of the column that holds them
    column: int  # its place among the columns of X
    levels: tuple[Any, ...]  # the populations, sorted
    shares: tuple[float, ...]  # of the rows of the fit
    items: Items  # the items as they are in X
    free: tuple[int, ...]  # the items whose parameters differ between populations

    @property
    def all_free(self) -> bool:
        """Whether no item is measured alike in all populations."""
        return len(self.free) == len(self.items.names)

    @cached_property
    def parts(self) -> list[tuple[int, int | None]]:
        """Of each item of the model, the item in X and the population; None where it is of all."""
        every: list[int | None] = list(range(len(self.levels)))
        return [(j, g) for j in range(len(self.items.names)) for g in (every if j in self.free else [None])]

    @cached_property
    def split_items(self) -> Items:
        """The items of the model: those of X, or one for each population."""
        base, parts = self.items, self.parts
        names = [base.names[j] if g is None else f"{base.names[j]} ({self.levels[g]})" for j, g in parts]
        unused = tuple(base.unused[j] for j, _ in parts)
        together: list[tuple[str, tuple[int, ...]]] = []
        for name, columns in base.correlated:
            of = list(range(len(self.levels))) if columns[0] in self.free else [None]
            together += [
                (name if g is None else f"{name}_{g + 1}", tuple(parts.index((j, g)) for j in columns)) for g in of
            ]
        kinds, levels = tuple(base.kinds[j] for j, _ in parts), tuple(base.levels[j] for j, _ in parts)
        return Items(tuple(names), kinds, levels, unused, tuple(together))

    def of_rows(self, column: NDArray[Any]) -> Array:
        """Return the number of the population of each row."""
        refuse_missing(column, self.name)
        place = {level: float(g) for g, level in enumerate(self.levels)}
        found = np.array([place.get(plain(v), -1.0) for v in column.tolist()])
        if (found < 0).any():
            row = int(np.argmax(found < 0))
            raise ValueError(
                f"population {self.name!r} is {plain(column[row])!r} in row {row}, which the fit has not seen (it saw "
                f"{', '.join(map(repr, self.levels))}): correct the cell, or leave the row out"
            )
        return found

    def coded(self, table: NDArray[Any], unseen: str = "error") -> Array:
        """Return the cells of the model's items as numbers, and the population of each row as the last column."""
        population = self.of_rows(column_of(table, self.column, self.name))
        codes = self.items.coded(np.delete(table, self.column, axis=1), unseen)
        return np.column_stack([self.split(codes, population), population])

    def split(self, codes: Array, population: Array) -> Array:
        """Return the cells of the model's items: those of other populations are missing."""
        return np.column_stack(
            [codes[:, j] if g is None else np.where(population == g, codes[:, j], np.nan) for j, g in self.parts]
        )

    def joined(self, cells: Array) -> Array:
        """Return the cells of the items as they are in X: the inverse of `split`."""
        out = np.full((len(cells), len(self.items.names)), np.nan)
        for i, (j, _) in enumerate(self.parts):
            there = ~np.isnan(cells[:, i])
            out[there, j] = cells[there, i]
        return out

    def of_columns(self, columns: Sequence[Array]) -> Array:
        """Return the cells of the items as they are in X from those of the model's, kind by kind."""
        cells = np.empty((len(columns[0]), len(self.parts)))
        for block, x in zip(self.split_items.blocks, columns, strict=False):
            cells[:, list(block.columns)] = x
        return self.joined(cells)

    def within(self, cells: Array, population: NDArray[np.intp]) -> Array:
        """Return cells of the model's items, kind by kind, without those of other populations than the row's."""
        parts = [self.parts[i][1] for block in self.split_items.blocks for i in block.columns]
        return np.column_stack(
            [x if g is None else np.where(population == g, x, np.nan) for x, g in zip(cells.T, parts, strict=True)]
        )

    def shown(self, cells: Array, population: NDArray[np.intp]) -> NDArray[Any]:
        """Return drawn rows, kind by kind, as they are in X, with the column of populations in its place."""
        blocks = self.split_items.blocks
        codes = self.of_columns(np.split(cells, np.cumsum([len(block.columns) for block in blocks])[:-1], axis=1))
        table = self.items.decoded(codes[:, [j for block in self.items.blocks for j in block.columns]])
        levels = np.array(self.levels, dtype=object)[population]
        is_text = table.dtype.kind == "O" or any(isinstance(level, str) for level in self.levels)
        return np.insert(table.astype(object) if is_text else table, self.column, levels, axis=1)


def refuse_missing(column: NDArray[Any], name: str) -> None:
    """Raise a ValueError where the population of a row is missing."""
    missing = is_missing(column)
    if missing.any():
        raise ValueError(
            f"population {name!r} is missing in row {int(missing.argmax())}: leave such rows out, or give them a level "
            "of their own"
        )


def place_of(population: Any, names: Sequence[str]) -> int:
    """Return the column of X that holds the populations."""
    if isinstance(population, str) and population in names:
        return list(names).index(population)
    if (
        isinstance(population, int | np.integer)
        and not isinstance(population, bool | np.timedelta64)
        and 0 <= population < len(names)
    ):
        return int(population)
    raise ValueError(
        "population must be a column of X, by name or number; "
        f"got {briefly(population)}.{did_you_mean(population, names)}"
    )


def populations_of(
    column: NDArray[Any], weights: Array | None, table: NDArray[Any], items: Items, name: str, place: int, equal: Any
) -> Populations:
    """Return the populations of the rows of a fit.

    Parameters
    ----------
    column : ndarray of shape (rows,)
    weights : ndarray of shape (rows,), optional
    table : ndarray of shape (rows, items)
    name, place
        Of the column.
    equal : {"all", "none"}, None or sequence
        Items whose parameters are equal in all populations, by name or number.
    """
    refuse_missing(column, name)
    w = np.ones(len(column)) if weights is None else weights
    own = np.array([plain(v) for v in column.tolist()], dtype=object)
    levels = tuple(sorted(set(own[w > 0].tolist())))
    if len(levels) < 2:
        raise ValueError(
            f"population {name!r} is {briefly(levels[0])} in every row: leave population out, as there is only one"
        )
    if len(levels) > MOST_POPULATIONS:
        raise ValueError(
            f"population {name!r} has {len(levels)} levels, more than {MOST_POPULATIONS}: join some, or fit without"
        )
    shares = tuple(float(w[own == level].sum() / w.sum()) for level in levels)
    found = Populations(name, place, levels, shares, items, free_items(equal, items.names))
    for _, columns in items.correlated:
        if 0 < len(set(columns) & set(found.free)) < len(columns):
            raise ValueError(
                f"correlated items {', '.join(items.names[j] for j in columns)} are equal in all populations together: "
                "name all of them in equal_items, or none"
            )
    for j in found.free:
        values = column_of(table, j, items.names[j])
        there = ~is_missing(values) & (w > 0)
        for level in levels:
            known, told = values[there & (own == level)], f"{items.names[j]} ({level})"
            if not len(known):
                raise ValueError(
                    f"item {items.names[j]!r} has no answer in population {briefly(level)}: name it in equal_items, or "
                    "leave it out"
                )
            if not items.levels[j]:
                KINDS[items.kinds[j]].learned(known, None, told)
    return found


def free_items(equal: Any, names: Sequence[str]) -> tuple[int, ...]:
    """Return the items whose parameters are not equal in all populations."""
    if equal is None or isinstance(equal, str):
        if equal not in ("all", "none", None):
            raise ValueError(
                f"equal_items must be 'all', 'none', or a list of items that are measured alike; got {briefly(equal)}"
            )
        return () if equal == "all" else tuple(range(len(names)))
    if not isinstance(equal, Sequence | np.ndarray):
        raise TypeError(f"equal_items must be 'all', 'none' or a list of items; got {type(equal).__name__}")
    held = set()
    for item in equal:
        is_place = (
            isinstance(item, int | np.integer)
            and not isinstance(item, bool | np.timedelta64)
            and 0 <= item < len(names)
        )
        if item not in names and not is_place:
            raise ValueError(f"equal_items names {briefly(item)}, which is no item.{did_you_mean(item, names)}")
        held.add(list(names).index(item) if item in names else int(item))
    return tuple(j for j in range(len(names)) if j not in held)


def drawn_rows(model: Any, n: int, random: np.random.Generator) -> tuple[Array, NDArray[np.intp], NDArray[np.intp]]:
    """Return cells of the model's items, kind by kind, the population and the class of n drawn rows."""
    found: Populations = model.populations_
    population = random.choice(len(found.levels), n, p=found.shares)
    ends = np.cumsum(model.population_shares_, axis=0)[:-1, population]
    components = np.asarray((ends <= random.random(n)).sum(axis=0), dtype=np.intp)
    cells = model._density().drawn(model._theta().density, components, random)
    return found.within(cells, population), population, components


def apart(
    model: Any, codes: Array, population: Array, weights: Array, points: Array, seed: int
) -> tuple[Array, dict[str, Any]]:
    """Return responsibilities of rows by a fit of each population alone, classes numbered alike, and the searches.

    Classes of a population take the numbers of those of the largest population that they are nearest to.

    Parameters
    ----------
    model : LatentClassAnalysis
        Not changed.
    codes : ndarray of shape (rows, items)
    population, weights : ndarray of shape (rows,)
    points : ndarray of shape (rows, numbers)
        Rows on scales that can be compared.
    """
    found: Populations = model.populations_
    k, searches = int(model.n_components), {}
    q, means = np.empty((k, len(weights))), []
    for g, level in enumerate(found.levels):
        own = population == g
        alone = clone(model).set_params(population=None, warm_start=False, **found.items.settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            alone.set_params(random_state=seed).fit(codes[own], sample_weight=weights[own])
        q[:, own] = alone.predict_proba(codes[own]).T
        mass = q[:, own] * weights[own]
        means.append(mass @ points[own] / np.maximum(mass.sum(axis=1, keepdims=True), 1e-300))
        searches[str(level)] = alone.search_
    like = means[int(np.argmax(found.shares))]
    for g, own_means in enumerate(means):
        distances = ((like[:, None] - own_means) ** 2).sum(axis=2)
        own = population == g
        q[:, own] = q[:, own][linear_sum_assignment(distances)[1]]
    return q, searches
