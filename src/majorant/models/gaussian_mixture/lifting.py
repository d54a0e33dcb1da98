"""The map of a mixture from its coordinates to the units of X and scikit-learn's parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.densities.coordinates import Coordinates, upper_factor
from majorant.solvers.covariance_types import Covariance, times
from majorant.solvers.gaussian import Array, Mixture


@dataclass(frozen=True)
class Lifted:
    """Parameters in the units of X, in scikit-learn's shapes."""

    weights: Array
    means: Array
    covariances: Array
    precisions_cholesky: Array
    precisions: Array
    kind: Covariance

    def fits(self, dtype: Any) -> bool:
        """Return whether variances and precisions are ordinary numbers of a type."""
        limits = np.finfo(dtype)
        variances = self.kind.variances(self.covariances, *self.means.shape)
        # Not numpy's comparison of numbers of two types, which would bring the limits of one into the other.
        most = max(float(np.abs(self.covariances).max()), float(np.abs(self.precisions).max()))
        return float(variances.min()) > float(limits.tiny) and most < float(limits.max)

    def refuse_overflow(self) -> None:
        """Raise a ValueError if variances or precisions are no ordinary numbers in double precision."""
        if not self.fits(np.float64):
            size = "small" if float(np.abs(self.covariances).max()) <= 1 else "large"  # products of infinity are NaN
            raise ValueError(f"the variances of X are too {size} for a float64: rescale X")


def lifted(mixture: Mixture, coordinates: Coordinates, order: NDArray[np.intp]) -> Lifted:
    """Return the parameters in the units of the rows.

    Precisions are not found by inverting covariances, which may be near to singular there.
    """
    means = coordinates.centre + times(mixture.means, coordinates.back)
    kind = mixture.covariance
    whole = kind.mapped(mixture.covariances, coordinates.back) + kind.beside(coordinates.still)
    if kind.has_matrices:
        factors = mixture.precision_factors()[0] if coordinates.rank else mixture.covariances
        rotated = coordinates.forward @ factors
        cholesky = np.array([_with_still(f, coordinates) for f in (rotated if rotated.ndim == 3 else rotated[None])])
        precisions = np.array([factor @ factor.T for factor in cholesky])
        if rotated.ndim == 2:
            return Lifted(mixture.weights[order], means[order], whole, cholesky[0], precisions[0], kind)
    else:
        precisions = 1.0 / whole
        cholesky = np.sqrt(precisions)
    return Lifted(mixture.weights[order], means[order], whole[order], cholesky[order], precisions[order], kind)


def _with_still(factor: Array, coordinates: Coordinates) -> Array:
    return upper_factor(np.hstack([factor, coordinates.still_forward]))


def steadied(mixture: Mixture, rounding: float) -> Mixture:
    """Return the mixture with covariances lifted until any block of them can be factored despite rounding.

    Parameters
    ----------
    mixture : Mixture
    rounding : float
        Smallest eigenvalue of a component's correlations that is above rounding.
    """
    if not mixture.covariance.has_matrices:
        return mixture
    sd = np.sqrt(np.diagonal(mixture.covariances, axis1=-2, axis2=-1))
    scale = sd[..., :, None] * sd[..., None, :]
    values, vectors = np.linalg.eigh(mixture.covariances / scale)
    if values.min() >= rounding:
        return mixture
    clipped = np.maximum(values, rounding)
    correlations = np.einsum("...al,...l,...bl->...ab", vectors, clipped, vectors)
    return replace(mixture, covariances=correlations * scale)
