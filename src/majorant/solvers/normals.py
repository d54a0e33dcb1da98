"""Normal components on some of the features, for any model with scikit-learn's attributes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.solvers.covariance_types import COVARIANCES

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Ellipse:
    """The ellipse that holds a share of a component's probability, on two features."""

    centre: tuple[float, float]
    half_axes: tuple[float, float]
    """Half the length of the long and of the short axis."""
    angle: float
    """Angle of the long axis, in radians from the first feature's axis."""

    def points(self, n_points: int = 72) -> Array:
        """Return points on the ellipse, (n_points, 2)."""
        turn = np.linspace(0.0, 2 * np.pi, n_points, endpoint=False)
        a, b = self.half_axes[0] * np.cos(turn), self.half_axes[1] * np.sin(turn)
        c, s = math.cos(self.angle), math.sin(self.angle)
        return np.column_stack([self.centre[0] + c * a - s * b, self.centre[1] + s * a + c * b])


@dataclass(frozen=True)
class Normals:
    """A mixture of normal densities, on all features or the marginal one on some."""

    weights: Array  # (K,)
    means: Array  # (K, m)
    covariances: Array  # (K, m, m)

    def ellipse(self, component: int, share: float = 0.9) -> Ellipse:
        r"""Return the ellipse around the mean that holds a share of a component's probability on two features.

        Its half axes are the square roots of the covariance's eigenvalues times the quantile
        :math:`\sqrt{-2 \log(1 - \text{share})}` of the distance of a standard normal point of the plane.
        """
        values, vectors = np.linalg.eigh(self.covariances[component])
        reach = math.sqrt(-2.0 * math.log1p(-share))
        short, long = (float(v) for v in np.sqrt(np.maximum(values, 0.0)) * reach)
        x, y = (float(v) for v in self.means[component])
        return Ellipse((x, y), (long, short), math.atan2(vectors[1, 1], vectors[0, 1]))


def normals_of(model: Any, features: Sequence[int]) -> Normals:
    """Return the marginal densities of the fitted components on some features, which are normal too."""
    at = np.asarray(features, dtype=np.intp)
    means = np.asarray(model.means_, dtype=np.float64)[:, at]
    kind, fitted = COVARIANCES[model.covariance_type], np.asarray(model.covariances_, dtype=np.float64)
    covariances = kind.matrices(kind.of_columns(fitted, at), *means.shape)
    return Normals(np.asarray(model.weights_, dtype=np.float64), means, covariances)


def deviations_of(model: Any) -> Array:
    """Return the standard deviation of each fitted component on each feature, (K, d)."""
    fitted = np.asarray(model.covariances_, dtype=np.float64)
    return np.asarray(np.sqrt(COVARIANCES[model.covariance_type].variances(fitted, *model.means_.shape)))
