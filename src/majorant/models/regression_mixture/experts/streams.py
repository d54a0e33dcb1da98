"""Units of rows that are read block by block: sums over all of them, and a sample of them in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks, S
from majorant.models.regression_mixture.experts.coordinates import Coordinates
from majorant.models.regression_mixture.experts.units import InCoordinates, Units


@dataclass(frozen=True)
class UnitStream(InCoordinates):
    """Units as they are read, in the coordinates of a fit: what is a sum over `Units` is one over them too.

    Attributes
    ----------
    data : Chunks
        Columns as `columns_of` makes them.
    sample : Units
        Some of them, drawn uniformly, merged where they are the same.
    coordinates : Coordinates
    unit : float
        The average weight.
    n_sampled : int
        Units that were drawn.
    n_units, n_rows : int
    total_weight, row_weight : float
        Of the units and of the rows, at average weights of one.
    is_exact : bool
        Whether the single model fits every row.
    """

    data: Chunks
    sample: Units
    coordinates: Coordinates
    unit: float
    n_sampled: int
    n_units: int
    n_rows: int
    total_weight: float
    row_weight: float
    is_exact: bool

    gating = labels = None

    @property
    def share(self) -> float:
        """Weight of the sample as a share of that of all."""
        return self.sample.total_weight / self.total_weight

    def subsample(self, draws: np.random.Generator, size: int) -> Units:
        """Some units of the sample."""
        return self.sample.subsample(draws, size)

    def summed(self, f: Callable[[Units], S], width: int, n_threads: int = 1) -> S:
        """The sum over blocks of what `f` gives of each: a pass over the rows."""
        coordinates, unit = self.coordinates, self.unit  # what travels to workers should not hold the sample
        return self.data.map_sum(lambda block: units_of_block(block, coordinates, unit).summed(f, width))


AnyUnits = Units | UnitStream


def columns_of(units: Units) -> tuple[NDArray[Any], ...]:
    """Units as the columns of a block."""
    begins = np.zeros(units.n_rows, dtype=np.bool_)
    begins[units.first] = True
    columns = units.y, units.offset, units.trials
    return (units.z, *(np.ascontiguousarray(c[:, 0]) for c in columns), units.row_weights, begins)


def units_of_block(block: Block, coordinates: Coordinates, unit: float) -> Units:
    """The inverse of `columns_of`."""
    z, y, offset, trials, weights, begins = block.columns
    first = np.flatnonzero(begins)
    return Units(
        z=z,
        y=y[:, None],
        offset=offset[:, None],
        trials=trials[:, None],
        first=first,
        gating=None,
        weights=weights[first],
        labels=None,
        unit=unit,
        coordinates=coordinates,
    )
