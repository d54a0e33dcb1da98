"""Normal distributions in the units of the rows: densities of a fitted Gaussian mixture."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.densities.far import told_apart
from majorant.densities.gaussian import Gaussian, Normals
from majorant.densities.gaussian_gaps import GaussianGaps
from majorant.engine.mixture import Array, Limits, Table
from majorant.solvers.covariance_types import TIED, Covariance


class FittedGaussian(GaussianGaps):
    """Normal distributions of the observed entries of rows, in units of the rows.

    Parameters
    ----------
    kind : Covariance
    centre, unit : ndarray of shape (d,)
        Location and scale of the columns, by which unconstrained parameters are of order one.
    """

    has_edges = False
    """Variances have no edges in this sense: no maximum is at one, however small the unit."""

    def __init__(self, kind: Covariance, centre: Array, unit: Array) -> None:
        super().__init__(Gaussian(kind, len(centre)))
        self.centre = centre
        self.unit = unit if kind.most_axes else np.full(len(unit), np.sqrt(np.mean(unit**2)))

    @property
    def limits(self) -> Mapping[str, Limits]:
        """Variances are positive; covariances may be any numbers."""
        low = np.where(np.eye(self.d, dtype=bool), 0.0, -np.inf) if self.kind.has_matrices else 0.0
        return {"covariances": (low, np.inf)}

    def log_density(self, theta: Normals, rows: Block) -> Table:
        """Return the log density of the observed entries, zero for a row without any."""
        log_density = super().log_density

        def near(z: Array) -> Table:
            return log_density(theta, Block(0, (self.centre + self.unit * z,)))

        means = (theta.means - self.centre) / self.unit
        at, is_shared = (rows.columns[0], self.centre, self.unit, means, near), self.kind is TIED
        return told_apart(log_density(theta, rows), *at, is_shared=is_shared)

    def fused_pass(
        self, theta: Normals, log_weights: Array, rows: Block, beta: float
    ) -> tuple[Array, Array, Array, Array] | None:
        """Leave rows so far out that a square is no number to tables."""
        found = super().fused_pass(theta, log_weights, rows, beta)
        return found if found is not None and np.isfinite(found[0]).all() else None

    def recalled(self, estimates: Mapping[str, Array]) -> Normals:
        """Return the components of one mixture, by the factors of their precisions where these are known."""
        means, covariances = (np.asarray(estimates[name], dtype=np.float64)[None] for name in ("means", "covariances"))
        factors = estimates.get("precisions_cholesky")
        own = None if factors is None else np.asarray(factors, dtype=np.float64)[None]
        return Normals(means, covariances, np.zeros(means.shape[:2], dtype=bool), means, own)

    def vector(self, theta: Normals) -> Array:
        """Return the means, and unconstrained numbers of the covariances, both in units of the columns."""
        return self.model.vector(self._in_units(theta, -self.centre, 1 / self.unit))

    def theta_of(self, vector: Array, like: Normals) -> Normals:
        """Rebuild parameters from `vector`."""
        return self._in_units(self.model.theta_of(vector, like), self.centre / self.unit, self.unit)

    def _in_units(self, theta: Normals, shift: Array, factor: Array) -> Normals:
        scale = factor if self.kind.most_axes else factor[0]
        covariances = np.stack([self.kind.scaled(own, scale) for own in theta.covariances])
        means = (theta.means + shift) * factor
        return Normals(means, covariances, theta.floored, means)

    def drawn(self, theta: Normals, components: NDArray[np.intp], random: np.random.Generator) -> Array:
        """Draw a row of each of these components."""
        mixture = self.model.mixture(theta, 0)
        factors = np.broadcast_to(
            mixture.precision_factors()[0], (mixture.n_components, *self.kind.identity(self.d).shape)
        )
        out = random.standard_normal((len(components), self.d))
        for k in np.unique(components):
            own = components == k
            # x - mean is z times the inverse of the precision's factor.
            z, factor = out[own], factors[k]
            out[own] = mixture.means[k] + (np.linalg.solve(factor.T, z.T).T if self.kind.has_matrices else z / factor)
        return out
