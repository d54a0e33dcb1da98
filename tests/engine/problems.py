"""Small random problems for every family, and every bound policy by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data import Block, Chunks
from majorant.engine import (
    Balance,
    Biased,
    BoundPolicy,
    Coherence,
    Family,
    GibbsLimit,
    GrowingSubset,
    MultiFold,
    PairConstraints,
    RandomWalk,
    Solution,
    Tempered,
    Tightest,
    minimize,
)

from .families import Array, GaussianMixture, LatentSVM, RegressionMixture, SvmTheta, k_means


@dataclass(frozen=True)
class Problem:
    """A family, row-aligned arrays, and a latent value for every unit to start from."""

    family: Family[Any]
    columns: tuple[NDArray[Any], ...]
    labels: NDArray[np.int32]

    def chunks(self, n_blocks: int = 1, **options: Any) -> Chunks:
        return Chunks(*self.columns, rows=-(-len(self.labels) // n_blocks), **options)

    def latent(self, block: Block) -> NDArray[np.int32]:
        return self.labels[block.first : block.first + len(block)]

    def repeated(self, times: NDArray[np.intp]) -> Problem:
        """The same problem with unit `i` written down ``times[i]`` times."""
        return Problem(
            self.family, tuple(np.repeat(c, times, axis=0) for c in self.columns), np.repeat(self.labels, times)
        )

    def minimize(
        self, policy: BoundPolicy | None = None, *, data: Chunks | None = None, **options: Any
    ) -> Solution[Any]:
        """A fit from the labels, or from ``theta=``."""
        first = {} if "theta" in options else {"latent": self.latent}
        return minimize(self.family, self.chunks() if data is None else data, policy, **first, **options)

    def first_theta(self) -> Any:
        """The parameters of the labels' bound."""
        return self.minimize(max_iter=1).theta


def blobs(seed: int, n: int, k: int, d: int = 2) -> tuple[NDArray[np.float64], NDArray[np.int32], np.random.Generator]:
    """Overlapping groups of points, an unrelated label for each, and the generator that made them."""
    random = np.random.default_rng(seed)
    centres = random.normal(0, 3, (k, d))
    x = centres[random.integers(0, k, n)] + random.normal(size=(n, d))
    return x, random.integers(0, k, n).astype(np.int32), random


class LatentSVMOnGrid(LatentSVM):
    """Class weights that are short binary fractions. With features that are, too, scores and their sums are exact.

    A cutting-plane solver stops at kinks, where scores are equal: with rounded scores the order of a sum would decide
    between them, and runs that should be the same would part.
    """

    def solve(self, s: Array, theta: SvmTheta | None, data: Chunks) -> tuple[SvmTheta, float]:
        return super().solve(np.round(s * 2**36) / 2**36, theta, data)

    def _weights_of(self, dual: Array, slopes: Array, s: Array) -> Array:
        return np.round(super()._weights_of(dual, slopes, s) * 2**16) / 2**16


def kmeans_problem(seed: int, n: int = 40) -> Problem:
    x, labels, _ = blobs(seed, n, 4)
    return Problem(k_means(4), (x,), labels)


def gaussian_problem(seed: int, n: int = 40, beta: float = 1.0) -> Problem:
    x, labels, _ = blobs(seed, n, 3)
    return Problem(GaussianMixture(3, floor=0.05, beta=beta), (x,), labels)


def regression_problem(seed: int, n: int = 40) -> Problem:
    x, labels, random = blobs(seed, n, 2, d=1)
    slopes = np.array([2.0, -1.0])[random.integers(0, 2, n)]
    y = slopes * x[:, 0] + random.normal(0, 0.3, n)
    return Problem(RegressionMixture(2, floor=1e-3), (np.column_stack([np.ones(n), x]), y), labels)


def svm_problem(seed: int, n: int = 18) -> Problem:
    """Bags of three regions of which one shows the class."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, n)
    x = random.normal(0, 0.7, (n, 3, 4))
    x[np.arange(n), random.integers(0, 3, n)] += 3.0 * np.eye(4)[y]
    x = np.round(x * 2**6) / 2**6
    return Problem(
        LatentSVMOnGrid(3, 3, ridge=0.3 * n, tolerance=0.03), (x, y), random.integers(0, 3, n).astype(np.int32)
    )


def hard_gaussian_problem(seed: int, n: int = 40) -> Problem:
    return gaussian_problem(seed, n, beta=np.inf)


PROBLEMS: dict[str, Callable[..., Problem]] = {
    "k-means": kmeans_problem,
    "Gaussian mixture": gaussian_problem,
    "hard Gaussian mixture": hard_gaussian_problem,
    "regression mixture": regression_problem,
    "latent SVM": svm_problem,
}

PAIRS = PairConstraints(must_link=[[0, 1], [1, 2], [5, 9]], cannot_link=[[0, 5], [3, 4]])

CHAIN = Coherence([[i, i + 1] for i in range(9)], method="icm")

POLICIES: dict[str, BoundPolicy] = {
    "Tightest": Tightest(),
    "GibbsLimit": GibbsLimit(),
    "RandomWalk": RandomWalk(n_sweeps=5),
    "GrowingSubset": GrowingSubset(),
    "Tempered": Tempered(),
    "Balance": Biased(Balance()),
    "PairConstraints": Biased(PAIRS),
    "MultiFold": Biased(MultiFold(2)),
    "Coherence": Biased(CHAIN),
}

EXPLORING = {name: policy for name, policy in POLICIES.items() if name != "Tightest"}


def objective(family: Family[Any], data: Chunks, theta: Any) -> float:
    """``F(theta)``, from its definition."""

    def free_energy(block: Block) -> float:
        energies = family.energies(theta, block).astype(np.float64)
        if np.isinf(family.beta):
            return block.total(energies.min(axis=1))
        return block.total(-np.log(np.exp(-family.beta * energies).sum(axis=1)) / family.beta)

    return family.penalty(theta) + data.map_sum(free_energy)
