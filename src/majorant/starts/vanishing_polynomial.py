r"""The polynomial in x and y that is zero on all of K lines: moments that no weights of the lines can mislead.

Row by row, :math:`\prod_h (m - b_h' x) = 0` for the mean m of a row, whichever of the lines it is on and however likely
each of them was. Moments of means are those of y with Hermite polynomials for powers, :math:`E[H_p(y) \mid m] = m^p`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, factorial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from majorant.data.chunks import Block, Chunks
from majorant.solvers.symmetric_tensors import powers

Array = NDArray[np.float64]

MOST_PRODUCTS = 500
"""Coefficients of a polynomial at most: squares of their number are summed."""
IDENTIFIED = 1e-9
"""Smallest share of the largest eigenvalue of the moments of x at which a direction counts as identified."""
RIDGE = 1e-9
"""Added to the moments of rows, which are singular where there is no noise."""
N_BISECTIONS = 40


@dataclass(frozen=True)
class VanishingPolynomial:
    """Coefficients of products of x, in ascending degree of x, each times the power of y that makes the degree K."""

    k: int
    coefficients: Array
    noise_variance: float

    def roots(self, x: Array) -> NDArray[np.complex128]:
        """Return the K values of y on the lines at each row, shape (n_rows, K)."""
        parts = np.split(self.coefficients, np.cumsum(sizes(x.shape[1], self.k))[:-1])
        in_y = np.stack([powers(x, a) @ part for a, part in enumerate(parts)], axis=1)
        companion = np.zeros((len(x), self.k, self.k))
        companion[:, 0] = -in_y[:, 1:] / np.copysign(max(abs(parts[0][0]), 1e-12), parts[0][0])
        companion[:, np.arange(1, self.k), np.arange(self.k - 1)] = 1.0
        return np.asarray(np.linalg.eigvals(companion), dtype=np.complex128)


def sizes(d: int, k: int) -> list[int]:
    """Return the number of products of 0 to k of d features."""
    return [comb(d + a - 1, a) for a in range(k + 1)]


def vanishing_polynomial(data: Chunks, k: int) -> VanishingPolynomial:
    """Return the polynomial of degree k that is smallest on the means of rows (x, y), by one pass.

    The noise variance is the smallest with which some polynomial is zero on them: less leaves noise in the moments,
    more makes squares negative. Columns of x and y should have mean squares about one.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        sums = data.map_sum(lambda block: _sums(block, k))
    d = next(iter(data.source.blocks())).columns[0].shape[1]
    degree = np.repeat(np.arange(k + 1), sizes(d, k))
    power = 2 * k - degree[:, None] - degree
    means = sums / sums[0, 0, 0]

    def of_means(noise: float) -> Array:
        out: Array = np.zeros_like(means[0])
        for p in range(2 * k + 1):
            for j in range(p // 2 + 1):
                factor = (-noise / 2) ** j * factorial(p) / (factorial(j) * factorial(p - 2 * j))
                out += np.where(power == p, factor * means[p - 2 * j], 0.0)
        return out

    basis = np.zeros((len(degree), 0))
    for a in range(k + 1):  # products of the columns of x may depend on each other
        at = np.flatnonzero(degree == a)
        values, vectors = np.linalg.eigh(means[0][np.ix_(at, at)])
        kept = values > IDENTIFIED * values[-1]
        own = np.zeros((len(degree), int(kept.sum())))
        own[at] = vectors[:, kept] / np.sqrt(values[kept] * means[2 * (k - a), 0, 0])
        basis = np.hstack([basis, own])
    of_rows = basis.T @ of_means(0.0) @ basis + RIDGE * np.eye(basis.shape[1])

    def smallest(noise: float) -> tuple[float, Array]:
        value, vector = eigh(basis.T @ of_means(noise) @ basis, of_rows, subset_by_index=(0, 0))
        return float(value[0]), np.asarray(basis @ vector[:, 0])

    low, high = 0.0, float(means[2, 0, 0])
    for _ in range(N_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if smallest(middle)[0] > 0 else (low, middle)
    return VanishingPolynomial(k, smallest(low)[1], low)


def _sums(block: Block, k: int) -> Array:
    """Return the sums of products of two products of features and of a power of y, (2k + 1, n, n)."""
    x, y = block.columns[:2]
    products = np.concatenate([powers(x, a) for a in range(k + 1)], axis=1)
    weighted = products if block.weights is None else products * block.weights[:, None]
    return np.stack([(weighted * (y**p)[:, None]).T @ products for p in range(2 * k + 1)])
