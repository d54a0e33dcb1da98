"""Fit: the rows, the fitted lines, and the range of the noise."""

from __future__ import annotations

import numpy as np

from majorant.report import numbers
from majorant.report.charts.lines import BAND, Drawn, draw_lines, name_lines, ranges_of
from majorant.report.charts.marks import N_COLOURS
from majorant.report.charts.panels import backdrop, draw_grid
from majorant.report.charts.scales import Linear
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.measures.memberships import CLEAR
from majorant.report.measures.regression import Optimum, Regression
from majorant.report.section import Section
from majorant.report.words.grammar import capital, counted, in_prose, verb
from majorant.report.words.regression import main_feature
from majorant.results.silhouettes import thinned_rows

MOST_POINTS, MOST_IN_PANELS = 1200, 800
MOST_PANELS = 9


def fit_section(regression: Regression) -> Section | None:
    """Build the section: rows coloured by responsibility, lines and bands; one panel each for many components.

    None where components are not lines.
    """
    if not regression.has_lines:
        return None
    n_panels = min(regression.k, MOST_PANELS) if regression.k > N_COLOURS else 0
    drawn = drawn_of(regression, regression.solutions[0], MOST_IN_PANELS if n_panels else MOST_POINTS)
    names = axis_names(regression)

    def draw(size: Size) -> Canvas:
        return draw_panels(size, drawn, n_panels, *names) if n_panels else draw_fit(size, drawn, *names)

    return Section(
        "fit",
        "Fit",
        headline(regression),
        notes(regression, len(drawn.x), n_panels),
        figure("fit", figure_label(regression), draw),
    )


def drawn_of(regression: Regression, optimum: Optimum, most: int) -> Drawn:
    """Return what is drawn of a solution: the feature of largest effect, and at most `most` rows."""
    labels = optimum.labels
    rows = thinned_rows(labels, np.bincount(labels, minlength=regression.k), most)
    at, ends = regression.ends(optimum.lines)
    return Drawn(
        regression.main_values[rows],
        regression.moved(optimum.lines, labels)[rows],
        labels[rows],
        optimum.responsibilities.max(axis=1)[rows],
        at,
        ends,
        optimum.lines.scale,
    )


def radius_for(n_points: int) -> float:
    """Return the radius of marks, smaller for more points."""
    return 3.4 if n_points <= 400 else 2.6 if n_points <= 900 else 2.2


def draw_fit(size: Size, drawn: Drawn, x_name: str, y_name: str) -> Canvas:
    """Draw all components in one plot."""
    x_range, y_range = ranges_of([drawn])

    def inside(canvas: Canvas, i: int, x: Linear, y: Linear) -> None:
        draw_lines(canvas, drawn, x, y, radius_for(len(drawn.x)), "fit")
        if drawn.k > 1:
            name_lines(canvas, drawn, x, y)

    height = 300.0 if size.narrow else 420.0
    return draw_grid(size, [""], [x_range], y_range, inside, x_title=x_name, y_title=y_name, height=height)


def draw_panels(size: Size, drawn: Drawn, n_panels: int, x_name: str, y_name: str) -> Canvas:
    """Draw one panel per component, by decreasing weight: its line and rows in colour over all rows in grey."""
    x_range, y_range = ranges_of([drawn])
    rows = list(zip(drawn.x.tolist(), drawn.y.tolist(), strict=True))

    def inside(canvas: Canvas, i: int, x: Linear, y: Linear) -> None:
        backdrop(canvas, rows, x, y)
        draw_lines(canvas, drawn, x, y, 2.2, f"fit-{i}", only=i)

    titles = [f"Component {i + 1}" for i in range(n_panels)]
    return draw_grid(size, titles, [x_range], y_range, inside, x_title=x_name, y_title=y_name)


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
