"""Prototypes: each class in its poses, on the features that separate them best."""

from __future__ import annotations

import numpy as np

from majorant.report.charts.svg import figure
from majorant.report.measures.classification import Classification
from majorant.report.section import Section
from majorant.report.sections.panels import draw_panels
from majorant.report.words import classification as words

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
        words.prototypes_headline(classification, features),
        figure("prototypes", label, lambda size: draw_panels(size, names, panels, every)),
        words.prototypes_notes(classification, len(features), len(shown)),
    )
