"""How exactly do the data determine the lines? Standard errors from the observed information."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.energy import posterior
from majorant.models.regression_mixture.design import Design
from majorant.models.regression_mixture.family import RegressionFamily, VarianceRule
from majorant.models.regression_mixture.layout import Layout
from majorant.models.regression_mixture.parameters import Regressions


def observed_information(design: Design, theta: Regressions) -> NDArray[np.float64]:
    r"""Minus the Hessian of the log-likelihood, at average weights of one.

    By Louis' identity [1]_, with :math:`s_{ik}` and :math:`H_{ik}` the complete-data score and Hessian of row i in k,

    .. math:: I = \sum_i w_i \Big[ \sum_k q_{ik} (-H_{ik} - s_{ik} s_{ik}^T) + s_i s_i^T \Big], \qquad
        s_i = \sum_k q_{ik} s_{ik}.

    Parameters
    ----------
    design : Design
    theta : Regressions
        In the design's coordinates.

    Returns
    -------
    ndarray
        By all parameters in the order of `Layout`.

    References
    ----------
    .. [1] T. A. Louis, "Finding the Observed Information Matrix when Using the EM Algorithm", Journal of the Royal
       Statistical Society B, 1982.
    """
    k, p = theta.coef.shape
    own = p + 1
    family = RegressionFamily(k, VarianceRule(np.inf, 1e-300))

    def visit(block: Block) -> NDArray[np.float64]:
        # Rows of the table are the inner axis here: sums over them then run along memory.
        x, y = (np.ascontiguousarray(np.transpose(c), dtype=np.float64) for c in block.columns)
        w = np.ones(len(y)) if block.weights is None else block.weights
        q = np.ascontiguousarray(posterior(np.asarray(family.energies(theta, block), dtype=np.float64), axis=1).T)
        r = y - np.einsum("kj,ji->ki", theta.coef, x)
        scaled = r / theta.variances[:, None]
        u = np.empty((k, own, len(y)))
        np.multiply(scaled[:, None, :], x, out=u[:, :p])
        u[:, p] = r * scaled - 1
        wq = w * q
        score = np.concatenate([(q[:, None, :] * u).reshape(k * own, -1), q - theta.weights[:, None]])
        out: NDArray[np.float64] = np.einsum("ji,li->jl", w * score, score)
        weighted = wq[:, None, :] * u
        squares = np.einsum("kji,kli->kjl", weighted, u)
        sums = weighted.sum(axis=2)
        curvatures = np.einsum("kji,li->kjl", wq[:, None, :] * x / theta.variances[:, None, None], x)
        mass = wq.sum(axis=1)
        for c in range(k):
            at = slice(c * own, (c + 1) * own)
            slope = 2 * sums[c, :p]
            spread = 2 * (sums[c, p] + mass[c])
            out[at, at] += np.block([[curvatures[c], slope[:, None]], [slope[None, :], np.array([[spread]])]])
            out[at, at] -= squares[c]
            moved = (np.arange(k) == c) - theta.weights
            cross = np.outer(sums[c], moved)
            out[at, k * own :] -= cross
            out[k * own :, at] -= cross.T
            out[k * own :, k * own :] -= mass[c] * np.outer(moved, moved)
        out[k * own :, k * own :] += float(w.sum()) * (np.diag(theta.weights) - np.outer(theta.weights, theta.weights))
        return out

    return design.data.map_sum(visit)


def layout_of(design: Design, k: int, *, common: bool) -> Layout:
    """Which parameters are free."""
    return Layout(k, design.n_coefficients, n_scales=1 if common else k)


def standard_errors(design: Design, theta: Regressions, *, common: bool) -> dict[str, Any] | None:
    """Standard errors in the units of X and y, by the name of the parameter.

    Returns
    -------
    dict or None
        None where the information is not positive definite: the data do not determine all parameters; or where an error
        is no number.
    """
    k, p = theta.coef.shape
    layout, standard = layout_of(design, k, common=common), design.standard
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        covariance = layout.covariance(observed_information(design, theta) * design.unit)
        if covariance is None:
            return None
        slopes0, levels0 = standard.coefficients(np.zeros((1, p)))
        slopes, levels = standard.coefficients(np.eye(p))
        unit = float(np.exp(standard.log_unit))  # whose square may be no number
        by_slope = (slopes - slopes0).T / unit  # (n_features, p)
        by_intercept = (levels - levels0) / unit - np.einsum("jp,j->p", by_slope, standard.origin[:-1])
        lines = np.vstack([by_intercept, by_slope])
        by_logits = np.diag(theta.weights) - np.outer(theta.weights, theta.weights)
        return layout.errors(covariance, lines, np.sqrt(theta.variances) * unit, by_logits, np.ones((1, 1)), unit)
