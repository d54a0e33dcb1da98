"""The rows of a fit of latent classes that are read block by block, each with its label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from majorant.data.chunks import Block, Chunks, Mapped
from majorant.data.rows import drawn_rows, rows_streamed
from majorant.data.storage import StoredRows, is_dask
from majorant.models.discriminative_latent_classes.design import (
    MOST_AXES,
    FitRows,
    design_of_measure,
    penalty_of_df,
)
from majorant.models.discriminative_latent_classes.labels import PRIOR
from majorant.models.discriminative_latent_classes.targets import Targets, read_targets
from majorant.solvers.logits import soft_moments

Array = NDArray[np.float64]

MOST_LABELS = 10_000
"""More different targets than this are taken to be no labels."""


def rows_with_labels(
    source: StoredRows,
    y: Any,  # (n_rows,): a label for each row; None where they come with the rows
    seed: int,  # of the sample
    n_jobs: int | None,
) -> FitRows:
    """Return the rows of a source whose target is a label."""
    names = None
    if y is not None and not is_dask(y):
        targets = read_targets(y, source.n_units, None)
        if targets.kind != "labels" or len(targets.rows) < source.n_units:
            raise ValueError("rows that are read block by block need one label each: drop those without")
        names, y = targets.classes, targets.codes
    source.aim(y)
    unit = source.weights_of_one()
    known = Chunks(source, n_jobs=n_jobs).map_sum(_Known.of).values
    check_classification_targets(known)
    rows = rows_streamed(source, seed, n_jobs)
    drawn = drawn_rows(source.n_units, source.n_features, seed)

    labels = _picked(source, drawn, lambda block: block.columns[1], n_jobs)
    present = np.flatnonzero(rows.measure.positions >= 0)
    codes = np.searchsorted(known, labels[present]).astype(np.intp)
    weights = None
    if source.has_weights:
        weights = _picked(source, drawn, lambda block: np.asarray(block.weights), n_jobs)
    sample = design_of_measure(rows.measure, Targets("labels", known, present, codes), weights, n_jobs)

    def numbered(block: Block) -> tuple[Any, ...]:
        codes = np.searchsorted(known, block.columns[1])
        return block.columns[0], np.minimum(codes, len(known) - 1).astype(np.int32)  # others have no weight

    def alone(block: Block) -> tuple[Any, ...]:
        return (block.columns[0],)

    labelled = Chunks(Mapped(rows.data.source, numbered), n_jobs=n_jobs)
    design = replace(
        sample,
        labelled=labelled,
        rows=Chunks(Mapped(rows.data.source, alone), n_jobs=n_jobs),
        labels=replace(sample.labels, prior=PRIOR * labelled.total_weight),
        unit=unit,
    )
    whole = known.astype(np.int64) if (known == np.floor(known)).all() and np.abs(known).max() < 2**53 else known
    classes = whole if names is None else names[known.astype(np.intp)]
    deviations = np.sqrt(rows.variances) / design.measure.scale

    def of_df(df: float) -> float:
        """Return the penalty of `df`, by the covariance of all rows unless there are many columns."""
        if len(rows.variances) > MOST_AXES:
            return sample.penalty_of_df(df)
        return penalty_of_df(np.maximum(np.linalg.eigvalsh(_covariance(design.rows)), 0.0), df)

    return FitRows(design, sample, "labels", classes, deviations, source.n_units, len(drawn), of_df)


def _covariance(rows: Chunks) -> Array:
    """Return the covariance of the columns."""

    def moments(block: Block) -> Array:
        x = block.columns[0].astype(np.float64, copy=False)
        return soft_moments(x, block.weights, x)

    sums = rows.map_sum(moments) / rows.total_weight
    return np.asarray(sums[:-1] - np.multiply.outer(sums[-1], sums[-1]))


def _picked(source: StoredRows, drawn: NDArray[np.intp], pick: Callable[[Block], Array], n_jobs: int | None) -> Array:
    """Return the value of `pick` for each drawn row."""

    def some(block: Block) -> list[Array]:
        own = slice(*np.searchsorted(drawn, [block.first, block.first + len(block)]))
        return [pick(block)[drawn[own] - block.first]]

    return np.concatenate(Chunks(source, n_jobs=n_jobs).map_sum(some))


@dataclass(frozen=True)
class _Known:
    """The labels found so far."""

    values: Array

    def __add__(self, other: _Known) -> _Known:
        values = np.union1d(self.values, other.values)
        if len(values) > MOST_LABELS:
            raise ValueError(
                f"y has more than {MOST_LABELS} different values, so they are no labels: a number is predicted by "
                "a regression"
            )
        return _Known(values)

    @classmethod
    def of(cls, block: Block) -> _Known:
        y = block.columns[1]
        bad = np.flatnonzero(~np.isfinite(y))
        if len(bad):
            raise ValueError(
                f"row {block.first + bad[0]} of y is {y[bad[0]]}: rows that are read block by block need a label each; "
                "drop those without"
            )
        return cls(np.unique(y if block.weights is None else y[block.weights > 0]))
