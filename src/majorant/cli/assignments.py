"""The columns of assignments.csv and of predictions: the part of each row."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from majorant._validation import levels_to_user
from majorant.cli.bags import by_bag
from majorant.cli.matrix import Matrix
from majorant.registry import card_of

MOST_PROBABILITIES = 50
"""Largest number of parts for which each has a column."""


def assigned_rows(
    estimator: Any, frame: pl.DataFrame, matrix: Matrix, is_new: bool, first: int = 0, target: pl.Series | None = None
) -> dict[str, Any]:
    """Return the columns of `assigned` for the rows of a matrix, `first` rows after the beginning of their table."""
    if matrix.bags is not None:
        return by_bag(estimator, frame, matrix.rows + first, matrix.bags)
    found = assigned(estimator, frame, matrix.rows + first, is_new, matrix.given, target)
    order = np.argsort(matrix.rows, kind="stable")  # that of the table, where rows were sorted by time
    return {name: values[order] for name, values in found.items()}


def assigned(
    estimator: Any,
    frame: pl.DataFrame,
    rows: NDArray[np.int64],
    is_new: bool,
    given: Mapping[str, Any] | None = None,
    target: pl.Series | None = None,
) -> dict[str, Any]:
    """Return columns by name: the row, its part (from 1), and how well it fits, as probability or distance.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    frame : polars.DataFrame
        The features as the model sees them.
    rows : array of int
        The rows' numbers in their table.
    is_new : bool
        Whether the rows are not those of the fit.
    given : mapping, optional
        Further arguments of the estimator's methods, such as the sequence of each row.
    target : polars.Series, optional
        What a regression without a formula predicts, where new rows have it; a formula finds it in the frame.
    """
    card = card_of(estimator)
    if card.kind in ("mixture", "clustering") and hasattr(estimator, "predict_proba"):
        given = dict(given or {})
        known = given.pop("component_labels", None)
        path = np.asarray(estimator.predict(frame, **given)) if card.in_order else None  # which no row decides alone
        probabilities = np.asarray(estimator.predict_proba(frame, **given))
        if known is not None:
            probabilities[known >= 0] = np.eye(probabilities.shape[1])[known[known >= 0]]
        return {"row": rows, **_by_probability(card.part, probabilities, path)}
    if card.kind == "classification":
        return {"row": rows, **_by_class(card.part, estimator, frame)}
    if card.kind == "representation":
        predicted = {"prediction": np.asarray(estimator.predict(frame))} if card.needs_target else {}
        return {"row": rows, **predicted, **_latents(estimator, frame)}
    if card.kind == "regression":
        found = (
            _by_line(estimator, frame, target) if is_new else _by_probability(card.part, estimator.responsibilities_)
        )
        return {"row": rows, **found}
    labels = estimator.predict(frame) if is_new or not hasattr(estimator, "labels_") else estimator.labels_
    columns: dict[str, NDArray[Any]] = {"row": rows, card.part: np.asarray(labels, dtype=np.int64) + 1}
    if hasattr(estimator, "transform"):
        columns["distance"] = np.take_along_axis(estimator.transform(frame), labels[:, None], axis=1)[:, 0]
    return columns


def _by_probability(
    part: str, probabilities: NDArray[Any], chosen: NDArray[Any] | None = None
) -> dict[str, NDArray[Any]]:
    """Return the chosen part (the most probable), its probability, the uncertainty, and every part's probability."""
    chosen = probabilities.argmax(axis=1) if chosen is None else chosen
    own = np.take_along_axis(probabilities, chosen[:, None], axis=1)[:, 0]
    columns = {part: chosen.astype(np.int64) + 1, "probability": own, "uncertainty": 1.0 - own}
    if probabilities.shape[1] <= MOST_PROBABILITIES:
        columns |= _numbered("probability", probabilities)
    return columns


def _by_line(estimator: Any, frame: pl.DataFrame, target: pl.Series | None) -> dict[str, Any]:
    """Return the predictions of the mixture and of every part, and the part of each row that has y."""
    lines = np.asarray(estimator.predict_components(frame))
    columns: dict[str, Any] = {"prediction": np.asarray(estimator.predict(frame))}
    if lines.shape[1] <= MOST_PROBABILITIES:
        columns |= _numbered("prediction", lines)
    formula = getattr(estimator, "formula_", None)
    told = [] if target is None else [target]
    if formula is not None and set(formula.response.kinds) <= set(frame.columns):
        told = [frame[name] for name in formula.response.kinds]
    if not told or not hasattr(estimator, "predict_proba"):
        return columns
    known = np.logical_and.reduce([_is_known(one) for one in told])
    given = () if target is None else (target.filter(known),)
    found = np.empty((0, lines.shape[1]))
    if known.any():
        try:
            found = np.asarray(estimator.predict_proba(frame.filter(known), *given))
        except (ValueError, TypeError) as error:  # predictions stand without y
            warnings.warn(f"No component of these rows is told: {error}", UserWarning, stacklevel=levels_to_user())
            known[:] = False
    for name, values in _by_probability("component", found).items():
        of_all = np.full(len(lines), np.nan)
        of_all[known] = values
        columns[name] = pl.Series(of_all, nan_to_null=True).cast(pl.Int64 if name == "component" else pl.Float64)
    return columns


def _is_known(column: pl.Series) -> NDArray[np.bool_]:
    """Return where there is a value, and of numbers a finite one."""
    is_known = column.is_not_null().to_numpy()
    return is_known & column.is_finite().fill_null(False).to_numpy() if column.dtype.is_float() else is_known


def _by_class(part: str, estimator: Any, frame: pl.DataFrame) -> dict[str, NDArray[Any]]:
    """Return the class of each row, its probability, its part if any, and the probability of every class."""
    found = estimator.predict(frame)
    columns: dict[str, NDArray[Any]] = {"prediction": found}
    probabilities = np.asarray(estimator.predict_proba(frame)) if hasattr(estimator, "predict_proba") else None
    if probabilities is not None:
        columns["probability"] = probabilities[np.arange(len(found)), np.searchsorted(estimator.classes_, found)]
    if hasattr(estimator, "predict_poses"):
        columns[part] = estimator.predict_poses(frame, found) + 1
    if hasattr(estimator, "class_proba"):
        columns[part] = np.asarray(estimator.class_proba(frame)).argmax(axis=1).astype(np.int64) + 1
    if probabilities is not None and len(estimator.classes_) <= MOST_PROBABILITIES:
        columns |= {f"probability_{_written(label)}": probabilities[:, c] for c, label in enumerate(estimator.classes_)}
    if hasattr(estimator, "loadings"):
        columns |= _latents(estimator, frame)
    return columns


def _latents(estimator: Any, frame: pl.DataFrame) -> dict[str, NDArray[Any]]:
    """Return the representation of each row: its score on every component."""
    return _numbered("score", np.asarray(estimator.transform(frame)))


def _numbered(name: str, columns: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return columns of equal name by their numbers, from 1."""
    return {f"{name}_{k + 1}": columns[:, k] for k in range(columns.shape[1])}


def _written(label: Any) -> str:
    """Format a label for tables."""
    return str(label).lower() if isinstance(label, bool | np.bool_) else str(label)
