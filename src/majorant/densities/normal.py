r"""Independent normal columns with missing cells, as in latent profile analysis.

.. math:: \log f(x; \mu, v) = -\tfrac12 \sum_j \log 2 \pi v_j + (x_j - \mu_j)^2 / v_j

summed over the cells that are there. Parameters refer to standardised columns, so that sums of squares lose no
digits and units cannot matter; estimates are returned in the units of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.densities.far import told_apart
from majorant.densities.natural import TINY
from majorant.engine.mixture import Array, Limits, Table

LEAST_RATIO = 5e-4
"""Smallest variance of a state, as a share of the pooled one within states: below it the likelihood has no maximum."""
FLOOR = 1e-12
"""Smallest variance of standardised columns."""


class Normal:
    """Independent normal columns; parameters are an array (runs, components, 2 columns): means, then variances.

    Parameters
    ----------
    center, scale : ndarray of shape (n_features,)
        What columns are standardised by.
    shared : bool, default=False
        Whether the variance of a column is the same in all states.
    """

    n_columns = 1
    exact = True
    statistics_are_free = True
    limits: Mapping[str, Limits] = {"variances": (0.0, np.inf)}

    def __init__(self, center: Array, scale: Array, *, shared: bool = False) -> None:
        self.center, self.scale, self.shared = np.asarray(center), np.asarray(scale), shared
        self.d = len(self.center)

    @property
    def width(self) -> int:
        """A mass, a sum and a sum of squares for each column."""
        return 3 * self.d

    def _halves(self, theta: Array) -> tuple[Array, Array]:
        return theta[..., : self.d], theta[..., self.d :]

    def log_density(self, theta: Array, rows: Block) -> Table:
        """Return sums over the cells of each row that are there."""

        def near(z: Array) -> Table:
            return self._of_standardised(theta, np.nan_to_num(z), ~np.isnan(z))

        with np.errstate(over="ignore", invalid="ignore"):
            table = self._of_standardised(theta, *self._standardised(rows))
        at = rows.columns[0], self.center, self.scale, self._halves(theta)[0], near
        return told_apart(table, *at, is_shared=self.shared)

    def _of_standardised(self, theta: Array, z: Array, there: NDArray[Any]) -> Table:
        mean, v = (part.reshape(-1, self.d) for part in self._halves(theta))
        constant = np.log(2 * np.pi * v) + mean**2 / v + 2 * np.log(self.scale)
        out = constant @ there.T - 2 * (mean / v) @ z.T + (1 / v) @ (z**2).T
        return np.asarray(-0.5 * out.reshape(*theta.shape[:2], -1))

    def statistics(self, theta: Array | None, rows: Block, q: Table) -> Array:
        """Return weights of the cells of each column, their sums and sums of squares."""
        z, there = self._standardised(rows)
        flat = q.reshape(-1, q.shape[2])
        return np.concatenate([flat @ there, flat @ z, flat @ z**2], axis=1).reshape(*q.shape[:2], -1)

    def solve(self, statistics: Array, theta: Array | None, share: Array) -> Array:
        """Return weighted means and variances, held above a share of the pooled variance.

        A state without a cell of a column keeps what it had, or has the moments of all.
        """
        mass, sums, squares = np.split(statistics, 3, axis=2)
        all_mass = np.maximum(mass.sum(axis=1, keepdims=True), TINY)
        pooled_mean = np.broadcast_to(sums.sum(axis=1, keepdims=True) / all_mass, mass.shape)
        old_mean, old_v = (pooled_mean, np.ones_like(mass)) if theta is None else self._halves(theta)
        there = mass > TINY
        mean = np.divide(sums, mass, out=np.array(old_mean), where=there)
        v = np.divide(squares, mass, out=np.array(old_v + mean**2), where=there) - mean**2
        pooled = (mass * np.maximum(v, 0.0)).sum(axis=1, keepdims=True) / all_mass
        v = np.broadcast_to(pooled, v.shape) if self.shared else np.maximum(v, LEAST_RATIO * pooled)
        return np.concatenate([mean, np.maximum(v, FLOOR)], axis=2)

    def expected_log_density(self, statistics: Array, theta: Array) -> Array:
        """Return a function of the masses, sums and sums of squares."""
        mass, sums, squares = np.split(statistics, 3, axis=2)
        mean, v = self._halves(theta)
        out = mass * (np.log(2 * np.pi * v) + mean**2 / v + 2 * np.log(self.scale)) - 2 * sums * mean / v + squares / v
        return np.asarray(-0.5 * out.sum(axis=(1, 2)))

    def score(self, statistics: Array, theta: Array) -> Array:
        """Return slopes by the means and by the logarithms of the variances."""
        mass, sums, squares = np.split(statistics, 3, axis=2)
        mean, v = self._halves(theta)
        of_mean = (sums - mass * mean) / v
        of_log = 0.5 * ((squares - 2 * mean * sums + mass * mean**2) / v - mass)
        of_log = of_log.sum(axis=1, keepdims=True) if self.shared else of_log
        return np.concatenate([of_mean.reshape(len(theta), -1), of_log.reshape(len(theta), -1)], axis=1)

    def degeneracy(self, theta: Array, sizes: Array, mixture: Any) -> str:
        """Name the state that has collapsed on few values of a column."""
        if mixture.n_components == 1:
            return ""
        v = self._halves(theta)[1][0]
        shares = sizes[0] if sizes.ndim == 2 else sizes
        pooled = shares @ v / max(float(shares.sum()), TINY)
        low = v <= max(LEAST_RATIO, FLOOR) * pooled * (1 + 1e-3)
        if not (low.any() or (v <= 2 * FLOOR).any()):
            return ""
        k, j = np.argwhere(low | (v <= 2 * FLOOR))[0]
        return f"component {k + 1} (of {len(v)}) has hardly any variance in normal column {j + 1}"

    def n_parameters(self, n_components: int) -> int:
        """Return means, and variances of each state or shared."""
        return self.d * (n_components + (1 if self.shared else n_components))

    def describe(self, theta: Array) -> dict[str, Array]:
        """Return means and variances in the units of the rows."""
        mean, v = self._halves(theta)
        return {"means": self.center + self.scale * mean, "variances": self.scale**2 * v}

    def recalled(self, estimates: Mapping[str, Array]) -> Array:
        """Return a batch of one run."""
        mean = (np.asarray(estimates["means"], dtype=np.float64) - self.center) / self.scale
        return np.concatenate([mean, np.asarray(estimates["variances"]) / self.scale**2], axis=1)[None]

    def vector(self, theta: Array) -> Array:
        """Return means, and logarithms of variances."""
        mean, v = self._halves(theta)
        free = v[:, :1] if self.shared else v
        return np.concatenate([mean.reshape(len(theta), -1), np.log(free).reshape(len(theta), -1)], axis=1)

    def theta_of(self, vector: Array, like: Array) -> Array:
        """Return means and variances."""
        k = like.shape[1]
        mean = vector[:, : k * self.d].reshape(-1, k, self.d)
        v = np.exp(np.clip(vector[:, k * self.d :], -700, 700)).reshape(len(vector), -1, self.d)
        return np.concatenate([mean, np.maximum(np.broadcast_to(v, mean.shape), FLOOR)], axis=2)

    def drawn(self, theta: Array, components: NDArray[np.intp], random: np.random.Generator) -> Array:
        """Draw a row of each of these components, of the first run."""
        mean, v = self._halves(theta[0][components])
        return np.asarray(self.center + self.scale * (mean + np.sqrt(v) * random.standard_normal(mean.shape)))

    def _standardised(self, rows: Block) -> tuple[Array, Array]:
        """Return standardised cells, zero where missing, and indicators of observed cells; cached with the block."""
        x = rows.columns[0]
        known = rows.derived.get("standardised")
        if known is None or known[0] is not x:
            there = ~np.isnan(x)
            z = np.where(there, (x - self.center) / self.scale, 0.0)
            rows.derived["standardised"] = known = (x, z, there.astype(np.float64))
        return known[1], known[2]
