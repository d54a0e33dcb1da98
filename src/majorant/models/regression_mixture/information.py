"""How exactly do the data determine the lines? Standard errors from the observed information."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.energy import posterior
from majorant.engine.chunks import Block
from majorant.models.regression_mixture.design import Design
from majorant.models.regression_mixture.family import RegressionFamily, VarianceRule
from majorant.models.regression_mixture.parameters import Regressions


def observed_information(design: Design, theta: Regressions, *, common: bool) -> NDArray[np.float64]:
    r"""Minus the Hessian of the log-likelihood, at average weights of one.

    By Louis' identity [1]_, with :math:`s_{ik}` and :math:`H_{ik}` the complete-data score and Hessian of row i in k,

    .. math:: I = \sum_i w_i \Big[ \sum_k q_{ik} (-H_{ik} - s_{ik} s_{ik}^T) + s_i s_i^T \Big], \qquad
        s_i = \sum_k q_{ik} s_{ik}.

    Parameters are, in this order, the coefficients and the logarithm of the standard deviation of every component (one
    for all where `common`, at the end), then the logits of the first K - 1 weights against the last.

    Parameters
    ----------
    design : Design
    theta : Regressions
        In the design's coordinates.
    common : bool
        Whether all components have one variance.

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

    return _free(design.data.map_sum(visit), k, own, common)


def _free(information: NDArray[np.float64], k: int, own: int, common: bool) -> NDArray[np.float64]:
    """The information of free parameters: a common scale once, and the last logit zero."""
    keep = np.eye(len(information))[:, :-1]
    if common:
        scales = [c * own + own - 1 for c in range(k)]
        one = keep[:, scales].sum(axis=1)
        rest = [j for j in range(keep.shape[1]) if j not in scales and j < k * own]
        logits = list(range(k * own, keep.shape[1]))
        keep = np.column_stack([keep[:, rest], one, keep[:, logits]])
    return keep.T @ information @ keep


def standard_errors(design: Design, theta: Regressions, *, common: bool) -> dict[str, Any] | None:
    """Standard errors of coefficients, intercepts, scales and weights in the units of X and y.

    Returns
    -------
    dict or None
        None where the information is not positive definite: the data do not determine all parameters; or where an error
        is no number.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        errors = _errors(design, theta, common=common)
    return errors if errors and all(np.isfinite(values).all() for values in errors.values()) else None


def _errors(design: Design, theta: Regressions, *, common: bool) -> dict[str, Any] | None:
    k, p = theta.coef.shape
    information = observed_information(design, theta, common=common) * design.unit
    size = np.sqrt(np.maximum(np.diag(information), 1e-300))
    try:
        np.linalg.cholesky(information / np.outer(size, size) - 1e-10 * np.eye(len(information)))
    except np.linalg.LinAlgError:
        return None
    covariance = np.linalg.inv(information / np.outer(size, size)) / np.outer(size, size)
    standard = design.standard
    step = p if common else p + 1
    zero = np.zeros((1, p))
    slopes0, levels0 = standard.coefficients(zero)
    slopes, levels = standard.coefficients(np.eye(p))
    unit = np.exp(standard.log_unit)  # whose square may be no number
    by_slope = (slopes - slopes0).T / unit  # (n_features, p)
    by_intercept = (levels - levels0) / unit - np.einsum("jp,j->p", by_slope, standard.origin[:-1])
    coef, intercept, scale = np.empty((k, len(by_slope))), np.empty(k), np.empty(k)
    for c in range(k):
        own = covariance[c * step : c * step + p, c * step : c * step + p]
        coef[c] = unit * np.sqrt(np.einsum("jp,pq,jq->j", by_slope, own, by_slope))
        intercept[c] = unit * np.sqrt(by_intercept @ own @ by_intercept)
        at = k * p if common else c * step + p
        scale[c] = np.sqrt(covariance[at, at] * theta.variances[c]) * unit
    n_logits = k - 1
    logits = covariance[len(covariance) - n_logits :, len(covariance) - n_logits :]
    by_logit = (np.diag(theta.weights) - np.outer(theta.weights, theta.weights))[:, :n_logits]
    weights = np.sqrt(np.einsum("kj,jl,kl->k", by_logit, logits, by_logit))
    return {"coef": coef, "intercept": intercept, "scale": scale, "weights": weights}
