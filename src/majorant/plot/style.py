"""What all plots share: colours, marks, a pair of axes, and the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from majorant._frames import check_row_names
from majorant._numbers import briefly

if TYPE_CHECKING:
    from matplotlib.axes import Axes

YELLOW = "#F0E442"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", YELLOW)
"""M. Okabe, K. Ito, "Color universal design", 2008; yellow last, as it is faint on white."""
MARKS = ("o", "D", "^", "s", "v", "P", "X", "*")
GREY = "#8d8a86"
INK = "#1c1e21"


def colour(part: int) -> str:
    """Return the colour of a part, counted from 0."""
    return COLOURS[part % len(COLOURS)]


def mark(part: int) -> str:
    """Return the mark of a part; parts of the same colour have different marks."""
    return MARKS[(part + part // len(COLOURS)) % len(MARKS)]


def edge(part: int) -> str:
    """Return the edge colour of a part's marks: white, but dark around yellow, which is faint on white."""
    return INK if colour(part) == YELLOW else "white"


def axes(ax: Axes | None, layout: Literal["constrained"] | None = None) -> Axes:
    """Return the given Axes, or those of a new figure with that layout."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('plots need matplotlib: pip install "majorant[cli]"') from error
    new: Axes = pyplot.subplots(layout=layout)[1] if ax is None else ax
    return new


def tidy(ax: Axes) -> Axes:
    """Remove the upper and right frame of the Axes; return it."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def feature_names(model: Any) -> list[str]:
    """Return the names of the columns as in the fit, or x1, x2, ..."""
    known = getattr(model, "feature_names_in_", None)
    return [f"x{j + 1}" for j in range(model.n_features_in_)] if known is None else [str(name) for name in known]


def chosen_features(model: Any, features: Sequence[int | str] | None) -> list[int]:
    """Return the columns to draw, by position or by name; by default the first two, or the only one.

    Raises
    ------
    ValueError
        If there are not one or two of them, or the model has no such column.
    """
    names = feature_names(model)
    given = list(range(min(2, len(names)))) if features is None else list(features)
    if isinstance(features, str) or len(given) not in (1, 2):
        raise ValueError(f"features must be one or two columns, such as (0, 1); got {briefly(features)}")
    found = []
    for feature in given:
        if isinstance(feature, str):
            if feature not in names:
                raise ValueError(f"the model has no feature {briefly(feature)}; it has {', '.join(names[:20])}")
            feature = names.index(feature)
        if not -len(names) <= feature < len(names):
            raise ValueError(f"feature {feature} is out of range: the model has {len(names)} features, from 0")
        found.append(int(feature) % len(names))
    return found


def rows_as_fitted(model: Any, X: Any, y: Any = None, rows: Mapping[str, Any] | None = None) -> tuple[Any, Any, Any]:
    """Return rows, target and further arguments as the model's fit took them, by its formula if it has one."""
    given = dict(rows or {})
    check_row_names({"X": X, "y": y, **given})
    X, y, given = model._as_fitted(X, y, given)[:3] if hasattr(model, "_as_fitted") else (X, y, given)
    return X, y, {name: value for name, value in given.items() if name != "time"}  # by which rows are sorted already


def columns_of(X: Any, features: Sequence[int]) -> NDArray[np.float64]:
    """Return the chosen columns of an array or a data frame as numbers."""
    return np.asarray(X, dtype=np.float64)[:, list(features)]
