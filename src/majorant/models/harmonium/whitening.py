"""Whitening: correlations within a view of real numbers are removed before the fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.models.harmonium.views import Gaussian
from majorant.registry import value_class
from majorant.solvers.covariance import covariance, shrinkage

Array = NDArray[np.float64]

ROWS_PER_COLUMN = 10
"""Rows a column from which a view is whitened by default: fewer do not tell how columns depend on each other."""
MOST_COLUMNS = 2000
"""Largest number of columns of a view that is whitened by default."""
LEAST = 1e-10
"""Smallest variance of a direction, relative to the largest one."""


def is_whitened(view: Gaussian, n_rows: int, n_columns: int, *, others: bool) -> bool:
    """Return whether a view is whitened; `others`: whether there is another view of real numbers."""
    if not isinstance(view.whiten, str):
        return bool(view.whiten)
    return others and n_columns <= MOST_COLUMNS and n_rows >= ROWS_PER_COLUMN * n_columns


@value_class
@dataclass(frozen=True)
class Whitener:
    """The symmetric inverse root of a covariance that is a multiple of the identity but for a few directions."""

    directions: Array  # (n_columns, n_directions): orthonormal
    deviations: Array  # (n_directions,): standard deviations along them
    rest: float  # standard deviation along all other directions

    def whitened(self, z: Array) -> Array:
        """Return rows whose covariance is the identity."""
        return self._stretched(z, 1 / self.deviations, 1 / self.rest)

    def restored(self, z: Array) -> Array:
        """Return the rows from whitened ones."""
        return self._stretched(z, self.deviations, self.rest)

    def _stretched(self, z: Array, factors: Array, rest: float) -> Array:
        def visit(block: Block) -> Array:
            part = block.columns[0]
            return np.asarray(rest * part + (part @ self.directions * (factors - rest)) @ self.directions.T)

        return Chunks(z).map_rows(visit, (z.shape[1],))


def fit_whitener(z: Array, shares: Array) -> Whitener:
    """Fit the whitener of standardised rows, their covariance shrunk by the rule of Ledoit and Wolf.

    Shrinkage depends on the number of distinct rows with weight, so a repeated row is the same as a weighted one. Of
    more columns than rows the directions come from the products of rows.
    """
    n, d = z.shape
    if n < d:
        root = np.sqrt(shares)[:, None] * z
        values, vectors = np.linalg.eigh(root @ root.T)
        used = values > LEAST * values.max()
        values = values[used]
        directions = (root.T @ vectors[:, used]) / np.sqrt(values)
    else:
        values, directions = np.linalg.eigh(covariance(z, shares, np.zeros(d)))
        values = np.maximum(values, 0.0)
    size = float(values.sum()) / d
    shrink = shrinkage(z, shares, np.zeros(d), size, float(values @ values), n)
    found = (1 - shrink) * values + shrink * size
    least = LEAST * found.max()
    rest = max(shrink * size, least) if len(values) < d else 1.0
    return Whitener(directions, np.sqrt(np.maximum(found, least)), float(np.sqrt(rest)))
