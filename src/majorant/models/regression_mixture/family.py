"""A mixture of linear regressions as the engine sees it: energies, statistics, M-step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.data.chunks import Block, Chunks
from majorant.engine.latents import as_soft, collect
from majorant.engine.problem import Bound
from majorant.models.regression_mixture.parameters import Regressions

LOG_TWO_PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class VarianceRule:
    r"""Which noise variances a mixture may have: all equal, or within a ratio; never below a floor.

    The M-step is the exact minimiser under the rule: with :math:`d_k` the mean squared residual of component k,
    :math:`v_k = \min(\max(d_k, m), c^2 m)` for the best m.

    Attributes
    ----------
    max_sigma_ratio : float
        c, the largest ratio of two standard deviations; infinity for none.
    floor : float
        Smallest variance, in the coordinates of the fit.
    common : bool
        Whether all components share one variance.
    """

    max_sigma_ratio: float
    floor: float
    common: bool = False

    @property
    def arguments(self) -> tuple[float, float, bool]:
        """As the kernels take it."""
        return self.max_sigma_ratio**2, self.floor, self.common

    def is_active(self, variances: NDArray[np.float64]) -> bool:
        """Whether a bound of the rule holds these variances back."""
        low, high = float(variances.min()), float(variances.max())
        on_floor = low <= self.floor * (1 + 1e-6)
        return on_floor or (not self.common and high >= low * self.max_sigma_ratio**2 * (1 - 1e-6))


@dataclass
class RegressionFamily:
    r"""``E_i(z) = -log pi_z - log N(y_i; x_i' b_z, v_z)``, on blocks of columns (x, y).

    Statistics are sums of :math:`[1, r^2, r x, x x^T]` over the rows of each component, with residuals r about the
    current coefficients, so that a tight fit loses no digits.

    Attributes
    ----------
    n_states : int
        Number of components.
    rule : VarianceRule
    beta : float
        Inverse temperature.
    tolerance : float
        Settled when a step moves the fits, in units of the noise, so little that a hundred more of the kind would gain
        no more than this per unit of weight.
    slack : float
        What rounding may add to an objective; the M-step sets it: squared residuals are differences, and are divided
        by variances that may be on their floor.
    """

    n_states: int
    rule: VarianceRule
    beta: float = 1.0
    tolerance: float = 1e-8
    slack: float = field(init=False, default=0.0)

    def energies(self, theta: Regressions, block: Block) -> NDArray[Any]:
        x, y = block.columns
        out = np.empty((len(y), self.n_states), dtype=x.dtype)
        _kernels.regression_pass(x, y, None, theta.weights, theta.coef, theta.variances, self.beta, None, out)
        return out

    def statistics(self, block: Block, q: NDArray[Any], theta: Regressions | None) -> NDArray[np.float64]:
        x, y = (np.asarray(c, dtype=np.float64) for c in block.columns)
        q = as_soft(q, self.n_states)
        p = x.shape[1]
        out = np.empty((self.n_states, row_length(p)))
        lower = np.tril_indices(p)
        squares = x[:, lower[0]] * x[:, lower[1]]
        for k in range(self.n_states):
            r = y if theta is None else y - np.einsum("ij,j->i", x, theta.coef[k])
            features = np.column_stack([np.ones(len(y)), r * r, r[:, None] * x, squares])
            out[k] = collect(q[:, k : k + 1], features, 1, block.weights)[0]
        return out

    def tight_pass(self, theta: Regressions, block: Block) -> tuple[float, Bound]:
        x, y = block.columns
        s = np.empty((self.n_states, row_length(x.shape[1])))
        free = _kernels.regression_pass(x, y, block.weights, theta.weights, theta.coef, theta.variances, self.beta, s)
        entropy = 0.0 if np.isinf(self.beta) else expected_energy(s, theta) - free
        return free, Bound(s, entropy, 0.0)

    def solve(self, s: NDArray[np.float64], theta: Regressions | None, data: Chunks) -> tuple[Regressions, float]:
        if theta is None:
            p = next(data.source.blocks()).columns[0].shape[1]
            k = self.n_states
            new = Regressions(np.full(k, 1 / k), np.zeros((k, p)), np.full(k, max(1.0, self.rule.floor)))
        else:
            new = theta.copy()
        value = _kernels.regression_step(
            np.ascontiguousarray(s), *self.rule.arguments, new.weights, new.coef, new.variances
        )
        self.slack = 16 * float(np.finfo(np.float64).eps) * float(np.sum(s[:, 1] / new.variances))
        return new, value

    def penalty(self, theta: Regressions) -> float:
        return 0.0

    def settled(self, old: Regressions, new: Regressions, seen: Bound) -> bool:
        held = new.weights > 0
        moved = np.sum((new.coef - old.coef) ** 2, axis=1) / new.variances + np.log(new.variances / old.variances) ** 2
        step = new.weights[held] @ moved[held] + np.sum((new.weights - old.weights)[held] ** 2 / new.weights[held])
        return bool(step <= 0.01 * self.tolerance)


def row_length(p: int) -> int:
    """Statistics of one component of p coefficients."""
    return 2 + p + p * (p + 1) // 2


def expected_energy(s: NDArray[np.float64], theta: Regressions) -> float:
    """``<s, E(theta)>`` of statistics about `theta`."""
    mass, squares = s[:, 0], s[:, 1]
    held = mass > 0
    v = theta.variances[held]
    constant = 0.5 * (LOG_TWO_PI + np.log(v)) - np.log(theta.weights[held])
    return float(np.sum(mass[held] * constant + 0.5 * squares[held] / v))
