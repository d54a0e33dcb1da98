"""The numbers of a representation's report: of any model whose views have weights in components."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor

from majorant.metrics import class_profiles, mean_pairwise_kl
from majorant.models.harmonium.inference import top_features, view_weights
from majorant.registry import ModelCard
from majorant.report.fit import Fit
from majorant.report.run import Run
from majorant.summary.neighbourhoods import Neighbourhoods, neighbourhoods_of

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Representation(Fit):
    """Rows in a few components that several views share."""

    @property
    def model(self) -> Any:
        return self.run.estimator

    @property
    def rank(self) -> int:
        """Components that are used."""
        return int(self.model.rank_)

    @property
    def views(self) -> list[str]:
        return [view.name for view in self.model.views_]

    @cached_property
    def weights(self) -> Array:
        """What each view says of each component that is used, (n_views, rank)."""
        return view_weights(self.model)[:, : self.rank]

    @cached_property
    def sizes(self) -> Array:
        """The weight of each component, as a share of all."""
        total = self.weights.sum(axis=0)
        return np.asarray(total / total.sum())

    @cached_property
    def shares(self) -> Array:
        """The share of each view in each component."""
        return np.asarray(self.weights / self.weights.sum(axis=0))

    def features(self, most: int) -> list[list[tuple[str, list[str]]]]:
        """List, for each component and view, the features of largest weight, with their signs."""
        tops = [top_features(self.model, name, most) for name in self.views]
        return [list(zip(self.views, of_one, strict=True)) for of_one in zip(*tops, strict=True)]

    @cached_property
    def latents(self) -> Array:
        """The expected latents of the rows."""
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
        """What rows are coloured by: their classes, or thirds of a target of numbers; None without a target."""
        if self.classes is not None or self.run.y is None or not is_regressor(self.model):
            return self.classes
        y = np.asarray(self.run.y, dtype=np.float64)
        thirds = np.searchsorted(np.quantile(y, [1 / 3, 2 / 3]), y)
        return ["low", "middle", "high"], np.asarray(thirds, dtype=np.int64)

    @cached_property
    def neighbourhoods(self) -> Neighbourhoods | None:
        """A map of the rows by all components; None for two components, or few rows."""
        return neighbourhoods_of(self.latents[:, : self.rank])

    @cached_property
    def r2(self) -> float | None:
        """How much of the variance of a target of numbers the model explains, on the rows of the fit."""
        if self.run.y is None or not is_regressor(self.model):
            return None
        return float(self.model.score(self.as_fitted, self.run.y, sample_weight=self.run.weights))

    @cached_property
    def profiles(self) -> Array:
        """The mean representation of each class, (n_classes, rank)."""
        return class_profiles(self.latents[:, : self.rank], self.run.y)[1]

    @cached_property
    def divergence(self) -> float:
        """How far apart the classes lie, in nats."""
        return mean_pairwise_kl(self.latents[:, : self.rank], self.run.y)


def representation_of(fit: Fit) -> Representation | None:
    """Return the same run as a representation; None where the model is none."""
    if isinstance(fit, Representation):
        return fit
    return Representation(fit.run, fit.card) if hasattr(fit.run.estimator, "loadings") else None


def measure_representation(run: Run, card: ModelCard) -> Representation:
    """Return the numbers of a representation; most are computed when first asked for."""
    return Representation(run, card)
