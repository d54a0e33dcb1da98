"""The profile of the classes: what each class answers, item by item, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._frames import data_frame
from majorant.models.latent_class_analysis.items import Items
from majorant.models.latent_class_analysis.kinds import KINDS
from majorant.summary import Column, Table, Tabled

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class ClassProfile(Tabled):
    """What each class answers: a row for each level of a categorical item, and one for the mean of any other.

    Attributes
    ----------
    items, levels, kinds : tuple of str
        Of each row; the level of a number is what its estimate is called, such as "mean" or "rate".
    shares : ndarray of shape (n_components,)
    estimates : ndarray of shape (rows, n_components)
        Probabilities, means and rates.
    low, high : ndarray of shape (rows, n_components)
        Intervals; NaN where there is none, as for a probability of 0 or 1.
    center, scale : ndarray of shape (rows,)
        Mean and standard deviation of the numbers over all classes; 0 and 1 for probabilities.
    """

    items: tuple[str, ...]
    levels: tuple[str, ...]
    kinds: tuple[str, ...]
    shares: Array
    estimates: Array
    low: Array
    high: Array
    center: Array
    scale: Array

    @property
    def standardised(self) -> tuple[Array, Array, Array]:
        """Estimates and ends, those of numbers in standard deviations from the mean of all rows."""
        values = np.stack([self.estimates, self.low, self.high])
        estimates, low, high = (values - self.center[:, None]) / self.scale[:, None]
        return estimates, low, high

    @property
    def is_probability(self) -> NDArray[np.bool_]:
        """Which rows are probabilities of a level."""
        return np.array([KINDS[kind].has_levels for kind in self.kinds])

    @property
    def distinct_rows(self) -> list[int]:
        """The rows that say something that no other does: of an item with two levels, the second alone."""
        return [
            i
            for i, item in enumerate(self.items)
            if not (self.items.count(item) == 2 and self.items[i + 1 : i + 2] == (item,))
        ]

    def to_wide_frame(self, decimals: int = 2) -> Any:
        """Return a table for a paper as text: a row for each item and level, a column for each class."""
        return self._wide(decimals).to_frame()

    @property
    def content(self) -> Sequence[Table | str]:
        """A row for each item and level."""
        return [self._wide(2)]

    def _wide(self, decimals: int) -> Table:

        def cell(x: float, low: float, high: float) -> str:
            ends = "" if np.isnan(low) or np.isnan(high) else f" ({low:.{decimals}f}, {high:.{decimals}f})"
            return f"{x:.{decimals}f}{ends}"

        columns = [Column("item", self.items), Column("level", self.levels)]
        for k, share in enumerate(self.shares.tolist()):
            ends = zip(self.estimates[:, k].tolist(), self.low[:, k].tolist(), self.high[:, k].tolist(), strict=True)
            columns.append(Column(f"class {k + 1} ({share:.0%})", [cell(*own) for own in ends]))
        return Table("profile", columns)

    def to_frame(self) -> Any:
        """Return a data frame with a row for each item, level and class."""
        k = len(self.shares)
        names = {"item": self.items, "level": self.levels}
        columns: dict[str, Any] = {head: np.repeat(values, k).tolist() for head, values in names.items()}
        columns["class"] = np.tile(np.arange(1, k + 1), len(self.items)).tolist()
        columns["estimate"] = self.estimates.ravel().tolist()
        return data_frame({**columns, "low": self.low.ravel().tolist(), "high": self.high.ravel().tolist()})


def profile_of(model: Any, intervals: Mapping[str, tuple[Array, Array]]) -> ClassProfile:
    """Return the profile of a fit, with intervals of its estimates by name, where there are some."""
    items: Items = model.items_
    shares = np.asarray(model.weights_)
    found: dict[int, tuple[list[str], Array, Array, Array]] = {}
    for block in items.blocks:
        values = block.estimates(model, block.shown)
        ends = intervals.get(f"{block.prefix}_{block.shown}", (np.full_like(values, np.nan),) * 2)
        moments = None if block.has_levels else block.moments(model)
        for i, j in enumerate(block.columns):
            parts = np.stack([part[:, block.at(i)].T for part in (values, *ends)])
            center, scale = np.zeros(parts.shape[1]), np.ones(parts.shape[1])
            if moments is not None:
                center[0], scale[0] = moments[0][i], moments[1][i]
            found[j] = list(map(str, block.levels[i])) or [block.label], parts, center, scale
    rows = [found[j] for j in range(len(found))]
    widths = [len(levels) for levels, *_ in rows]
    estimates, low, high = np.concatenate([parts for _, parts, *_ in rows], axis=1)
    return ClassProfile(
        tuple(np.repeat(items.names, widths).tolist()),
        tuple(level for levels, *_ in rows for level in levels),
        tuple(np.repeat(items.kinds, widths).tolist()),
        shares,
        estimates,
        low,
        high,
        *(np.concatenate(part) for part in list(zip(*rows, strict=True))[2:]),
    )
