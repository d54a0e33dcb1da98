"""The other optima: the same rows under every distinct solution, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from majorant.report import numbers
from majorant.report.charts.lines import Drawn, draw_lines, ranges_of
from majorant.report.charts.marks import N_COLOURS
from majorant.report.charts.panels import draw_grid
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.measures.regression import Optimum, Regression
from majorant.report.section import Section
from majorant.report.sections import lines as words
from majorant.report.sections.lines import drawn_of
from majorant.report.words.grammar import capital, counted, in_prose, verb

MOST_POINTS = 300


def optima_section(regression: Regression) -> Section | None:
    """Build the section; None if the fit is the only solution found, or components are not lines."""
    if not regression.has_lines:
        return None
    solutions = regression.solutions
    if len(solutions) < 2:
        return None
    drawn = [drawn_of(regression, solution, MOST_POINTS) for solution in solutions]
    names = words.axis_names(regression)
    return Section(
        "optima",
        "The other optima",
        headline(regression),
        notes(regression, len(drawn[0].x)),
        figure("optima", figure_label(regression), lambda size: draw_optima(size, solutions, drawn, *names)),
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
        subtitles=[caption(solution, i) for i, solution in enumerate(solutions)],
        x_title=x_name,
        y_title=y_name,
        height=195.0,
    )


MANY = 0.2
"""Share of rows with different components from which on two solutions count as different."""


def headline(regression: Regression) -> str:
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


def caption(solution: Optimum, place: int) -> str:
    """Return the text under the log-likelihood of a solution, as plain text."""
    if not solution.regular:
        return "left out"
    starts = f"{numbers.integer(solution.n_starts)} start{'' if solution.n_starts == 1 else 's'}"
    if place == 0:
        return f"the fit, {starts}" if solution.n_starts else "the fit"
    return starts if solution.n_starts else "another optimum"


def notes(regression: Regression, n_drawn: int) -> list[str]:
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
            "components are perhaps not the right number. Try one more."
        )
    if any(not s.regular for s in solutions[1:]):
        texts.append("The last one is higher but not regular, so it is not the answer; see above.")
    return texts


def figure_label(regression: Regression) -> str:
    """State what the figure shows, as plain text."""
    return f"The same rows with the lines of {counted(len(regression.solutions), 'solution')}, side by side"
