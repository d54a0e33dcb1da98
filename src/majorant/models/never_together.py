"""Columns that no row has cells of both: their covariance has no part in the likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from majorant.data.chunks import Block, Chunks

MOST_NAMED = 5
"""Pairs up to which a sentence names each."""


class Matrices(NamedTuple):
    """An estimate that holds covariance matrices.

    Attributes
    ----------
    estimate : str
    at : int
        Which column of blocks holds the cells.
    names : sequence of str
        Of the columns that vary together.
    """

    estimate: str
    at: int
    names: Sequence[str]


def never_together(data: Chunks, matrices: Matrices) -> list[tuple[int, int]]:
    """Return the pairs of columns that no row has cells of both, by their numbers; one pass."""
    d = len(matrices.names)

    def of_block(block: Block) -> Any:
        there = ~np.isnan(block.columns[matrices.at])
        return np.ones((d, d)) if there.all() else there.T.astype(np.float64) @ there

    apart = np.triu(data.map_sum(of_block) == 0, 1)
    return [(int(i), int(j)) for i, j in np.argwhere(apart)]


def of_never_together(pairs: Sequence[Sequence[str]]) -> str:
    """Say of which columns the rows do not determine the covariance; empty where they determine all."""
    if not pairs:
        return ""
    told = "; ".join(f"{a} and {b}" for a, b in pairs[:MOST_NAMED])
    told += f"; and {len(pairs) - MOST_NAMED} more pairs" if len(pairs) > MOST_NAMED else ""
    return (
        f"No row has cells of both columns: {told}. The rows do not determine their covariance: it is where the search "
        "left it, and has no standard error (NaN); log-likelihood is right, and predictions are for rows that lack one "
        "of the two. Add rows that have both"
    )
