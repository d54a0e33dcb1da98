"""Summary of a latent structural SVM."""

from __future__ import annotations

from typing import Any

import numpy as np

from majorant.summary import Block, Fact, Facts, Summary, counted, search_block


def structural_summary(model: Any) -> Summary:
    """Summarise a fit: search report and fit."""
    weights = model.coef_
    facts = Facts(
        "fit",
        [Fact("objective", model.objective_, 4), Fact("gap of the last bound", model.gap_, 6)],
        [
            Fact("norm of the weights", float(np.sqrt(np.sum(weights * weights))), 3),
            Fact("alpha", float(model.alpha), 6),
        ],
    )
    blocks = [
        search_block(model.search_),
        Block("FIT", f"{model.solver}, {counted(model.n_iter_, 'bound')}", [facts]),
    ]
    data = f"{counted(len(model.latent_), 'sample')}, {counted(len(weights), 'feature')}"
    return Summary(f"latent structural SVM, {type(model.model).__name__}", data, blocks)
