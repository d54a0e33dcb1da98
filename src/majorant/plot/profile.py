"""A plot of latent classes: what each class answers, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from majorant._validation import check_choice
from majorant.plot.style import axes, colour, edge, mark, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

APART = 0.08
"""Distance between the marks of two classes, in items."""
MOST_SLANTED = 12
"""Names up to which they are not written upright."""
INCHES_A_NAME = 0.2


def class_profile(
    model: Any,
    X: Any = None,
    ax: Axes | None = None,
    *,
    of: Literal["answers", "numbers"] | None = None,
    names: Any = None,
    **rows: Any,
) -> Axes:
    """Draw what each class answers, item by item, with intervals: a figure for a paper.

    Of an item with two levels the probability of the second is drawn, of others that of every level; numbers are drawn
    as means, in standard deviations from the mean of all rows.

    Parameters
    ----------
    model : LatentClassAnalysis
        Fitted.
    X : data frame or array-like of shape (n_rows, n_items), optional
        The rows of the fit, for intervals.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure, as wide as the names below need. The legend is at the right: a figure
        with ``layout="constrained"`` makes room for it.
    of : {"answers", "numbers"}, optional
        What to draw, where there are both: by default answers.
    names : sequence of str, optional
        A name for each class, for the legend; by default its number and share.
    **rows
        Further arguments of the rows of the fit: ``sample_weight``, ``gating``, ``level``.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If the model has no classes with profiles.
    ValueError
        If there is nothing of that kind to draw, or not a name for each class.

    Examples
    --------
    >>> import numpy as np, pandas as pd, majorant as mj
    >>> random = np.random.default_rng(0)
    >>> buyer = random.random(300) < 0.4
    >>> table = pd.DataFrame(
    ...     {name: np.where(random.random(300) < np.where(buyer, 0.85, 0.2), "yes", "no") for name in "abcd"}
    ... )
    >>> ax = mj.plot.class_profile(mj.LatentClassAnalysis(2, random_state=0).fit(table), table)
    >>> ax.get_ylabel(), [label.get_text() for label in ax.get_xticklabels()]
    ('probability', ['a: yes', 'b: yes', 'c: yes', 'd: yes'])
    """
    if not hasattr(model, "class_profile"):
        raise TypeError(f"class_profile draws a LatentClassAnalysis; got {type(model).__name__}")
    profile = model.class_profile(X, **rows)
    nominal = profile.is_probability
    wanted = (
        ("answers" if nominal.any() else "numbers") if of is None else check_choice("of", of, ["answers", "numbers"])
    )
    chosen = [i for i in profile.distinct_rows if nominal[i] == (wanted == "answers")]
    if not chosen:
        raise ValueError(f"of={of!r}: the model has no items that are {wanted}")
    shares = [f"{j + 1} ({100 * share:.0f} %)" for j, share in enumerate(profile.shares)]
    labels = shares if names is None else list(map(str, names))
    if len(labels) != len(shares):
        raise ValueError(f"names must have a name for each of {len(shares)} classes; got {len(labels)}")
    is_own, places = ax is None, np.arange(len(chosen))
    ax = axes(ax, layout="constrained")
    estimates, low, high = (part[chosen] for part in profile.standardised)
    items = [profile.items[i] for i in chosen]
    breaks = [i for i in places[1:] if items[i] != items[i - 1] and max(map(items.count, items[i - 1 : i + 1])) > 1]
    for k, label in enumerate(labels):
        x = places + APART * (k - (len(labels) - 1) / 2)
        y = estimates[:, k]
        reach = np.nan_to_num(np.stack([y - low[:, k], high[:, k] - y]))
        ax.errorbar(x, y, yerr=reach, fmt="none", color=colour(k), elinewidth=1.2, capsize=2, zorder=2)
        for part in np.split(places, breaks):  # a line joins levels of one item, and items with one number each
            ax.plot(x[part], y[part], color=colour(k), linewidth=0.8, zorder=2)
        ax.plot(x, y, mark(k), color=colour(k), markeredgecolor=edge(k), markersize=7, label=label, zorder=3)
    words = [profile.items[i] if wanted == "numbers" else f"{profile.items[i]}: {profile.levels[i]}" for i in chosen]
    is_long = sum(map(len, words)) > 60
    turned = 90 if len(words) > MOST_SLANTED else 45 if is_long else 0
    ax.set_xticks(places, words, rotation=turned, ha="right" if turned == 45 else "center")
    ax.set_ylabel("probability" if wanted == "answers" else "standard deviations from the mean")
    if wanted == "answers":
        ax.set_ylim(-0.03, 1.03)
    ax.legend(title="class", frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    if is_own:
        make_room(ax)
    return tidy(ax)


def make_room(ax: Axes) -> None:
    """Make the figure of these Axes so wide that the names below them do not overlap."""
    figure: Any = ax.figure
    figure.set_figwidth(max(figure.get_figwidth(), 2.0 + INCHES_A_NAME * len(ax.get_xticks())))
