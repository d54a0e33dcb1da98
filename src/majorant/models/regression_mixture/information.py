"""How exactly do the data determine a mixture of regressions? Standard errors from the observed information."""

from __future__ import annotations

import numpy as np

from majorant.data.chunks import Block
from majorant.densities import Regression
from majorant.engine.mixture import Array, Mixture
from majorant.laws import Grouped
from majorant.laws.gated import Logits
from majorant.laws.grouped import boundaries
from majorant.models.regression_mixture.contest import priors
from majorant.models.regression_mixture.layout import Layout
from majorant.models.regression_mixture.starts import Theta
from majorant.models.regression_mixture.units import AnyUnits, Units


def layout_of(units: AnyUnits, mixture: Mixture) -> Layout:
    """Which parameters are free."""
    density, k = mixture.density, mixture.n_components
    assert isinstance(density, Regression)
    n_scales = {"none": 0, "one": 1, "each": k}[density.n_dispersions]
    g = 1 if units.gating is None else units.gating.shape[1]
    return Layout(k, units.n_coefficients, g, units.n_shared, n_scales)


def observed_information(units: AnyUnits, mixture: Mixture, theta: Theta) -> Array:
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
    layout = layout_of(units, mixture)
    return units.data.map_sum(lambda block: _of_block(mixture, block, theta, layout))


def _of_block(mixture: Mixture, block: Block, theta: Theta, layout: Layout) -> Array:
    density, k, own = mixture.density, layout.k, layout.p + 1
    assert isinstance(density, Regression)
    response, dispersion = density.response, theta.density.dispersion[0]
    plain = Block(block.first, block.columns)
    rows, law_columns = mixture.parts(plain)
    eta = density.predicted(theta.density.coef, rows)[0].T
    of_rows = mixture.posterior(theta, plain).responsibilities[0].T
    n = len(block)
    first = boundaries(law_columns)[0] if isinstance(mixture.law, Grouped) else np.arange(n)
    is_grouped = len(first) < n
    w = np.ones(len(first)) if block.weights is None else block.weights[first]
    q, z = of_rows[first], block.columns[0]
    gates = block.columns[-1][first] if isinstance(theta.law, Logits) else np.ones((len(first), 1))
    pi = priors(gates, theta.law.coef[0]) if isinstance(theta.law, Logits) else np.tile(theta.law.weights, (len(q), 1))
    trials = np.ones((1, 1)) if response.is_location_scale else block.columns[3][:, None]
    given = block.columns[1][:, None], eta, dispersion, trials
    score, curvature = response.score(*given), response.curvature(*given)
    by_scale = [np.zeros_like(score)] * 3 if layout.n_scales == 0 else response.scale_derivatives(*given)
    row_q = of_rows if block.weights is None else of_rows * block.weights[:, None]
    scores = np.empty((len(first), layout.size))  # expected
    out = np.zeros((layout.size, layout.size))
    for c in range(k):
        at, last, share = layout.line(c), layout.scale(c), w * q[:, c]
        part = slice(at.start, at.start + own)
        own_scores = np.column_stack([score[:, c : c + 1] * z, by_scale[0][:, c]])
        own_scores = np.add.reduceat(own_scores, first, axis=0) if is_grouped else own_scores
        scores[:, part] = q[:, c : c + 1] * own_scores
        out[at, at] += np.einsum("i,ij,il->jl", row_q[:, c] * curvature[:, c], z, z)
        mixed = np.einsum("i,ij->j", row_q[:, c] * by_scale[2][:, c], z)
        out[at, last] -= mixed
        out[last, at] -= mixed
        out[last, last] -= float(np.sum(row_q[:, c] * by_scale[1][:, c]))
        out[part, part] -= np.einsum("u,uj,ul->jl", share, own_scores, own_scores)
        away = (np.arange(k) == c) - pi
        of_logits = np.einsum("uk,ug->ukg", away, gates).reshape(len(first), -1)
        cross = np.einsum("u,uj,ul->jl", share, own_scores, of_logits)
        out[part, layout.logits] -= cross
        out[layout.logits, part] -= cross.T
        out[layout.logits, layout.logits] -= np.einsum("u,uj,ul->jl", share, of_logits, of_logits)
        mean = np.einsum("u,uk,ug,uh->kgh", w, pi[:, c : c + 1] * away, gates, gates)
        out[layout.logit(c), layout.logits] += np.swapaxes(mean, 0, 1).reshape(layout.g, -1)
        scores[:, layout.logit(c)] = (q[:, c : c + 1] - pi[:, c : c + 1]) * gates
    return np.asarray(out + np.einsum("u,uj,ul->jl", w, scores, scores))


def standard_errors(units: AnyUnits, mixture: Mixture, theta: Theta) -> dict[str, Array] | None:
    """Standard errors in the units of X and y, by the name of the parameter.

    Returns
    -------
    dict or None
        None where the information is not positive definite: the data do not determine all parameters; or where an error
        is no number.
    """
    c = units.coordinates
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # refused below
        information = observed_information(units, mixture, theta) * units.unit
        layout = layout_of(units, mixture)
        covariance = layout.covariance(information)
        if covariance is None:
            return None
        lines = c.to_user[0] / c.sigma  # whose square may be no number
        lines[0] = lines[0] - np.einsum("j,jp->p", c.origin, lines[1:]) if c.fit_intercept else 0.0
        gates = np.ones((1, 1)) if units.gating is None else c.gating_to_user
        scales = np.sqrt(theta.density.dispersion[0]) * c.sigma
        return layout.errors(covariance, lines, scales, _weights_by_logits(units, theta), gates, c.sigma)


def _weights_by_logits(units: AnyUnits, theta: Theta) -> Array:
    """Derivatives of the mean priors by the coefficients of the logits, (K, K g)."""
    if not isinstance(theta.law, Logits):
        weights = theta.law.weights[0]
        return np.diag(weights) - np.outer(weights, weights)
    assert isinstance(units, Units) and units.gating is not None
    pi = priors(units.gating, theta.law.coef[0])
    share = units.weights / units.total_weight
    table = pi[:, :, None] * (np.eye(pi.shape[1]) - pi[:, None, :])
    return np.asarray(np.einsum("u,ukj,ug->kjg", share, table, units.gating).reshape(pi.shape[1], -1))
