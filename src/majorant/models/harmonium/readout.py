"""A calibrated readout: logistic regression of each bit or level on the latents that the other views give."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from majorant.engine.chunks import Block, Chunks
from majorant.models.harmonium.pseudo_likelihood import positions
from majorant.solvers.smooth import lbfgs

Array = NDArray[np.float64]


def fit_readout(latents: Array, bits: Any, weights: Array) -> Array:
    r"""Coefficients (n_components + 1, n_bits) of one logistic regression a column, the intercepts last.

    Minimised is :math:`\sum_d \omega_d \sum_i \log(1 + e^{\eta_{di}}) - x_{di} \eta_{di} + |w|^2 / 2` with latents in
    units of their deviations: a penalty of C = 1.
    """
    n, k = latents.shape
    share = weights / weights.sum()
    mean = share @ latents
    unit = np.sqrt(share @ (latents - mean) ** 2)
    unit[unit < 1e-12] = 1.0
    p = bits.shape[1]
    h = np.column_stack([(latents - mean) / unit, np.ones(n)])
    data = Chunks(h, bits, weights=weights, rows=max(64, 500_000 // max(p, 1)))
    total = float(weights.sum())

    def f(flat: Array) -> tuple[float, Array]:
        w = flat.reshape(k + 1, p)

        def visit(block: Block) -> Array:
            rows, x = block.columns
            eta = rows @ w
            flat_at = positions(x)
            each = np.logaddexp(0, eta).sum(axis=1)
            each -= np.bincount(flat_at // p, weights=eta.ravel()[flat_at], minlength=len(rows))
            e = expit(eta)
            e.ravel()[flat_at] -= 1.0
            assert block.weights is not None
            e *= block.weights[:, None]
            return np.append((rows.T @ e).ravel(), block.weights @ each)

        sums = data.map_sum(visit)
        gradient = sums[:-1].reshape(k + 1, p)
        gradient[:-1] += w[:-1]
        value = float(sums[-1]) + 0.5 * float(np.einsum("ki,ki->", w[:-1], w[:-1]))
        return value / total, gradient.ravel() / total

    start = np.zeros((k + 1, p))
    rate = np.clip(np.asarray(bits.T @ share), 0.5 / (1 + n), 1 - 0.5 / (1 + n))
    start[-1] = np.log(rate) - np.log1p(-rate)
    w = lbfgs(f, start.ravel(), tol=1e-10, gtol=1e-7, memory=20, max_iter=500).x.reshape(k + 1, p)
    w[:-1] /= unit[:, None]
    w[-1] -= mean @ w[:-1]
    return np.ascontiguousarray(w)


def read_out(latents: Array, coefficients: Array) -> Array:
    """Probabilities (n, n_bits)."""
    return np.asarray(expit(latents @ coefficients[:-1] + coefficients[-1]))
