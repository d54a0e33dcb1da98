"""Regularity: whether the data or the floor under the covariances sets a likelihood.

The likelihood of a Gaussian mixture has no maximum: a component that collapses on a few rows, or on rows that lie in a
plane, makes it as large as one likes. What a fit looks for is the highest *regular* maximum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from majorant.solvers.gaussian import Array, Mixture

LEAST_RATIO = 5e-4
"""Smallest variance of a component along any direction, as a share of the pooled within-component variance there."""


class Fault(IntEnum):
    """Faults of a solution, the least serious first."""

    NONE = 0
    TWINS = 1
    """Two components are the same."""
    SMALL = 2
    """A component has too few rows to determine its covariance."""
    FLOORED = 3
    """A covariance is, or would be without the floor, nearly singular."""

    @property
    def word(self) -> str:
        """The fault in a word; empty if there is none."""
        return ("", "twins", "too few rows", "on the floor")[self]


@dataclass(frozen=True)
class Regularity:
    """How near to collapse the components of a mixture are."""

    fault: Fault
    # (n_components,): smallest variance of each component, as a share of the pooled within-component one along the same
    # direction
    ratios: Array
    sizes: Array  # (n_components,): rows of each component
    least_size: float  # how many there should be

    def ordered(self, order: NDArray[np.intp]) -> Regularity:
        """Return the regularity for reordered components."""
        return replace(self, ratios=self.ratios[order], sizes=self.sizes[order])

    @property
    def suspects(self) -> NDArray[np.intp]:
        """The components at fault."""
        if self.fault is Fault.FLOORED:
            low = self.ratios < LEAST_RATIO
            return np.flatnonzero(low) if low.any() else np.array([int(np.argmin(self.ratios))])
        return np.flatnonzero(are_small(self.sizes, self.least_size)) if self.fault is Fault.SMALL else np.arange(0)


def are_small(sizes: Array, least: float) -> NDArray[np.bool_]:
    """Return which components have too few rows; a little is left to rounding."""
    return np.asarray(sizes < least - 1e-6)


def judge(mixture: Mixture, floored: NDArray[np.bool_], n_rows: float) -> Regularity:
    """Return the regularity of a mixture.

    Parameters
    ----------
    mixture : Mixture
    floored : ndarray of shape (n_components,)
        Whether the last M-step had to lift an eigenvalue to the floor.
    n_rows : float
        Rows of the fit.
    """
    sizes = mixture.weights * n_rows
    least = mixture.covariance.least_size(mixture.n_components, mixture.n_features, n_rows)
    ratios = mixture.covariance.ratios(mixture.covariances, mixture.weights)
    if floored.any() or (ratios < LEAST_RATIO).any():
        fault = Fault.FLOORED
        ratios = np.where(floored, np.minimum(ratios, 0.0), ratios)
    else:
        fault = Fault.SMALL if are_small(sizes, least).any() else Fault.NONE
    return Regularity(fault, ratios, sizes, least)
