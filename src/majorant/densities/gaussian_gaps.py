r"""Normal distributions of rows with missing entries: the density of the observed entries.

The latent values of a row are its component and its missing entries, (z, x_m); entries are taken to be missing at
random. For any densities :math:`q(z)` and :math:`p_z(x_m)`, up to weights and temperature,

.. math::
   -\log p(x_o) \le \sum_z q(z) \Big[ E_{p_z} E(z, x_o, x_m) - h(p_z) \Big] - H(q),

where E is the energy of whole rows and h differential entropy. With :math:`p_z = p(x_m \mid x_o, z)` at the current
parameters the bracket is the energy of the observed entries there, so the bound is tight; and it is linear in moments
of completed rows expected at these parameters. Statistics therefore depend on the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant import _kernels
from majorant.data.chunks import Block
from majorant.data.patterns import Pattern, patterns
from majorant.densities.coordinates import Coordinates
from majorant.densities.gaussian import Gaussian, Normals
from majorant.engine.mixture import Array, Table
from majorant.solvers.covariance_types import FULL, Covariance, times
from majorant.solvers.gaussian import Mixture, moments
from majorant.solvers.gaussian_missing import Completion

MOST_COLUMNS = 64
"""Columns whose missing entries compiled code tells apart."""


class GaussianGaps:
    """Normal distributions of the observed entries of rows (NaN: missing).

    Without any missing entry it is `model`, to the last bit. Runs go in step, so that a pattern of observed columns
    costs a factorisation of each of their components in a block.

    Parameters
    ----------
    model : Gaussian
        Of whole rows, in `coordinates`; its M-step is the one used.
    coordinates : Coordinates, optional
        The coordinates of `model` and of the parameters; by default the rows' own. Rows with missing entries cannot be
        transformed, as columns mix, so each log density has ``log_volume`` subtracted instead: it is then in units of
        the coordinates, as that of `model` is.
    """

    n_columns = 1
    exact = True

    def __init__(self, model: Gaussian, coordinates: Coordinates | None = None) -> None:
        self.model, self.coordinates = model, coordinates
        self.kind = model.kind
        self.d = model.d if coordinates is None else len(coordinates.centre)
        self.volume = 0.0 if coordinates is None else coordinates.log_volume

    @property
    def width(self) -> int:
        """Moments of completed rows in their own units, and minus the entropies of missing entries."""
        return 2 + self.d + self.kind.n_second(self.d)

    def in_rows(self, theta: Normals | None, run: int, k: int) -> Mixture:
        """Return one run in the units of the rows (by default a standard normal in the coordinates), weights one."""
        if theta is None:
            d = self.model.d
            covariances = np.array(np.broadcast_to(self.kind.identity(d), self.kind.shape(k, d)))
            mixture = Mixture(np.ones(k), np.zeros((k, d)), covariances, self.kind.name)
        else:
            mixture = self.model.mixture(theta, run)
        return mixture if self.coordinates is None else mixture_in_rows(mixture, self.coordinates)

    # Passes

    def log_density(self, theta: Normals, rows: Block) -> Table:
        """Return the log density of the observed entries, zero (less the volume) for a row without any."""
        runs, k = theta.means.shape[:2]
        out = np.zeros((len(rows), runs * k))
        for group, part, own in self._parts(theta, (runs, k), rows):
            if group.observed.any():
                out[group.rows] = part.marginal.log_densities(own)
        return np.ascontiguousarray(out.T).reshape(runs, k, -1) - self.volume

    def statistics(self, theta: Normals | None, rows: Block, q: Table) -> Array:
        """Return the moments of completed rows expected at `theta` (for a start, at a standard normal)."""
        runs, k = q.shape[:2]
        total, flat = np.zeros((runs * k, self.width)), q.reshape(runs * k, -1)
        for group, part, own in self._parts(theta, (runs, k), rows):
            total += whole_moments(part, _moments_of(part, own, np.ascontiguousarray(flat[:, group.rows].T)))
        return total.reshape(runs, k, -1)

    def fused_pass(
        self, theta: Normals, log_weights: Array, rows: Block, beta: float
    ) -> tuple[Array, Array, Array, Array] | None:
        """Compute each run in compiled code; None where columns are too many for it, or a covariance is singular.

        With a floor under covariances, which only rounding can make singular then, such a run has no likelihood.
        """
        x, runs, k = rows.columns[0], *theta.means.shape[:2]
        if self.coordinates is None and not np.isnan(x).any():
            whole = self.model.fused_pass(theta, log_weights, rows, beta)
            return None if whole is None else (*whole[:3], np.concatenate([whole[3], np.zeros((runs, k, 1))], axis=2))
        if x.shape[1] > MOST_COLUMNS:
            return None
        means, covariances, totals = theta.means, theta.covariances, np.empty((runs, 2))
        if self.coordinates is not None:
            means, covariances = in_rows(means, covariances, self.kind, self.coordinates)
        sums = np.empty((runs, k, self.width))
        own = np.ascontiguousarray(means), np.ascontiguousarray(covariances).reshape(runs, -1)
        at = np.exp(log_weights), *own, self.kind.code, beta, sums, totals
        _kernels.gauss_gaps(np.ascontiguousarray(x), rows.weights, *at)
        free, entropy = totals.T  # infinite where what the floor holds is rounded away in the units of the rows
        if self.model.floor == 0 and not np.isfinite(free).all():
            return None
        return free + self.volume * rows.weight, entropy, sums[:, :, 0], sums

    def _parts(
        self, theta: Normals | None, shape: tuple[int, int], rows: Block
    ) -> list[tuple[Pattern, Completion, NDArray[Any]]]:
        """Return the rows of each pattern, their regression on observed cells, and their entries; cached in a pass."""
        known = rows.derived.pop("parts", None)
        if theta is not None and known is not None and known[0] is theta:
            found: list[tuple[Pattern, Completion, NDArray[Any]]] = known[1]
            return found
        runs, k = shape
        joined = joined_components([self.in_rows(theta, run, k) for run in range(runs)])
        parts = [(group, Completion(joined, group.observed), self._entries(group, rows)) for group in _groups(rows)]
        if theta is not None:
            rows.derived["parts"] = theta, parts
        return parts

    def _entries(self, group: Pattern, rows: Block) -> NDArray[Any]:
        """Return the observed entries of a pattern; in double precision unless the means are known to be of single."""
        own = group.of(rows.columns[0])
        return own if self.coordinates is None and group.is_complete else own.astype(np.float64, copy=False)

    # The M-step

    def solve(self, statistics: Array, theta: Normals | None, share: Array) -> Normals:
        """Solve the M-step of the inner model from the moments of completed rows in its coordinates."""
        return self.model.solve(self._all_in_model(statistics), theta, share)

    def _all_in_model(self, statistics: Array) -> Array:
        """Return the moments of completed rows of many runs in the model's coordinates."""
        return self.in_model(statistics.reshape(-1, self.width))[0].reshape(*statistics.shape[:2], -1)

    def in_model(self, sums: Array) -> tuple[Array, float]:
        """Return the moments of completed rows in the model's coordinates, and the excess of their expected energy."""
        constant, moments_of_rows = float(sums[:, -1].sum()), sums[:, :-1]
        if self.coordinates is None:
            return np.ascontiguousarray(moments_of_rows), constant
        d, forward = self.d, self.coordinates.forward
        mass, first, second = moments_of_rows[:, :1], moments_of_rows[:, 1 : 1 + d], moments_of_rows[:, 1 + d :]
        constant += self.kind.second_price(second, self.coordinates.still_forward)
        moved = times(first, forward), self.kind.second_mapped(second, forward)
        return np.hstack([mass, *moved]), constant

    def expected_log_density(self, statistics: Array, theta: Normals) -> Array:
        """Return the expected log density: the inner model's, less that of constant directions, plus entropies."""
        moved = [self.in_model(sums) for sums in statistics]
        inside = self.model.expected_log_density(np.stack([sums for sums, _ in moved]), theta)
        return np.asarray(inside - [constant for _, constant in moved])

    def rounding(self, statistics: Array, theta: Normals) -> Array:
        """Return the rounding error: conditional covariances are differences, inexact along narrow directions."""
        inside = self.model.rounding(self._all_in_model(statistics), theta)
        k = theta.means.shape[1]
        return inside * [condition(self.in_rows(theta, run, k)) for run in range(len(inside))]

    # Parameters as numbers: those of the model

    def n_parameters(self, n_components: int) -> int:
        """Return the means and free entries of the covariances."""
        return self.model.n_parameters(n_components)

    def describe(self, theta: Normals) -> dict[str, Array]:
        """Return the means and covariances, in the coordinates."""
        return self.model.describe(theta)

    def recalled(self, estimates: Mapping[str, Array]) -> Normals:
        """Return the components of one mixture."""
        return self.model.recalled(estimates)

    def vector(self, theta: Normals) -> Array:
        """Return the means, and unconstrained numbers of the covariances."""
        return self.model.vector(theta)

    def theta_of(self, vector: Array, like: Normals) -> Normals:
        """Rebuild parameters from `vector`."""
        return self.model.theta_of(vector, like)


def _groups(rows: Block) -> tuple[Pattern, ...]:
    """Return the patterns of a block, cached with it."""
    x = rows.columns[0]
    known = rows.derived.get("patterns")
    if known is None or known[0] is not x:
        rows.derived["patterns"] = known = (x, patterns(x))
    found: tuple[Pattern, ...] = known[1]
    return found


def _moments_of(part: Completion, own: NDArray[Any], q: Array) -> Array:
    """Return the moments of observed columns about their means, by weighted responsibilities (rows, components)."""
    if part.observed.any():
        return moments(own, None, q, part.marginal.means, part.mixture.covariance_type)
    out = np.zeros((q.shape[1], 1 + part.mixture.covariance.n_second(0)))
    out[:, 0] = q.sum(axis=0)
    return out


def whole_moments(part: Completion, moments: Array) -> Array:
    """Return the moments of whole rows, and what the entropies of their missing entries take from the bound."""
    constant = np.zeros(len(moments)) if part.n_missing == 0 else -moments[:, 0] * part.entropies
    return np.column_stack([part.complete(moments), constant])


def joined_components(mixtures: list[Mixture]) -> Mixture:
    """Return the components of all mixtures as one mixture, in which tied components have separate covariances."""
    if len(mixtures) == 1:
        return mixtures[0]
    kind = mixtures[0].covariance
    k, d = mixtures[0].means.shape
    covariances = [np.broadcast_to(mixture.covariances, (k, *kind.identity(d).shape)) for mixture in mixtures]
    return Mixture(
        np.concatenate([mixture.weights for mixture in mixtures]),
        np.concatenate([mixture.means for mixture in mixtures]),
        np.concatenate(covariances),
        FULL.name if kind.has_matrices else kind.name,
    )


def mixture_in_rows(mixture: Mixture, coordinates: Coordinates) -> Mixture:
    """Return a mixture in coordinates as one of the rows, with the little variance that still directions are given."""
    moved = in_rows(mixture.means, mixture.covariances, mixture.covariance, coordinates)
    return Mixture(mixture.weights, *moved, mixture.covariance_type)


def in_rows(means: Array, covariances: Array, kind: Covariance, coordinates: Coordinates) -> tuple[Array, Array]:
    """Return means and covariances in coordinates as those of the rows; those of many runs too."""
    back = coordinates.back
    return coordinates.centre + times(means, back), kind.mapped(covariances, back) + kind.beside(coordinates.still)


def condition(mixture: Mixture) -> float:
    """Return the largest ratio of a component's variances over directions, each column in standard deviations."""
    if not mixture.covariance.has_matrices:
        return 1.0
    sd = np.sqrt(np.diagonal(mixture.covariances, axis1=-2, axis2=-1))
    values = np.linalg.eigvalsh(mixture.covariances / (sd[..., :, None] * sd[..., None, :]))
    return float(1.0 / max(values.min(), np.finfo(np.float64).eps))


def in_columns(deviations: Array, kind: Covariance) -> Coordinates:
    """Return the coordinates of a covariance type in which columns are in given standard deviations."""
    d = len(deviations)
    none = np.zeros((0, d))
    diagonal = np.diag if kind.has_matrices else partial(sparse.diags_array, format="csr")
    scale = diagonal(1 / deviations), diagonal(deviations)
    return Coordinates(np.zeros(d), *scale, none, none.T, -float(np.log(deviations).sum()))
