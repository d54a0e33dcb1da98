"""A start of margin classifiers with latent values by annealing, without initial latent values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.solvers.smooth import lbfgs

BETAS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
COLDER = (16.0, 32.0)
"""Further inverse temperatures for strong penalties, whose scores are small, so that pooling stays soft for longer."""

FAR = 10.0
"""How many times the median range of the columns a range is from which on starts shrink the column."""
STRONG = 1e-2
TAU = 8.0
STEPS = 25
"""Largest number of iterations of L-BFGS at each temperature; the next temperature starts from the result."""

PooledLoss = Callable[[NDArray[np.float64], float, float], tuple[float, NDArray[np.float64]]]
"""Function of weights, inverse temperature of the pooling and of the margin; returns value and gradient."""


def annealed_pooling(
    loss: PooledLoss,  # the sum without the penalty, and its gradient
    dim: int,
    *,
    alpha: float,  # Strength of the penalty of the fit. On the path it is at least 0.005 times `mean_square`.
    mean_square: float,  # mean of :math:`|\phi|^2`
    unit: float = 1.0,  # size of the costs, the unit of temperatures
    # (dim,): added to the weights before every temperature, for problems in which latent values are interchangeable:
    # otherwise the path would never leave weights that are equal for all of them
    nudge: NDArray[np.float64] | None = None,
    sizes: NDArray[np.float64] | float = 1.0,  # (dim,): of features, by which the path divides them; see `column_sizes`
) -> tuple[NDArray[np.float64], int]:
    r"""Return weights after an annealing path from the mean over latent values to the best latent value.

    .. math:: F_\beta(w) = \frac{\alpha'}{2} |w|^2 + \sum_i c_i \Bigl[\frac1\tau \log\sum_y
              e^{\tau (s_{iy} + \Delta(y_i, y))} - s_{iy_i}\Bigr], \qquad
              s_{iy} = \frac1\beta \log \frac{1}{m_i} \sum_z e^{\beta \langle w, \phi(x_i, y, z) \rangle}

    At ``beta=0`` scores are those of the mean over latent values, and the problem is convex, so the path needs no
    start. L-BFGS follows it to inverse temperatures at which pooling is nearly the maximum. The logarithm of a *mean*
    prevents samples with many latent values from scoring higher for their number.

    Returns w (dim,) and the number of evaluations of `loss`.

    References
    ----------
    .. [1] Y. LeCun, "Machine learning and pattern recognition: latent variables, mixture models, EM", lecture notes:
       the free energy at decreasing temperature.
    """
    n_passes = 0
    strength = max(alpha, 0.005 * mean_square)
    w = np.zeros(dim)
    for beta in BETAS + (COLDER if alpha >= STRONG else ()):

        def f(at: NDArray[np.float64], beta: float = beta) -> tuple[float, NDArray[np.float64]]:
            nonlocal n_passes
            n_passes += 1
            value, gradient = loss(at / sizes, beta / unit, TAU / unit)
            return (value + strength / 2 * float(np.sum(at * at))) / unit, (gradient / sizes + strength * at) / unit

        w = lbfgs(f, w if nudge is None else w + nudge / sizes, tol=1e-6, max_iter=STEPS).x
    return w / sizes, n_passes


def column_sizes(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return what starts divide columns by: one, but for those that vary far more than most, a power of two.

    Such a column would be most of every distance and of the penalty on the path, which then leads nowhere.
    """
    with np.errstate(invalid="ignore"):
        span = np.fmax.reduce(rows, axis=0).astype(np.float64) - np.fmin.reduce(rows, axis=0)
    span = np.nan_to_num(span)
    typical = float(np.median(span[span > 0])) if (span > 0).any() else 1.0
    far = span > FAR * typical
    return np.where(far, 2.0 ** np.round(np.log2(np.where(far, span / typical, 1.0))), 1.0)
