"""Parts of a summary that latent SVMs share."""

from __future__ import annotations

from typing import Any

import numpy as np

from majorant.summary import Block, Column, Fact, Facts, Table, counted

MOST_CLASSES = 30
MOST_IN_CONFUSION = 12


def fit_block(model: Any, noun: str) -> Block:
    """Summarise objective, gap and iterations of a fit; `noun` is the word for a sample."""
    right = float(np.trace(model.confusion_)) / float(model.confusion_.sum())
    facts = Facts(
        "fit",
        [Fact("objective", model.objective_, 4), Fact("duality gap", model.gap_, 5), Fact("alpha", model.alpha, 4)],
        [
            Fact(f"{noun}s", len(model.latent_)),
            Fact("right on the fit", right, 3),
            Fact("regions changed", model.changed_, 3),
        ],
    )
    passes = counted(model.n_passes_, "pass", "passes")
    return Block("FIT", f"{counted(model.n_iter_, 'bound')}, {passes} over the {noun}s", [facts])


def class_blocks(model: Any) -> list[Block]:
    """Tabulate the classes and the confusions between them."""
    labels = [str(label) for label in model.classes_]
    weights = model.confusion_.sum(axis=1)
    rights = np.diag(model.confusion_) / weights
    shown = slice(MOST_CLASSES)
    columns = [Column("class", labels[shown]), Column("weight", weights[shown], 0), Column("right", rights[shown], 3)]
    content: list[Table | str] = [Table("classes", columns)]
    if len(labels) > MOST_CLASSES:
        content.append(f"{len(labels) - MOST_CLASSES} more classes.")
    return [Block("CLASSES", "", content), *confusion_blocks(model, labels)]


def confusion_blocks(model: Any, labels: list[str]) -> list[Block]:
    """Tabulate the confusions between classes, if there are not too many."""
    if len(labels) > MOST_IN_CONFUSION:
        return []
    counts = [Column(label, own, 0) for label, own in zip(labels, model.confusion_.T, strict=True)]
    table = Table("confusion", [Column("class", labels), *counts])
    return [Block("CONFUSION", "weight of each class by what it is predicted as", [table])]
