"""The summary of a fit of latent classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.models.base import ACTIVE_SHARE
from majorant.summary import Block, Column, Fact, Facts, Summary, Table, counted, search_block

Array = NDArray[np.float64]

MOST_CLASSES = 20
MOST_FEATURES = 3
MOST_LABELS = 10
TELLING = 0.1
"""Smallest weight of a feature that is named, as a share of the largest."""
NO_FEATURES = "With a kernel no feature speaks for or against a class by itself."


def latent_class_summary(model: Any) -> Summary:
    """Search report, fit, and each latent class: how many rows it holds, what defines it, what it predicts."""
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
        search_block(model.search_),
        Block("FIT", f"{'EM and L-BFGS' if model.beta == 1 else 'EM'}, {counted(model.n_iter_, 'iteration')}", [facts]),
        Block("LATENT CLASSES", "", _classes(model)),
    ]
    title = f"latent classes, {counted(model.n_classes, 'class', 'classes')}, {counted(len(model.classes_), 'label')}"
    shape = f"{counted(model.n_samples_, 'row')}, {counted(model.n_features_in_, 'feature')}"
    return Summary(title, shape, blocks)


def n_described(model: Any) -> int:
    """Return the number of latent classes to show, heaviest first: the active ones or, if none is, all."""
    return int(model.n_active_classes_ or model.n_classes)


def telling_features(contrasts: Array, sign: int = 0) -> list[int]:
    """Return the features with the largest weights for a class (`sign` 1), against it (-1) or either (0).

    Parameters
    ----------
    contrasts : ndarray of shape (n_features,)
        A row of `class_contrasts_`.
    sign : {-1, 0, 1}, default=0
    """
    size = np.abs(contrasts)
    most = size.max(initial=0.0)
    ranked = [int(j) for j in np.argsort(-size, kind="stable") if size[j] > TELLING * most > 0]
    return ranked if sign == 0 else [j for j in ranked if contrasts[j] * sign > 0]


def _classes(model: Any) -> list[Table | str]:
    labels = [str(label) for label in model.classes_]
    described = n_described(model)
    shown = _told_labels(model.class_label_distribution_[: min(described, MOST_CLASSES)])
    n = min(described, MOST_CLASSES)
    columns = [Column("latent class", [str(k + 1) for k in range(n)]), Column("share", model.class_weights_[:n], 3)]
    columns += [Column(f"p({labels[j]})", model.class_label_distribution_[:n, j], 3) for j in shown]
    if model.class_contrasts_ is not None:
        more, less = zip(*(_telling(model, k) for k in range(n)), strict=True)
        columns += [Column("more of", more), Column("less of", less)]
    content: list[Table | str] = [Table("latent classes", columns)]
    if described > MOST_CLASSES:
        content.append(f"{described - MOST_CLASSES} more latent classes.")
    if described < model.n_classes:
        unused = model.n_classes - described
        content.append(
            f"{counted(unused, 'more class', 'more classes')} {'holds' if unused == 1 else 'hold'} "
            f"{100 * ACTIVE_SHARE:g} % of the rows or less."
        )
    if len(shown) < len(labels):
        content.append(f"{len(shown)} of {len(labels)} labels, with the most likely one of each class among them.")
    if model.class_contrasts_ is None:
        content.append(NO_FEATURES)
    return content


def _told_labels(distribution: Array) -> list[int]:
    """Return the labels that get a column: the most likely of each class, then the most likely of the rest."""
    likeliest = set(distribution.argmax(axis=1).tolist())
    ranked = np.argsort(-distribution.max(axis=0), kind="stable").tolist()
    others = [j for j in ranked if j not in likeliest][: max(MOST_LABELS - len(likeliest), 0)]
    return sorted([*likeliest, *others])


def _telling(model: Any, k: int) -> list[str]:
    """Return the features with the largest positive and negative weights for a class."""
    names = model._feature_names()
    return [
        ", ".join(names[j] for j in telling_features(model.class_contrasts_[k], sign)[:MOST_FEATURES])
        for sign in (1, -1)
    ]
