"""Normal distributions with covariances of any type, for rows and estimates in the units of the user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.densities.far import told_apart
from majorant.densities.gaussian import Gaussian, Normals
from majorant.densities.gaussian_gaps import GaussianGaps
from majorant.engine.mixture import Array, Limits, Mixture, Table
from majorant.models.gaussian_mixture.regularity import judge
from majorant.models.gaussian_mixture.words import degeneracy
from majorant.solvers.covariance_types import TIED, Covariance
from majorant.solvers.gaussian import Mixture as Components

FLOOR = 1e-7
"""Smallest variance of a component along any direction, as a share of that of all rows."""
RANGE = (-16.0, 7.0)
"""Range of log variances, or of the entries of the factors of covariances, in standard units."""
SMALLEST = 1e-153
"""Smallest standard deviation whose square is a number."""


def units_of(x: Array, weights: Array, *, common: bool = False) -> tuple[Array, Array]:
    """Return the mean and standard deviation of each column, over the cells that are there; 1 where none varies.

    Where `common`, all have the root mean square of the standard deviations.
    """
    there = ~np.isnan(x)
    mass = np.maximum(np.einsum("i,ij->j", weights, there), 1e-300)
    size = np.maximum(np.abs(np.where(there, x, 0.0)).max(axis=0), np.finfo(np.float64).tiny)
    inside = np.where(there, x / size, 0.0)  # squares of what is not scaled could leave the range of a double
    centre = np.einsum("i,ij->j", weights, inside) / mass
    away = np.where(there, inside - centre, 0.0)
    scale = size * np.sqrt(np.einsum("i,ij,ij->j", weights, away, away) / mass)
    if common:
        scale = np.full_like(scale, scale.max() * np.sqrt(np.mean((scale / max(scale.max(), 1e-300)) ** 2)))
    scale = np.where(scale > 0, scale, 1.0)
    if scale.min() < SMALLEST or scale.max() > 1 / SMALLEST:
        how = "small" if scale.min() < SMALLEST else "large"
        raise ValueError(f"the variances of X are too {how} for a float64: rescale its columns")
    return size * centre, scale


class GaussianInUnits:
    """Normal distributions, fitted on standardised columns; rows and estimates are in the units of the user.

    Parameters
    ----------
    centre, scale : ndarray of shape (d,)
        A column is its centre plus its scale times the standard one.
    has_gaps : bool
        Whether cells may be missing.
    part : str, default="state"
        The word for a component.
    """

    n_columns = 1
    exact = True

    def __init__(self, kind: Covariance, centre: Array, scale: Array, has_gaps: bool, *, part: str = "state") -> None:
        self.kind, self.centre, self.scale, self.d, self.part = kind, centre, scale, len(centre), part
        self.whole = Gaussian(kind, self.d, FLOOR)
        self.inner: Any = GaussianGaps(self.whole) if has_gaps else self.whole

    @property
    def limits(self) -> Mapping[str, Limits]:
        """Variances are positive; entries of matrices may be any numbers."""
        low = np.where(np.eye(self.d, dtype=bool), 0.0, -np.inf) if self.kind.has_matrices else 0.0
        return {"covariances": (low, np.inf)}

    @property
    def width(self) -> int:
        """Width of the statistics, as in standard units."""
        return int(self.inner.width)

    def log_density(self, theta: Normals, rows: Block) -> Table:
        """Return the log density of each row in its units; of the cells that are there."""

        def near(z: Array) -> Table:
            return self._of_standard(theta, Block(0, (z,)))

        table = self.plain_log_density(theta, rows)
        at = rows.columns[0], self.centre, self.scale, theta.means, near
        return told_apart(table, *at, is_shared=self.kind is TIED)

    def plain_log_density(self, theta: Normals, rows: Block) -> Table:
        """Return the log density of rows that are not too far out."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._of_standard(theta, self._standard(rows))

    def _of_standard(self, theta: Normals, rows: Block) -> Table:
        """Return the log density, in the units of the user, of rows in standard units."""
        volume, x = np.log(self.scale), rows.columns[0]
        if self.inner is not self.whole:
            return np.asarray(self.inner.log_density(theta, rows) - ~np.isnan(x) @ volume)
        each = [self.whole.mixture(theta, run).log_densities(x, float(volume.sum())) for run in range(len(theta.means))]
        by_row = each[0][None] if len(each) == 1 else np.stack(each)
        return np.moveaxis(by_row, 1, 2)  # a chain and the moments read it row by row

    def statistics(self, theta: Normals | None, rows: Block, q: Table) -> Array:
        """Return the moments in standard units."""
        return np.asarray(self.inner.statistics(theta, self._standard(rows), q))

    def solve(self, statistics: Array, theta: Normals | None, share: Array) -> Normals:
        """Return the means and covariances of the moments."""
        found: Normals = self.inner.solve(statistics, theta, share)
        return found

    def _standard(self, rows: Block) -> Block:
        """Return the rows in standard units; kept beside the rows."""
        x = rows.columns[0]
        known = rows.derived.get("in standard units")
        if known is None or known[0] is not x:
            standard = np.ascontiguousarray((x - self.centre) / self.scale)
            rows.derived["in standard units"] = known = (x, Block(rows.first, (standard,), rows.weights))
        return known[1]

    def n_parameters(self, n_components: int) -> int:
        """Return the means and free entries of the covariances."""
        return self.whole.n_parameters(n_components)

    def degeneracy(self, theta: Normals, sizes: Array, mixture: Mixture) -> str:
        """Return the degeneracy of a solution by the rule of Gaussian mixtures."""
        n, parts = sizes.sum(), (theta.means[0], theta.covariances[0])
        found = judge(Components(sizes / n, *parts, self.kind.name), theta.floored[0], float(n))
        return degeneracy(found).replace("component", self.part)

    def _scaled(self, covariances: Array, scale: Array) -> Array:
        factor = scale[0] if self.kind.name == "spherical" else scale
        return self.kind.scaled(covariances, np.asarray(factor))

    def describe(self, theta: Normals) -> dict[str, Array]:
        """Return the means and covariances; a shared covariance is repeated for each state."""
        covariances = self._scaled(theta.covariances, self.scale)
        if self.kind.name == "tied":
            covariances = np.repeat(covariances[:, None], theta.means.shape[1], axis=1)
        return {"means": self.centre + self.scale * theta.means, "covariances": covariances}

    def recalled(self, estimates: Mapping[str, Array]) -> Normals:
        """Return the components of one mixture."""
        covariances = np.asarray(estimates["covariances"], dtype=np.float64)
        covariances = self._scaled(covariances[0] if self.kind.name == "tied" else covariances, 1 / self.scale)
        means = (np.asarray(estimates["means"], dtype=np.float64) - self.centre) / self.scale
        return self.whole.recalled({"means": means, "covariances": covariances})

    def vector(self, theta: Normals) -> Array:
        """Return the means, and unconstrained numbers of the covariances."""
        return self.whole.vector(theta)

    def theta_of(self, vector: Array, like: Normals) -> Normals:
        """Return the inverse of `vector`, within what the rows could have: extrapolation may go far."""
        numbers = vector.copy()
        size = like.means.shape[1] * self.d
        numbers[:, size:] = np.clip(numbers[:, size:], *RANGE)
        return self.whole.theta_of(numbers, like)

    def drawn(self, theta: Normals, components: NDArray[np.intp], random: np.random.Generator) -> Array:
        """Draw a row of each of these components."""
        noise, covariances = random.standard_normal((len(components), self.d)), theta.covariances[0]
        size = theta.means.shape[1]
        if self.kind.has_matrices:
            for k, covariance in enumerate(self.kind.matrices(covariances, size, self.d)):
                noise[components == k] @= np.linalg.cholesky(covariance).T
        else:
            noise *= np.sqrt(self.kind.variances(covariances, size, self.d))[components]
        return np.asarray(self.centre + self.scale * (theta.means[0][components] + noise))
