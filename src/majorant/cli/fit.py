"""The first half of ``majorant fit``: from a request to a fitted model."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import polars as pl

from majorant.cli.assignments import feature_frame
from majorant.cli.errors import CommandError, did_you_mean, listed
from majorant.cli.matrix import Array, Columns, Matrix, Standardisation, build_matrix, choose_features
from majorant.cli.request import FitRequest
from majorant.cli.settings import allows_missing, build_estimator, parsed_lists
from majorant.cli.tables import SourceTable, read_table
from majorant.evidence.selection import CRITERIA, Selection, has_criterion, models_with, select
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
    selection: Selection | None = None

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
    size = request.k.start if isinstance(request.k, range) else request.k
    estimator = build_estimator(card, size, request.settings, request.random_state)
    _check_comparison(request, card, estimator)
    table = read_table(request.table)
    others = [name for name in (request.target, request.weights) if name is not None]
    has_labels = card.kind == "classification"
    features = choose_features(table, request.features, others, labels=request.target if has_labels else None)
    columns = Columns(features, request.target, request.weights)
    keeps_missing = allows_missing(estimator) and not request.drop_missing
    matrix = build_matrix(table, columns, keeps_missing, request.drop_missing, has_labels)
    _check_size(card, getattr(estimator, card.size_parameter), matrix, request)
    units = Standardisation.of(matrix.values, matrix.weights) if request.standardise else None
    seen = matrix.values if units is None else units.apply(matrix.values)
    began = time.perf_counter()
    frame = feature_frame(columns.features, seen)
    selection = _selected(request, card, estimator, frame, matrix) if request.compares else None
    if selection is None:
        warned = _fit_estimator(card, estimator, frame, matrix)
    else:
        estimator, warned = selection.best_estimator_, [*selection.look_out, *selection.best.warnings]
    seconds = time.perf_counter() - began
    _certify(estimator, frame, matrix)
    summary: Summary = estimator.summary()
    look_out = tuple(dict.fromkeys([*summary.look_out, *warned]))
    return FittedRun(request, card, table, columns, matrix, units, estimator, summary, seconds, look_out, selection)


def _check_comparison(request: FitRequest, card: ModelCard, estimator: Any) -> None:
    """Refuse a criterion that there is not, or that has nothing to compare."""
    if request.criterion is not None and request.criterion not in CRITERIA:
        raise CommandError(
            f'there is no criterion "{request.criterion}".{did_you_mean(request.criterion, CRITERIA)}',
            f"Criteria: {listed(CRITERIA)}.",
        )
    if request.criterion is not None and not request.compares:
        raise CommandError("--criterion chooses among several fits.", "Give a range, such as --k 1:6.")
    criterion = request.criterion or CRITERIA[0]
    if request.compares and not has_criterion(type(estimator), criterion):
        raise CommandError(
            f"{card.title} has no criterion that compares sizes, as it has no likelihood.",
            f"Give one size, such as --k 3; models that compare sizes: {listed(models_with(criterion)) or 'none'}.",
        )


def _selected(request: FitRequest, card: ModelCard, estimator: Any, frame: pl.DataFrame, matrix: Matrix) -> Selection:
    """Fit all sizes and settings that are asked for."""
    sizes = request.k if isinstance(request.k, range) else (getattr(estimator, card.size_parameter),)
    grid = parsed_lists(card, estimator, request.vary)
    try:
        found = select(
            estimator,
            frame,
            matrix.target,
            n_components=sizes,
            criterion=request.criterion or CRITERIA[0],
            sample_weight=matrix.weights,
            **grid,
        )
    except (ValueError, TypeError) as error:
        raise CommandError(f"{card.title} refused: {' '.join(str(error).split())}") from error
    except MemoryError as error:
        raise CommandError("there is not enough memory for this table.", "Fit fewer rows or columns.") from error
    if not found.ranked:
        raise CommandError("no fit can be chosen.", *found.exclusions)
    return found


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
    evidence = estimator.evidence_
    if _asks_for_more(estimator.certify) or not np.isfinite(matrix.values).all():
        return
    weights = {} if matrix.weights is None else {"sample_weight": matrix.weights}
    try:
        made = estimator.certify(frame, **weights)
    except ValueError:  # a degenerate fit, of which no bound would speak
        return
    if evidence.sense == "max":
        estimator.evidence_ = evidence.with_bound(made.bound, made.solution)
    elif made.bound > 0:
        estimator.evidence_ = evidence.with_bound(made.bound)


def _asks_for_more(certify: Callable[..., Any]) -> bool:
    """Whether a bound needs something that only the user can give, beside the rows."""
    parameters = signature(certify).parameters.values()
    return sum(p.default is p.empty and p.kind is not p.VAR_KEYWORD for p in parameters) > 1


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
