"""Summary of a latent support vector machine."""

from __future__ import annotations

from typing import Any

from majorant.models.margin.summary import class_blocks, fit_block
from majorant.summary import Summary, counted, search_block


def latent_svm_summary(model: Any) -> Summary:
    """Summarise a fit: search report, fit, classes and confusions."""
    n, d = len(model.latent_), model.n_features_in_
    blocks = [search_block(model.search_), fit_block(model, "sample"), *class_blocks(model)]
    size = f"{counted(n, 'sample')} of {counted(model.n_regions_, 'region')}, {counted(d, 'feature')}"
    return Summary(f"latent SVM, {counted(len(model.classes_), 'class', 'classes')}", size, blocks)
