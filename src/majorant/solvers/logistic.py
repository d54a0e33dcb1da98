"""Logistic regressions of many bits on the same few columns, with one ridge penalty chosen by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from majorant import _kernels
from majorant.data.chunks import Block, Chunks
from majorant.solvers.smooth import lbfgs

Array = NDArray[np.float64]

PENALTIES = tuple(10.0 ** (-step / 2) for step in range(9))
"""Penalties that are compared, from the largest down."""
PATIENCE = 2
"""Number of consecutive penalties without improvement after which no smaller ones are tried."""
FOLDS = 5
MANY_ROWS = 2000
"""Number of rows beyond which one fold is enough."""
FEWEST_ROWS = 20
"""Smallest number of rows that are split into folds."""
UNCHOSEN = 0.1
"""Penalty if there are too few rows to hold some out."""
ROUGH = 1e-6
"""Tolerance of the fits that are compared."""


@dataclass(frozen=True)
class LogisticRegressions:
    r"""The rows of many logistic regressions, one for each bit, with the same penalty.

    The objective is :math:`\frac{1}{\omega} \sum_d \omega_d \sum_i [\log(1 + e^{\eta_{di}}) - x_{di} \eta_{di}]
    + \frac{\lambda}{2} |w|^2`, :math:`\omega = \sum_d \omega_d`.
    """

    columns: Array  # (n, n_columns + 1): standardised, with a last column of ones
    bits: Any  # CSR (n, n_bits)
    weights: Array  # (n,)

    @property
    def data(self) -> Chunks:
        """The rows in blocks."""
        return Chunks(
            self.columns, self.bits, weights=self.weights, rows=max(64, 500_000 // max(self.bits.shape[1], 1))
        )

    def part(self, rows: NDArray[np.bool_]) -> LogisticRegressions:
        """Return the rows of a mask."""
        return LogisticRegressions(self.columns[rows], self.bits[rows], self.weights[rows])

    def base_rates(self) -> Array:
        """Return the coefficients that give each bit its frequency."""
        w = np.zeros((self.columns.shape[1], self.bits.shape[1]))
        least = 0.5 / (1 + len(self.weights))
        rate = np.clip(np.asarray(self.bits.T @ self.weights) / self.weights.sum(), least, 1 - least)
        w[-1] = np.log(rate) - np.log1p(-rate)
        return w

    def loss_and_slope(self, w: Array) -> tuple[float, Array]:
        """Return the mean log-loss of rows, and its gradient."""

        def visit(block: Block) -> Array:
            rows, x = block.columns
            eta = rows @ w
            at = positions(x)
            on = np.bincount(at // w.shape[1], weights=eta.ravel()[at], minlength=len(rows))
            softplus, e = softplus_and_minus_sigmoid(eta)
            e.ravel()[at] += 1.0
            assert block.weights is not None
            return np.append((rows.T @ (e * block.weights[:, None])).ravel(), block.weights @ (softplus - on))

        sums = self.data.map_sum(visit) / self.weights.sum()
        return float(sums[-1]), -sums[:-1].reshape(w.shape)

    def fitted(self, start: Array, penalty: float, *, tol: float, gtol: float) -> Array:
        """Fit coefficients, the intercepts last."""

        def f(flat: Array) -> tuple[float, Array]:
            w = flat.reshape(start.shape)
            value, slope = self.loss_and_slope(w)
            slope[:-1] += penalty * w[:-1]
            return value + penalty / 2 * float(np.einsum("ki,ki->", w[:-1], w[:-1])), slope.ravel()

        return lbfgs(f, start.ravel(), tol=tol, gtol=gtol, memory=20, max_iter=500).x.reshape(start.shape)

    def chosen(self) -> float:
        """Choose the penalty by the log-loss of cross-validation, from the largest down."""
        n = len(self.weights)
        if n < FEWEST_ROWS:
            return UNCHOSEN
        held = [np.arange(n) % FOLDS == fold for fold in range(FOLDS if n <= MANY_ROWS else 1)]
        folds = [(self.part(~out), self.part(out)) for out in held]
        at = [training.base_rates() for training, _ in folds]
        losses: list[float] = []
        for penalty in PENALTIES:
            at = [
                training.fitted(w, penalty, tol=ROUGH, gtol=ROUGH) for w, (training, _) in zip(at, folds, strict=True)
            ]
            losses.append(
                sum(
                    testing.loss_and_slope(w)[0] * float(testing.weights.sum())
                    for w, (_, testing) in zip(at, folds, strict=True)
                )
            )
            if len(losses) - int(np.argmin(losses)) > PATIENCE:
                break
        return float(PENALTIES[int(np.argmin(losses))])


def fit_logistic(
    columns: Array,  # (n, n_columns)
    bits: Any,  # CSR (n, n_bits)
    weights: Array,  # (n,)
    l2: float | None = None,  # penalty of coefficients of standardised columns; by default chosen by cross-validation
) -> tuple[Array, float]:
    """Fit a logistic regression of each bit; return coefficients (n_columns + 1, n_bits) and penalty."""
    share = weights / weights.sum()
    mean = share @ columns
    unit = np.sqrt(share @ (columns - mean) ** 2)
    unit[unit < 1e-12] = 1.0
    problem = LogisticRegressions(np.column_stack([(columns - mean) / unit, np.ones(len(columns))]), bits, weights)
    penalty = problem.chosen() if l2 is None else l2
    w = problem.fitted(problem.base_rates(), penalty, tol=1e-10, gtol=1e-7)
    w[:-1] /= unit[:, None]
    w[-1] -= mean @ w[:-1]
    return np.ascontiguousarray(w), penalty


def logistic_probabilities(columns: Array, coefficients: Array) -> Array:
    """Return the probabilities of bits, (n, n_bits), from coefficients of `fit_logistic`."""
    return np.asarray(expit(columns @ coefficients[:-1] + coefficients[-1]))


def positions(x: Any) -> NDArray[np.intp]:
    """Return the positions of the entries of a CSR matrix in the flat dense matrix."""
    return np.asarray(np.repeat(np.arange(x.shape[0]) * x.shape[1], np.diff(x.indptr)) + x.indices)


def softplus_and_minus_sigmoid(eta: Array) -> tuple[Array, Array]:
    """Return the row sums of log(1 + exp(eta)), and -1 / (1 + exp(-eta)); `eta` may be overwritten."""
    eta, softplus = np.ascontiguousarray(eta), np.empty(len(eta))
    _kernels.bit_losses(eta, softplus)
    return softplus, eta
