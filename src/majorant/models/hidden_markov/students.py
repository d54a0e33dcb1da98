r"""Student distributions of rows: states whose rows lie far out now and then.

A row of Student's distribution is normal with its covariance divided by a latent u of a gamma distribution, whose
expected value given the row is :math:`(\nu + d) / (\nu + \delta)` for a squared distance :math:`\delta`: the M-step is
that of normal distributions with rows weighted by it. Where every state has a scale matrix of its own, u may have a
scale too, which is then taken into the matrix [2]_: the same fixed points in fewer steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from majorant.data.chunks import Block
from majorant.densities.gaussian import Normals
from majorant.engine.mixture import Array, Limits, Mixture, Table
from majorant.models.gaussian_in_units import GaussianInUnits
from majorant.registry import value_class
from majorant.solvers.covariance_types import Covariance
from majorant.solvers.gaussian import LOG_2PI

FIRST, LEAST, MOST = 8.0, 1.0, 200.0
"""Degrees of freedom of a start; the fewest; and the most, from which on a distribution is as good as normal."""
FAR = 1e140
"""Units from which on squares would be too large for a number."""


@value_class
@dataclass(frozen=True)
class StudentStates:
    """Means and scale matrices of a batch of runs, and degrees of freedom, (runs, components)."""

    normals: Normals
    degrees: Array


class Students:
    r"""Student distributions, fitted on standardised columns; rows and estimates are in the units of the user.

    .. math:: f(x) \propto |\Sigma|^{-1/2} \big(1 + (x - \mu)' \Sigma^{-1} (x - \mu) / \nu\big)^{-(\nu + d) / 2}

    A row has all its cells or none.

    Parameters
    ----------
    kind : Covariance
        Of the scale matrices.
    centre, scale : ndarray of shape (d,)
        A column is its centre plus its scale times the standard one.

    References
    ----------
    .. [1] C. Liu, D. B. Rubin, "ML estimation of the t distribution using EM and its extensions, ECM and ECME",
       Statistica Sinica 5, 1995.
    .. [2] C. Liu, D. B. Rubin, Y. N. Wu, "Parameter expansion to accelerate EM: the PX-EM algorithm", Biometrika 85,
       1998.
    """

    n_columns = 1
    exact = True

    def __init__(self, kind: Covariance, centre: Array, scale: Array) -> None:
        self.normal = GaussianInUnits(kind, centre, scale, False)
        self.d, self.volume = len(centre), float(np.log(scale).sum())

    @property
    def limits(self) -> Mapping[str, Limits]:
        """Diagonals of scale matrices and degrees of freedom are positive."""
        return {"scale_matrices": self.normal.limits["covariances"], "degrees_of_freedom": (0.0, np.inf)}

    @property
    def width(self) -> int:
        """Moments of the weighted rows, the mass, and the sum for the degrees of freedom."""
        return self.normal.width + 2

    def _complete(self, rows: Block) -> tuple[Block, NDArray[np.bool_], Array]:
        """Return the rows with means for what is missing, which are there, and what far ones are divided by; kept."""
        x = rows.columns[0]
        known = rows.derived.get("complete")
        if known is None or known[0] is not x:
            there = ~np.isnan(x).any(axis=1)
            filled = np.where(there[:, None], x, self.normal.centre)
            size = np.maximum(np.abs(filled / FAR / self.normal.scale).max(axis=1), 1.0)
            complete = Block(rows.first, (filled / size[:, None],), rows.weights)
            rows.derived["complete"] = known = (x, complete, there, size)
        return known[1:]

    def _distances(self, theta: StudentStates, rows: Block) -> tuple[Table, Array]:
        """Return squared distances from the means, and half the log determinants of the scale matrices."""
        runs = range(len(theta.degrees))
        factored = [self.normal.whole.mixture(theta.normals, run).precision_factors()[1] for run in runs]
        half = np.stack(factored) / 2
        at_mean = half + self.d * LOG_2PI / 2 + self.volume
        return -2 * (self.normal.plain_log_density(theta.normals, rows) + at_mean[:, :, None]), half

    def log_density(self, theta: StudentStates, rows: Block) -> Table:
        """Return the log density of each row; zero where it is missing."""
        complete, there, size = self._complete(rows)
        distances, half = self._distances(theta, complete)
        nu, d = theta.degrees, self.d
        top = gammaln((nu + d) / 2) - gammaln(nu / 2) - d / 2 * np.log(nu * np.pi) - half - self.volume
        square = np.log1p(np.maximum(distances, 0.0) / nu[:, :, None]) + 2 * np.log(size)
        return np.asarray((top[:, :, None] - (nu[:, :, None] + d) / 2 * square) * there)

    def statistics(self, theta: StudentStates | None, rows: Block, q: Table) -> Array:
        """Return moments of rows weighted by their expected u, the mass, and the sum of logarithms of these."""
        complete, there, _ = self._complete(rows)
        q = q * there
        mass = q.sum(axis=2)
        if theta is None:
            moments, logs = self.normal.statistics(None, complete, q), np.zeros_like(mass)
        else:
            nu = theta.degrees[:, :, None]
            u = (nu + self.d) / (nu + np.maximum(self._distances(theta, complete)[0], 0.0))
            moments = self.normal.statistics(theta.normals, complete, q * u)
            logs = (q * np.log(u)).sum(axis=2)
        return np.concatenate([moments, mass[:, :, None], logs[:, :, None]], axis=2)

    def solve(self, statistics: Array, theta: StudentStates | None, share: Array) -> StudentStates:
        """Take the M-step."""
        moments, mass, logs = statistics[:, :, :-2], np.maximum(statistics[:, :, -2], 1e-300), statistics[:, :, -1]
        normals = self.normal.solve(np.ascontiguousarray(moments), None if theta is None else theta.normals, share)
        if theta is None:
            return StudentStates(normals, np.full(mass.shape, FIRST))
        half, u = (theta.degrees + self.d) / 2, np.maximum(moments[:, :, 0], 1e-300) / mass
        level = logs / mass + digamma(half) - np.log(half)
        if self.normal.kind.name == "tied":  # one matrix cannot take in the scales of several states
            rows = np.einsum("rk,rk->r", u, mass) / mass.sum(axis=1)
            normals = replace(normals, covariances=normals.covariances * rows[:, None, None])
            return StudentStates(normals, degrees_of(level + 1 - u))
        return StudentStates(normals, degrees_of(level - np.log(u)))

    def n_parameters(self, n_components: int) -> int:
        """Return those of normal distributions, and the degrees of freedom."""
        return self.normal.n_parameters(n_components) + n_components

    def degeneracy(self, theta: StudentStates, sizes: Array, mixture: Mixture) -> str:
        """Return the degeneracy of a solution by the rule of Gaussian mixtures."""
        return self.normal.degeneracy(theta.normals, sizes, mixture)

    def describe(self, theta: StudentStates) -> dict[str, Array]:
        """Return means, scale matrices and degrees of freedom."""
        found = self.normal.describe(theta.normals)
        return {
            "means": found["means"],
            "scale_matrices": found["covariances"],
            "degrees_of_freedom": theta.degrees,
        }

    def recalled(self, estimates: Mapping[str, Array]) -> StudentStates:
        """Return the states of one model."""
        normals = self.normal.recalled({"means": estimates["means"], "covariances": estimates["scale_matrices"]})
        return StudentStates(normals, np.asarray(estimates["degrees_of_freedom"], dtype=np.float64)[None])

    def vector(self, theta: StudentStates) -> Array:
        """Return the numbers of the normal distributions, and logarithms of the degrees of freedom."""
        return np.concatenate([self.normal.vector(theta.normals), np.log(theta.degrees)], axis=1)

    def theta_of(self, vector: Array, like: StudentStates) -> StudentStates:
        """Rebuild parameters from `vector`."""
        k = like.degrees.shape[1]
        degrees = np.exp(np.clip(vector[:, -k:], np.log(LEAST), np.log(MOST)))
        degrees = np.where(like.degrees > 0.999 * MOST, like.degrees, degrees)  # an edge, and no estimate
        return StudentStates(self.normal.theta_of(vector[:, :-k], like.normals), degrees)

    def drawn(self, theta: StudentStates, components: NDArray[np.intp], random: np.random.Generator) -> Array:
        """Draw a row of each of these components."""
        rows = self.normal.drawn(theta.normals, components, random)
        nu, means = theta.degrees[0][components], self.normal.describe(theta.normals)["means"][0][components]
        return np.asarray(means + (rows - means) / np.sqrt(random.chisquare(nu) / nu)[:, None])


def degrees_of(level: Array) -> Array:
    r"""Return the :math:`\nu` with :math:`\log(\nu / 2) - \psi(\nu / 2) + c = 0` for each c, within the range."""
    low, high = np.full(level.shape, np.log(LEAST)), np.full(level.shape, np.log(MOST))
    for _ in range(60):
        middle = (low + high) / 2
        half = np.exp(middle) / 2
        rises = np.log(half) - digamma(half) + level > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    return np.asarray(np.exp((low + high) / 2))
