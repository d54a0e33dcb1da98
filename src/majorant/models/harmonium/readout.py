"""A calibrated readout: logistic regression of each bit on the latents that the other views give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from majorant.data.chunks import Block, Chunks
from majorant.models.harmonium.pseudo_likelihood import positions, softplus_and_minus_sigmoid
from majorant.solvers.smooth import lbfgs

Array = NDArray[np.float64]

PENALTIES = tuple(10.0 ** (-step / 2) for step in range(9))
"""Compared by cross-validation, from the largest down."""
PATIENCE = 2
"""Penalties in a row without a gain after which no smaller ones are tried."""
FOLDS = 5
MANY_ROWS = 2000
"""Where there are more, one fold is enough."""
FEWEST_ROWS = 20
UNCHOSEN = 0.1
"""The penalty where rows are too few to hold some out."""
ROUGH = 1e-6


@dataclass(frozen=True)
class Readout:
    r"""Logistic regressions of all bits, with one penalty.

    Minimised is :math:`\frac{1}{\omega} \sum_d \omega_d \sum_i [\log(1 + e^{\eta_{di}}) - x_{di} \eta_{di}]
    + \frac{\lambda}{2} |w|^2`, :math:`\omega = \sum_d \omega_d`, with latents in units of their deviations.

    Attributes
    ----------
    latents : ndarray of shape (n, n_components)
        With a column of ones behind.
    bits : CSR matrix of shape (n, n_bits)
    weights : ndarray of shape (n,)
    """

    latents: Array
    bits: Any
    weights: Array

    @property
    def data(self) -> Chunks:
        """All rows, in blocks."""
        return Chunks(
            self.latents, self.bits, weights=self.weights, rows=max(64, 500_000 // max(self.bits.shape[1], 1))
        )

    def part(self, rows: NDArray[np.bool_]) -> Readout:
        """Some rows."""
        return Readout(self.latents[rows], self.bits[rows], self.weights[rows])

    def base_rates(self) -> Array:
        """Coefficients with which each bit has its own frequency."""
        w = np.zeros((self.latents.shape[1], self.bits.shape[1]))
        least = 0.5 / (1 + len(self.weights))
        rate = np.clip(np.asarray(self.bits.T @ self.weights) / self.weights.sum(), least, 1 - least)
        w[-1] = np.log(rate) - np.log1p(-rate)
        return w

    def loss_and_slope(self, w: Array) -> tuple[float, Array]:
        """Mean log-loss of a row, and its gradient."""

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
        """Coefficients, the intercepts last."""

        def f(flat: Array) -> tuple[float, Array]:
            w = flat.reshape(start.shape)
            value, slope = self.loss_and_slope(w)
            slope[:-1] += penalty * w[:-1]
            return value + penalty / 2 * float(np.einsum("ki,ki->", w[:-1], w[:-1])), slope.ravel()

        return lbfgs(f, start.ravel(), tol=tol, gtol=gtol, memory=20, max_iter=500).x.reshape(start.shape)

    def chosen(self) -> float:
        """The penalty with the least log-loss by cross-validation over every fifth row, from the largest down."""
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


def fit_readout(latents: Array, bits: Any, weights: Array, l2: float | None = None) -> tuple[Array, float]:
    """Coefficients (n_components + 1, n_bits) of one logistic regression a column, the intercepts last; the penalty.

    Parameters
    ----------
    latents, bits, weights
        See `Readout`; rows in an order that does not depend on how they were given.
    l2 : float, optional
        By default chosen by cross-validation.
    """
    share = weights / weights.sum()
    mean = share @ latents
    unit = np.sqrt(share @ (latents - mean) ** 2)
    unit[unit < 1e-12] = 1.0
    readout = Readout(np.column_stack([(latents - mean) / unit, np.ones(len(latents))]), bits, weights)
    penalty = readout.chosen() if l2 is None else l2
    w = readout.fitted(readout.base_rates(), penalty, tol=1e-10, gtol=1e-7)
    w[:-1] /= unit[:, None]
    w[-1] -= mean @ w[:-1]
    return np.ascontiguousarray(w), penalty


def read_out(latents: Array, coefficients: Array) -> Array:
    """Probabilities (n, n_bits)."""
    return np.asarray(expit(latents @ coefficients[:-1] + coefficients[-1]))
