"""Prototypes: each class in its poses, on the features that separate them best."""

from __future__ import annotations

import numpy as np

from majorant.report import numbers
from majorant.report.charts.svg import figure
from majorant.report.html import column_name
from majorant.report.measures.classification import Classification
from majorant.report.section import Section
from majorant.report.sections.panels import draw_panels
from majorant.report.words.grammar import counted, in_prose, opening, verb

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
    name = column_name(classification.run.feature_names[best])
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
