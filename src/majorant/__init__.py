"""Latent-variable models whose answer does not depend on a lucky start."""

from majorant.engine import (
    Balance,
    Biased,
    BoundError,
    Chunks,
    GibbsLimit,
    GrowingSubset,
    PairConstraints,
    RandomWalk,
    Solution,
    Tempered,
    Tightest,
    Trace,
    minimize,
)
from majorant.engine.storage import open_rows
from majorant.evidence import Evidence, Stability, stability
from majorant.models import KMeans

__version__ = "0.1.0"

__all__ = [
    "Balance",
    "Biased",
    "BoundError",
    "Chunks",
    "Evidence",
    "GibbsLimit",
    "GrowingSubset",
    "KMeans",
    "PairConstraints",
    "RandomWalk",
    "Solution",
    "Stability",
    "Tempered",
    "Tightest",
    "Trace",
    "minimize",
    "open_rows",
    "stability",
]
