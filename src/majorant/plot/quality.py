"""Plots of how well rows fit their parts or classes, and every picture of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from majorant._numbers import briefly
from majorant.plot.style import GREY, INK, axes, colour, rows_as_fitted, tidy
from majorant.results.silhouettes import clusters_directions, measure_silhouettes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def silhouettes(model: Any, X: Any, ax: Axes | None = None, **rows: Any) -> Axes:
    """Draw the silhouette of each row as a bar, the rows of each part beside each other from high to low.

    Of more than 2000 rows some are drawn, equally spaced in each part. A line marks the mean over all rows.

    Parameters
    ----------
    model : estimator
        Fitted, with ``predict``.
    X : array-like or data frame of shape (n_rows, n_features)
    ax : matplotlib Axes, optional
    **rows
        Further arguments of the rows, as for ``predict``.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If all rows are in one part, or each in a part of its own; if cells are missing or no numbers.

    Examples
    --------
    >>> import majorant as mj
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> ax = mj.plot.silhouettes(mj.KMeans(3, random_state=0).fit(X), X)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('part', 'silhouette')
    """
    check_is_fitted(model)
    X, _, rows = rows_as_fitted(model, X, rows=rows)
    labels = np.asarray(model.predict(X, **rows), dtype=np.int64)
    try:
        values = X if issparse(X) else np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError("silhouettes need distances between rows, and so numbers; X holds other values") from error
    if not issparse(values) and np.isnan(values).any():
        raise ValueError("silhouettes need distances between rows: leave out those with missing cells")
    if clusters_directions(model):
        values = values / np.linalg.norm(values, axis=1, keepdims=True)
    found = measure_silhouettes(values, labels, np.bincount(labels), model)
    if found is None:
        raise ValueError("silhouettes need rows in at least two parts, and a part of several rows")
    ax, first, middles = axes(ax), 0, {}
    for part in np.unique(found.labels).tolist():
        own = np.sort(found.values[found.labels == part])[::-1]
        ax.bar(np.arange(first, first + len(own)), own, width=1.0, color=colour(part), linewidth=0)
        middles[part], first = first + len(own) / 2, first + len(own) + max(1, len(found.values) // 50)
    ax.axhline(found.mean, color=INK, linewidth=0.8, linestyle="--", label=f"mean {found.mean:.2f}")
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.set_xticks(list(middles.values()), [str(part + 1) for part in middles])
    ax.legend(frameon=False)
    ax.set_xlabel("part")
    ax.set_ylabel("silhouette")
    return tidy(ax)


def roc(model: Any, X: Any, y: Any, ax: Axes | None = None) -> Axes:
    """Draw the ROC curve of each class against all others; of two classes, that of the second.

    Parameters
    ----------
    model : estimator
        Fitted, with ``predict_proba`` and ``classes_``.
    X : array-like or data frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
        The true classes.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If the model gives no probabilities of classes.
    ValueError
        If y has not one class of the fit for each row, or one class alone.

    Examples
    --------
    >>> import majorant as mj
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = mj.plot.roc(mj.DiscriminativeLatentClasses(2, random_state=0).fit(X, y), X, y)
    >>> ax.get_legend_handles_labels()[1][0]
    '0: area 1.00'
    """
    check_is_fitted(model)
    if not (hasattr(model, "predict_proba") and hasattr(model, "classes_")):
        raise TypeError(f"roc needs probabilities of classes; {type(model).__name__} has none")
    from sklearn.metrics import auc, roc_curve

    X, y, _ = rows_as_fitted(model, X, y)
    probabilities, truth, n = np.asarray(model.predict_proba(X)), np.asarray(y), len(model.classes_)
    if truth.shape != (len(probabilities),):
        raise ValueError(f"y must have one class for each of the {len(probabilities)} rows; its shape is {truth.shape}")
    present = np.unique(truth)
    if len(unknown := np.setdiff1d(present, model.classes_)):
        raise ValueError(
            f"y holds {briefly(unknown[0])}, which is no class of the fit ({', '.join(map(str, model.classes_))})"
        )
    if len(present) < 2:
        raise ValueError(f"a ROC curve needs rows of two classes; all of y is {briefly(present[0])}")
    ax = axes(ax)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8)
    for at in range(n) if n > 2 else [n - 1]:
        if model.classes_[at] not in present:
            continue
        false_positives, true_positives, _ = roc_curve(truth == model.classes_[at], probabilities[:, at])
        label = f"{model.classes_[at]}: area {auc(false_positives, true_positives):.2f}"
        ax.plot(false_positives, true_positives, color=colour(at), linewidth=1.4, label=label)
    ax.legend(frameon=False)
    ax.set_aspect("equal")
    ax.set_xlabel("share of other classes that is taken for it")
    ax.set_ylabel("share of the class that is found")
    return tidy(ax)


def picture(model: Any, X: Any, name: str, y: Any = None, **given: Any) -> Any:
    """Return a picture of the report of a fit: an SVG, which a notebook shows and ``save`` writes.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : array-like or data frame of shape (n_rows, n_features)
        The rows of the fit; for a model fitted by formula, its table.
    name : str
        The section that it is in, such as "silhouettes", "map", "pair", "quantiles", "probabilities".
    y : array-like of shape (n_rows,), optional
        The target, for models that have one.
    **given
        Further arguments of ``model.report``.

    Returns
    -------
    majorant.report.Picture

    Raises
    ------
    ValueError
        If the report of this fit has no such picture.

    Examples
    --------
    >>> import majorant as mj
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> mj.plot.picture(mj.KMeans(3, random_state=0).fit(X), X, "silhouettes")[:4]
    '<svg'
    """
    found = model.report(X, y, **given).figures
    if name not in found:
        raise ValueError(f"the report of this fit has no picture {name!r}; it has {', '.join(found)}")
    return found[name]
