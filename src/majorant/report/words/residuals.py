"""Sentences about the residuals."""

from __future__ import annotations

from scipy.stats import norm

from majorant.report import numbers
from majorant.report.measures.regression import MOST_BINS, Regression
from majorant.report.words.grammar import counted, in_prose, verb

Y_TITLE = "residual, in \u03c3"
BEYOND = float(2 * norm.sf(2))
"""Share of normal noise beyond two standard deviations."""


def headline(regression: Regression) -> str:
    """State whether the residuals support straight lines."""
    drifts = [(j, drift) for j in range(regression.k) if (drift := regression.residuals(j).drift) is not None]
    if not drifts:
        if regression.k == 1:
            return "The residuals do not drift: a straight line suits the rows."
        return "No component\u2019s residuals drift: straight lines suit the rows."
    j, (low, high) = max(drifts, key=lambda item: item[1][1] - item[1][0])
    who = "The line" if regression.k == 1 else f"Component {j + 1}"
    return (
        f"{who} is not straight throughout: the middle of its residuals runs from "
        f"{numbers.fixed(low, 1)} to {numbers.fixed(high, 1)}{numbers.NARROW_SPACE}\u03c3."
    )


def notes(regression: Regression, shown: list[int], most_points: int) -> list[str]:
    """Explain the panels, the outlying rows, and what deserves attention."""
    along = "" if regression.n_features == 1 else ", against what the component predicts"
    texts = [
        f"<b>Residuals divided by \u03c3</b> of the rows that are most probably of each component{along}. The line "
        f"joins the medians of at most {in_prose(MOST_BINS)} groups of rows; "
        f"the band is \u00b12{numbers.NARROW_SPACE}\u03c3."
    ]
    parts = []
    for j in shown[:3]:
        n, beyond = int(regression.sizes[j]), regression.residuals(j).n_beyond
        who = "" if regression.k == 1 else f"of component {j + 1} "
        rows = f"{numbers.integer(beyond)} of {counted(n, 'row', words=False)} {who}{verb(beyond, 'lies', 'lie')}"
        parts.append(f"{rows} outside it, where normal noise has {numbers.fixed(BEYOND * n, 1)}.")
    texts.append(" ".join(parts))
    if regression.k > 1:
        texts.append(
            "<b>Note:</b> where lines cross, each row counts as the nearer one\u2019s, so residuals seem smaller there."
        )
    if len(shown) < int((regression.sizes > 0).sum()):
        texts.append(f"The {in_prose(len(shown))} heaviest components are shown.")
    if int(regression.sizes.max()) > most_points:
        texts.append(f"At most {numbers.integer(most_points)} rows per component are drawn.")
    return texts


def x_title(regression: Regression) -> str:
    """Return the title of the horizontal axis, as plain text."""
    if regression.n_features == 1:
        return regression.run.feature_names[0]
    return f"predicted {regression.run.target_name}"


def figure_label(regression: Regression) -> str:
    """State what the figure shows, as plain text."""
    parts = counted(regression.k, "component")
    return f"Residuals of {parts} in standard deviations of the noise against {x_title(regression)}"
