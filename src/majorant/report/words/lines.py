"""Sentences about the picture of the fit."""

from __future__ import annotations

from majorant.report import numbers
from majorant.report.charts.lines import BAND
from majorant.report.measures.memberships import CLEAR
from majorant.report.measures.regression import Regression
from majorant.report.words.grammar import capital, counted, in_prose, verb
from majorant.report.words.regression import main_feature


def headline(regression: Regression) -> str:
    """State how clearly the rows belong to the lines."""
    n, clear = regression.n_rows, regression.n_clear
    if regression.run.estimator.is_exact_:
        return "One line runs through every row."
    if regression.k == 1:
        inside = int(
            (
                abs(regression.y - regression.lines.fits(regression.run.X)[:, 0]) <= BAND * regression.lines.scale[0]
            ).sum()
        )
        return f"{numbers.integer(inside)} of {numbers.integer(n)} rows lie within the band of the one line."
    if clear == n:
        return "Every row belongs to one line with a probability above 0.9."
    rows = f"{numbers.integer(clear)} of {numbers.integer(n)} rows"
    if 2 * clear < n:
        return f"The lines overlap: only {rows} belong to one of them clearly."
    return f"{rows} belong to one line clearly; the others could be of several."


def notes(regression: Regression, n_drawn: int, n_panels: int) -> list[str]:
    """Explain the picture, and what it leaves out."""
    texts = [
        f"<b>A band</b> holds 95{numbers.NARROW_SPACE}% of the rows of its component "
        f"(\u00b1{BAND}{numbers.NARROW_SPACE}\u03c3)."
    ]
    if n_panels:
        texts.append(
            "<b>One panel per component</b>, heaviest first: its rows in colour, those of all others in grey."
            + (
                f" The {in_prose(n_panels)} heaviest of {in_prose(regression.k)} are shown."
                if n_panels < regression.k
                else ""
            )
        )
    if regression.k > 1:
        texts.append(
            "<b>Colour</b> is a row\u2019s most probable component, greyer the less probable it is. "
            f"{capital(counted(regression.n_clear, 'row'))} of {numbers.integer(regression.n_rows)} "
            f"{verb(regression.n_clear, 'has', 'have')} a component with a probability above {CLEAR}."
        )
    others = regression.n_features - 1
    if others:
        texts.append(
            f"<b>Of {in_prose(regression.n_features)} features</b> the one of the largest effect is shown, "
            f"{main_feature(regression)}. Every row is moved along its own line to where the "
            f"{verb(others, 'other is at its mean', 'others are at their means')}; its distance from the line is kept."
        )
    if n_drawn < regression.n_rows:
        texts.append(f"{numbers.integer(n_drawn)} of {numbers.integer(regression.n_rows)} rows are drawn.")
    return texts


def figure_label(regression: Regression) -> str:
    """State what the figure shows, as plain text."""
    x, y = axis_names(regression)
    lines = counted(regression.k, "fitted line")
    return f"Scatter plot of {y} against {x} with {lines}, bands of {BAND} sigma, rows coloured by responsibility"


def axis_names(regression: Regression) -> tuple[str, str]:
    """Return the titles of the two axes, as plain text."""
    y = regression.run.target_name
    others = regression.n_features - 1
    held = f", {counted(others, 'other feature')} at {verb(others, 'its mean', 'their means')}" if others else ""
    return regression.run.feature_names[regression.main_feature], y + held
