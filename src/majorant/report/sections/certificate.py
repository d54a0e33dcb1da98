"""Certificate: a proved bound on how far the fit is from the best possible."""

from __future__ import annotations

from majorant._numbers import plural_of
from majorant.report import numbers
from majorant.report.charts.axes import bottom_title
from majorant.report.charts.labels import Shelf, spread, text_width
from majorant.report.charts.scales import Linear, round_numbers, tick_labels
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.fit import Fit
from majorant.report.section import Section
from majorant.report.words import search as words
from majorant.report.words.grammar import counted

TOP, BASE = 57.0, 91.0
HATCH = (
    '<pattern id="{id}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern>'
)


def certificate_section(fit: Fit) -> Section | None:
    """Build the section: a number line with the excluded range hatched.

    None without a proved bound, and where another section shows a certificate of a global optimum.
    """
    search, proof = fit.search, fit.proof
    if proof is None or getattr(getattr(fit.run.estimator, "certificate_", None), "is_global", False):
        return None
    size = fit.card.size_parameter
    part = fit.card.part
    parts = f"these {plural_of(part)}" if size is None else counted(int(fit.params.get(size, 1)), part)
    name = search.objective_name
    label = (
        f"Number line: proved bound {numbers.bound(proof.bound, name, fit.objective, search.sense, proof.difference)}, "
        f"this fit {numbers.objective(fit.objective, name, apart=proof.difference)}"
        f"{', other optima beyond it' if search.n_distinct > 1 else ''}"
    )
    return Section(
        "certificate",
        "Certificate",
        words.certificate_headline(search, fit.gap_to_bound, fit.gap_text),
        words.certificate_notes(search, proof, parts),
        figure("certificate", label, lambda size: draw_bound(size, fit, proof.bound)),
    )


def draw_bound(size: Size, fit: Fit, bound: float) -> Canvas:
    """Draw the number line: excluded range, gap, fit and other optima."""
    canvas, search, width = Canvas(size, 138), fit.search, size.width
    away = 1.0 if search.sense == "min" else -1.0
    fit_at = fit.objective
    gap = max(abs(fit_at - bound), 1e-9 * max(abs(fit_at), 1e-300))
    others = [o.objective for o in search.optima[1:]]
    inside = [v for v in others if abs(v - fit_at) <= 0.7 * gap]
    scale = Linear(bound - 0.7 * gap * away, fit_at + 0.8 * gap * away, 0, width)
    at_bound, at_fit = scale(bound), scale(fit_at)
    hatch = canvas.define("ruled-out", HATCH)
    canvas.rect(0, TOP, at_bound, BASE - TOP, "", fill=f"url(#{hatch})")
    canvas.rect(at_bound, TOP, at_fit - at_bound, BASE - TOP, "band-grid")
    canvas.line(0, BASE, width, BASE, "axis")
    _ticks(canvas, scale, min(bound, fit_at) - gap, max(bound, fit_at) + gap)
    _top_labels(canvas, fit, bound, at_bound, at_fit, n_beyond=len(others) - len(inside), any_inside=bool(inside))
    _inner_labels(canvas, fit, at_bound, at_fit)
    canvas.dots([(scale(v), BASE - 17) for v in inside], "stroke-mid large")
    canvas.dots([(at_fit, BASE - 17)], "stroke-ink larger")
    better = "\u2190 better"
    canvas.text(0, 130, better, "quiet")
    room = width - text_width(better) - 16
    name = search.objective_name
    title = fit.card.objective_title if name == fit.card.objective_name else name
    bottom_title(canvas, _title(title, name, room), width, 130, room)
    return canvas


def _title(title: str, name: str, room: float) -> str:
    """Return the objective's title and name if there is room for both, otherwise its name."""
    both = title if title == name else f"{title} ({name})"
    return next((text for text in (both, title) if text_width(text) <= room), name)


def _ticks(canvas: Canvas, scale: Linear, low: float, high: float) -> None:
    ticks = list(round_numbers(low, high, 4 if canvas.size.narrow else 6))
    shelf = Shelf(8)
    for tick, label in zip(ticks, tick_labels(ticks, group_from=1000), strict=True):
        x, half = scale(tick), text_width(label) / 2
        if half <= x <= canvas.width - half and shelf.take(x - half, x + half):
            canvas.line(x, BASE, x, BASE + 4, "axis")
            canvas.text(x, BASE + 19, label, "quiet", anchor="middle")


def _top_labels(
    canvas: Canvas, fit: Fit, bound: float, at_bound: float, at_fit: float, *, n_beyond: int, any_inside: bool
) -> None:
    name, gap = fit.search.objective_name, abs(fit.objective - bound)
    labels = (
        (at_bound, numbers.bound(bound, name, fit.objective, fit.search.sense, gap), "proved bound"),
        (at_fit, numbers.objective(fit.objective, name, apart=gap), "this fit"),
    )
    widths = [max(text_width(value, bold=True), text_width(what)) + 12 for _, value, what in labels]
    centres = spread([at_bound, at_fit], widths, 0, canvas.width)
    for (x, value, what), centre in zip(labels, centres.tolist(), strict=True):
        canvas.polyline([(centre, 46), (x, 54), (x, BASE)], "marker outline")
        canvas.text(centre, 24, value, "strong", anchor="middle")
        canvas.text(centre, 40, what, "quiet", anchor="middle")
    if canvas.size.narrow:
        return
    if any_inside:
        canvas.text(canvas.width, 24, "other optima", "quiet", anchor="end")
    if n_beyond:
        canvas.text(
            canvas.width, 40, f"{n_beyond} {'more ' if any_inside else ''}farther off \u2192", "quiet", anchor="end"
        )


def _inner_labels(canvas: Canvas, fit: Fit, at_bound: float, at_fit: float) -> None:
    text = "ruled out" if canvas.size.narrow else "no solution can lie here"
    if text_width(text) + 20 < at_bound:
        canvas.text(at_bound - 10, BASE - 12, text, "clear halo", anchor="end")
    gap = fit.gap_to_bound
    if gap is not None and gap > 0:
        text = f"at most {fit.gap_text}"
        if text_width(text) + 24 < at_fit - at_bound:
            canvas.text((at_bound + at_fit) / 2, BASE - 12, text, "clear", anchor="middle")
