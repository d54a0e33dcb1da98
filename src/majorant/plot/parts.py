"""Plots of a model's parts on one or two features: rows by part, uncertainty, and the fitted density."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from majorant._validation import check_real
from majorant.plot.style import (
    GREY,
    INK,
    axes,
    chosen_features,
    colour,
    columns_of,
    feature_names,
    mark,
    rows_as_fitted,
    tidy,
)
from majorant.solvers.gaussian import Mixture
from majorant.solvers.normals import normals_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GRID = 160
SMALLEST, LARGEST = 10.0, 100.0


def classification(
    model: Any,
    X: Any,
    features: Sequence[int | str] | None = None,
    ax: Axes | None = None,
    *,
    share: float = 0.9,
    **rows: Any,
) -> Axes:
    r"""Draw rows on two features, coloured by their most probable part.

    Around each normal component the ellipse with probability `share` on these two features is drawn, with half axes
    :math:`\sqrt{-2 \lambda \log(1 - \text{share})}` for the eigenvalues :math:`\lambda` of its covariance there.

    Parameters
    ----------
    model : estimator
        Fitted, with ``predict``; ellipses are drawn where it has ``covariances_``.
    X : array-like or data frame of shape (n_rows, n_features)
        Rows to draw. One with a missing value on these features is not drawn.
    features : sequence of one or two int or str, optional
        Columns by position or by name; the first two by default. With one, rows are drawn at their part's number.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    share : float, default=0.9
        Probability within an ellipse, between 0 and 1.
    **rows
        Further arguments of the rows, as for ``predict``: ``groups``, ``gating``.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If features or share cannot be used.

    Examples
    --------
    >>> import majorant as mj
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> ax = mj.plot.classification(mj.KMeans(3, random_state=0).fit(X), X, features=(2, 3))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x3', 'x4')
    """
    check_is_fitted(model)
    check_real("share", share, low=1e-9, high=1 - 1e-9)
    X, _, rows = rows_as_fitted(model, X, rows=rows)
    at, labels = chosen_features(model, features), np.asarray(model.predict(X, **rows))
    if hasattr(model, "classes_"):
        names, labels = [str(name) for name in model.classes_], np.searchsorted(model.classes_, labels)
    else:
        names = [str(part + 1) for part in range(int(labels.max()) + 1)]
    ax, points = axes(ax), columns_of(X, at)
    if len(at) == 1:
        points = np.column_stack([points, labels + 1.0])
    for part in np.unique(labels).tolist():
        mine = points[labels == part]
        ax.scatter(
            mine[:, 0],
            mine[:, 1],
            s=24,
            c=colour(part),
            marker=mark(part),
            edgecolors="white",
            linewidths=0.5,
            label=names[part],
        )
    if len(at) == 2 and hasattr(model, "covariances_"):
        _add_ellipses(ax, model, at, share, [colour(k) for k in range(len(model.means_))])
    return _titled(ax, model, at, "component")


def uncertainty(
    model: Any,
    X: Any,
    features: Sequence[int | str] | None = None,
    ax: Axes | None = None,
    *,
    share: float = 0.9,
    **rows: Any,
) -> Axes:
    """Draw rows on two features; the larger a mark, the less probable is the row's most probable part.

    The uncertainty of a row is one minus its largest responsibility, 0 for a row that surely belongs to its part.

    Parameters
    ----------
    model : estimator
        Fitted, with ``predict_proba``.
    X : array-like or data frame of shape (n_rows, n_features)
    features : sequence of one or two int or str, optional
        Columns by position or by name; the first two by default. With one, the uncertainty is drawn against it.
    ax : matplotlib Axes, optional
    share : float, default=0.9
        Probability within the grey ellipses.
    **rows
        Further arguments of the rows, as for ``predict_proba``: ``groups``, ``gating``.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If the model has no ``predict_proba``.
    ValueError
        If features or share cannot be used.

    Examples
    --------
    >>> import majorant as mj
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> ax = mj.plot.uncertainty(mj.GaussianMixture(2, random_state=0).fit(X), X)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x1', 'x2')
    """
    check_is_fitted(model)
    check_real("share", share, low=1e-9, high=1 - 1e-9)
    if not hasattr(model, "predict_proba"):
        raise TypeError(f"uncertainty needs a model with predict_proba; {type(model).__name__} has none")
    X, _, rows = rows_as_fitted(model, X, rows=rows)
    at, proba = chosen_features(model, features), np.asarray(model.predict_proba(X, **rows))
    labels, unsure = proba.argmax(axis=1), 1.0 - proba.max(axis=1)
    ax, points = axes(ax), columns_of(X, at)
    largest = 1.0 - 1.0 / max(proba.shape[1], 2)
    sizes = SMALLEST + (LARGEST - SMALLEST) * unsure / largest
    if len(at) == 1:
        points, sizes = np.column_stack([points, unsure]), np.full(len(unsure), 24.0)
    order = np.argsort(unsure, kind="stable")
    for part in np.unique(labels).tolist():
        mine = order[labels[order] == part]
        ax.scatter(
            points[mine, 0],
            points[mine, 1],
            s=sizes[mine],
            c=colour(part),
            marker=mark(part),
            alpha=0.7,
            linewidths=0,
            label=str(part + 1),
        )
    if len(at) == 2 and hasattr(model, "covariances_"):
        _add_ellipses(ax, model, at, share, [GREY] * len(model.means_))
    return _titled(ax, model, at, "uncertainty")


def density(
    model: Any,
    X: Any = None,
    features: Sequence[int | str] | None = None,
    ax: Axes | None = None,
    *,
    n_levels: int = 10,
) -> Axes:
    """Draw the fitted density: contours of its logarithm on two features, a curve on one.

    It is the exact marginal density on these features, not a cross-section.

    Parameters
    ----------
    model : estimator
        Fitted, with ``weights_``, ``means_``, ``covariances_`` and ``covariance_type``.
    X : array-like or data frame of shape (n_rows, n_features), optional
        Rows to draw under the contours.
    features : sequence of one or two int or str, optional
        Columns by position or by name; the first two by default.
    ax : matplotlib Axes, optional
    n_levels : int, default=10
        Number of contours; neighbouring ones differ by the same factor of density.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If the model has no ``covariances_``.
    ValueError
        If features cannot be used.

    Examples
    --------
    >>> import majorant as mj
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> ax = mj.plot.density(mj.GaussianMixture(2, random_state=0).fit(X), features=[3])
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x4', 'density')
    """
    check_is_fitted(model)
    if not hasattr(model, "covariances_"):
        raise TypeError(f"density draws a Gaussian mixture; got {type(model).__name__}")
    at = chosen_features(model, features)
    ax, normals = axes(ax), normals_of(model, at)
    deviations = np.sqrt(np.diagonal(normals.covariances, axis1=1, axis2=2))
    low, high = (normals.means - 3.5 * deviations).min(axis=0), (normals.means + 3.5 * deviations).max(axis=0)
    points = np.empty((0, len(at))) if X is None else columns_of(rows_as_fitted(model, X)[0], at)
    points = points[np.isfinite(points).all(axis=1)]
    if len(points):
        low, high = np.minimum(low, points.min(axis=0)), np.maximum(high, points.max(axis=0))
    fitted = Mixture(normals.weights, normals.means, normals.covariances, "full")
    with np.errstate(divide="ignore"):
        log_weights = np.log(normals.weights)  # minus infinity for a component that is absent
    sides = [np.linspace(a, b, GRID) for a, b in zip(low, high, strict=True)]
    if len(at) == 1:
        grid = sides[0][:, None]
        parts = np.exp(log_weights + fitted.log_densities(grid))
        for k in range(parts.shape[1]):
            ax.plot(sides[0], parts[:, k], color=colour(k), linewidth=1.0, label=str(k + 1))
        ax.plot(sides[0], parts.sum(axis=1), color=INK, linewidth=1.6, label="mixture")
        if len(points):
            ax.plot(points[:, 0], np.zeros(len(points)), "|", color=GREY, markersize=8)
    else:
        x, y = np.meshgrid(*sides)
        points_of_grid = np.column_stack([x.ravel(), y.ravel()])
        height = np.logaddexp.reduce(log_weights + fitted.log_densities(points_of_grid), axis=1).reshape(x.shape)
        if len(points):
            ax.scatter(points[:, 0], points[:, 1], s=8, c=GREY, linewidths=0)
        top = float(height.max())
        ax.contour(x, y, height, levels=np.linspace(top - 8.0, top, n_levels + 2)[1:-1], cmap="cividis")
    return _titled(ax, model, at, "density")


def _add_ellipses(ax: Axes, model: Any, at: Sequence[int], share: float, colours: Sequence[str]) -> None:
    from matplotlib.patches import Ellipse

    normals = normals_of(model, at)
    for part, shade in enumerate(colours):
        ellipse = normals.ellipse(part, share)
        (long, short), x_y = ellipse.half_axes, ellipse.centre
        ax.add_patch(
            Ellipse(
                x_y, 2 * long, 2 * short, angle=np.degrees(ellipse.angle), fill=False, edgecolor=shade, linewidth=1.4
            )
        )
        ax.plot(*x_y, marker="+", color=shade, markersize=9, markeredgewidth=1.6)
    ax.autoscale_view()


def _titled(ax: Axes, model: Any, at: Sequence[int], what: str) -> Axes:
    names = feature_names(model)
    ax.set_xlabel(names[at[0]])
    ax.set_ylabel(names[at[1]] if len(at) == 2 else what)
    return tidy(ax)
