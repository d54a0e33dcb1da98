r"""Independent columns of counts that vary more than Poisson's.

.. math::
   f(x; \mu, r) = \frac{\Gamma(x + r)}{\Gamma(r)\, x!} \Big(\frac{r}{r + \mu}\Big)^r \Big(\frac{\mu}{r + \mu}\Big)^x

with mean :math:`\mu` and variance :math:`\mu + \mu^2 / r`: a Poisson count whose rate is drawn from a gamma
distribution with mean :math:`\mu` and shape r. EM takes that rate for another latent value. Missing cells
(NaN) are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, polygamma

from majorant.data.chunks import Block
from majorant.densities.natural import TINY
from majorant.engine.mixture import Array, Limits, Table

SIZES = (1e-4, 1e5)
"""Range of the shapes r: beyond it counts are all zero but for a few, or as good as Poisson's."""
NEWTON = 8
Distinct = list[tuple[Array, NDArray[np.intp], Array]]


class NegativeBinomial:
    """Columns of counts; parameters are an array (runs, components, 2 columns): means, then shapes.

    Parameters
    ----------
    n_features : int
        Number of columns.

    References
    ----------
    .. [1] D. Karlis, "EM algorithm for mixed Poisson and other discrete distributions", ASTIN Bulletin 35, 2005.
    """

    n_columns = 1
    exact = True
    limits: Mapping[str, Limits] = {"rates": (0.0, np.inf), "sizes": (0.0, np.inf)}

    def __init__(self, n_features: int) -> None:
        self.d = n_features

    @property
    def width(self) -> int:
        """A mass, a sum, and sums of the expected rate and of its expected logarithm for each column."""
        return 4 * self.d

    def log_density(self, theta: Array, rows: Block) -> Table:
        """Return sums over the cells of each row that are there."""
        out = np.zeros((*theta.shape[:2], len(rows)))
        for j, (x, at, there) in enumerate(_distinct(rows)):
            mean, size = np.maximum(theta[:, :, [j]], TINY), theta[:, :, [self.d + j]]
            of_counts = gammaln(x + size) - gammaln(size) - gammaln(x + 1)
            logs = of_counts - size * np.log1p(mean / size) + x * (np.log(mean) - np.log(size + mean))
            out += logs[:, :, at] * there
        return out

    def statistics(self, theta: Array | None, rows: Block, q: Table) -> Array:
        """Return sums over the cells of each column; of a start, squares take the place of expected rates."""
        runs, k, _ = q.shape
        flat, sums = q.reshape(runs * k, -1), np.empty((4, self.d, runs, k))
        for j, (x, at, there) in enumerate(_distinct(rows)):
            own = flat if there.all() else flat * there
            mass = np.stack([np.bincount(at, one, len(x)) for one in own]).reshape(runs, k, -1)
            if theta is None:
                rates, logs = np.broadcast_to(x**2, mass.shape), np.zeros_like(mass)
            else:
                mean, size = np.maximum(theta[:, :, [j]], TINY), theta[:, :, [self.d + j]]
                rates = (x + size) * mean / (size + mean)
                logs = digamma(x + size) + np.log(mean) - np.log(size + mean)
            sums[:, j] = [np.sum(mass * part, axis=2) for part in (1.0, x, rates, logs)]
        return np.ascontiguousarray(np.moveaxis(sums, (0, 1), (2, 3))).reshape(runs, k, -1)

    def solve(self, statistics: Array, theta: Array | None, share: Array) -> Array:
        """Return weighted means, and the shapes at which gamma rates have their expected logarithms."""
        mass, sums, rates, logs = np.split(statistics, 4, axis=2)
        all_mass = np.maximum(mass.sum(axis=1, keepdims=True), TINY)
        pooled = np.broadcast_to(sums.sum(axis=1, keepdims=True) / all_mass, mass.shape)
        there = mass > TINY
        other = pooled if theta is None else theta[:, :, : self.d]
        mean = np.divide(sums, mass, out=np.array(other), where=there)
        safe, positive = np.where(there, mass, 1.0), np.maximum(mean, TINY)
        if theta is None:
            excess = np.where(there, rates / safe - mean**2, 0.0) - mean
            size = np.where(excess > 0, positive**2 / np.maximum(excess, TINY), SIZES[1])
            return np.concatenate([mean, np.clip(size, *SIZES)], axis=2)
        gap = np.log(positive) + rates / safe / positive - 1 - logs / safe
        size = np.where(there & (mean > TINY), shape_of(gap), theta[:, :, self.d :])
        return np.concatenate([mean, size], axis=2)

    def score(self, statistics: Array, theta: Array) -> Array:
        """Return slopes by the logarithms of means and shapes."""
        mass, _, rates, logs = np.split(statistics, 4, axis=2)
        mean, size = np.maximum(theta[:, :, : self.d], TINY), theta[:, :, self.d :]
        of_mean = size * (rates / mean - mass)
        of_size = size * (mass * (np.log(size / mean) + 1 - digamma(size)) + logs - rates / mean)
        return np.concatenate([part.reshape(len(theta), -1) for part in (of_mean, of_size)], axis=1)

    def n_parameters(self, n_components: int) -> int:
        """Return a mean and a shape for each state and column."""
        return 2 * n_components * self.d

    def describe(self, theta: Array) -> dict[str, Array]:
        """Return the means and shapes."""
        return {"rates": theta[:, :, : self.d], "sizes": theta[:, :, self.d :]}

    def recalled(self, estimates: Mapping[str, Array]) -> Array:
        """Return the means and shapes."""
        parts = [np.asarray(estimates[name], dtype=np.float64) for name in ("rates", "sizes")]
        return np.concatenate(parts, axis=1)[None]

    def vector(self, theta: Array) -> Array:
        """Return logarithms of means and shapes."""
        logs = np.log(np.maximum(theta, TINY))
        halves = logs[:, :, : self.d], logs[:, :, self.d :]
        return np.concatenate([part.reshape(len(theta), -1) for part in halves], axis=1)

    def theta_of(self, vector: Array, like: Array) -> Array:
        """Return means and shapes, within their range."""
        mean, size = np.split(np.exp(np.clip(vector, -700, 700)), 2, axis=1)
        shape = len(vector), like.shape[1], self.d
        return np.concatenate([mean.reshape(shape), np.clip(size.reshape(shape), *SIZES)], axis=2)

    def drawn(self, theta: Array, components: NDArray[np.intp], random: np.random.Generator) -> Array:
        """Draw a row of each of these components, of the first run."""
        mean, size = theta[0][components][:, : self.d], theta[0][components][:, self.d :]
        return np.asarray(random.poisson(mean / size * random.standard_gamma(size)), dtype=np.float64)


def shape_of(gap: Array) -> Array:
    """Solve log r - digamma(r) = gap, for gaps above zero."""
    gap = np.clip(gap, 1e-8, 1e8)
    r = np.clip((3 - gap + np.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap), *SIZES)
    for _ in range(NEWTON):
        slope = 1 / r - polygamma(1, r)
        r = np.clip(1 / (1 / r + (np.log(r) - digamma(r) - gap) / (r**2 * slope)), *SIZES)
    return np.asarray(r)


def _distinct(rows: Block) -> Distinct:
    """Return the distinct counts of every column, which of them each row has, and whether its cell is there."""
    x = rows.columns[0]
    known = rows.derived.get("distinct counts")
    if known is None or known[0] is not x:
        columns = []
        for column in np.asarray(x, dtype=np.float64).T:
            there = ~np.isnan(column)
            values, at = np.unique(np.where(there, column, 0.0), return_inverse=True)
            columns.append((values, at.reshape(-1).astype(np.intp), there.astype(np.float64)))
        rows.derived["distinct counts"] = known = (x, columns)
    found: Distinct = known[1]
    return found
