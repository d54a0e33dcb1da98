"""The report of a fitted model and the rows of its fit, as a notebook asks for it."""

from __future__ import annotations

import os
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from majorant._frames import check_row_names
from majorant.report.page import Report, report
from majorant.report.run import Run


def report_of(
    model: Any, X: Any, y: Any = None, *, sample_weight: Any = None, table_name: str = "the table", **given: Any
) -> Report:
    """Return the report of a fitted model; see `majorant.models.base.LatentVariableModel.report`."""
    check_is_fitted(model)
    if hasattr(model, "from_parameters") and not hasattr(model, "search_"):
        raise TypeError("a report tells of a fit, and this model has given parameters: fit it, by warm_start from them")
    if isinstance(y, str | os.PathLike):
        raise TypeError(f"y is the target; got a path: report(X).save({os.fspath(y)!r}) writes the page")
    unknown = sorted(set(given) - set(signature(model.fit).parameters))
    if unknown:
        raise TypeError(f"report() takes no {unknown[0]!r}, as fit takes none; report(X).save(path) writes the page")
    if not hasattr(X, "shape") and not isinstance(X, (list, tuple)):
        raise TypeError(f"a report shows a table: give it an array or a data frame; got {type(X).__name__}")
    check_row_names({"X": X, "y": y, "sample_weight": sample_weight, **given})
    X, y, given, order = model._as_fitted(X, y, given)
    times = given.pop("time", None)
    values = _numbers_of(X)
    if values.ndim == 2 and values.shape[1] != model.n_features_in_:
        fitted = f"{type(model).__name__} was fitted to {model.n_features_in_}"
        raise ValueError(f"X has {values.shape[1]} columns, but {fitted}: give the columns of the fit")
    names = [str(name) for name in getattr(X, "columns", model._feature_names_or([]))]
    run = Run(
        model,
        values,
        tuple(names or (f"x{j + 1}" for j in range(values.shape[1]))),
        table_name,
        "",
        rows=None if order is None else order + 1,
        weights=None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64),
        y=None if y is None else np.asarray(y),
        target_name=str(getattr(y, "name", None) or "y"),
        frame=X if hasattr(X, "columns") else None,
        given={name: value for name, value in given.items() if value is not None},
        times=times,
    )
    return report(run)


def _numbers_of(X: Any) -> NDArray[np.float64]:
    """Return a table as numbers, text by the place of its level in alphabetical order; dense if it was sparse."""
    if hasattr(X, "toarray"):
        X = X.toarray()
    if not hasattr(X, "columns"):
        return np.asarray(X, dtype=np.float64)
    return np.column_stack([_codes_of(np.asarray(X[name])) for name in X.columns])


def _codes_of(column: NDArray[Any]) -> NDArray[np.float64]:
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        is_gap = np.array([value is None or value != value for value in column.tolist()])
        codes = np.full(len(column), np.nan)
        codes[~is_gap] = np.unique(column[~is_gap].astype(str), return_inverse=True)[1]
        return codes
