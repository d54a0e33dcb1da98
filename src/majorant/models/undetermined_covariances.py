"""Columns whose covariance matrices the rows do not determine: no row has cells of both, or one follows from others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from majorant._numbers import MOST_NAMED, few_of
from majorant.data.chunks import Block, Chunks
from majorant.densities.coordinates import Array, frames

EPS = float(np.finfo(np.float64).eps)
WIDE, WIDEST = 100, 1000
"""Columns up to which covariance matrices of fewer rows than columns are fitted: where each step factors them, and
where steps take only directions in which rows vary."""


REPEATED = 0.1
"""Share of a column's cells with one value from which on it is told as what a normal distribution collapses on."""


class Matrices(NamedTuple):
    """An estimate that holds covariance matrices."""

    estimate: str
    at: int  # which column of blocks holds the cells
    names: Sequence[str]  # of the columns that vary together


def refuse_wide(matrices: Sequence[Matrices], n_rows: int, most: int = WIDE) -> None:
    """Raise an error for covariance matrices of many columns that outnumber the rows."""
    d = max((len(one.names) for one in matrices), default=0)
    if d > max(most, n_rows):
        raise ValueError(
            f"{n_rows:,} rows determine no covariance matrix of {d:,} columns, which has {d * (d + 1) // 2:,} free "
            'entries: choose fewer columns, or covariance_type="diag" (latent class analysis: leave `correlated` out)'
        )


def never_together(data: Chunks, matrices: Matrices) -> list[tuple[int, int]]:
    """Return the pairs of columns that no row has cells of both, by their numbers; one pass."""
    d = len(matrices.names)

    def of_block(block: Block) -> Any:
        there = ~np.isnan(block.columns[matrices.at])
        return np.ones((d, d)) if there.all() else there.T.astype(np.float64) @ there

    apart = np.triu(data.map_sum(of_block) == 0, 1)
    return [(int(i), int(j)) for i, j in np.argwhere(apart)]


def apart(data: Chunks, matrices: Sequence[Matrices]) -> list[list[str]]:
    """Return the pairs of columns of any matrix that no row has cells of both, by name."""
    return [[one.names[i], one.names[j]] for one in matrices for i, j in never_together(data, one)]


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


def undetermined(matrices: Sequence[Matrices], columns: Sequence[Array], weights: Array) -> tuple[list[str], list[str]]:
    """Return which columns are linear functions of each other, and which do not vary, in rows that have all cells."""
    dependent, constant = list[str](), list[str]()
    for one in matrices:
        x = columns[one.at]
        there = ~np.isnan(x).any(axis=1)
        x, w = x[there], weights[there]
        if len(np.unique(x, axis=0)) <= len(one.names) + 1:  # few rows are always so
            continue
        size, spread = np.abs(x).max(axis=0), x.std(axis=0)
        precision = EPS * float(np.max(size / np.where(spread > 0, spread, np.inf), initial=1.0))
        own = frames(x, w, min(precision, 1e-3))
        dependent += [one.names[j] for j in own.dependent]
        constant += [one.names[j] for j in own.constant]
    return dependent, constant


def of_undetermined(
    dependent: Sequence[str], constant: Sequence[str], then: str = "every covariance is singular"
) -> str:
    """Say which columns are linear functions of each other, and which do not vary; empty for none.

    It is the reason why no solution is regular.
    """
    said = [f"columns {few_of(dependent)} are linear functions of each other"] if dependent else []
    if constant:
        said += [f"column{'s' * (len(constant) > 1)} {few_of(constant)} do{'es' * (len(constant) == 1)} not vary"]
    return f"{' and '.join(said)}, so that {then}" if said else ""


def of_repeated(names: Sequence[str], x: Array, weights: Array) -> str:
    """Name the columns of which many cells hold one value, on which normal distributions collapse; empty for none."""
    told = []
    for name, column in zip(names, x.T, strict=True):
        there = ~np.isnan(column)
        sizes = np.bincount(np.unique(column[there], return_inverse=True)[1], weights[there])
        if (share := sizes.max(initial=0.0) / max(float(sizes.sum()), EPS)) >= REPEATED:
            told.append(f"{name} holds one value in {share:.0%} of the rows")
    return f" ({few_of(told)})" if told else ""
