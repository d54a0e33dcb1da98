"""Summary of a fit of prototypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from majorant.models.margin.summary import MOST_CLASSES, class_table, confusion_blocks
from majorant.summary import Block, Column, Fact, Facts, Summary, Table, counted, search_block

MOST_POSES = 10


def prototypes_summary(model: Any) -> Summary:
    """Summarise a fit: search report, fit, classes and their poses, and confusions."""
    n, d, n_classes = len(model.poses_), model.n_features_in_, len(model.classes_)
    total = float(model.confusion_.sum())
    right = float(np.trace(model.confusion_)) / total
    how = "EM" if model.method == "em" else "gradient, from EM"
    facts = Facts(
        "fit",
        [Fact(model.search_.objective_name, model.objective_, 2), Fact("temperature", model.temperature_, 4)],
        [Fact("rows", n), Fact("right on the fit", right, 3)],
    )
    blocks = [
        search_block(model.search_),
        Block("FIT", f"{how}, {counted(model.n_iter_, 'iteration')}", [facts]),
        Block("POSES", "", _poses(model, min(n_classes, MOST_CLASSES))),
    ]
    if n_classes > 1:
        blocks += confusion_blocks(model)
    title = f"latent prototypes, {counted(n_classes, 'class')}, {counted(model.n_poses, 'pose')}"
    return Summary(title, f"{counted(n, 'row')}, {counted(d, 'feature')}", blocks)


def _poses(model: Any, n_classes: int) -> list[Table | str]:
    """Tabulate each class: its weight, the share that is predicted correctly, and the shares of its poses."""
    n_shown = min(model.prototypes_.shape[1], MOST_POSES)
    poses = [Column(f"pose {z + 1}", [_share(model, c, z) for c in range(n_classes)], 3) for z in range(n_shown)]
    content = class_table(model, "poses", poses)
    if model.prototypes_.shape[1] > n_shown:
        content.append(f"The heaviest {n_shown} poses of each class.")
    return content


def _share(model: Any, c: int, z: int) -> float | None:
    return float(model.pose_shares_[c, z]) if z < model.n_poses_[c] else None
