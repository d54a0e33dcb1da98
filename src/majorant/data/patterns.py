"""Patterns of missing entries (NaN): rows grouped by their observed columns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Pattern:
    """Rows that have the same columns observed."""

    observed: NDArray[np.bool_]
    rows: slice | NDArray[np.intp]  # row numbers; a slice if consecutive

    @property
    def is_complete(self) -> bool:
        return bool(self.observed.all())

    def of(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return the observed columns of these rows, contiguous."""
        rows = x[self.rows]
        return np.ascontiguousarray(rows if self.is_complete else rows[:, self.observed])


def patterns(x: NDArray[Any]) -> tuple[Pattern, ...]:
    """Return the patterns of some rows in an order that depends on the patterns alone; complete rows first.

    NaN marks a missing entry. Rows inside a pattern keep their order.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[1.0, np.nan], [2.0, 3.0], [4.0, np.nan]])
    >>> [(p.observed.tolist(), p.rows) for p in patterns(x)]
    [([True, True], array([1])), ([True, False], array([0, 2]))]
    """
    missing = np.isnan(x)
    if not missing.any():
        return (Pattern(np.ones(x.shape[1], dtype=bool), slice(0, len(x))),)
    keys = np.packbits(missing, axis=1)
    order = np.lexsort(keys.T[::-1])
    keys = keys[order]
    edges = [0, *(1 + np.flatnonzero((keys[1:] != keys[:-1]).any(axis=1))), len(x)]
    in_order = bool((np.diff(order) > 0).all())
    return tuple(
        Pattern(~missing[order[a]], slice(int(a), int(b)) if in_order else order[a:b]) for a, b in pairwise(edges)
    )
