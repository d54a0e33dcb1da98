"""Regressions: what each component predicts along every feature, and how well responsibilities separate components."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from majorant.report import numbers
from majorant.report.charts.axes import draw_grid
from majorant.report.charts.marks import N_COLOURS, component_class
from majorant.report.charts.scales import Linear, padded
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.measures.mixture import CLEAR
from majorant.report.measures.regression import Regression
from majorant.report.section import Section
from majorant.report.words.grammar import counted, in_prose, verb

Array = NDArray[np.float64]
MOST_FEATURES, MOST_COMPONENTS = 9, 6
N_STEPS = 25
"""Points of a curve; a line has two."""
N_BINS = 20
PRESENT = 0.05
"""Responsibility from which on a row is counted in a rootogram."""


def effects_of_features_section(regression: Regression) -> Section | None:
    """Build the section: a panel per feature with a line per component, the other features at their means.

    None with one feature, which the fit shows, and where features are made of one column, such as x and its square.
    """
    if regression.is_curved or (regression.has_lines and regression.n_features == 1):
        return None
    features = regression.ranked_features[:MOST_FEATURES]
    grids = [_along(regression, feature) for feature in features]
    values = np.concatenate([predicted.ravel() for _, predicted in grids])
    if not np.isfinite(values).all():
        return None
    names = [regression.run.feature_names[feature] for feature in features]
    label = f"Prediction of each component along {counted(len(features), 'feature')}, the others at their means"
    target = f"predicted {regression.run.target_name}"

    def lines(canvas: Canvas, i: int, x: Linear, y: Linear) -> None:
        at, predicted = grids[i]
        for j in range(min(regression.k, MOST_COMPONENTS) - 1, -1, -1):
            points = [(x(float(a)), y(float(b))) for a, b in zip(at, predicted[:, j], strict=True)]
            canvas.polyline(points, f"stroke-{component_class(j, regression.k, 0)} fitted-line")

    def draw(size: Size) -> Canvas:
        ranges = [padded(float(at.min()), float(at.max())) for at, _ in grids]
        y_range = padded(float(values.min()), float(values.max()))
        return draw_grid(size, names, ranges, y_range, lines, x_title="", y_title=target)

    return Section(
        "effects", "Effects", effects_headline(regression), _notes(regression), figure("effects", label, draw)
    )


def _along(regression: Regression, feature: int) -> tuple[Array, Array]:
    """Return places along a feature in the table's own units, and every component's prediction there."""
    seen = regression.run.X[:, feature]
    data = seen if regression.run.raw is None else regression.run.raw[:, feature]
    n_steps = N_STEPS if regression.response.predicts else 2
    steps = np.linspace(float(seen.min()), float(seen.max()), n_steps)
    at = np.linspace(float(data.min()), float(data.max()), n_steps)
    predictors = regression.lines.along(feature, steps, regression.means)
    return at, np.asarray(regression.response.mean(predictors, np.ones((n_steps, 1))))


def effects_headline(regression: Regression) -> str:
    """Name the feature along which predictions move most."""
    name = regression.feature(regression.main_feature)
    if regression.n_features == 1:
        return f"What each component predicts along {name}."
    return f"Of {in_prose(regression.n_features)} features, predictions move most along {name}."


def _notes(regression: Regression) -> list[str]:
    texts = [
        "<b>A panel is a feature</b>, the largest effect first, with a line for each component while the other "
        "features are at their means."
    ]
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
    titles = [f"Component {j + 1}" for j in shown]
    colours = [component_class(j, regression.k) for j in shown]
    css = ["strong" if colour == "mid" else f"text-{colour} strong-weight" for colour in colours]

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
            y_labels=_squared,
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


def _squared(ticks: list[float]) -> list[str]:
    return [numbers.integer(round(tick**2)) for tick in ticks]


def separation_headline(regression: Regression) -> str:
    """State which component is separated least: the share of its rows that are clearly its own."""
    q = regression.responsibilities
    present = (q >= PRESENT).sum(axis=0)
    clear = np.divide((q > CLEAR).sum(axis=0), present, out=np.ones(regression.k), where=present > 0)
    least = int(clear.argmin())
    if clear[least] >= CLEAR:
        return "Every component is well separated from the others."
    rows = f"{numbers.percent(float(clear[least]), 0)} of the rows that may be its own"
    return f"Component {least + 1} overlaps most with others: {rows} have a responsibility above {CLEAR}."
