"""The density of items of every kind, and the rows that starts of a search use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.densities import Categorical, Normal, Ordinal, Poisson, Product
from majorant.models.latent_class_analysis.items import Items
from majorant.models.mixture import standardised
from majorant.models.mixture_rows import Rows


def density_of(model: Any) -> Product:
    """Return the product of a block for each kind of items that there is."""
    items: Items = model.items_
    parts: list[tuple[str, Any]] = []
    if items.of_kind("categorical"):
        parts.append(("item", Categorical(items.sizes())))
    if items.of_kind("ordinal"):
        parts.append(("ordinal", Ordinal(items.sizes("ordinal"))))
    if items.of_kind("normal"):
        shared = model.variances == "shared"
        parts.append(("normal", Normal(model.normal_center_, model.normal_scale_, shared=shared)))
    if items.of_kind("count"):
        parts.append(("count", Poisson(len(items.of_kind("count")))))
    return Product(parts)


def points_of(items: Items, rows: Rows) -> NDArray[np.float64]:
    """Return levels one-hot, and numbers in standard deviations."""
    n_blocks = len(set(items.kinds))
    parts = [standardised(x, rows.weights) for x in rows.columns[:n_blocks]]
    if items.of_kind("categorical"):
        codes = rows.columns[0]
        hot = [codes[:, [j]] == np.arange(size) for j, size in enumerate(items.sizes())]
        parts[0] = np.concatenate(hot, axis=1).astype(np.float64)
    return np.concatenate(parts, axis=1)
