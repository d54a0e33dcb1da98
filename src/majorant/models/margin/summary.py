"""Parts of a summary that latent SVMs share."""

from __future__ import annotations

from collections.abc import Sequence
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
    return [Block("CLASSES", "", class_table(model, "classes")), *confusion_blocks(model)]


def class_table(model: Any, name: str, more: Sequence[Column] = ()) -> list[Table | str]:
    """Tabulate each class: its weight, the share that is predicted correctly, and more columns of as many rows."""
    left_out = len(model.classes_) - MOST_CLASSES
    counts = model.confusion_[:MOST_CLASSES]
    weights = counts.sum(axis=1)
    columns = [
        Column("class", list(map(str, model.classes_[:MOST_CLASSES]))),
        Column("weight", weights, 0),
        Column("right", np.diag(counts) / weights, 3),
        *more,
    ]
    return [Table(name, columns), *([f"{left_out} more classes."] if left_out > 0 else [])]


def confusion_blocks(model: Any) -> list[Block]:
    """Tabulate the confusions between classes, if there are not too many."""
    labels = list(map(str, model.classes_))
    if len(labels) > MOST_IN_CONFUSION:
        return []
    counts = [Column(label, own, 0) for label, own in zip(labels, model.confusion_.T, strict=True)]
    table = Table("confusion", [Column("class", labels), *counts])
    return [Block("CONFUSION", "weight of each class by what it is predicted as", [table])]
