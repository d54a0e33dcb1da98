"""The units of a general fit in canonical order: each has one latent component and one row or more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import S
from majorant.engine.draws import thinned
from majorant.models.regression_mixture.experts.coordinates import Coordinates


class InCoordinates:
    """What follows from the coordinates of units, wherever these are.

    Attributes
    ----------
    coordinates : Coordinates
    unit : float
        The average weight of a unit.
    row_weight : float
        Of the rows, at average weights of one.
    """

    coordinates: Coordinates
    unit: float
    row_weight: float

    @property
    def n_coefficients(self) -> int:
        return self.coordinates.n_coefficients

    @property
    def n_shared(self) -> int:
        return self.coordinates.n_shared

    @property
    def constant(self) -> float:
        """What is added to the log-likelihood of targets in units of the fit to have that of targets in their own."""
        return -self.row_weight * float(np.log(self.coordinates.sigma))

    def log_likelihood(self, value: float, share: float = 1.0) -> float:
        """In the units of y and of the weights; `share` of the rows count."""
        return (value + share * self.constant) * self.unit


@dataclass(frozen=True)
class Units(InCoordinates):
    """Distinct units in canonical order, weighted, in the coordinates of a fit; rows of a unit lie together.

    Attributes
    ----------
    z : ndarray of shape (n_rows, p)
        Design, orthonormal; columns whose coefficients are shared come last.
    y, offset, trials : ndarray of shape (n_rows, 1)
        `offset` holds the single model's fit.
    first : ndarray of shape (n_units,) of int
        First row of each unit.
    gating : ndarray of shape (n_units, g), or None
    weights : ndarray of shape (n_units,)
        One on average.
    labels : ndarray of shape (n_units,) of int, or None
        Known components; -1 where unknown.
    unit : float
        The average weight.
    coordinates : Coordinates
    is_exact : bool
        Whether the single model fits every row.
    """

    z: NDArray[np.float64]
    y: NDArray[np.float64]
    offset: NDArray[np.float64]
    trials: NDArray[np.float64]
    first: NDArray[np.intp]
    gating: NDArray[np.float64] | None
    weights: NDArray[np.float64]
    labels: NDArray[np.intp] | None
    unit: float
    coordinates: Coordinates
    is_exact: bool = False

    @property
    def n_units(self) -> int:
        return len(self.first)

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @cached_property
    def sizes(self) -> NDArray[np.intp]:
        """Rows of each unit."""
        return np.diff(np.append(self.first, self.n_rows))

    @cached_property
    def is_grouped(self) -> bool:
        """Whether a unit has more than one row."""
        return self.n_units < self.n_rows

    @cached_property
    def total_weight(self) -> float:
        """Of the units."""
        return float(self.weights.sum())

    @cached_property
    def row_weight(self) -> float:  # type: ignore[override]
        """Of the rows."""
        return float(np.sum(self.weights * self.sizes))

    @cached_property
    def row_weights(self) -> NDArray[np.float64]:
        return np.repeat(self.weights, self.sizes)

    def per_unit(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums over the rows of each unit."""
        if not self.is_grouped:
            return table
        # In memory rows are the inner axis of tables of many mixtures, see `statistics.predictors`.
        return np.moveaxis(np.add.reduceat(np.moveaxis(table, 0, -1), self.first, axis=-1), -1, 0)

    def per_row(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """A unit's entry for each of its rows."""
        if not self.is_grouped:
            return table
        return np.moveaxis(np.take(np.moveaxis(table, 0, -1), self.unit_of_row, axis=-1), -1, 0)

    @cached_property
    def unit_of_row(self) -> NDArray[np.intp]:
        return np.repeat(np.arange(self.n_units), self.sizes)

    @cached_property
    def columns(self) -> NDArray[np.float64]:
        """Columns of `z`, (p, n_rows)."""
        return np.ascontiguousarray(self.z.T)

    @cached_property
    def products(self) -> NDArray[np.float64]:
        """Products of two columns of `z`, in the order of the lower triangle."""
        return _products(self.columns)

    @cached_property
    def gating_columns(self) -> NDArray[np.float64]:
        assert self.gating is not None
        return np.ascontiguousarray(self.gating.T)

    @cached_property
    def gating_products(self) -> NDArray[np.float64]:
        return _products(self.gating_columns)

    @cached_property
    def _slices(self) -> dict[int, list[Units]]:
        return {}

    def slices(self, width: int) -> list[Units]:
        """Blocks of units whose tables of `width` columns stay in the cache."""
        most = max(CACHED // max(width, 1), LEAST_ROWS)
        if self.n_rows <= 1.5 * most:
            return [self]
        if width not in self._slices:
            self._slices[width] = self._cut(most)
        return self._slices[width]

    def summed(self, f: Callable[[Units], S], width: int, n_threads: int = 1) -> S:
        """The sum over blocks of what `f` gives of each; it makes tables of `width` columns."""
        total: S = reduce(add, mapped_blocks(f, self.slices(width), n_threads))
        return total

    def _cut(self, most: int) -> list[Units]:
        """Blocks of about so many rows."""
        ends = np.append(self.first[1:], self.n_rows)
        blocks, begin = [], 0
        while begin < self.n_units:
            end = int(np.searchsorted(ends, self.first[begin] + most, side="right"))
            end = min(max(end, begin + 1), self.n_units)
            blocks.append(self._block(begin, end))
            begin = end
        return blocks

    def _block(self, begin: int, end: int) -> Units:
        low = int(self.first[begin])
        rows = slice(low, int(self.first[end]) if end < self.n_units else self.n_rows)
        units = slice(begin, end)
        return self._taken(rows, units, self.first[units] - low, self.weights[units])

    def chosen(self, units: NDArray[np.intp], weights: NDArray[np.float64]) -> Units:
        """Some of the units, with weights."""
        sizes = self.sizes[units]
        first = np.cumsum(sizes) - sizes
        rows = np.repeat(self.first[units] - first, sizes) + np.arange(int(sizes.sum()))
        return self._taken(rows, units, first, weights)

    def _taken(
        self,
        rows: slice | NDArray[np.intp],
        units: slice | NDArray[np.intp],
        first: NDArray[np.intp],
        weights: NDArray[np.float64],
    ) -> Units:
        return replace(
            self,
            z=self.z[rows],
            y=self.y[rows],
            offset=self.offset[rows],
            trials=self.trials[rows],
            first=first,
            gating=None if self.gating is None else self.gating[units],
            weights=weights,
            labels=None if self.labels is None else self.labels[units],
        )

    def subsample(self, draws: np.random.Generator, size: int) -> Units:
        """Units at equal steps of weight from a random one on, each with the number of times that it was met."""
        units, times = thinned(self.weights, size, draws)
        return self.chosen(units, np.asarray(times * (self.total_weight / size), dtype=np.float64))


CACHED, LEAST_ROWS = 1 << 16, 64
"""Entries of a table that stays in the cache, and fewest rows of a block."""


def _products(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    lower = np.tril_indices(len(columns))
    return columns[lower[0]] * columns[lower[1]]


def mapped_blocks(f: Callable[..., Any], blocks: Sequence[Units], n_threads: int, *more: Sequence[Any]) -> list[Any]:
    """Results for all blocks, in order."""
    if n_threads == 1 or len(blocks) == 1:
        return list(map(f, blocks, *more))
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(f, blocks, *more))
