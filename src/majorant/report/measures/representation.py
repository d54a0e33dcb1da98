"""The numbers of a representation's report: of any model whose views have weights in components."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor

from majorant.metrics import class_profiles, mean_pairwise_kl
from majorant.models.harmonium.summary import has_grown, top_features, view_weights
from majorant.models.unlinked import groups_in_words
from majorant.report import numbers
from majorant.report.fit import Fit
from majorant.report.html import escaped
from majorant.summary.neighbourhoods import Neighbourhoods, neighbourhoods_of

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Representation(Fit):
    """A representation of rows by a few components that several views share."""

    @property
    def model(self) -> Any:
        return self.run.estimator

    @property
    def rank(self) -> int:
        """Number of components that are used."""
        return int(self.model.rank_)

    @property
    def views(self) -> list[str]:
        return [view.name for view in self.model.views_]

    @property
    def of_how_many(self) -> str:
        """The addition to the number of components."""
        if has_grown(self.model):
            return f"grown from {numbers.integer(self.model.n_components)}"
        return f"of {numbers.integer(self.model.n_allowed_)} at most"

    @property
    def not_linked(self) -> str:
        """A sentence, after a space, on views of which rows do not say what they have in common; "" without any."""
        unlinked = self.model.certificate_.unlinked
        return f" No row has views of two of these groups: {escaped(groups_in_words(unlinked))}." if unlinked else ""

    @cached_property
    def weights(self) -> Array:
        """Weight of each view in each used component, (n_views, rank)."""
        return view_weights(self.model)[:, : self.rank]

    @cached_property
    def sizes(self) -> Array:
        """Weight of each component, as a share of the total."""
        total = self.weights.sum(axis=0)
        return np.asarray(total / total.sum())

    @cached_property
    def shares(self) -> Array:
        """Share of each view in each component."""
        return np.asarray(self.weights / self.weights.sum(axis=0))

    def features(self, most: int) -> list[list[tuple[str, list[str]]]]:
        """List, for each component and view, the features of largest weight, with their signs."""
        tops = [top_features(self.model, name, most) for name in self.views]
        return [list(zip(self.views, of_one, strict=True)) for of_one in zip(*tops, strict=True)]

    @cached_property
    def latents(self) -> Array:
        """The expected latents of the rows; of those that cannot be compared the page tells in words."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(self.model.transform(self.as_fitted))

    @cached_property
    def classes(self) -> tuple[list[str], NDArray[np.int64]] | None:
        """Names of the classes, and the class of each row; None without classes."""
        if not hasattr(self.model, "classes_") or self.run.y is None:
            return None
        names, codes = np.unique(self.run.y, return_inverse=True)
        return [str(name) for name in names], np.asarray(codes, dtype=np.int64)

    @cached_property
    def groups(self) -> tuple[list[str], NDArray[np.int64]] | None:
        """Groups by which rows are coloured: classes, or terciles of a numeric target; None without a target."""
        if self.classes is not None or self.run.y is None or not is_regressor(self.model):
            return self.classes
        y = np.asarray(self.run.y, dtype=np.float64)
        thirds = np.searchsorted(np.quantile(y, [1 / 3, 2 / 3]), y)
        return ["low", "middle", "high"], np.asarray(thirds, dtype=np.int64)

    @cached_property
    def neighbourhoods(self) -> Neighbourhoods | None:
        """Map of the rows by all components; None for two components, or few rows."""
        return neighbourhoods_of(self.latents[:, : self.rank])

    @cached_property
    def r2(self) -> float | None:
        """Share of a numeric target's variance that the model explains, on the rows of the fit."""
        if self.run.y is None or not is_regressor(self.model):
            return None
        return float(self.model.score(self.as_fitted, self.run.y, sample_weight=self.run.weights))

    @cached_property
    def profiles(self) -> Array:
        """Mean representation of each class, (n_classes, rank)."""
        return class_profiles(self.latents[:, : self.rank], self.run.y)[1]

    @cached_property
    def divergence(self) -> float:
        """Divergence of the classes' mean representations (natural logarithm)."""
        return mean_pairwise_kl(self.latents[:, : self.rank], self.run.y)


def representation_of(fit: Fit, least_rank: int = 0) -> Representation | None:
    """Return the run as a representation; None if the model is not one, or has fewer components."""
    if not hasattr(fit.run.estimator, "loadings"):
        return None
    found = fit if isinstance(fit, Representation) else Representation(fit.run, fit.card)
    return found if found.rank >= least_rank else None
