"""Mixtures of regressions whose moments are known exactly, and distances between mixtures."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data import Chunks
from majorant.starts.regression_moments import RegressionMoments, regression_moments

Array = NDArray[Any]

# Four nodes: exact for the first seven moments of a standard normal.
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(4)


def mixture(k: int, d: int, seed: int) -> tuple[Array, Array, Array]:
    """Rows, proportions and well separated coefficients."""
    random = np.random.default_rng(seed)
    directions = np.linalg.qr(random.normal(size=(max(k, d), max(k, d))))[0][:k, :d]
    return random.normal(size=(400, d)), random.dirichlet(np.full(k, 8.0)), 2 * directions + random.normal(size=d) / 5


def exact_moments(x: Array, proportions: Array, coefficients: Array, noise: float) -> RegressionMoments:
    """Moments of the mixture over the rows of x, without sampling error and as of very many rows."""
    n, k, m = len(x), len(proportions), len(NODES)
    y = (x @ coefficients.T)[:, :, None] + np.sqrt(noise) * NODES
    share = np.broadcast_to(proportions[:, None] * NODE_WEIGHTS / NODE_WEIGHTS.sum(), (n, k, m))
    rows = np.repeat(x, k * m, axis=0)
    return regression_moments(Chunks(rows, y.ravel(), weights=1e14 / n * share.ravel()))


def sample(
    x: Array, proportions: Array, coefficients: Array, noise: float, random: np.random.Generator
) -> tuple[Array, Array]:
    """A response for every row of x, and the component it came from."""
    z = random.choice(len(proportions), size=len(x), p=proportions)
    return np.einsum("ij,ij->i", x, coefficients[z]) + np.sqrt(noise) * random.normal(size=len(x)), z


def distance(a: tuple[Array, Array], b: tuple[Array, Array]) -> float:
    """Largest difference of proportions or coefficients under the best matching of components."""
    return min(
        max(np.abs(a[0][list(p)] - b[0]).max(), np.abs(a[1][list(p)] - b[1]).max())
        for p in permutations(range(len(b[0])))
    )
