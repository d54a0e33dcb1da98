"""How exactly do the data determine a general mixture? Standard errors from the observed information."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from majorant.models.regression_mixture.experts.em import Problem
from majorant.models.regression_mixture.experts.parameters import Experts, stacked
from majorant.models.regression_mixture.experts.statistics import log_priors, predictors, unit_densities
from majorant.models.regression_mixture.experts.streams import AnyUnits
from majorant.models.regression_mixture.experts.units import Units
from majorant.models.regression_mixture.layout import Layout
from majorant.solvers.responses import Response

Array = NDArray[np.float64]


def layout_of(units: AnyUnits, problem: Problem, k: int) -> Layout:
    """Which parameters are free."""
    n_scales = 0 if not problem.response.has_dispersion else 1 if problem.rule.common else k
    g = 1 if units.gating is None else units.gating.shape[1]
    return Layout(k, units.n_coefficients, g, units.n_shared, n_scales)


def observed_information(units: AnyUnits, response: Response, theta: Experts, layout: Layout) -> Array:
    r"""Minus the Hessian of the log-likelihood by all parameters of the layout, at average weights of one.

    By Louis' identity [1]_, with :math:`s_{uk}` and :math:`H_{uk}` the complete-data score and Hessian of unit u in k,
    sums over its rows,

    .. math:: I = \sum_u w_u \Big[ \sum_k q_{uk} (-H_{uk} - s_{uk} s_{uk}^T) + s_u s_u^T \Big], \qquad
        s_u = \sum_k q_{uk} s_{uk}.

    References
    ----------
    .. [1] T. A. Louis, "Finding the Observed Information Matrix when Using the EM Algorithm", Journal of the Royal
       Statistical Society B, 1982.
    """
    return units.summed(lambda block: _of_block(block, response, theta, layout), layout.size)


def _of_block(units: Units, response: Response, theta: Experts, layout: Layout) -> Array:
    batch, k, own = stacked([theta]), layout.k, layout.p + 1
    eta, priors = predictors(units, batch.coef), log_priors(units, batch)
    q = unit_densities(units, response, batch, eta, priors)[1][:, 0]
    pi = np.broadcast_to(np.exp(priors[:, 0]), q.shape)
    given = units.y, eta[:, 0], theta.dispersion, units.trials
    score, curvature = response.score(*given), response.curvature(*given)
    by_scale = [np.zeros_like(score)] * 3 if layout.n_scales == 0 else response.scale_derivatives(*given)
    w, z = units.weights, units.z
    gates = np.ones((units.n_units, 1)) if units.gating is None else units.gating
    rows = units.per_row(w[:, None] * q)
    scores = np.empty((units.n_units, layout.size))  # expected
    out = np.zeros((layout.size, layout.size))
    for c in range(k):
        at, last, share = layout.line(c), layout.scale(c), w * q[:, c]
        block = slice(at.start, at.start + own)
        own_scores = units.per_unit(np.column_stack([score[:, c : c + 1] * z, by_scale[0][:, c]]))
        scores[:, block] = q[:, c : c + 1] * own_scores
        out[at, at] += np.einsum("i,ij,il->jl", rows[:, c] * curvature[:, c], z, z)
        mixed = np.einsum("i,ij->j", rows[:, c] * by_scale[2][:, c], z)
        out[at, last] -= mixed
        out[last, at] -= mixed
        out[last, last] -= float(np.sum(rows[:, c] * by_scale[1][:, c]))
        out[block, block] -= np.einsum("u,uj,ul->jl", share, own_scores, own_scores)
        away = (np.arange(k) == c) - pi
        of_logits = np.einsum("uk,ug->ukg", away, gates).reshape(units.n_units, -1)
        cross = np.einsum("u,uj,ul->jl", share, own_scores, of_logits)
        out[block, layout.logits] -= cross
        out[layout.logits, block] -= cross.T
        out[layout.logits, layout.logits] -= np.einsum("u,uj,ul->jl", share, of_logits, of_logits)
        mean = np.einsum("u,uk,ug,uh->kgh", w, pi[:, c : c + 1] * ((np.arange(k) == c) - pi), gates, gates)
        out[layout.logit(c), layout.logits] += np.swapaxes(mean, 0, 1).reshape(layout.g, -1)
        scores[:, layout.logit(c)] = (q[:, c : c + 1] - pi[:, c : c + 1]) * gates
    return np.asarray(out + np.einsum("u,uj,ul->jl", w, scores, scores))


def standard_errors(units: AnyUnits, problem: Problem, theta: Experts) -> dict[str, Array] | None:
    """Standard errors in the units of X and y, by the name of the parameter.

    Returns
    -------
    dict or None
        None where the information is not positive definite, the data do not determine all parameters; where one model
        fits every row; and where rows are trimmed, as the information of the others knows nothing of that.
    """
    if units.is_exact or problem.trim > 0:
        return None
    layout, c = layout_of(units, problem, theta.n_components), units.coordinates
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # refused below
        information = observed_information(units, problem.response, theta, layout) * units.unit
        covariance = layout.covariance(information)
        if covariance is None:
            return None
        lines = c.to_user[0].copy()
        lines[0] = lines[0] - np.einsum("j,jp->p", c.origin, lines[1:]) if c.fit_intercept else 0.0
        gates = np.ones((1, 1)) if units.gating is None else c.gating_to_user
        scales = np.sqrt(theta.dispersion) * c.sigma
        return layout.errors(covariance, lines, scales, _weights_by_logits(units, theta), gates)


def _weights_by_logits(units: AnyUnits, theta: Experts) -> Array:
    """Derivatives of the mean priors by the coefficients of the logits, (K, K g)."""
    if units.gating is None:
        return np.diag(theta.weights) - np.outer(theta.weights, theta.weights)
    pi = np.exp(log_priors(units, stacked([theta]))[:, 0])
    share = units.weights / units.total_weight
    table = pi[:, :, None] * (np.eye(theta.n_components) - pi[:, None, :])
    return np.asarray(np.einsum("u,ukj,ug->kjg", share, table, units.gating).reshape(theta.n_components, -1))
