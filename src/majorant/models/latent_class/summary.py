"""What a fit of latent classes says on one page."""

from __future__ import annotations

from typing import Any

import numpy as np

from majorant.summary import Block, Column, Fact, Facts, Summary, Table, counted, evidence_block

MOST_CLASSES = 20
MOST_FEATURES = 3
MOST_LABELS = 6


def latent_class_summary(model: Any) -> Summary:
    """Evidence, fit, and each latent class: how many rows it holds, what defines it, what it predicts."""
    facts = Facts(
        "fit",
        [
            Fact("cost", model.objective_, 5),
            Fact("alpha", model.alpha_, 4),
            Fact("as logistic C", model.logistic_c_, 4),
        ],
        [Fact("rows", model.n_samples_), Fact("active classes", model.n_active_classes_)],
    )
    blocks = [
        evidence_block(model.evidence_),
        Block("FIT", f"{'EM and L-BFGS' if model.beta == 1 else 'EM'}, {counted(model.n_iter_, 'iteration')}", [facts]),
        Block("LATENT CLASSES", "", _classes(model)),
    ]
    title = f"latent classes, {counted(model.n_classes, 'class', 'classes')}, {counted(len(model.classes_), 'label')}"
    shape = f"{counted(model.n_samples_, 'row')}, {counted(model.n_features_in_, 'feature')}"
    return Summary(title, shape, blocks)


def _classes(model: Any) -> list[Table | str]:
    labels = [str(label) for label in model.classes_]
    shown = min(model.n_classes, MOST_CLASSES)
    columns = [Column("latent class"), Column("share", 3)]
    columns += [Column(f"p({label})", 3) for label in labels[:MOST_LABELS]]
    columns += [Column("more of"), Column("less of")]
    rows: list[tuple[str | float, ...]] = []
    for k in range(shown):
        more, less = defining_features(model, k)
        alpha = model.class_label_distribution_[k, :MOST_LABELS]
        rows.append((str(k + 1), float(model.class_weights_[k]), *map(float, alpha), more, less))
    content: list[Table | str] = [Table("latent classes", columns, rows)]
    if model.n_classes > shown:
        content.append(f"{model.n_classes - shown} more latent classes.")
    if len(labels) > MOST_LABELS:
        content.append(f"The first {MOST_LABELS} of {len(labels)} labels.")
    return content


def defining_features(model: Any, k: int) -> tuple[str, str]:
    """The features that speak most for a class and most against it, against the mean of the classes."""
    if model.kernel is not None:
        return "", ""
    names = model._feature_names()
    contrast = model.class_coef_[k] - model.class_weights_ @ model.class_coef_
    order = np.argsort(-np.abs(contrast), kind="stable")
    size = np.abs(contrast).max(initial=0.0)
    strong = [j for j in order[: 4 * MOST_FEATURES] if np.abs(contrast[j]) > 0.1 * size > 0]
    more = [names[j] for j in strong if contrast[j] > 0][:MOST_FEATURES]
    less = [names[j] for j in strong if contrast[j] < 0][:MOST_FEATURES]
    return ", ".join(more), ", ".join(less)
