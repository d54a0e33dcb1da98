"""Lines of a mixture of regressions: predictions, and the rows assigned to each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from majorant.energy import posterior

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Lines:
    """K lines with noise.

    Attributes
    ----------
    coef : array of shape (k, d)
    level : array of shape (k,)
        Value of each line at `center`; for features far from zero an intercept would lose digits.
    scale : array of shape (k,)
        Standard deviations of the noise.
    weights : array of shape (k,)
    center : array of shape (d,)
    """

    coef: Array
    level: Array
    scale: Array
    weights: Array
    center: Array

    @classmethod
    def of(cls, model: Any) -> Self:
        """Measure the lines of a fitted mixture of regressions."""
        return cls(model.coef_, model.center_fits_, model.scale_, model.weights_, model.center_)

    @classmethod
    def of_optimum(cls, optimum: Mapping[str, Any], center: Array) -> Self:
        """Measure the lines of one of the fit's ``optima_``."""
        return cls(optimum["coef"], optimum["level"], optimum["scale"], optimum["weights"], center)

    @property
    def k(self) -> int:
        return len(self.weights)

    def taken(self, order: NDArray[np.int64]) -> Self:
        """Return the lines in another order."""
        return replace(
            self, coef=self.coef[order], level=self.level[order], scale=self.scale[order], weights=self.weights[order]
        )

    def fits(self, X: Array) -> Array:
        """Return the predictions of every line for some rows, (n, k)."""
        return np.asarray(np.einsum("ij,kj->ik", X - self.center, self.coef) + self.level)

    def responsibilities(self, X: Array, y: Array) -> Array:
        """Return the probability of each line for each row, (n, k)."""
        with np.errstate(divide="ignore"):
            constant = np.log(self.scale) - np.log(self.weights)
        return np.asarray(posterior(constant + 0.5 * ((y[:, None] - self.fits(X)) / self.scale) ** 2, axis=1))

    def along(self, feature: int, values: Array, others: Array) -> Array:
        """Return the predictions (n, k) of every line at some values of one feature, the others held at `others`."""
        X = np.tile(others, (len(values), 1))
        X[:, feature] = values
        return self.fits(X)


def matching_order(labels: NDArray[np.int64], others: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Match components of two labelings: the pairs that share most rows."""
    shared = np.bincount(labels * k + others, minlength=k * k).reshape(k, k)
    return np.asarray(linear_sum_assignment(-shared)[1], dtype=np.int64)
