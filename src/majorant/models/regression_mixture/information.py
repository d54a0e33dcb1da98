"""How exactly do the data determine a mixture of regressions? Standard errors from the observed information."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from majorant.data.chunks import Block
from majorant.densities import Regression
from majorant.engine.mixture import Array, Mixture
from majorant.laws import Grouped
from majorant.laws.gated import Logits
from majorant.laws.grouped import boundaries
from majorant.models.regression_mixture.contest import priors
from majorant.models.regression_mixture.starts import Theta
from majorant.models.regression_mixture.units import AnyUnits, Units


@dataclass(frozen=True)
class Layout:
    """All parameters are, in this order, the p coefficients and the logarithm of the scale of each of k components,
    then the g coefficients of the logit of each; g is one without gating.

    Free ones are fewer: the last `n_shared` coefficients are the same in all components, and of scales k are free, one
    where it is common, or none.
    """

    k: int
    p: int
    g: int = 1
    n_shared: int = 0
    n_scales: int = 0

    @property
    def size(self) -> int:
        """Number of all parameters."""
        return self.k * (self.p + 1 + self.g)

    def line(self, c: int) -> slice:
        """The coefficients of a component."""
        return slice(c * (self.p + 1), c * (self.p + 1) + self.p)

    def scale(self, c: int) -> int:
        """The logarithm of its scale."""
        return c * (self.p + 1) + self.p

    @property
    def logits(self) -> slice:
        """The coefficients of all logits."""
        return slice(self.k * (self.p + 1), self.size)

    def logit(self, c: int) -> slice:
        """Those of a component."""
        begin = self.k * (self.p + 1) + c * self.g
        return slice(begin, begin + self.g)

    @cached_property
    def free(self) -> Array:
        """Matrix of all parameters by the free ones: own coefficients, shared ones, scales, logits but the first."""
        own = self.p - self.n_shared
        columns = [[self.line(c).start + j] for c in range(self.k) for j in range(own)]
        columns += [[self.line(c).start + j for c in range(self.k)] for j in range(own, self.p)]
        scales = [self.scale(c) for c in range(self.k)]
        columns += [scales] if self.n_scales == 1 else [[s] for s in scales[: self.n_scales]]
        columns += [[j] for j in range(self.logit(0).stop, self.size)]
        out = np.zeros((self.size, len(columns)))
        for column, entries in enumerate(columns):
            out[entries, column] = 1.0
        return out

    def covariance(self, information: Array) -> Array | None:
        """Of all parameters, from their information; None where that of the free ones is not positive definite."""
        own = self.free.T @ information @ self.free
        size = np.sqrt(np.maximum(np.diag(own), 1e-300))
        scaled = own / np.outer(size, size)
        try:
            np.linalg.cholesky(scaled - 1e-10 * np.eye(len(own)))
        except np.linalg.LinAlgError:
            return None
        by_free = self.free / size
        return np.asarray(by_free @ np.linalg.inv(scaled) @ by_free.T)

    def errors(
        self, covariance: Array, lines: Array, scales: Array, weights_by_logits: Array, gates: Array, unit: float = 1.0
    ) -> dict[str, Array] | None:
        """Standard errors by the name of the parameter; None where one is no number.

        `lines` are intercept and slopes by the coefficients of a component, (1 + n_features, p), in units of `unit`,
        `gates` the same of a logit; then the scales (k,) and derivatives of the weights by the logits (k, k g).
        """
        k = range(self.k)
        by_line = np.array([_root(lines, covariance[self.line(c), self.line(c)]) for c in k]) * unit
        by_logit = np.array([_root(gates, covariance[self.logit(c), self.logit(c)]) for c in k])
        logs = np.array([covariance[self.scale(c), self.scale(c)] for c in k])
        found = {
            "coef": by_line[:, 1:],
            "intercept": by_line[:, 0],
            "scale": scales * np.sqrt(logs),
            "weights": _root(weights_by_logits, covariance[self.logits, self.logits]),
            "gating_coef": by_logit[:, 1:],
            "gating_intercept": by_logit[:, 0],
        }
        return found if all(np.isfinite(values).all() for values in found.values()) else None


def _root(rows: Array, covariance: Array) -> Array:
    """Standard deviations of combinations."""
    return np.asarray(np.sqrt(np.maximum(np.einsum("ij,jl,il->i", rows, covariance, rows), 0.0)))


def layout_of(units: AnyUnits, mixture: Mixture) -> Layout:
    """Which parameters are free."""
    density, k = mixture.density, mixture.n_components
    assert isinstance(density, Regression)
    n_scales = {"none": 0, "one": 1, "each": k}[density.n_dispersions]
    g = 1 if units.gating is None else units.gating.shape[1]
    return Layout(k, units.n_coefficients, g, units.n_shared, n_scales)


def observed_information(units: AnyUnits, mixture: Mixture, theta: Theta) -> Array:
    r"""Minus the Hessian of the log-likelihood by all parameters of the layout.

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
    density, k = mixture.density, layout.k
    assert isinstance(density, Regression)
    response, dispersion = density.response, theta.density.dispersion[0]
    plain = Block(block.first, block.columns)
    rows, law_columns = mixture.parts(plain)
    eta = density.predicted(theta.density.coef, rows)[0].T
    of_rows = mixture.posterior(theta, plain).responsibilities[0].T
    n = len(block)
    first = boundaries(law_columns)[0] if isinstance(mixture.law, Grouped) else np.arange(n)
    w = np.ones(len(first)) if block.weights is None else block.weights[first]
    q, z = of_rows[first], block.columns[0]
    gates = block.columns[-1][first] if isinstance(theta.law, Logits) else np.ones((len(first), 1))
    pi = priors(gates, theta.law.coef[0]) if isinstance(theta.law, Logits) else np.tile(theta.law.weights, (len(q), 1))
    trials = np.ones((1, 1)) if response.is_location_scale else block.columns[3][:, None]
    given = block.columns[1][:, None], eta, dispersion, trials
    score, curvature = response.score(*given), response.curvature(*given)
    by_scale = [np.zeros_like(score)] * 3 if layout.n_scales == 0 else response.scale_derivatives(*given)
    row_q = of_rows if block.weights is None else of_rows * block.weights[:, None]
    expected, out = np.zeros((len(first), layout.size)), np.zeros((layout.size, layout.size))
    by_logits = np.einsum("u,ucj,ug,uh->cgjh", w, _multinomial(pi), gates, gates)
    out[layout.logits, layout.logits] = by_logits.reshape(k * layout.g, -1)
    for c in range(k):
        at, last = layout.line(c), layout.scale(c)
        own = np.zeros((len(first), layout.size))  # complete-data scores of the units in this component
        of_line = np.column_stack([score[:, c : c + 1] * z, by_scale[0][:, c]])
        own[:, at.start : last + 1] = np.add.reduceat(of_line, first, axis=0) if len(first) < n else of_line
        own[:, layout.logits] = np.einsum("uk,ug->ukg", (np.arange(k) == c) - pi, gates).reshape(len(first), -1)
        expected += q[:, c : c + 1] * own
        out -= np.einsum("uj,ul->jl", (w * q[:, c])[:, None] * own, own)
        out[at, at] += np.einsum("i,ij,il->jl", row_q[:, c] * curvature[:, c], z, z)
        mixed = np.einsum("i,ij->j", row_q[:, c] * by_scale[2][:, c], z)
        out[at, last] -= mixed
        out[last, at] -= mixed
        out[last, last] -= float(np.sum(row_q[:, c] * by_scale[1][:, c]))
    return np.asarray(out + np.einsum("uj,ul->jl", w[:, None] * expected, expected))


def _multinomial(pi: Array) -> Array:
    """Derivatives of probabilities (units, K) by their logits, (units, K, K)."""
    return np.asarray(pi[:, :, None] * (np.eye(pi.shape[1]) - pi[:, None, :]))


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
        return np.asarray(_multinomial(theta.law.weights)[0])
    assert isinstance(units, Units) and units.gating is not None
    table = _multinomial(priors(units.gating, theta.law.coef[0]))
    share = units.weights / units.total_weight
    return np.asarray(np.einsum("u,ukj,ug->kjg", share, table, units.gating).reshape(table.shape[1], -1))
