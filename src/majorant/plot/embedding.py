"""Plots of a representation: its first two components, or a map of neighbourhoods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from majorant._frames import check_row_names
from majorant._numbers import counted
from majorant._validation import check_choice
from majorant.plot.style import COLOURS, GREY, INK, axes, colour, edge, mark, tidy
from majorant.summary.neighbourhoods import FEWEST_COLUMNS, FEWEST_ROWS, neighbourhoods_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_IN_THE_LEGEND = 12


def embedding(model: Any, X: Any, y: Any = None, ax: Axes | None = None, *, method: str = "tsne") -> Axes:
    """Draw the rows of a representation in the plane, coloured by known labels or values.

    t-SNE places rows near those most similar in all components [1]_. Only neighbourhoods can be interpreted: axes have
    no unit, and neither the size of a group nor the distance between distant groups has a meaning.

    Parameters
    ----------
    model : Harmonium, HarmoniumClassifier or HarmoniumRegressor
        Fitted.
    X : array-like or data frame of shape (n_samples, n_features), or dict of arrays
        Rows; if there are more than 500, t-SNE draws 500, equally spaced in the order of the first component.
    y : array-like of shape (n_samples,), optional
        Labels, each with its own colour and mark, or real numbers on a colour scale. From the ninth label on colours
        repeat and marks are hollow.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure. The legend is at the right: a figure with
        ``layout="constrained"``, like the default one, has room for it.
    method : {"tsne", "components"}, default="tsne"
        All components by t-SNE, or the first two components.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If the model is not a representation.
    ValueError
        If there are too few components or rows, or y does not have one entry per row.

    References
    ----------
    .. [1] L. van der Maaten, G. Hinton, "Visualizing data using t-SNE", Journal of Machine Learning Research 9, 2008.

    Examples
    --------
    >>> import majorant as mj
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = mj.Harmonium(4, l2=0.01).fit(X)
    >>> ax = mj.plot.embedding(model, X, y, method="components")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('component 1', 'component 2')
    """
    check_is_fitted(model)
    check_choice("method", method, ("tsne", "components"))
    check_row_names({"X": X, "y": y})
    if not hasattr(model, "loadings"):
        raise TypeError(f"embedding draws rows of a representation, such as a Harmonium; got {type(model).__name__}")
    latents = np.asarray(model.transform(X), dtype=np.float64)[:, : model.rank_]
    known = None if y is None else np.asarray(y)
    if known is not None and known.shape != latents.shape[:1]:
        raise ValueError(f"y must have one entry for each of {len(latents)} rows; got shape {known.shape}")
    rows, places = np.arange(len(latents)), latents[:, :2]
    if latents.shape[1] < 2:
        n = counted(latents.shape[1], "component")
        raise ValueError(f"the model uses {n}; a picture needs two: give a smaller l2 or more n_components")
    if method == "tsne":
        found = neighbourhoods_of(latents)
        if found is None:
            raise ValueError(
                f"t-SNE is for {FEWEST_COLUMNS} components and {FEWEST_ROWS} rows or more; got {latents.shape[1]} and "
                f'{len(latents)}. Give method="components"'
            )
        rows, places = found.rows, found.places
    if ax is None:
        ax = axes(None, layout="constrained")
    if known is None:
        ax.scatter(places[:, 0], places[:, 1], s=24, c=INK, edgecolors="white", linewidths=0.5)
    elif type_of_target(known).startswith("continuous"):
        drawn = ax.scatter(
            places[:, 0], places[:, 1], s=24, c=known[rows], cmap="cividis", edgecolors=GREY, linewidths=0.3
        )
        ax.figure.colorbar(drawn, ax=ax, label="y")
    else:
        _add_classes(ax, places, known, rows)
    if method == "tsne":
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_xlabel("t-SNE: only who is beside whom counts")
    else:
        ax.set_xlabel("component 1")
        ax.set_ylabel("component 2")
    return tidy(ax)


def _add_classes(ax: Axes, places: Any, known: Any, rows: Any) -> None:
    """Draw the rows of each label; colours and marks are those of all rows, so that they agree between pictures."""
    labels, codes = np.unique(known, return_inverse=True)
    codes = codes[rows]
    for part in np.unique(codes).tolist():
        mine = places[codes == part]
        drawn = ax.scatter(mine[:, 0], mine[:, 1], s=24, marker=mark(part), label=str(labels[part]))
        if part < len(COLOURS):
            drawn.set(facecolor=colour(part), edgecolor=edge(part), linewidth=0.5)
        else:
            drawn.set(facecolor="none", edgecolor=colour(part), linewidth=1.2)
    if len(labels) <= MOST_IN_THE_LEGEND:
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
