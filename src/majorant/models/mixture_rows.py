"""Rows as a mixture takes them, and the law of their states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._validation import check_groups
from majorant.data.chunks import Block, Chunks, Mapped, Source
from majorant.data.storage import StoredRows
from majorant.data.units import row_weight
from majorant.laws import Gated, Grouped, Independent, Known

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """Rows of a fit: columns of the density, then of the law; weights, and where each given row is among them.

    Where there are groups, they are told once more, so that no block cuts one. `dtype` is the type of the numbers that
    were given.
    """

    columns: tuple[Any, ...]
    weights: Array
    positions: NDArray[np.intp]
    row_weight: float
    n_rows: float
    groups: NDArray[np.intp] | None = None
    dtype: Any = np.float64


def law_of(
    n: int, n_components: int, groups: Any, covariates: Array | None, component_labels: Any
) -> tuple[Any, list[NDArray[Any]], NDArray[np.intp] | None]:
    """The law of the states of n rows, the columns that it reads, and the group of each row.

    Raises
    ------
    ValueError
        If groups or labels cannot be used.
    """
    law: Any = Independent()
    extra: list[NDArray[Any]] = []
    if covariates is not None:
        law, extra = Gated(covariates.shape[1]), [covariates]
    if component_labels is not None:
        labels = np.asarray(component_labels)
        if labels.shape != (n,) or labels.dtype.kind not in "iu":
            raise ValueError(
                f"component_labels must be one whole number a row, shape ({n},), -1 where it is unknown; got "
                f"{labels.dtype} of shape {labels.shape}"
            )
        if labels.max() >= n_components or labels.min() < -1:
            wrong = int(labels.max() if labels.max() >= n_components else labels.min())
            raise ValueError(f"component_labels must be from -1 to {n_components - 1}; got {wrong}")
        law, extra = Known(law), [labels.astype(np.intp), *extra]
    codes = None
    if groups is not None:
        codes, _ = check_groups(groups, n)
        law = Grouped(law)
    return law, extra, codes


def row_weight_of(source: StoredRows) -> float:
    """What one row of a stream weighs: see ``data.units.row_weight``."""
    if not source.has_weights:
        return 1.0
    return row_weight(Chunks(source).map_rows(lambda block: np.asarray(block.weights), ()))


def in_rows(columns: Source, source: StoredRows) -> Source:
    """Columns of a stream with weights that count rows: weights that are no whole numbers count average ones."""
    if not source.has_weights:
        return columns
    unit = row_weight_of(source)

    def counted(block: Block) -> Block:
        return replace(block, weights=np.asarray(block.weights) / unit)

    return Mapped(columns, counted)
