"""Convergence: objective and bound at each iteration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from majorant.engine.trace import Trace
from majorant.report import numbers
from majorant.report.charts.axes import bottom_axis, bottom_title, left_axis, left_title
from majorant.report.charts.labels import text_width
from majorant.report.charts.scales import Linear, Log, around_decades, evenly, log_tick_label
from majorant.report.charts.svg import Canvas, Point, Size, figure
from majorant.report.fit import Fit
from majorant.report.html import facts
from majorant.report.section import Section
from majorant.report.words.grammar import capital, counted, in_prose

Array = NDArray[np.float64]
MOST_DRAWN, MOST_WITH_DOTS = 240, 40
TOP, BOTTOM = 36.0, 266.0
SLACK = 1e-9


@dataclass(frozen=True)
class History:
    """The iterations of a fit that have an objective."""

    iterations: NDArray[np.int64]  # counted from 1
    # the bound is NaN where an iteration has none
    objective: Array
    bound: Array
    exploring: NDArray[np.bool_]  # where a bound policy drew the bound
    name: str = "objective"  # name of the objective
    # {"min", "max"}: Whether the objective is minimised or maximised; a trace holds its negative where it is maximised
    sense: str = "min"

    @classmethod
    def of(cls, trace: Trace, name: str = "objective", sense: str = "min") -> History:
        objective = trace["objective"]
        kept = np.isfinite(objective)
        exploring = np.nan_to_num(trace["exploring"][kept]) == 1
        return cls(np.flatnonzero(kept) + 1, objective[kept], trace["bound"][kept], exploring, name, sense)

    @property
    def subject(self) -> str:
        """The word for the objective: "objective", or its name where it is maximised."""
        return "objective" if self.sense == "min" else self.name

    @property
    def beyond(self) -> str:
        """Words for the position of all other values: above the lowest or below the highest."""
        return "above the lowest" if self.sense == "min" else "below the highest"

    @cached_property
    def above_lowest(self) -> tuple[Array, Array]:
        """Distances of objective and bound from the lowest objective; NaN where zero, for a log axis."""
        lowest = float(self.objective.min())
        least = 1e-12 * max(abs(lowest), float(np.abs(self.objective).max()) * 1e-3)
        objective, bound = (np.where(v - lowest > least, v - lowest, np.nan) for v in (self.objective, self.bound))
        return objective, bound

    @property
    def _slack(self) -> float:
        return SLACK * float(np.abs(self.objective).max(initial=0.0))

    @property
    def has_bound(self) -> bool:
        """Whether any bound differs from the objective."""
        return bool((np.nan_to_num(self.bound - self.objective) > self._slack).any())

    @property
    def bound_never_rose(self) -> bool:
        known = self.bound[np.isfinite(self.bound)]
        return bool((np.diff(known) <= SLACK * np.abs(known).max(initial=0.0)).all())

    @property
    def n_rises(self) -> int:
        """Number of iterations that ended with a worse objective."""
        return int((np.diff(self.objective) > self._slack).sum())


def convergence_section(fit: Fit) -> Section | None:
    """Build the section, or return None without a history."""
    name = fit.search.objective_name
    history = History.of(fit.trace, name, fit.search.sense)
    if not len(history.objective):
        return None
    n_iter = int(getattr(fit.run.estimator, "n_iter_", len(history.objective)))
    drawn = int(np.isfinite(history.above_lowest[0]).sum()) >= 2
    what = capital(history.subject) + (" and bound" if history.has_bound else "")
    over = f"at each of {len(history.objective)} iterations, {history.beyond} {history.subject}, on a log scale"
    if drawn:
        block = figure("convergence", f"{what} {over}", lambda size: draw_history(size, history))
    else:
        first, last = (history.objective[[0, -1]] * (1 if history.sense == "min" else -1)).tolist()
        ends = (("First", numbers.objective(first, name, last)), ("Last", numbers.objective(last, name)))
        told = [(f"{which} {history.subject}", text, "") for which, text in ends]
        block = facts([("Iterations", numbers.integer(n_iter), ""), *told], "four-figures")
    return Section(
        "convergence",
        "Convergence",
        headline(history, n_iter, fit.converged),
        notes(history, fit.converged, drawn=drawn, is_stopped=fit.search.is_stopped),
        block,
    )


def draw_history(size: Size, history: History) -> Canvas:
    """Draw the objective with filled dots, its bound with open dots and a dashed line, exploration as a band."""
    canvas = Canvas(size, BOTTOM + 48)
    objective, bound = history.above_lowest
    known = np.concatenate([objective, bound])
    known = known[np.isfinite(known)]
    y_scale = Log(*around_decades(float(known.min()), float(known.max())), BOTTOM, TOP)
    ticks = y_scale.ticks(6)
    labels = [log_tick_label(t) for t in ticks]
    left = max(text_width(label) for label in labels) + 10
    x_scale = Linear(int(history.iterations[0]), int(history.iterations[-1]), left + 8, size.width - 8)
    x_ticks = [t for t in x_scale.ticks(5 if size.narrow else 8) if abs(t - round(t)) < 1e-9]
    left_axis(canvas, y_scale, ticks, labels, left, size.width)
    bottom_axis(canvas, x_scale, x_ticks, [numbers.fixed(t) for t in x_ticks], BOTTOM, left, size.width)
    bottom_title(canvas, "iteration", size.width, BOTTOM + 38, 120)
    left_title(canvas, f"{history.name} {history.beyond} of the fit", 16, size.width)
    n = len(objective)
    shown = evenly(n, MOST_DRAWN)

    def points(values: Array, kept: NDArray[np.bool_]) -> list[Point]:
        return [(x_scale(float(history.iterations[i])), y_scale(float(values[i]))) for i in shown if kept[i]]

    both = history.exploring & np.isfinite(objective) & np.isfinite(bound)
    if both.sum() >= 2:
        canvas.polygon([*points(bound, both), *reversed(points(objective, both))], "fill-mid band")
    lower, upper = points(objective, np.isfinite(objective)), points(bound, np.isfinite(bound) & history.has_bound)
    canvas.polyline(upper, "bound-line")
    canvas.polyline(lower, "objective-line")
    if n <= MOST_WITH_DOTS:
        canvas.dots(upper, "stroke-ink3")
        canvas.dots(upper, "stroke-paper hole")
        canvas.dots(lower, "stroke-ink")
    _label_lines(canvas, lower, upper, history.subject)
    return canvas


def _label_lines(canvas: Canvas, lower: list[Point], upper: list[Point], subject: str) -> None:
    """Label falling lines: the upper one at its upper right, the lower one at its lower left."""
    if upper:
        x, y = upper[min(len(upper) // 3, 4)]
        canvas.text(min(x + 10, canvas.width - text_width("bound")), max(y - 8, TOP + 8), "bound", "quiet halo")
    first, room = min(len(lower) // 3, 4), text_width(subject, bold=True)
    x, y = lower[first]
    if not upper:
        canvas.text(min(x + 10, canvas.width - room), max(y - 8, TOP + 8), subject, "strong halo")
        return
    x, y = next((point for point in lower[first:] if point[0] - 10 - room > 40), lower[-1])
    canvas.text(max(x - 10, 40 + room), min(y + 18, BOTTOM - 8), subject, "strong halo", anchor="end")


def headline(history: History, n_iter: int, converged: bool) -> str:
    """State how the fit converged, in one sentence."""
    iterations, n_rises = counted(n_iter, "iteration"), history.n_rises
    if not converged:
        return f"The fit was stopped after {iterations}, before it converged."
    if len(history.objective) < 2:
        return f"The fit converged after {iterations}."
    worsened, beside = ("rose", "above") if history.sense == "min" else ("fell", "below")
    if not n_rises:
        return f"The fit converged after {iterations}; the {history.subject} never {worsened}."
    rises = {1: "once", 2: "twice"}.get(n_rises, f"{in_prose(n_rises)} times")
    is_bounded = history.exploring.any() and history.has_bound and history.bound_never_rose
    rises += f", the bound {beside} it never" if is_bounded else " on the way"
    return f"The fit converged after {iterations}; the {history.subject} {worsened} {rises}."


def notes(history: History, converged: bool, *, drawn: bool, is_stopped: bool = False) -> list[str]:
    """Explain the figure, and what deserves attention."""
    texts = [f"The {history.subject} hardly changed: there is nothing to draw."]
    if drawn and history.has_bound:
        texts = [
            "Each iteration minimises a bound <b>(open, dashed)</b> that lies above the objective <b>(filled)</b>. "
            "Both are shown by how far they are above the lowest objective of the fit; "
            "what is at the lowest is off the scale."
        ]
    elif drawn:
        texts = [
            f"The distance of the {history.subject} from its {history.beyond.split()[-1]} after each iteration; "
            "where it is none, it is off the scale."
        ]
    elif len(history.objective) < 2 or np.isfinite(history.above_lowest[0]).any():
        texts = ["There are too few iterations to draw."]
    if history.exploring.any():
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
