"""The first half of ``majorant fit``: from a request to a fitted model."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from majorant.cli.assignments import feature_frame
from majorant.cli.errors import CommandError
from majorant.cli.matrix import Array, Columns, Matrix, Standardisation, build_matrix, choose_features
from majorant.cli.request import FitRequest
from majorant.cli.settings import allows_missing, build_estimator
from majorant.cli.tables import SourceTable, read_table
from majorant.registry import ModelCard
from majorant.summary import Summary, counted

_MOST_CERTIFIED = 200_000


@dataclass(frozen=True)
class FittedRun:
    """What a fit gave, before anything is written."""

    request: FitRequest
    card: ModelCard
    table: SourceTable
    columns: Columns
    matrix: Matrix
    standardisation: Standardisation | None
    estimator: Any
    summary: Summary
    seconds: float
    look_out: tuple[str, ...]

    @property
    def seen(self) -> Array:
        """The features as the model saw them."""
        return self.matrix.values if self.standardisation is None else self.standardisation.apply(self.matrix.values)

    @property
    def size(self) -> int:
        """Number of the model's parts."""
        return int(getattr(self.estimator, self.card.size_parameter))

    @property
    def ignored(self) -> list[str]:
        """Columns that were left out because they are not numeric; none when the features were named."""
        if self.request.features:
            return []
        return [name for name in self.table.frame.columns if name not in self.columns.all]


def fit(request: FitRequest, card: ModelCard) -> FittedRun:
    """Read the table and fit the model to it."""
    if card.needs_target and request.target is None:
        raise CommandError(f"{card.title} predicts a column: name it with --target.")
    if request.target is not None and not card.needs_target:
        raise CommandError(f"{card.title} has no target: leave --target out, or leave the column out with --features.")
    estimator = build_estimator(card, request.k, request.settings, request.random_state)
    table = read_table(request.table)
    others = [name for name in (request.target, request.weights) if name is not None]
    columns = Columns(choose_features(table, request.features, others), request.target, request.weights)
    keeps_missing = allows_missing(estimator) and not request.drop_missing
    matrix = build_matrix(table, columns, keeps_missing, request.drop_missing)
    _check_size(card, getattr(estimator, card.size_parameter), matrix, request)
    units = Standardisation.of(matrix.values, matrix.weights) if request.standardise else None
    seen = matrix.values if units is None else units.apply(matrix.values)
    began = time.perf_counter()
    frame = feature_frame(columns.features, seen)
    warned = _fit_estimator(card, estimator, frame, matrix)
    seconds = time.perf_counter() - began
    _certify(estimator, frame, matrix)
    summary: Summary = estimator.summary()
    look_out = tuple(dict.fromkeys([*summary.look_out, *warned]))
    return FittedRun(request, card, table, columns, matrix, units, estimator, summary, seconds, look_out)


def _fit_estimator(card: ModelCard, estimator: Any, frame: pl.DataFrame, matrix: Matrix) -> list[str]:
    """Fit in place; what the model warns of comes back."""
    targets = () if matrix.target is None else (matrix.target,)
    weights = {} if matrix.weights is None else {"sample_weight": matrix.weights}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            estimator.fit(frame, *targets, **weights)
        except (ValueError, TypeError) as error:
            raise CommandError(f"{card.title} refused: {' '.join(str(error).split())}") from error
        except MemoryError as error:
            raise CommandError("there is not enough memory for this table.", "Fit fewer rows or columns.") from error
    telling = [w for w in caught if issubclass(w.category, (UserWarning, RuntimeWarning))]
    return list(dict.fromkeys(" ".join(str(w.message).split()) for w in telling))


def _certify(estimator: Any, frame: pl.DataFrame, matrix: Matrix) -> None:
    """Put the bound that a second or so can prove beside the evidence, in place of the quick one of the fit."""
    if not hasattr(estimator, "certify") or matrix.values.size > _MOST_CERTIFIED:
        return
    weights = {} if matrix.weights is None else {"sample_weight": matrix.weights}
    bound = estimator.certify(frame, **weights).bound
    if bound > (estimator.evidence_.lower_bound or 0.0):
        estimator.evidence_ = replace(estimator.evidence_, lower_bound=bound)


def _check_size(card: ModelCard, size: Any, matrix: Matrix, request: FitRequest) -> None:
    """Refuse more parts than the table can fill."""
    if not isinstance(size, int) or isinstance(size, bool):
        return
    rows = len(matrix.values)
    how = f"{counted(size, card.part)}{'' if request.k is not None else ', as many as it has by default'}"
    if size > rows:
        raise CommandError(
            f"{request.table.name} has {counted(rows, 'usable row')}, too few for {how}.", f"Set --k to {rows} or less."
        )
    if card.kind == "clustering" and not _has_distinct_rows(matrix.values, size):
        distinct = len(np.unique(matrix.values, axis=0))
        raise CommandError(
            f"{request.table.name} has {counted(distinct, 'different row')}, too few for {how}.",
            f"Set --k to {distinct} or less.",
        )


def _has_distinct_rows(values: Array, number: int) -> bool:
    """Whether there are so many different rows; looks at the first ones first."""
    n_seen = max(1000, 2 * number)
    while True:
        if len(np.unique(values[:n_seen], axis=0)) >= number:
            return True
        if n_seen >= len(values):
            return False
        n_seen *= 10
