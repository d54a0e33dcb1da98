"""Summary of a reconfigurable bag of words."""

from __future__ import annotations

from typing import Any

import numpy as np

from majorant.models.margin.summary import class_blocks, fit_block
from majorant.summary import Block, Column, Summary, Table, counted, search_block

MOST_PARTS = 30


def bag_of_words_summary(model: Any) -> Summary:
    """Summarise a fit: search report, fit, parts, classes and confusions."""
    n, shape = len(model.latent_), model.latent_.shape[1:]
    n_regions = int(np.prod(shape, dtype=int))
    parts = model.latent_[model.latent_ >= 0]
    regions = np.bincount(parts, minlength=len(model.part_filters_))
    used = np.flatnonzero(regions)
    shown = used[:MOST_PARTS]
    columns = [
        Column("part", shown),
        Column("regions", regions[shown], 0),
        Column("share", regions[shown] / len(parts), 3),
        Column("length of filter", np.sqrt((model.part_filters_[shown] ** 2).sum(axis=1)), 3),
    ]
    content: list[Table | str] = [Table("parts", columns)]
    if len(used) > MOST_PARTS:
        content.append(f"{len(used) - MOST_PARTS} more parts.")
    blocks = [
        search_block(model.search_),
        fit_block(model, "image"),
        Block("PARTS", f"{len(used)} of {len(model.part_filters_)} are some region's", content),
        *class_blocks(model),
    ]
    grid = " x ".join(map(str, shape)) if len(shape) == 2 else str(n_regions)
    size = f"{counted(n, 'image')} of {grid} regions, {counted(model.n_features_in_, 'feature')}"
    k = len(model.classes_)
    return Summary(f"reconfigurable bag of words, {counted(k, 'class', 'classes')}", size, blocks)
