"""Regressions: predictions along every feature, residuals of each component, and how well components are separated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from majorant.report import numbers
from majorant.report.charts.axes import draw_grid, draw_quantile_panels
from majorant.report.charts.marks import N_COLOURS, component_class, mark, name_class, shaded_scatter
from majorant.report.charts.scales import Linear, evenly, padded, tick_labels
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.measures.mixture import CLEAR
from majorant.report.measures.regression import MOST_BINS, Regression
from majorant.report.section import Section
from majorant.report.words.grammar import counted, in_prose, verb

MOST_PANELS = 6
MOST_POINTS, MOST_QUANTILES = 600, 240
"""Largest number of rows, and of quantiles, in all panels."""
FEWEST_IN_QUANTILES = 8
FAR = 3.0
Y_TITLE = "residual, in \u03c3"
BEYOND = float(2 * ndtr(-2))
"""Share of normal noise beyond two standard deviations."""


def residuals_section(regression: Regression) -> Section | None:
    """Build the section; None where one line fits every row exactly, or components are not lines."""
    if regression.run.estimator.is_exact_ or not regression.has_lines:
        return None
    shown = _shown(regression)
    return Section(
        "residuals",
        "Residuals",
        headline(regression),
        notes(regression, shown, MOST_POINTS // len(shown)),
        figure("residuals", figure_label(regression), lambda size: draw_residuals(size, regression, shown)),
    )


def quantiles_section(regression: Regression) -> Section | None:
    """Build the section: quantiles of the residuals beside those of normal noise; None where there are no lines."""
    if regression.run.estimator.is_exact_ or not regression.has_lines:
        return None
    shown = [j for j in _shown(regression) if regression.sizes[j] >= FEWEST_IN_QUANTILES]
    if not shown:
        return None
    most = MOST_QUANTILES // len(shown)
    few = f" At most {most} of each component are drawn." if any(regression.sizes[j] > most for j in shown) else ""
    label = "Quantiles of the residuals of each component against those of a normal distribution"
    return Section(
        "quantiles",
        "Normal quantiles",
        quantiles_headline(regression, shown),
        [
            "<b>Each dot is a row</b>: its residual against the one that normal noise would have at its rank. Dots on "
            "the line are as normal noise; above it at the right, large residuals are larger." + few,
            "Errors, intervals and criteria take the noise as normal.",
        ],
        figure("quantiles", label, lambda size: draw_residual_quantiles(size, regression, shown)),
    )


def _shown(regression: Regression) -> list[int]:
    return [j for j in range(regression.k) if regression.sizes[j]][:MOST_PANELS]


def _titles(regression: Regression, shown: list[int]) -> tuple[list[str], list[str]]:
    """Return the names of components, and the classes of these names."""
    colours = [component_class(j, regression.k) for j in shown]
    css = [name_class(colour, "strong") for colour in colours]
    return [f"Component {j + 1}" for j in shown], css


def draw_residuals(size: Size, regression: Regression, shown: list[int]) -> Canvas:
    """Draw one panel per component: residuals as points, their running median as a line; panels share both axes."""
    parts = [regression.residuals(j) for j in shown]
    reach = 1.06 * max(2.5, *(float(np.abs(r.values).max()) for r in parts))
    x_range = padded(min(float(r.at.min()) for r in parts), max(float(r.at.max()) for r in parts))
    titles, css = _titles(regression, shown)

    def draw(canvas: Canvas, i: int, x: Linear, y: Linear) -> None:
        j, residuals = shown[i], parts[i]
        band = f"fill-{component_class(j, regression.k)} band"
        canvas.rect(x.start, y(2), x.end - x.start, y(-2) - y(2), band)
        canvas.line(x.start, y(0), x.end, y(0), "zero")
        rows = np.column_stack([residuals.at, residuals.values, regression.certainty[regression.labels == j]])
        kept = rows[evenly(len(rows), MOST_POINTS // len(shown))].tolist()
        shaded_scatter(canvas, ((x(a), y(b), p) for a, b, p in kept), j, regression.k, 2.5)
        medians = zip(residuals.median_at.tolist(), residuals.medians.tolist(), strict=True)
        canvas.polyline([(x(a), y(m)) for a, m in medians], "objective-line")

    return draw_grid(
        size,
        titles,
        [x_range],
        (-reach, reach),
        draw,
        x_title=x_title(regression),
        y_title=Y_TITLE,
        css=css,
        height=190.0,
        narrow_across=1,
    )


def draw_residual_quantiles(size: Size, regression: Regression, shown: list[int]) -> Canvas:
    """Draw one panel per component: sorted residuals against normal quantiles, and the line of equality."""
    values = [regression.residuals(j).values for j in shown]
    reach = 1.06 * max(2.5, *(float(np.abs(own).max()) for own in values))
    far = 1.06 * max(float(ndtri(1 - 0.5 / len(own))) for own in values)
    titles, css = _titles(regression, shown)
    colours, most = [component_class(j, regression.k) for j in shown], MOST_QUANTILES // len(shown)
    return draw_quantile_panels(size, titles, values, most, far, reach, colours, y_title=Y_TITLE, css=css)


def quantiles_headline(regression: Regression, shown: list[int]) -> str:
    """State whether extreme residuals are larger than normal noise has them, in one sentence."""
    found = []
    for j in shown:
        values = regression.residuals(j).values
        beyond, expected = int((np.abs(values) > FAR).sum()), len(values) * 2 * float(ndtr(-FAR))
        found.append((beyond - expected - 3 * np.sqrt(expected + 1), beyond, expected, j))
    excess, beyond, expected, j = max(found)
    if excess <= 0:
        return f"Few residuals lie beyond {FAR:.0f}{numbers.NARROW_SPACE}\u03c3, as normal noise has it."
    who = "" if regression.k == 1 else f" of component {j + 1}"
    return (
        f"{counted(beyond, 'residual').capitalize()}{who} {verb(beyond, 'lies', 'lie')} beyond {FAR:.0f}"
        f"{numbers.NARROW_SPACE}\u03c3, where normal noise has {numbers.fixed(expected, 1)}."
    )


def headline(regression: Regression) -> str:
    """State whether the residuals support straight lines."""
    drifts = [(j, drift) for j in range(regression.k) if (drift := regression.residuals(j).drift) is not None]
    if not drifts:
        bent = regression.bend
        if bent is None:
            whose = "The residuals show" if regression.k == 1 else "No component\u2019s residuals show"
            return f"{whose} {'no bend' if regression.k == 1 else 'a bend'}: nothing speaks against straight lines."
        part, feature = bent
        who = "The line" if regression.k == 1 else f"Component {part + 1}"
        name = regression.feature(feature)
        return f"{who} is not straight along {name}: its residuals bend with the square of it."
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
        return regression.feature_names[0]
    return f"predicted {regression.run.target_name}"


def figure_label(regression: Regression) -> str:
    """State what the figure shows, as plain text."""
    parts = counted(regression.k, "component")
    return f"Residuals of {parts} in standard deviations of the noise against {x_title(regression)}"


Array = NDArray[np.float64]
MOST_FEATURES, MOST_COMPONENTS = 9, 6
BESIDE = 9.0
"""Distance between the marks of components at one level."""
N_STEPS = 25
"""Points of a curve; a line has two."""
N_BINS = 20
PRESENT = 0.05
"""Responsibility from which on a row is counted in a rootogram."""


@dataclass(frozen=True)
class _Effect:
    """Predictions of the components along a feature, the others at their means."""

    name: str
    at: Array  # (n,): places in the table's own units
    predicted: Array  # (n, k)
    # (2, k): of a feature of two values, the 95 % interval of the second prediction if the first is right
    ends: Array
    levels: Sequence[tuple[float, str]] = ()  # of a feature of two values


def effects_of_features_section(regression: Regression) -> Section | None:
    """Build the section: a panel per feature with a line per component, the other features at their means.

    A feature of two values has two marks. None with one feature, which the fit shows, and where features are made of
    one column, such as x and its square.
    """
    if regression.is_curved or (regression.has_lines and regression.n_features == 1):
        return None
    effects = [_effect(regression, feature) for feature in regression.ranked_features[:MOST_FEATURES]]
    if not all(np.isfinite(effect.predicted).all() for effect in effects):
        return None
    k, n_shown = regression.k, min(regression.k, MOST_COMPONENTS)
    label = f"Prediction of each component along {counted(len(effects), 'feature')}, the others at their means"
    target = f"predicted {regression.run.target_name}"
    reached = np.concatenate([np.vstack([one.predicted, one.ends])[:, :n_shown].ravel() for one in effects])

    def inside(canvas: Canvas, i: int, x: Linear, y: Linear) -> None:
        effect = effects[i]
        for j in range(n_shown - 1, -1, -1):
            colour, heights = component_class(j, k, 0), [y(float(value)) for value in effect.predicted[:, j]]
            places = [x(float(at)) + bool(effect.levels) * BESIDE * (j - (n_shown - 1) / 2) for at in effect.at]
            if not effect.levels:
                canvas.polyline(list(zip(places, heights, strict=True)), f"stroke-{colour} fitted-line")
                continue
            if np.isfinite(effect.ends[:, j]).all():
                low, high = (y(float(end)) for end in effect.ends[:, j])
                canvas.line(places[1], low, places[1], high, f"stroke-{colour} interval")
            for place, height in zip(places, heights, strict=True):
                mark(canvas, j if k <= N_COLOURS else 0, colour, place, height, 4.0)

    def draw(size: Size) -> Canvas:
        ranges = [_range_of(effect) for effect in effects]
        y_range = padded(float(np.nanmin(reached)), float(np.nanmax(reached)))
        names, levels = [effect.name for effect in effects], [effect.levels for effect in effects]
        return draw_grid(size, names, ranges, y_range, inside, x_title="", y_title=target, places=levels)

    return Section(
        "effects",
        "Effects",
        effects_headline(regression),
        _effects_notes(regression, any(effect.levels for effect in effects)),
        figure("effects", label, draw),
    )


def _range_of(effect: _Effect) -> tuple[float, float]:
    low, high = float(effect.at.min()), float(effect.at.max())
    return (low - (high - low) / 2, high + (high - low) / 2) if effect.levels else padded(low, high)


def _effect(regression: Regression, feature: int) -> _Effect:
    """Return what the components predict along a feature, other levels of its factor at zero."""
    seen, contrast = regression.run.X[:, feature], regression.contrasts[feature]
    data = seen if regression.run.raw is None else regression.run.raw[:, feature]
    two = np.unique(data)[:3]
    is_curve = len(two) > 2
    n_steps = N_STEPS if is_curve and regression.response.predicts else 2
    steps, at = (np.linspace(float(of.min()), float(of.max()), n_steps) for of in (seen, data))
    others = regression.means.copy()
    if contrast is not None:
        others[[one is not None and one[0] == contrast[0] for one in regression.contrasts]] = 0.0
    predictors = regression.lines.along(feature, steps, others)
    ends = np.full((2, regression.k), np.nan)
    if not is_curve and regression.intervals is not None:
        slopes = np.stack(regression.intervals["coef"])[:, :, feature]
        ends = predictors[0] + (steps[1] - steps[0]) * slopes
    predicted, ends = (np.asarray(regression.response.mean(of, np.ones((len(of), 1)))) for of in (predictors, ends))
    levels = [] if is_curve else list(zip(at.tolist(), tick_labels(at.tolist()), strict=True))
    if contrast is not None:
        levels = [(0.0, contrast[2] or "others"), (1.0, contrast[1])]
    name = regression.feature_names[feature] if contrast is None or not contrast[2] else contrast[0]
    return _Effect(name, at, predicted, ends, levels)


def effects_headline(regression: Regression) -> str:
    """Name the feature along which predictions move most."""
    along = regression.along(regression.main_feature)
    if regression.n_features == 1:
        return f"What each component predicts {along}."
    return f"Of {in_prose(regression.n_features)} features, predictions move most {along}."


def _effects_notes(regression: Regression, has_levels: bool) -> list[str]:
    texts = [
        "<b>A panel is a feature</b>, the largest effect first, with a line for each component while the other "
        "features are at their means."
    ]
    if has_levels:
        interval = f"the 95{numbers.NARROW_SPACE}% interval of their difference"
        texts.append(f"<b>Two marks</b> stand for a feature of two values, with {interval}.")
    if regression.k > N_COLOURS:
        texts.append("The heaviest component is in colour.")
    if regression.k > MOST_COMPONENTS:
        texts.append(f"The {in_prose(MOST_COMPONENTS)} heaviest components are drawn.")
    if regression.n_features > MOST_FEATURES:
        n = regression.n_features - MOST_FEATURES
        texts.append(f"{counted(n, 'feature').capitalize()} of smaller effect {verb(n, 'is', 'are')} left out.")
    return texts


def separation_section(regression: Regression) -> Section | None:
    """Build the section: a rootogram of the responsibilities of each component; None for one component."""
    if regression.k < 2:
        return None
    shown = list(range(min(regression.k, MOST_COMPONENTS)))
    edges = np.linspace(0, 1, N_BINS + 1)
    counts = []
    for j in shown:
        q = regression.responsibilities[:, j]
        counts.append(np.sqrt(np.histogram(q[q >= PRESENT], edges)[0]))
    top = max(1.0, *(float(c.max()) for c in counts))
    titles, css = _titles(regression, shown)
    colours = [component_class(j, regression.k) for j in shown]

    def bars(canvas: Canvas, i: int, x: Linear, y: Linear) -> None:
        outline = [(x(0), y(0))]
        for low, high, count in zip(edges[:-1].tolist(), edges[1:].tolist(), counts[i].tolist(), strict=True):
            outline += [(x(low), y(count)), (x(high), y(count))]
        canvas.polygon([*outline, (x(1), y(0))], f"fill-{colours[i]} bars")

    def draw(size: Size) -> Canvas:
        return draw_grid(
            size,
            titles,
            [(0.0, 1.0)],
            (0.0, top * 1.04),
            bars,
            x_title="responsibility",
            y_title="rows",
            css=css,
            height=110.0,
            y_labels=lambda ticks: [numbers.integer(round(tick**2)) for tick in ticks],
        )

    label = "Rootogram of the responsibilities of each component"
    return Section(
        "separation",
        "Separation",
        separation_headline(regression),
        [
            f"<b>Bars count rows</b> by their responsibility in a component, from {PRESENT} on; heights are square "
            "roots, so that few rows can be seen beside many. Bars at 1 alone: the component is well separated. Bars "
            "in the middle: its rows could be of another.",
        ],
        figure("separation", label, draw),
    )


def separation_headline(regression: Regression) -> str:
    """State which component is separated least: the share of its rows that are clearly its own."""
    q = regression.responsibilities
    present = (q >= PRESENT).sum(axis=0)
    clear = np.divide((q > CLEAR).sum(axis=0), present, out=np.ones(regression.k), where=present > 0)
    least = int(clear.argmin())
    if clear[least] >= CLEAR:
        return "Every component is well separated from the others."
    rows = f"{numbers.percent(float(clear[least]), 0)} of the rows that may be its own"
    overlaps = "overlaps with the other" if regression.k == 2 else "overlaps most with others"
    return f"Component {least + 1} {overlaps}: {rows} have a responsibility above {CLEAR}."
