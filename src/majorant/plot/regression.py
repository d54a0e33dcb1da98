"""A plot of a mixture of regressions: what each component predicts along one feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from majorant._frames import data_frame
from majorant.plot.style import axes, chosen_features, colour, columns_of, feature_names, mark, rows_as_fitted, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N_STEPS = 100


def regression(
    model: Any, X: Any, y: Any = None, ax: Axes | None = None, *, feature: int | str | None = None, **rows: Any
) -> Axes:
    """Draw what each component predicts along one feature, the others at their means, and the rows.

    Parameters
    ----------
    model : RegressionMixture
        Fitted.
    X : array-like of shape (n_rows, n_features)
    y : array-like of shape (n_rows,), optional
        The target: rows are then drawn, each in the colour of its component.
    ax : matplotlib Axes, optional
    feature : int or str, optional
        A column by position or by name; by default the one along which predictions differ most.
    **rows
        Further arguments of the rows, as for ``predict_proba``: ``groups``, ``gating``, ``offset``, ``trials``.
        Lines are drawn at the mean offset; with trials, successes are drawn as shares of them.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If the model is not a mixture of regressions.
    ValueError
        If the model has no such feature.

    Examples
    --------
    >>> import numpy as np, majorant as mj
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> y = np.where(np.arange(60) % 2, 2 * X[:, 0], 1 - X[:, 0]) + 0.01 * np.random.default_rng(0).normal(size=60)
    >>> ax = mj.plot.regression(mj.RegressionMixture(2, random_state=0).fit(X, y), X, y)
    >>> ax.get_xlabel(), len(ax.lines)
    ('x1', 2)
    """
    check_is_fitted(model)
    if not hasattr(model, "predict_components"):
        raise TypeError(f"regression draws a mixture of regressions; got {type(model).__name__}")
    X, y, rows = rows_as_fitted(model, X, y, rows)
    values = columns_of(X, range(model.n_features_in_))
    means = values.mean(axis=0)
    if feature is None:
        slopes = np.abs(np.asarray(model.coef_)).max(axis=0).ravel()
        at = int(np.argmax(slopes * values.std(axis=0)))
    else:
        at = chosen_features(model, [feature])[0]
    grid = np.tile(means, (N_STEPS, 1))
    grid[:, at] = np.linspace(values[:, at].min(), values[:, at].max(), N_STEPS)
    offset, trials = rows.get("offset"), rows.get("trials")
    steps = data_frame(dict(zip(feature_names(model), grid.T, strict=True))) if hasattr(X, "columns") else grid
    lines = model.predict_components(steps, offset=None if offset is None else np.full(N_STEPS, np.mean(offset)))
    ax = axes(ax)
    if y is not None:
        labels = np.asarray(model.predict_proba(X, y, **rows)).argmax(axis=1)
        drawn = np.asarray(y) if trials is None else np.asarray(y) / np.asarray(trials)
        for part in np.unique(labels).tolist():
            mine = labels == part
            ax.scatter(values[mine, at], drawn[mine], s=16, color=colour(part), marker=mark(part), alpha=0.6)
    for part, line in enumerate(lines.T):
        ax.plot(grid[:, at], line, color=colour(part), linewidth=1.6, label=str(part + 1))
    ax.set_xlabel(feature_names(model)[at])
    ax.set_ylabel("y" if trials is None else "share of trials")
    ax.legend(title="component", frameon=False)
    return tidy(ax)
