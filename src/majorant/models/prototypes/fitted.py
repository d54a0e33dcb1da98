"""Fitted prototypes for prediction, in units in which squares do not overflow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from majorant.data.measure import safe_scale
from majorant.models.prototypes.conditional import with_prior
from majorant.solvers.nearest import squared_distances

FAR = 100.0
"""Distance, in multiples of the prototypes' extent, beyond which the energies' common part is left out."""

FARTHEST = 1e100
"""Rows farther out than this, in safe units, are scaled down to it: only their direction matters."""

LARGEST = 1e150
"""Largest value that can be squared."""


@dataclass(frozen=True)
class FittedPrototypes:
    """Prototypes minus their centre, in safe units."""

    points: NDArray[np.float64]  # (n_classes * most, n_features)
    centre: NDArray[np.float64]  # (n_features,)
    scale: float  # power of two that converts units of X to safe units
    beta: float  # inverse temperature in safe units
    n_poses: NDArray[np.intp]  # (n_classes,)
    most: int  # prototypes of each class, including repeated ones

    @classmethod
    def of(cls, prototypes: NDArray[np.float64], n_poses: NDArray[np.intp], temperature: float) -> Self:
        """Build from fitted attributes, in the units of X."""
        reach = max(float(np.abs(prototypes).max(initial=0.0)), float(np.sqrt(temperature)))
        scale = safe_scale(reach, prototypes.dtype)
        points = prototypes.reshape(-1, prototypes.shape[2]) * scale
        centre = points.mean(axis=0)
        heat = temperature * scale * scale
        beta = 1 / heat if heat > 0 else np.inf
        return cls(points - centre, centre, scale, beta, n_poses, prototypes.shape[1])

    def squared(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the squared distances in the units of X, shape (rows, n_classes * most)."""
        farthest = max(float(x.max(initial=0.0)), -float(x.min(initial=0.0)))
        if farthest > LARGEST / max(self.scale, 1.0):
            raise ValueError(f"X holds {farthest:.0e}, too far from the prototypes to be squared: rescale X")
        found: NDArray[np.float64] = squared_distances(x * self.scale - self.centre, self.points)
        return found / self.scale**2

    def relative(self, x: NDArray[np.float64]) -> NDArray[Any]:
        """Return energies in safe units, up to a constant of each row that changes no prediction.

        Shape (rows, n_classes, most); see `with_prior`. For rows far out the constant is ``|x|^2``, beside which the
        differences between prototypes would be lost by rounding.
        """
        size = np.abs(x).max(axis=1, keepdims=True)
        with np.errstate(divide="ignore", over="ignore"):
            x = x * np.minimum(self.scale, FARTHEST / size) - self.centre
        table = squared_distances(x, self.points)
        far = np.abs(x).max(axis=1) > FAR * np.abs(self.points).max()
        if far.any():  # not a matrix product: the answer for a row must not depend on the other rows
            table[far] = np.einsum("kj,kj->k", self.points, self.points) - 2 * np.einsum(
                "ij,kj->ik", x[far], self.points
            )
        return with_prior(table, self.n_poses, self.most, self.beta)
