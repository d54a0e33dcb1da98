"""Plots of how a fit was found: its iterations, its starts, and the criterion that chose it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from majorant._numbers import plural_of
from majorant.plot.style import GREY, INK, axes, colour, mark, tidy
from majorant.results.selection import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOT = 36.0
TOUCHES = 1e-9


def criterion(selection: Selection, ax: Axes | None = None) -> Axes:
    """Draw the criterion against the number of parts, one line for each setting, with a ring around the best.

    Excluded fits are gaps.

    Parameters
    ----------
    selection : Selection
        The result of ``majorant.select``.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If it is not a selection.

    Examples
    --------
    >>> import majorant as mj
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> ax = mj.plot.criterion(mj.select(mj.GaussianMixture(random_state=0), X, n_components=[1, 2]))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('components', 'BIC (lower is better)')
    """
    if not hasattr(selection, "candidates"):
        raise TypeError(f"criterion draws what majorant.select gave; got {type(selection).__name__}")
    ax = axes(ax)
    labels = list(dict.fromkeys(c.label for c in selection.candidates))
    for i, label in enumerate(labels):
        own = sorted((c for c in selection.candidates if c.label == label), key=lambda c: c.size)
        values = [np.nan if c.excluded else c.value for c in own]
        ax.plot([c.size for c in own], values, color=colour(i), marker=mark(i), linewidth=1.4, label=label)
    if selection.ranked:
        best = selection.best
        ax.plot(best.size, best.value, "o", markersize=15, fillstyle="none", color=INK, label=f"best: {selection.name}")
    if len(labels) > 1:
        ax.legend(labels, frameon=False)
    ax.set_xticks(sorted({c.size for c in selection.candidates}))
    ax.set_xlabel(plural_of(selection.part))
    better = "higher" if selection.criterion == "silhouette" else "lower"
    ax.set_ylabel(f"{selection.name} ({better} is better)")
    return tidy(ax)


def convergence(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the objective at each iteration, and the bound on it where the two differ.

    Parameters
    ----------
    model : estimator
        Fitted, with ``trace_``.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import majorant as mj
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> ax = mj.plot.convergence(mj.KMeans(3, random_state=0).fit(X))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('iteration', 'SSE')
    """
    check_is_fitted(model)
    ax, trace, name = axes(ax), model.trace_, model.search_.objective_name
    sign = 1.0 if model.search_.sense == "min" else -1.0  # a trace is of what is minimised
    iterations = np.arange(1, len(trace) + 1)
    objective, bound = trace["objective"], trace["bound"]
    ax.plot(iterations, sign * objective, color=INK, marker="o", markersize=3, linewidth=1.4, label=name)
    if np.nanmax(bound - objective, initial=0.0) > TOUCHES * np.nanmax(np.abs(objective), initial=0.0):
        ax.plot(iterations, sign * bound, color=GREY, linestyle="--", linewidth=1.4, label="bound")
        ax.legend(frameon=False)
    ax.locator_params(axis="x", integer=True)
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.set_xlabel("iteration")
    ax.set_ylabel(name)
    return tidy(ax)


def starts(model: Any, ax: Axes | None = None) -> Axes:
    """Draw where the starts ended: a row for each kind of start, a dot for each optimum, its area the number of starts.

    A line through all rows marks the best optimum; the number of starts is written beside each dot.

    Parameters
    ----------
    model : estimator
        Fitted, with ``search_``.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import majorant as mj
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> ax = mj.plot.starts(mj.KMeans(3, random_state=0).fit(X))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('SSE (lower is better)', '')
    """
    check_is_fitted(model)
    ax, search = axes(ax), model.search_
    kinds = list(dict.fromkeys(start.source for start in search.starts))
    optima = np.array([optimum.distance for optimum in search.optima])
    reached = np.searchsorted(optima, search.distances, side="right") - 1
    for row, kind in enumerate(kinds):
        own = [int(at) for at, start in zip(reached, search.starts, strict=True) if start.source == kind]
        hit, counts = np.unique(own, return_counts=True)
        x = [search.optima[at].objective for at in hit]
        ax.scatter(x, np.full(len(x), row), s=DOT * counts, c=[INK if at == 0 else GREY for at in hit], linewidths=0)
        for value, count in zip(x, counts.tolist(), strict=True):
            ax.annotate(str(count), (value, row), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=8)
    ax.axvline(search.best, color=INK, linewidth=0.8, zorder=0)
    ax.set_yticks(range(len(kinds)), kinds)
    ax.set_ylim(len(kinds) - 0.5, -0.5)
    ax.set_xlabel(f"{search.objective_name} ({'lower' if search.sense == 'min' else 'higher'} is better)")
    return tidy(ax)
