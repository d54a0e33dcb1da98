"""Convergence: objective and bound at each iteration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant.engine.trace import Trace
from majorant.report import numbers
from majorant.report.charts.axes import bottom_axis, bottom_title, left_axis, left_title
from majorant.report.charts.labels import text_width
from majorant.report.charts.scales import Linear, Log, around_decades, log_tick_label
from majorant.report.charts.svg import Canvas, Point, Size, figure
from majorant.report.fit import Fit
from majorant.report.html import facts
from majorant.report.section import Section
from majorant.report.words.grammar import capital, counted, in_prose

MOST_DRAWN = 240
MOST_WITH_DOTS = 40
TOP, BOTTOM = 36.0, 266.0


def convergence_section(fit: Fit) -> Section | None:
    """Build the section, or return None without a history."""
    history = History.of(fit.trace, fit.search.objective_name, fit.search.sense)
    if not len(history.objective):
        return None
    n_iter = int(getattr(fit.run.estimator, "n_iter_", len(history.objective)))
    heights = above_lowest(history)
    drawn = int(np.isfinite(heights[0]).sum()) >= 2
    name = fit.search.objective_name
    if drawn:
        block = figure("convergence", figure_label(history), lambda size: draw_history(size, history, name))
    else:
        block = _first_and_last(history, n_iter, name)
    return Section(
        "convergence",
        "Convergence",
        headline(history, n_iter, fit.converged),
        notes(history, fit.converged, drawn=drawn, is_stopped=fit.search.is_stopped),
        block,
    )


def above_lowest(history: History) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return distances of objective and bound from the lowest objective; NaN where zero, for a log axis."""
    lowest = float(history.objective.min())
    least = 1e-12 * max(abs(lowest), float(np.abs(history.objective).max()) * 1e-3)

    def above(values: NDArray[np.float64]) -> NDArray[np.float64]:
        distance = values - lowest
        return np.where(distance > least, distance, np.nan)

    return above(history.objective), above(history.bound)


def draw_history(size: Size, history: History, objective_name: str) -> Canvas:
    """Draw the objective with filled dots, its bound with open dots and a dashed line, exploration as a band."""
    canvas = Canvas(size, BOTTOM + 48)
    objective, bound = above_lowest(history)
    shown = _thinned(len(objective))
    both = np.concatenate([objective, bound])
    both = both[np.isfinite(both)]
    y_scale = Log(*around_decades(float(both.min()), float(both.max())), BOTTOM, TOP)
    ticks = y_scale.ticks(6)
    labels = [log_tick_label(t) for t in ticks]
    left = max(text_width(label) for label in labels) + 10
    first, last = int(history.iterations[0]), int(history.iterations[-1])
    x_scale = Linear(first, last, left + 8, size.width - 8)
    x_ticks = [t for t in x_scale.ticks(5 if size.narrow else 8) if abs(t - round(t)) < 1e-9]
    left_axis(canvas, y_scale, ticks, labels, left, size.width)
    bottom_axis(canvas, x_scale, x_ticks, [numbers.fixed(t) for t in x_ticks], BOTTOM, left, size.width)
    bottom_title(canvas, "iteration", size.width, BOTTOM + 38, 120)
    left_title(canvas, f"{objective_name} {history.beyond} of the fit", 16, size.width)

    def points(values: NDArray[np.float64], kept: NDArray[np.bool_]) -> list[Point]:
        drawn = [i for i in shown if kept[i]]
        return [(x_scale(float(history.iterations[i])), y_scale(float(values[i]))) for i in drawn]

    both_known = history.exploring & np.isfinite(objective) & np.isfinite(bound)
    if both_known.sum() >= 2:
        canvas.polygon([*points(bound, both_known), *reversed(points(objective, both_known))], "fill-mid band")
    lower, upper = points(objective, np.isfinite(objective)), points(bound, np.isfinite(bound) & history.has_bound)
    canvas.polyline(upper, "bound-line")
    canvas.polyline(lower, "objective-line")
    if len(objective) <= MOST_WITH_DOTS:
        canvas.dots(upper, "stroke-ink3")
        canvas.dots(upper, "stroke-paper hole")
        canvas.dots(lower, "stroke-ink")
    _label_lines(canvas, lower, upper if history.has_bound else [], history.subject)
    return canvas


def _thinned(n: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, n - 1, min(n, MOST_DRAWN)).astype(np.int64))


def _label_lines(canvas: Canvas, lower: list[Point], upper: list[Point], subject: str) -> None:
    """Label falling lines: the upper one at its upper right, the lower one at its lower left."""
    width = canvas.width
    if upper:
        x, y = upper[min(len(upper) // 3, 4)]
        x = min(x + 10, width - text_width("bound"))
        canvas.text(x, max(y - 8, TOP + 8), "bound", "quiet halo")
    first, room = min(len(lower) // 3, 4), text_width(subject, bold=True)
    x, y = lower[first]
    if not upper:
        canvas.text(min(x + 10, width - room), max(y - 8, TOP + 8), subject, "strong halo")
        return
    x, y = next((point for point in lower[first:] if point[0] - 10 - room > 40), lower[-1])
    canvas.text(max(x - 10, 40 + room), min(y + 18, BOTTOM - 8), subject, "strong halo", anchor="end")


def _first_and_last(history: History, n_iter: int, objective_name: str) -> str:
    first, last = (history.shown(float(history.objective[i])) for i in (0, -1))
    return facts(
        (
            ("Iterations", numbers.integer(n_iter), ""),
            (f"First {history.subject}", numbers.objective(first, objective_name, last), ""),
            (f"Last {history.subject}", numbers.objective(last, objective_name), ""),
        ),
        "four-figures",
    )


SLACK = 1e-9


@dataclass(frozen=True)
class History:
    """The iterations of a fit that have an objective.

    Attributes
    ----------
    iterations : array of int
        Counted from 1.
    objective, bound : array
        The bound is NaN where an iteration has none.
    exploring : array of bool
        Where a bound policy drew the bound.
    name : str
        Name of the objective.
    sense : {"min", "max"}
        Whether the objective is minimised or maximised; a trace holds its negative where it is maximised.
    """

    iterations: NDArray[np.int64]
    objective: NDArray[np.float64]
    bound: NDArray[np.float64]
    exploring: NDArray[np.bool_]
    name: str = "objective"
    sense: str = "min"

    @classmethod
    def of(cls, trace: Trace, name: str = "objective", sense: str = "min") -> History:
        objective = trace["objective"]
        kept = np.isfinite(objective)
        return cls(
            np.flatnonzero(kept) + 1,
            objective[kept],
            trace["bound"][kept],
            np.nan_to_num(trace["exploring"][kept]) == 1,
            name,
            sense,
        )

    @property
    def subject(self) -> str:
        """The word for the objective: "objective", or its name where it is maximised."""
        return "objective" if self.sense == "min" else self.name

    @property
    def worsened(self) -> str:
        return "rose" if self.sense == "min" else "fell"

    @property
    def beyond(self) -> str:
        """Words for the position of all other values: above the lowest or below the highest."""
        return "above the lowest" if self.sense == "min" else "below the highest"

    def shown(self, value: float) -> float:
        """Return a value of the trace with the sign of the objective."""
        return value if self.sense == "min" else -value

    @property
    def explored(self) -> bool:
        return bool(self.exploring.any())

    @property
    def has_bound(self) -> bool:
        """Whether any bound differs from the objective."""
        known = np.isfinite(self.bound)
        return bool(np.any(self.bound[known] - self.objective[known] > SLACK * _scale(self.objective)))

    @property
    def objective_never_rose(self) -> bool:
        return _never_rises(self.objective)

    @property
    def bound_never_rose(self) -> bool:
        return _never_rises(self.bound[np.isfinite(self.bound)])

    @property
    def n_rises(self) -> int:
        """Number of iterations that ended with a worse objective."""
        return int(np.sum(np.diff(self.objective) > SLACK * _scale(self.objective)))


def headline(history: History, n_iter: int, converged: bool) -> str:
    """State how the fit converged, in one sentence."""
    iterations = counted(n_iter, "iteration")
    if not converged:
        return f"The fit was stopped after {iterations}, before it converged."
    if len(history.objective) < 2:
        return f"The fit converged after {iterations}."
    if history.objective_never_rose:
        return f"The fit converged after {iterations}; the {history.subject} never {history.worsened}."
    rises = {1: "once", 2: "twice"}.get(history.n_rises, f"{in_prose(history.n_rises)} times")
    if history.explored and history.has_bound and history.bound_never_rose:
        beside = "above" if history.sense == "min" else "below"
        rises += f", the bound {beside} it never"
    else:
        rises += " on the way"
    return f"The fit converged after {iterations}; the {history.subject} {history.worsened} {rises}."


def notes(history: History, converged: bool, *, drawn: bool, is_stopped: bool = False) -> list[str]:
    """Explain the figure, and what deserves attention."""
    texts = []
    if drawn and history.has_bound:
        texts.append(
            "Each iteration minimises a bound <b>(open, dashed)</b> that lies above the objective <b>(filled)</b>. "
            "Both are shown by how far they are above the lowest objective of the fit; "
            "what is at the lowest is off the scale."
        )
    elif drawn:
        texts.append(
            f"The {history.subject} after each iteration, by how far it is {history.beyond}; "
            "what is there is off the scale."
        )
    else:
        few = len(history.objective) < 2 or bool(np.isfinite(above_lowest(history)[0]).any())
        texts.append(
            "There are too few iterations to draw."
            if few
            else f"The {history.subject} hardly changed: there is nothing to draw."
        )
    if history.explored:
        n = int(history.exploring.sum())
        texts.append(
            f"In {counted(n, 'iteration')} the fit explored: it minimised bounds that lie above the objective, "
            "so that it could leave the local optimum nearest to its start. The band is the gap between the two."
        )
    if not converged and is_stopped:
        texts.append("<b>Note:</b> the fit was stopped by hand.")
    elif not converged:
        texts.append("<b>Note:</b> the limit of iterations ended the fit. Raise max_iter to let it converge.")
    return texts


def figure_label(history: History) -> str:
    """State what the figure shows, as text."""
    what = capital(history.subject) + (" and bound" if history.has_bound else "")
    return f"{what} at each of {len(history.objective)} iterations, {history.beyond} {history.subject}, on a log scale"


def _scale(values: NDArray[np.float64]) -> float:
    return float(np.abs(values).max()) if len(values) else 0.0


def _never_rises(values: NDArray[np.float64]) -> bool:
    return bool(np.all(np.diff(values) <= SLACK * _scale(values)))
