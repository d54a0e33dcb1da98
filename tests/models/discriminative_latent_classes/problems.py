"""Small tables with latent classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.models.discriminative_latent_classes.design import Design, make_design
from majorant.models.discriminative_latent_classes.family import LatentClassFamily
from majorant.models.discriminative_latent_classes.targets import read_targets

Array = NDArray[Any]


def xor(n: int = 200, noise: int = 0, seed: int = 0) -> tuple[Array, Array]:
    """Two labels, each in two opposite quadrants: four latent classes."""
    g = np.random.default_rng(seed)
    corner = g.integers(0, 2, size=(n, 2))
    X = np.column_stack([(2 * corner - 1) + 0.35 * g.normal(size=(n, 2)), 0.35 * g.normal(size=(n, noise))])
    return X, corner.sum(axis=1) % 2


def design(X: Any, y: Array, weights: Array | None = None, *, indicators: bool = False) -> Design:
    """Of labels by number, as one label a row or as indicators."""
    m = int(y.max()) + 1
    targets = read_targets(np.eye(m, dtype=int)[y] if indicators else y, len(y), weights)
    return make_design(X, targets, weights, None)


def family(rows: Design, k: int, alpha: float = 0.01, **others: Any) -> LatentClassFamily:
    return LatentClassFamily(k, rows.n_features, rows.labels, alpha * rows.total_weight / k, **others)
