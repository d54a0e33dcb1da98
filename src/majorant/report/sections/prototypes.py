"""Prototypes: each class in its poses, on the features that separate them best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from majorant.report import numbers
from majorant.report.charts.labels import shorten
from majorant.report.charts.marks import mark
from majorant.report.charts.svg import Canvas, Size, dots_path, figure
from majorant.report.measures.classification import Classification
from majorant.report.section import Section
from majorant.report.sections.profiles import AXIS_TITLE, scale_of, vertical_grid
from majorant.report.words.grammar import counted, in_prose, opening, verb

ROOM_FOR_A_HEAD = 4.0


def draw_panels(
    size: Size, features: Sequence[str], panels: Sequence[tuple[str, NDArray[np.float64]]], every: NDArray[np.float64]
) -> Canvas:
    """Draw one panel per group, with its own points in colour; panels share both axes.

    Parameters
    ----------
    size : Size
    features : sequence of str
        Names of the features, from top to bottom.
    panels : sequence of (str, array of shape (n_own, n_features))
        Name and points of each panel, in standard deviations from the mean.
    every : array of shape (n_points, n_features)
        The points of all groups, including those without a panel.
    """
    canvas, narrow = Canvas(size), size.narrow
    n_across, room, gap = (2, 112.0, 12.0) if narrow else (4, 150.0, 16.0)
    step, head, foot = 17.0, 26.0, 34.0
    panel_width = (size.width - room - gap * (n_across - 1)) / n_across
    height = step * len(features) + 6
    rows = [3 + step * (r + 0.5) for r in range(len(features))]
    backdrop = _all_points(canvas, every, rows, panel_width)
    for i, (title, points) in enumerate(panels):
        row, column = divmod(i, n_across)
        x1, y1 = room + column * (panel_width + gap), row * (height + head + foot) + head
        scale = scale_of(every, x1 + 8, x1 + panel_width - 8)
        canvas.text(x1, y1 - 8, shorten(title, panel_width - ROOM_FOR_A_HEAD, bold=True), "strong", full=title)
        vertical_grid(canvas, scale, y1, y1 + height, 3)
        canvas.rect(x1, y1, panel_width, height, "frame")
        if column == 0:
            for y, name in zip(rows, features, strict=True):
                canvas.text(0, y1 + y + 4, shorten(name, room - 12), "clear", full=name)
        canvas.add(f'<use href="#{backdrop}" x="{x1:.1f}" y="{y1:.1f}"/>')
        for point in points:
            for y, value in zip(rows, point.tolist(), strict=True):
                mark(canvas, 0, "1", scale(value), y1 + y, 4.2)
    n_down = -(-len(panels) // n_across)
    bottom = n_down * (height + head + foot)
    canvas.text(size.width, bottom + 10, AXIS_TITLE, anchor="end")
    canvas.height = bottom + 18
    return canvas


def _all_points(canvas: Canvas, every: NDArray[np.float64], rows: Sequence[float], panel_width: float) -> str:
    """Define all points in grey, used in every panel; return the definition's id."""
    scale = scale_of(every, 8, panel_width - 8)
    points = [(scale(value), y) for point in every.tolist() for value, y in zip(point, rows, strict=True)]
    return canvas.define("centres", f'<path id="{{id}}" class="dot stroke-hair small" d="{dots_path(points)}"/>')


MOST_FEATURES = 12
MOST_PANELS = 12


def prototypes_section(classification: Classification) -> Section | None:
    """Build the section, or return None for a model without prototypes, or without a feature that varies."""
    prototypes = classification.prototypes
    if prototypes is None or not classification.ranked_features:
        return None
    features = classification.ranked_features[:MOST_FEATURES]
    shown = sorted(np.argsort(-classification.sizes, kind="stable")[:MOST_PANELS].tolist())
    panels = [(classification.names[c], prototypes[c][:, features]) for c in shown]
    names = [classification.run.feature_names[feature] for feature in features]
    every = np.concatenate(prototypes)[:, features]
    label = f"Prototypes of {len(shown)} classes on {len(features)} features, in standard deviations from the mean"
    return Section(
        "prototypes",
        "Prototypes",
        _prototypes_headline(classification, features),
        _prototypes_notes(classification, len(features), len(shown)),
        figure("prototypes", label, lambda size: draw_panels(size, names, panels, every)),
    )


def _prototypes_headline(classification: Classification, features: list[int]) -> str:
    best = features[0]
    name = classification.feature(best)
    share = numbers.percent(float(classification.explained[best]), 0)
    n = sum(len(p) for p in classification.prototypes or [])
    return f"{opening(n)} {verb(n, 'prototype explains', 'prototypes explain')} {share} of the variance of {name}."


def _prototypes_notes(classification: Classification, n_features: int, n_panels: int) -> list[str]:
    texts = [
        "<b>One panel per class</b>: its prototypes, one for each pose, in colour; those of all classes in grey. "
        "Features run from the one of which the prototypes explain most."
    ]
    left_out = len(classification.ranked_features) - n_features
    if left_out:
        others = counted(left_out, "other")
        texts.append(
            f"The {n_features} best explained features are shown; {others} {verb(left_out, 'is', 'are')} left out."
        )
    if n_panels < classification.n_classes:
        texts.append(f"Of {in_prose(classification.n_classes)} classes the {in_prose(n_panels)} largest are shown.")
    counts = {len(p) for p in classification.prototypes or []}
    if len(counts) > 1:
        texts.append(f"Classes have {min(counts)} to {max(counts)} poses: no more than they have different rows.")
    return texts
