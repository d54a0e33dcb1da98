"""Which part does each row belong to? The columns of assignments.csv and of predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from majorant.registry import card_of


def feature_frame(features: tuple[str, ...], values: NDArray[np.float64]) -> pl.DataFrame:
    """The features as a data frame, so that the estimator knows their names."""
    return pl.DataFrame({name: values[:, i] for i, name in enumerate(features)})


def assigned(estimator: Any, frame: pl.DataFrame, rows: NDArray[np.int64], is_new: bool) -> dict[str, NDArray[Any]]:
    """Columns by name: the row, its part counted from 1, and what the model says of how well it fits.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    frame : polars.DataFrame
        The features as the model sees them.
    rows : array of int
        The rows' numbers in their table.
    is_new : bool
        Whether the rows are others than those that the model was fitted to.
    """
    card = card_of(estimator)
    if card.kind != "clustering":
        return {"row": rows, "prediction": estimator.predict(frame)}
    labels = estimator.predict(frame) if is_new or not hasattr(estimator, "labels_") else estimator.labels_
    columns: dict[str, NDArray[Any]] = {"row": rows, card.part: np.asarray(labels, dtype=np.int64) + 1}
    if hasattr(estimator, "transform"):
        columns["distance"] = np.take_along_axis(estimator.transform(frame), labels[:, None], axis=1)[:, 0]
    if hasattr(estimator, "predict_proba"):
        columns["probability"] = np.take_along_axis(estimator.predict_proba(frame), labels[:, None], axis=1)[:, 0]
    return columns
