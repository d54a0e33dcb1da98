"""The units of a model of standardised columns, so that it takes rows in the units of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from majorant._numbers import few_of
from majorant.registry import value_class

Array = NDArray[np.float64]
SUFFIX = " (standardised)"
"""What the name of a standardised column has behind that of the table's: whoever mistakes one for the other is told."""


@value_class
@dataclass(frozen=True)
class OwnColumns:
    """What picks a model's columns by name from a table that has others too, in any order."""

    def of_table(self, X: Any, names: Sequence[str]) -> Any:
        """Return the columns of a data frame that are called `names`; what is no data frame is returned as it is."""
        table = nw.from_native(X, eager_only=True, pass_through=True) if hasattr(X, "columns") else X
        return X if table is X else table.select(_there(names, table)).to_native()


@value_class
@dataclass(frozen=True)
class Standardisation:
    """Mean and standard deviation of every feature (1 for a constant one)."""

    means: Array
    scales: Array

    @classmethod
    def of(cls, values: Array, weights: Array | None = None) -> Standardisation:
        """Compute means and deviations of some rows; missing values do not count."""
        present = ~np.isnan(values)
        shares = present * (np.ones(len(values)) if weights is None else weights / weights.max())[:, None]
        shares = shares / shares.sum(axis=0)
        known = np.where(present, values, 0.0)
        means = (shares * known).sum(axis=0)
        scales = np.sqrt((shares * (known - means) ** 2).sum(axis=0))
        constant = scales <= 1e-12 * np.maximum(np.abs(known).max(axis=0), np.finfo(float).tiny)
        return cls(means, np.where(constant, 1.0, scales))

    def apply(self, values: Array) -> Array:
        """Return the rows with mean 0 and standard deviation 1."""
        return (values - self.means) / self.scales

    def of_table(self, X: Any, names: Sequence[str]) -> Any:
        """Return the standardised columns, called `names`, of an array or a data frame in the units of the table.

        A data frame may have further columns, and another order of them. What is neither is returned as it is, as is a
        data frame of standardised columns.
        """
        if not hasattr(X, "columns"):
            rows = X.toarray() if hasattr(X, "toarray") else X
            is_table = isinstance(rows, np.ndarray | list | tuple) and np.shape(rows)[1:] == self.means.shape
            return self.apply(np.asarray(rows, dtype=np.float64)) if is_table else X
        table = nw.from_native(X, eager_only=True)
        raw = [name.removesuffix(SUFFIX) for name in names]
        if set(names) <= set(table.columns):
            return X
        units = zip(_there(raw, table), self.means.tolist(), self.scales.tolist(), names, strict=True)
        told = [((nw.col(name) - mean) / scale).alias(own) for name, mean, scale, own in units]
        return table.select(told).to_native()


def _there(names: Sequence[str], table: Any) -> Sequence[str]:
    """Return the names of columns that a table must have; raise ValueError for those that it lacks."""
    if missing := [name for name in names if name not in table.columns]:
        raise ValueError(f"X lacks columns of the fit: {few_of(missing)}")
    return names
