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
    columns = [Column("class"), Column("weight", 0), Column("right", 3)]
    rows = [(label, float(weights[c]), float(rights[c])) for c, label in enumerate(labels[:MOST_CLASSES])]
    content: list[Table | str] = [Table("classes", columns, rows)]
    if len(labels) > MOST_CLASSES:
        content.append(f"{len(labels) - MOST_CLASSES} more classes.")
    blocks = [Block("CLASSES", "", content)]
    if len(labels) <= MOST_IN_CONFUSION:
        table = Table(
            "confusion",
            [Column("class"), *(Column(label, 0) for label in labels)],
            [(a, *map(float, row)) for a, row in zip(labels, model.confusion_, strict=True)],
        )
        blocks.append(Block("CONFUSION", "weight of each class by what it is predicted as", [table]))
    return blocks
