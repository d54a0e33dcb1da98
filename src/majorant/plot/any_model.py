"""The picture that says most about a fitted model, whatever its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from majorant._frames import check_row_names
from majorant.plot.embedding import embedding
from majorant.plot.parts import classification
from majorant.plot.profile import class_profile
from majorant.plot.profiles import profiles
from majorant.plot.regression import regression
from majorant.plot.series import series
from majorant.plot.style import columns_of, rows_as_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_FEATURES = 10
"""Columns up to which rows are drawn on the two that tell parts apart best; otherwise profiles are drawn."""


def plot_of(model: Any, X: Any, y: Any = None, ax: Axes | None = None, **given: Any) -> Axes:
    """Draw a fitted model; see `majorant.models.base.LatentVariableModel.plot`."""
    check_row_names({"X": X, "y": y, **given})
    if hasattr(model, "forecast"):
        return series(model, X, ax=ax, **given)
    X, y, given = rows_as_fitted(model, X, y, given)
    if hasattr(model, "class_profile"):
        return class_profile(model, X, ax, **given)
    if hasattr(model, "loadings"):
        return embedding(model, X, y, ax, method="components", **given)
    if hasattr(model, "predict_components"):
        return regression(model, X, y, ax, **given)
    labels = np.asarray(model.predict(X, **given))
    d = model.n_features_in_
    if d > MOST_FEATURES:
        return profiles(model, X, ax, **given)
    values = columns_of(X, range(d))
    return classification(model, X, sorted(telling(values, labels)[:2]), ax, **given)


def telling(values: Any, labels: Any) -> list[int]:
    """Return the columns by the share of their variance between parts, the largest first."""
    parts = np.unique(labels)
    with np.errstate(all="ignore"):
        within = sum(np.nansum((values[labels == k] - np.nanmean(values[labels == k], axis=0)) ** 2, 0) for k in parts)
        share = within / np.nansum((values - np.nanmean(values, axis=0)) ** 2, axis=0)
    return [int(j) for j in np.argsort(np.nan_to_num(share, nan=1.0), kind="stable")]
