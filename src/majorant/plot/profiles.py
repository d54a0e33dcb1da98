"""A plot of the profiles of parts: how far each part's mean lies from that of all rows, feature by feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from majorant.plot.style import axes, columns_of, feature_names, rows_as_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NAMES = 100
"""Columns up to which each has its name at the side."""
FARTHEST = 2.0
"""Standard deviations from which on the shade does not change."""


def profiles(model: Any, X: Any, ax: Axes | None = None, **rows: Any) -> Axes:
    r"""Draw the mean of each part on each feature as a heat map, in standard deviations from the mean of all rows.

    For features :math:`j` and parts :math:`k` the shade is :math:`(\bar x_{kj} - \bar x_j) / s_j`, with means over the
    rows whose most probable part is :math:`k`.

    Parameters
    ----------
    model : estimator
        Fitted, with ``predict``.
    X : array-like or data frame of shape (n_rows, n_features)
    ax : matplotlib Axes, optional
    **rows
        Further arguments of the rows, as for ``predict``: ``groups``, ``gating``.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If the model assigns no rows to parts.

    Examples
    --------
    >>> import majorant as mj
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> ax = mj.plot.profiles(mj.KMeans(3, random_state=0).fit(X), X)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['x1', 'x2', 'x3', 'x4']
    """
    check_is_fitted(model)
    if not hasattr(model, "predict"):
        raise TypeError(f"profiles needs a model that assigns rows to parts; {type(model).__name__} has no predict")
    X, _, rows = rows_as_fitted(model, X, rows=rows)
    labels, names = np.asarray(model.predict(X, **rows)), feature_names(model)
    values = columns_of(X, range(len(names)))
    parts = np.unique(labels)
    deviations = np.nanstd(values, axis=0)
    means = np.array([np.nanmean(values[labels == part], axis=0) for part in parts]) - np.nanmean(values, axis=0)
    away = np.divide(means, deviations, out=np.zeros_like(means), where=deviations > 0)
    ax = axes(ax, layout="constrained")
    image = ax.imshow(away.T, cmap="RdBu", vmin=-FARTHEST, vmax=FARTHEST, aspect="auto")
    ax.set_xticks(range(len(parts)), [str(part + 1) if isinstance(part, np.integer) else str(part) for part in parts])
    if len(names) <= MOST_NAMES:
        ax.set_yticks(range(len(names)), names)
    else:
        ax.set_ylabel("column")
    ax.set_xlabel("part")
    ax.figure.colorbar(image, ax=ax, label="standard deviations from the mean")
    return ax
