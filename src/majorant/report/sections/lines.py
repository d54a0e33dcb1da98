"""The lines of a mixture of regressions: rows and bands under the fit, and under the other optima beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant.report import numbers
from majorant.report.charts.axes import backdrop, draw_grid
from majorant.report.charts.labels import spread, text_width
from majorant.report.charts.marks import N_COLOURS, component_class, name_class, radius_for, shaded_scatter
from majorant.report.charts.scales import Linear, padded
from majorant.report.charts.svg import Canvas, Size, coordinate, figure
from majorant.report.measures.mixture import CLEAR
from majorant.report.measures.regression import Optimum, Regression
from majorant.report.section import Section
from majorant.report.words.grammar import capital, counted, in_prose, verb
from majorant.results.silhouettes import thinned_rows

Array = NDArray[np.float64]
BAND = 1.96
"""Standard deviations of the noise on either side of a line."""
ROOM_FOR_BANDS = 0.25
"""Largest extension of the vertical axis for lines and bands, as a share of the range of the rows."""
MANY = 0.2
"""Share of rows with different components from which on two solutions count as different."""
MOST_POINTS, MOST_IN_PANELS, MOST_IN_OPTIMA = 1200, 800, 300
MOST_PANELS = 9


@dataclass(frozen=True)
class Drawn:
    """The data of a drawing of lines and rows."""

    # (n,): the rows
    x: Array
    y: Array
    labels: NDArray[np.int64]  # (n,): most probable component of each row
    probability: Array  # (n,): probability of that component
    at: Array  # (2,): horizontal positions of the ends of the lines
    ends: Array  # (2, k): values of the lines there
    scale: Array  # (k,): standard deviation of the noise of each line

    @property
    def k(self) -> int:
        return len(self.scale)


def ranges_of(several: Sequence[Drawn]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ranges of the axes that some drawings share."""
    x = np.concatenate([d.x for d in several])
    y = np.concatenate([d.y for d in several])
    low, high = float(y.min()), float(y.max())
    reach = np.concatenate([[(d.ends - BAND * d.scale).min(), (d.ends + BAND * d.scale).max()] for d in several])
    room = ROOM_FOR_BANDS * (high - low)
    low, high = max(min(low, float(reach.min())), low - room), min(max(high, float(reach.max())), high + room)
    return padded(float(x.min()), float(x.max())), padded(low, high)


def draw_lines(
    canvas: Canvas, drawn: Drawn, x_scale: Linear, y_scale: Linear, radius: float, name: str, only: int | None = None
) -> None:
    """Draw bands, lines and rows within the axes; with more components than colours, those of component `only`."""
    left, right, top, bottom = x_scale.start, x_scale.end, y_scale.end, y_scale.start
    c = coordinate
    clip = canvas.define(
        f"clip-{name}",
        f'<clipPath id="{{id}}"><rect x="{c(left)}" y="{c(top)}" width="{c(right - left)}" '
        f'height="{c(bottom - top)}"/></clipPath>',
    )
    shown = range(drawn.k) if only is None else [only]
    xs = [x_scale(float(v)) for v in drawn.at] if drawn.at[0] < drawn.at[1] else [left, right]
    canvas.add(f'<g clip-path="url(#{clip})">')
    for j in shown:
        colour, (first, last) = component_class(j, drawn.k, only), drawn.ends[:, j].tolist()
        half = BAND * float(drawn.scale[j])
        above, below = ([y_scale(first + h), y_scale(last + h)] for h in (half, -half))
        corners = [(xs[0], above[0]), (xs[1], above[1]), (xs[1], below[1]), (xs[0], below[0])]
        canvas.polygon(corners, f"fill-{colour} band")
    for j in shown:
        heights = [y_scale(float(v)) for v in drawn.ends[:, j]]
        canvas.polyline(list(zip(xs, heights, strict=True)), f"stroke-{component_class(j, drawn.k, only)} fitted-line")
    canvas.add("</g>")
    for j in shown:
        mine = np.flatnonzero(drawn.labels == j)
        rows = zip(drawn.x[mine].tolist(), drawn.y[mine].tolist(), drawn.probability[mine].tolist(), strict=True)
        shaded_scatter(canvas, ((x_scale(a), y_scale(b), p) for a, b, p in rows), j, drawn.k, radius, only)


def name_lines(canvas: Canvas, drawn: Drawn, x_scale: Linear, y_scale: Linear) -> None:
    """Write each component's name at the right end of its line, moved vertically where two would touch."""
    top, bottom = y_scale.end + 12, y_scale.start - 6
    heights = [min(max(y_scale(float(v)) - 8, top), bottom) for v in drawn.ends[1]]
    x = x_scale(float(drawn.at[1])) if drawn.at[0] < drawn.at[1] else x_scale.end
    x = max(x, x_scale.start + text_width("Component 1", bold=True))
    for j, y in enumerate(spread(heights, [18.0] * drawn.k, top - 9, bottom + 9).tolist()):
        css = name_class(component_class(j, drawn.k))
        canvas.text(x, y, f"Component {j + 1}", f"{css} halo", anchor="end")


def fit_section(regression: Regression) -> Section | None:
    """Build the section: rows coloured by responsibility, lines and bands; one panel each for many components.

    None where components are not lines.
    """
    if not regression.has_lines:
        return None
    n_panels = min(regression.k, MOST_PANELS) if regression.k > N_COLOURS else 0
    drawn = drawn_of(regression, regression.fitted, MOST_IN_PANELS if n_panels else MOST_POINTS)
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
            f"{regression.feature(regression.main_feature)}. Every row is moved along its own line to where the "
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
    return regression.feature_names[regression.main_feature], y + held


def optima_section(regression: Regression) -> Section | None:
    """Build the section; None if the fit is the only solution found, or the model is more than lines."""
    if not regression.is_of_lines_alone:
        return None
    solutions = regression.solutions
    if len(solutions) < 2:
        return None
    drawn = [drawn_of(regression, solution, MOST_IN_OPTIMA) for solution in solutions]
    names = axis_names(regression)
    label = f"The same rows with the lines of {counted(len(solutions), 'solution')}, side by side"
    return Section(
        "optima",
        "The other optima",
        optima_headline(regression),
        optima_notes(regression, len(drawn[0].x)),
        figure("optima", label, lambda size: draw_optima(size, solutions, drawn, *names)),
    )


def draw_optima(size: Size, solutions: Sequence[Optimum], drawn: Sequence[Drawn], x_name: str, y_name: str) -> Canvas:
    """Draw one panel per solution; panels share both axes."""
    x_range, y_range = ranges_of(drawn)
    return draw_grid(
        size,
        [numbers.objective(solution.log_likelihood, "log-likelihood") for solution in solutions],
        [x_range],
        y_range,
        lambda canvas, i, x, y: draw_lines(canvas, drawn[i], x, y, 2.0, f"optimum-{i}"),
        subtitles=[optimum_caption(solution, i) for i, solution in enumerate(solutions)],
        x_title=x_name,
        y_title=y_name,
        height=195.0,
    )


def optima_headline(regression: Regression) -> str:
    """State how the next solution differs from the fit."""
    other = regression.solutions[1]
    moved, n = regression.n_moved(other), regression.n_rows
    name = "The second optimum" if other.regular else "The solution that was left out"
    gap = abs(other.log_likelihood - regression.objective)
    side = "higher" if other.log_likelihood > regression.objective else "lower"
    who = f"{name}, {numbers.distance(gap)} {side},"
    if moved == 0:
        return f"{who} gives every row to the same component."
    story = "differs strongly: it " if moved > MANY * n else ""
    return f"{who} {story}gives {numbers.integer(moved)} of {numbers.integer(n)} rows to another component."


def optimum_caption(solution: Optimum, place: int) -> str:
    """Return the text under the log-likelihood of a solution, as plain text."""
    if not solution.regular:
        return "left out"
    if place == 0:
        return "the fit"
    return solution.reached or "another optimum"


def optima_notes(regression: Regression, n_drawn: int) -> list[str]:
    """Explain the panels, and what follows from them."""
    solutions, n = regression.solutions, regression.n_rows
    shown = counted(n_drawn, "row") if n_drawn < n else f"The same {counted(n, 'row', words=False)}"
    texts = [f"{capital(shown)} under each solution, and its log-likelihood. The fit stands first."]
    if 1 < regression.k <= N_COLOURS:
        texts.append("<b>Colours</b> follow the components of the fit that share most rows with them.")
    regular = [s for s in solutions[1:] if s.regular]
    unseen = regression.search.n_distinct - 1 - len(regular)
    if unseen > 0 and len(regular) >= 2:
        texts.append(f"{capital(counted(unseen, 'poorer solution'))} {verb(unseen, 'is', 'are')} not shown.")
    if regular and regression.n_moved(regular[0]) > MANY * n and regression.objective - regular[0].log_likelihood < 10:
        texts.append(
            f"<b>What to conclude:</b> optima this close that disagree this much say that {in_prose(regression.k)} "
            "components are perhaps not the right number. Compare others by their BIC."
        )
    if any(not s.regular for s in solutions[1:]):
        texts.append("The last one is higher but not regular, so it is not the answer; see above.")
    return texts
