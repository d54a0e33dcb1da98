"""Prototypes: each class in its poses, on the features that separate them best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from majorant.report import numbers
from majorant.report.charts.axes import backdrop
from majorant.report.charts.marks import mark
from majorant.report.charts.scales import Linear
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.fit import largest
from majorant.report.measures.classification import Classification
from majorant.report.section import Section
from majorant.report.sections.profiles import AXIS_TITLE, around, draw_rows, vertical_grid
from majorant.report.words.grammar import counted, in_prose, opening, verb

Array = NDArray[np.float64]
MOST_FEATURES = 12
MOST_PANELS = 12


def prototypes_section(classification: Classification) -> Section | None:
    """Build the section, or return None for a model without prototypes, or without a feature that varies."""
    prototypes = classification.prototypes
    if prototypes is None or not classification.ranked_features:
        return None
    features = classification.ranked_features[:MOST_FEATURES]
    shown = largest(classification.sizes, MOST_PANELS)
    panels = [(classification.names[c], prototypes[c][:, features]) for c in shown]
    names = [classification.feature_names[feature] for feature in features]
    every = np.concatenate(prototypes)[:, features]
    label = f"Prototypes of {len(shown)} classes on {len(features)} features, in standard deviations from the mean"
    return Section(
        "prototypes",
        "Prototypes",
        _prototypes_headline(classification, features),
        _prototypes_notes(classification, len(features), len(shown)),
        figure("prototypes", label, lambda size: draw_prototypes(size, names, panels, every)),
    )


def draw_prototypes(size: Size, features: list[str], panels: list[tuple[str, Array]], every: Array) -> Canvas:
    """Draw one panel per class, its prototypes in colour and those of all classes in grey; panels share both axes."""
    canvas, n = Canvas(size), len(features)
    points = [(value, row + 0.5) for prototype in every.tolist() for row, value in enumerate(prototype)]

    def grid(scale: Linear, y1: float, y2: float) -> None:
        vertical_grid(canvas, scale, y1, y2, 3)
        backdrop(canvas, points, scale, Linear(n, 0, y2 - 2, y1 + 2))

    def inside(i: int, row: int, y: float, scale: Linear) -> None:
        for value in panels[i][1][:, row].tolist():
            mark(canvas, 0, "1", scale(value), y, 4.2)

    bottom = draw_rows(
        canvas,
        features,
        [title for title, _ in panels],
        around(every),
        inside,
        grid,
        room=112.0 if size.narrow else 150.0,
        step=17.0,
        across=min(2 if size.narrow else 4, len(panels)),
    )
    canvas.text(size.width, bottom + 10, AXIS_TITLE, anchor="end")
    canvas.height = bottom + 18
    return canvas


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
