"""The plot of a model of series: rows in order of time by their state, and the forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from majorant._validation import check_integer
from majorant.models.hidden_markov.times import labels_of, read_times, times_ahead
from majorant.plot.style import GREY, axes, chosen_features, colour, columns_of, edge, feature_names, mark, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_TICKS = 5


def series(
    model: Any,
    X: Any,
    column: int | str = 0,
    ax: Axes | None = None,
    *,
    n_steps: int = 10,
    level: float = 0.9,
    **rows: Any,
) -> Axes:
    """Draw a column of the rows in order of time, each by its state on the most probable path, and the forecast.

    Sequences are one after the other, with a line between them; the forecast is that of the last one. Where `time` is
    given, or known from the formula of the fit, it is on the axis.

    Parameters
    ----------
    model : HiddenMarkovModel
        Fitted.
    X : array-like, data frame, or a list of these
        As for ``predict``.
    column : int or str, default=0
        By position or by name.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    n_steps : int, default=10
        Rows of the forecast; 0 for none. None is drawn where it needs columns of the rows to come.
    level : float, default=0.9
        Probability within the band of the forecast.
    **rows
        Further arguments of the rows, as for ``predict``: ``groups``, ``time``, ``lengths``, ``gating``.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the model has no such column.

    Examples
    --------
    >>> import numpy as np, majorant as mj
    >>> from majorant.datasets.earthquake import COUNTS
    >>> counts = np.array(COUNTS)[:, None]
    >>> model = mj.HiddenMarkovModel(3, emission="poisson", random_state=0).fit(counts)
    >>> ax = mj.plot.series(model, counts, time=np.arange(1900, 2007))
    >>> ax.get_xlabel(), len(ax.collections)
    ('time', 4)
    """
    check_is_fitted(model)
    check_integer("n_steps", n_steps, low=0)
    (j,) = chosen_features(model, [column])
    X, _, given, _ = model._as_fitted(X, None, rows)
    given = {name: value for name, value in given.items() if value is not None}
    times = given.pop("time", None)
    y, path = columns_of(X, [j])[:, 0], model.predict(X, **given)
    groups = np.asarray(given.get("groups", np.zeros(len(y))))
    codes = np.unique(groups, return_inverse=True)[1].reshape(-1).astype(np.intp)
    ahead = _ahead(model, X, n_steps, given)
    ax = axes(ax)
    there = np.flatnonzero(~np.isnan(y))
    for rows_of_one in np.split(there, np.flatnonzero((np.diff(there) > 1) | (np.diff(codes[there]) > 0)) + 1):
        ax.plot(rows_of_one + 1, y[rows_of_one], color=GREY, linewidth=0.7, zorder=1)
    for state in range(len(model.weights_)):
        own = there[path[there] == state]
        look: dict[str, Any] = {
            "color": colour(state),
            "marker": mark(state),
            "edgecolors": edge(state),
            "linewidths": 0.5,
        }
        ax.scatter(own + 1, y[own], s=22, zorder=2, label=f"state {state + 1}", **look)
    for begin in np.flatnonzero(np.diff(codes)):
        ax.axvline(begin + 1.5, color=GREY, linewidth=0.7)
    if ahead is not None and j < ahead.mean.shape[2]:
        x = len(y) + np.arange(1, n_steps + 1)
        low, high = (end[-1, :, j] for end in ahead.interval(level))
        ax.fill_between(x, low, high, color=GREY, alpha=0.25, linewidth=0, label=f"forecast, {level:.0%}")
        ax.plot(x, ahead.mean[-1, :, j], color=GREY)
    if times is not None:
        read = read_times(times)
        later = None if ahead is None else times_ahead(read, codes, n_steps)
        _label_rows(ax, labels_of(read.write(read.numbers)) + ([] if later is None else labels_of(later[-1])))
    ax.set(xlabel="row" if times is None else "time", ylabel=feature_names(model)[j])
    ax.legend(frameon=False)
    return tidy(ax)


def _ahead(model: Any, X: Any, n_steps: int, given: dict[str, Any]) -> Any:
    """Return the forecast; None where none is asked for, or it needs columns of the rows to come."""
    if not n_steps or "gating" in given:
        return None
    try:
        return model.forecast(X, n_steps, **given)
    except TypeError:  # columns of a regression
        return None


def _label_rows(ax: Axes, labels: list[str]) -> None:
    """Tell the times of some rows below the axis."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    labels = [label.replace(" ", "\n") for label in labels]  # the time of day below the day
    ax.xaxis.set_major_locator(MaxNLocator(MOST_TICKS, integer=True))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: labels[int(x) - 1] if 1 <= x <= len(labels) else ""))
