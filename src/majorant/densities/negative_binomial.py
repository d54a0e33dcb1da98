r"""Independent columns of counts that vary more than Poisson's.

.. math::
   f(x; \mu, r) = \frac{\Gamma(x + r)}{\Gamma(r)\, x!} \Big(\frac{r}{r + \mu}\Big)^r \Big(\frac{\mu}{r + \mu}\Big)^x

with mean :math:`\mu` and variance :math:`\mu + \mu^2 / r`: a Poisson count whose rate is drawn from a gamma
distribution with mean :math:`\mu` and shape r. Missing cells (NaN) are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import digamma, gammaln, polygamma

from majorant.data.chunks import Block
from majorant.densities.natural import TINY
from majorant.engine.mixture import Array, Limits, Table

SIZES = (1e-4, 1e5)
"""Range of the shapes r: beyond it counts are all zero but for a few, or as good as Poisson's."""
STEPS, NEWTON = 6, 8
"""Newton steps to a shape that is near, and from afar."""
LARGE = 50.0
"""Shape from which on a series is exact."""


class NegativeBinomial:
    """Columns of counts; parameters are an array (runs, components, 2 columns): means, then shapes.

    Parameters
    ----------
    n_features : int
        Number of columns.
    """

    n_columns = 1
    exact = False
    limits: Mapping[str, Limits] = {"rates": (0.0, np.inf), "sizes": (0.0, np.inf)}

    def __init__(self, n_features: int) -> None:
        self.d = n_features

    @property
    def width(self) -> int:
        """A mass, that of counts above zero, a sum, and one of digamma functions above the shape's, for each column."""
        return 4 * self.d

    def log_density(self, theta: Array, rows: Block) -> Table:
        """Return sums over the cells of each row that are there."""
        counts, column, hot = _distinct(rows)
        mean, size = self._halves(theta)
        constant = -size * np.log1p(mean / size) - gammaln(size)
        slope = np.log(mean) - np.log(size + mean)
        logs = gammaln(counts + size[:, :, column]) - gammaln(counts + 1)
        logs += constant[:, :, column] + counts * slope[:, :, column]
        return np.ascontiguousarray((hot @ logs.reshape(-1, len(counts)).T).T).reshape(*theta.shape[:2], -1)

    def statistics(self, theta: Array | None, rows: Block, q: Table) -> Array:
        """Return sums over the cells of each column; of a start, squares take the place of digamma functions."""
        counts, column, hot = _distinct(rows)
        mass = np.ascontiguousarray((hot.T @ q.reshape(-1, q.shape[2]).T).T).reshape(*q.shape[:2], -1)
        if theta is None:
            rises = counts**2
        else:
            size = theta[:, :, self.d :]
            rises = digamma(counts + size[:, :, column]) - digamma(size)[:, :, column]
        first = np.searchsorted(column, np.arange(self.d))
        parts = 1.0, counts > 0, counts, rises
        return np.concatenate([np.add.reduceat(mass * part, first, axis=2) for part in parts], axis=2)

    def _halves(self, theta: Array) -> tuple[Array, Array]:
        """Return means, at least `TINY`, and shapes."""
        return np.maximum(theta[:, :, : self.d], TINY), theta[:, :, self.d :]

    def solve(self, statistics: Array, theta: Array | None, share: Array) -> Array:
        """Return weighted means, and shapes a share of a step on; see `risen`."""
        mass, above, sums, rises = np.split(statistics, 4, axis=2)
        all_mass = np.maximum(mass.sum(axis=1, keepdims=True), TINY)
        pooled = np.broadcast_to(sums.sum(axis=1, keepdims=True) / all_mass, mass.shape)
        there = mass > TINY
        other = pooled if theta is None else theta[:, :, : self.d]
        mean = np.divide(sums, mass, out=np.array(other), where=there)
        safe, positive = np.where(there, mass, 1.0), np.maximum(mean, TINY)
        if theta is None:
            excess = np.where(there, rises / safe - mean**2, 0.0) - mean
            size = np.where(excess > 0, positive**2 / np.maximum(excess, TINY), SIZES[1])
            return np.concatenate([mean, np.clip(size, *SIZES)], axis=2)
        size = theta[:, :, self.d :]
        some = there & (mean > TINY) & (above > TINY)
        some_above = np.where(some, above, 1.0)
        found = risen(size, positive, np.where(some, some_above / safe, 1.0), rises / some_above)
        step = np.where(some, np.log(found / size) * share[:, None, None], 0.0)
        return np.concatenate([mean, np.clip(size * np.exp(step), *SIZES)], axis=2)

    def score(self, statistics: Array, theta: Array) -> Array:
        """Return slopes by the logarithms of means and shapes."""
        mass, _, sums, rises = np.split(statistics, 4, axis=2)
        mean, size = self._halves(theta)
        of_mean = size * (sums - mean * mass) / (size + mean)
        of_size = size * (rises - mass * np.log1p(mean / size)) - of_mean
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


def risen(size: Array, mean: Array, share: Array, rise: Array) -> Array:
    r"""Return shapes where the likelihood of counts x of these means is about largest, from shapes near by.

    Its slope in a shape r is the share of counts above zero times
    :math:`E[\psi(x + r) - \psi(r) | x > 0]`, less :math:`\log(1 + \mu / r)`. With m the mean of counts above zero that
    expectation is :math:`1 / r + \psi(m + r) - \psi(1 + r) - c / (m + r)^2`, where c, half a variance if counts are
    many, hardly depends on r: it is what the expectation says at the shape where it is known.

    Parameters
    ----------
    size, mean : ndarray
        Shapes, and means of counts.
    share, rise : ndarray
        Share of counts above zero, and their mean of :math:`\psi(x + r) - \psi(r)` at `size`.
    """
    rate, positive = 1 / size, mean / share
    low, high, asked = np.full_like(size, 1 / SIZES[1]), np.full_like(size, 1 / SIZES[0]), np.zeros_like(size)
    for step in range(STEPS):
        r = 1 / rate
        m = r + positive
        (near, near_slope), (far, far_slope) = log_gap(r + 1), log_gap(m)
        slope = rate + np.log1p((positive - 1) / (r + 1)) + near - far - np.log1p(mean / r) / share
        bend = near_slope - far_slope + 1 / m - 1 / (r + 1) - rate**2 + positive / (r * (r + mean))
        if step == 0:
            asked = (slope - rise + np.log1p(mean / r) / share) * m**2
        by_rate = -m * (bend * m + 2 * slope) / rate**2
        left = asked - slope * m**2
        low, high = np.where(left > 0, rate, low), np.where(left > 0, high, rate)
        steps = np.clip(rate + left / np.where(by_rate > 0, by_rate, 1.0), low, high)
        rate = np.where(by_rate > 0, steps, np.sqrt(low * high))
    return np.asarray(1 / rate)


def shape_of(gap: Array) -> Array:
    """Solve log r - digamma(r) = gap, for gaps above zero."""
    gap = np.clip(gap, 1e-8, 1e8)
    r = np.clip((3 - gap + np.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap), *SIZES)
    for _ in range(NEWTON):
        found, slope = log_gap(r)
        r = np.clip(1 / (1 / r + (found - gap) / (r**2 * slope)), *SIZES)
    return np.asarray(r)


def log_gap(r: Array) -> tuple[Array, Array]:
    """Return log r - digamma(r), exact where r is large, too, and its slope."""
    v = 1 / r
    large = r > LARGE
    far = v / 2 + v**2 / 12 - v**4 / 120 + v**6 / 252
    far_slope = -(v**2) / 2 - v**3 / 6 + v**5 / 30 - v**7 / 42
    near = np.where(large, 1.0, r)
    return (
        np.where(large, far, np.log(near) - digamma(near)),
        np.where(large, far_slope, 1 / near - polygamma(1, near)),
    )


def _distinct(rows: Block) -> tuple[Array, NDArray[np.intp], Any]:
    """Return the distinct counts of all columns, the column of each, and which rows have it (sparse)."""
    x = rows.columns[0]
    known = rows.derived.get("distinct counts")
    if known is None or known[0] is not x:
        there = ~np.isnan(x)
        found = [np.unique(column, return_inverse=True) for column in np.where(there, x, 0.0).T]
        sizes = [len(values) for values, _ in found]
        at = np.column_stack([where.reshape(-1) for _, where in found]) + np.cumsum([0, *sizes[:-1]])
        places = np.nonzero(there)[0], at[there]
        hot = sparse.csr_matrix((np.ones(len(places[0])), places), shape=(len(x), sum(sizes)))
        counts = np.concatenate([values for values, _ in found])
        rows.derived["distinct counts"] = known = (x, (counts, np.repeat(np.arange(len(sizes)), sizes), hot))
    found_before: tuple[Array, NDArray[np.intp], Any] = known[1]
    return found_before
