"""Where does a fit of several lines begin? Lines through few rows, trimmed greedily, pooled, or with one replaced.

All draws are by inverse CDF on the weighted rows in canonical order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.engine.draws import drawn, thinned
from majorant.models.regression_mixture.parameters import Regressions
from majorant.search.effort import Plan
from majorant.search.race import Contest, Run

TRIMMED, ELEMENTAL, POOLED = "trimmed greedy", "lines through few rows", "pooled line and noise"
N_CANDIDATES, N_STEPS = 6, 3
MOST_STARTS, STARTS_ON_A_SAMPLE = 64, 32
"""Starts of a round at most, and where they race on a sample of the rows."""


def plan_of(n_components: int, is_sampled: bool) -> Plan:
    """The search for a mixture of so many lines."""
    size = STARTS_ON_A_SAMPLE if is_sampled else min(4 * n_components * (n_components + 1), MOST_STARTS)
    return Plan(
        n_starts=size,
        n_perturbations=size,
        race=((15, max(size // 3, 4)), (40, max(size // 8, 4))),
        n_beyond=min(16 * n_components, MOST_STARTS),
    )


def kinds_of_starts(size: int) -> tuple[int, int, int]:
    """How many of a pool are trimmed greedily, elemental, and pooled: no single kind finds every optimum."""
    n_trimmed, n_elemental = round(0.55 * size), round(0.35 * size)
    return n_trimmed, n_elemental, size - n_trimmed - n_elemental


@dataclass(frozen=True)
class Sample:
    """The rows on which starts race.

    Attributes
    ----------
    x : ndarray of shape (n_rows, p)
        Orthonormal design.
    y : ndarray of shape (n_rows,)
        The single model's standardised residuals.
    weights : ndarray of shape (n_rows,)
    """

    x: NDArray[Any]
    y: NDArray[Any]
    weights: NDArray[np.float64]

    @cached_property
    def total_weight(self) -> float:
        return float(self.weights.sum())

    @cached_property
    def n_features(self) -> int:
        return int(self.x.shape[1])

    @cached_property
    def kernel_weights(self) -> NDArray[np.float64] | None:
        """As the kernels take them: none where all are one."""
        return None if (self.weights == 1.0).all() else self.weights

    def drawn(self, draws: np.random.Generator, size: int) -> NDArray[np.int64]:
        """Rows drawn with their weights."""
        return drawn(self.weights, draws.random(size))

    def squared_residuals(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of every row under every line, shape (n_rows, K)."""
        return np.asarray((self.y[:, None] - np.einsum("ij,kj->ik", self.x, coef)) ** 2, dtype=np.float64)

    def subsample(self, draws: np.random.Generator, size: int) -> Sample:
        """Rows at equal steps of weight from a random one on, each with the number of times that it was met."""
        rows, times = thinned(self.weights, size, draws)
        return Sample(self.x[rows], self.y[rows], np.asarray(times * (self.total_weight / size), dtype=np.float64))

    def as_start(self, coef: NDArray[np.float64]) -> Regressions:
        """Lines with equal weights and a noise by which every row lies near one of them."""
        k = len(coef)
        nearest = self.squared_residuals(coef).min(axis=1)
        variance = max(float(self.weights @ nearest) / self.total_weight, 1e-3)
        return Regressions(np.full(k, 1 / k), np.ascontiguousarray(coef), np.full(k, variance))


def trimmed_greedy(rows: Sample, k: int, draws: np.random.Generator) -> Regressions:
    """One line after the other, each among the rows that those before it leave unexplained."""
    share = draws.uniform(0.3, 1.0) / k
    mass = np.full((k, N_CANDIDATES), max(share * rows.total_weight, rows.n_features + 2.0))
    uniforms = draws.random((k, N_CANDIDATES * (rows.n_features + 1)))
    coef = np.empty((k, rows.n_features))
    _kernels.regression_greedy(rows.x, rows.y, rows.kernel_weights, N_STEPS, mass, uniforms, coef)
    return rows.as_start(coef)


def elemental(rows: Sample, k: int, draws: np.random.Generator) -> Regressions:
    """Lines through p + 1 rows each."""
    coef = np.empty((k, rows.n_features))
    for line in coef:
        _concentrated(rows, draws, rows.total_weight, 0, line)
    return rows.as_start(coef)


def pooled(rows: Sample, k: int, draws: np.random.Generator) -> Regressions:
    """The single model's line, which is zero here, and noise."""
    return rows.as_start(draws.standard_normal((k, rows.n_features)) * draws.uniform(0.2, 1.5))


def replaced(rows: Sample, base: Regressions, draws: np.random.Generator, least: float) -> Regressions:
    """A solution with one line, drawn at random, replaced by a line through few rows or concentrated on some."""
    new, k = base.copy(), base.n_components
    j = int(draws.integers(k))
    total = rows.total_weight
    mass = float(max(draws.uniform(0.05, 0.8) * total / k, least + 1))
    n_steps = 2 if draws.random() < 0.6 else 0
    threshold = _concentrated(rows, draws, mass, n_steps, new.coef[j])
    new.variances[j] = max(threshold, 1e-6)
    new.weights[j] = min(max(mass / total, 0.02), 0.5)
    return Regressions(new.weights / new.weights.sum(), new.coef, new.variances)


def pool(rows: Sample, k: int, size: int, draws: np.random.Generator) -> list[tuple[str, Regressions]]:
    """Starts of every kind."""
    n_trimmed, n_elemental, n_pooled = kinds_of_starts(size)
    kinds = [(TRIMMED, trimmed_greedy)] * n_trimmed + [(ELEMENTAL, elemental)] * n_elemental
    kinds += [(POOLED, pooled)] * n_pooled
    return [(source, start(rows, k, draws)) for source, start in kinds]


def _concentrated(
    rows: Sample, draws: np.random.Generator, mass: float, n_steps: int, line: NDArray[np.float64]
) -> float:
    """Writes to `line`; returns the largest squared residual among the rows of the given mass nearest to it."""
    drawn = rows.drawn(draws, rows.n_features + 1)
    return _kernels.regression_concentrate(rows.x, rows.y, rows.kernel_weights, None, drawn, mass, n_steps, line)


def is_held_by_ratio(contest: Contest[Any], run: Run[Any], max_sigma_ratio: float) -> bool:
    """Whether a solution near the largest ratio of noises would go beyond it if it could."""
    if not contest.has_rule or run.theta.sigma_ratio < 0.95 * max_sigma_ratio:
        return False
    end = contest.run(contest.whole, [run], 200, 0.0, free=True)[0]  # the way out may be flat: no tolerance
    return bool(end.theta.sigma_ratio > max_sigma_ratio)
