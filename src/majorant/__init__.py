"""Latent-variable models whose answer does not depend on a lucky start."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from majorant import energy, metrics, plot
    from majorant.data import Chunks
    from majorant.data.storage import open_rows
    from majorant.engine import (
        Balance,
        Biased,
        BoundError,
        Coherence,
        GibbsLimit,
        GrowingSubset,
        MultiFold,
        PairConstraints,
        RandomWalk,
        Solution,
        Tempered,
        Tightest,
        Trace,
        minimize,
    )
    from majorant.engine.checkpoint import CheckpointError
    from majorant.models import (
        Bernoulli,
        Categorical,
        Chain,
        DiscriminativeClustering,
        DiscriminativeLatentClasses,
        Gaussian,
        GaussianMixture,
        Harmonium,
        HarmoniumClassifier,
        HarmoniumRegressor,
        KMeans,
        LatentPrototypeClassifier,
        LatentStructuralSVM,
        LatentSVC,
        ReconfigurableBagOfWords,
        RegressionMixture,
    )
    from majorant.persistence import load
    from majorant.persistence.checkpoint import checkpoint
    from majorant.results.likelihood_ratio import LikelihoodRatioTest, likelihood_ratio_test
    from majorant.results.selection import Selection, select
    from majorant.results.stability import Stability, stability
    from majorant.search import SearchReport

__version__ = "0.1.0"

# Names are imported when they are first used, so that `majorant --help` need not wait for scipy.
_HOMES = {
    "Balance": "engine",
    "Bernoulli": "models",
    "Biased": "engine",
    "BoundError": "engine",
    "Categorical": "models",
    "Chain": "models",
    "CheckpointError": "engine.checkpoint",
    "Chunks": "data",
    "Coherence": "engine",
    "DiscriminativeClustering": "models",
    "DiscriminativeLatentClasses": "models",
    "Gaussian": "models",
    "GaussianMixture": "models",
    "GibbsLimit": "engine",
    "GrowingSubset": "engine",
    "Harmonium": "models",
    "HarmoniumClassifier": "models",
    "HarmoniumRegressor": "models",
    "KMeans": "models",
    "LatentPrototypeClassifier": "models",
    "LatentSVC": "models",
    "LatentStructuralSVM": "models",
    "LikelihoodRatioTest": "results.likelihood_ratio",
    "MultiFold": "engine",
    "PairConstraints": "engine",
    "RandomWalk": "engine",
    "ReconfigurableBagOfWords": "models",
    "RegressionMixture": "models",
    "SearchReport": "search",
    "Selection": "results.selection",
    "Solution": "engine",
    "Stability": "results.stability",
    "Tempered": "engine",
    "Tightest": "engine",
    "Trace": "engine",
    "checkpoint": "persistence.checkpoint",
    "likelihood_ratio_test": "results.likelihood_ratio",
    "load": "persistence",
    "minimize": "engine",
    "open_rows": "data.storage",
    "select": "results.selection",
    "stability": "results.stability",
}
_ROOMS = ("energy", "metrics", "plot")
"""Modules that are used as such: ``majorant.plot.classification``."""

__all__ = [
    "Balance",
    "Bernoulli",
    "Biased",
    "BoundError",
    "Categorical",
    "Chain",
    "CheckpointError",
    "Chunks",
    "Coherence",
    "DiscriminativeClustering",
    "DiscriminativeLatentClasses",
    "Gaussian",
    "GaussianMixture",
    "GibbsLimit",
    "GrowingSubset",
    "Harmonium",
    "HarmoniumClassifier",
    "HarmoniumRegressor",
    "KMeans",
    "LatentPrototypeClassifier",
    "LatentSVC",
    "LatentStructuralSVM",
    "LikelihoodRatioTest",
    "MultiFold",
    "PairConstraints",
    "RandomWalk",
    "ReconfigurableBagOfWords",
    "RegressionMixture",
    "SearchReport",
    "Selection",
    "Solution",
    "Stability",
    "Tempered",
    "Tightest",
    "Trace",
    "checkpoint",
    "energy",
    "likelihood_ratio_test",
    "load",
    "metrics",
    "minimize",
    "open_rows",
    "plot",
    "select",
    "stability",
]


if not TYPE_CHECKING:  # which knows the names from above, and so sees a wrong one

    def __getattr__(name: str) -> Any:
        if name in _ROOMS:
            return import_module(f"majorant.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'majorant' has no attribute {name!r}")
        value = getattr(import_module(f"majorant.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
