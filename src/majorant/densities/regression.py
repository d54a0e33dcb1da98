r"""Regressions of a target on columns: the density of a mixture of regressions, for any distribution of the target.

.. math:: \log f(y; o + z' c_k, \phi_k)

The M-step is one step of Newton's for the coefficients, exact where the target is Gaussian, and in closed form for the
dispersions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from majorant import _kernels
from majorant.data.chunks import Block, Chunks
from majorant.densities.variance_rule import VarianceRule
from majorant.engine.descent import Ends, Seen, descend
from majorant.engine.mixture import Array, Mixture, OnData, Parameters, Sums, Table
from majorant.engine.triangles import symmetric
from majorant.registry import value_class
from majorant.solvers.responses import Gaussian, Response, ResponseRows, response_rows

LONGEST_STEP = 3.0
"""Largest change of a coefficient of an orthonormal column in one step, where a step is not exact."""
IN_ONE_CALL = 1 << 15
"""Rows up to which a whole run of EM is one call of a kernel; more are processed block by block, on threads."""
LONGEST_RUN = 1 << 20
"""Most steps of such a run, whose path is preallocated."""
FEWEST_EVENTS = 1e-3
"""Information in some direction, in events, below which a component's predictor runs to infinity there."""
FEW_EVENTS = 1.0
"""Information below which the direction of the predictor is tested."""
SAME_LINE = 1e-6
"""Difference of coefficients of orthonormal columns, or of standard ones, below which two exact lines are one."""
LOG_TWO_PI = float(np.log(2 * np.pi))
EXACT_SHARE = 0.2
"""Share of the rows from which on lines without noise are told of beside a solution that counts."""
NO_MAXIMUM = ", so the likelihood has no maximum: the noise is a floor, from which log-likelihood and criteria follow"
EXACT_LINE = f"one line fits every row exactly{NO_MAXIMUM}"
EXACT_LINES = f"every row is exactly on one of the lines{NO_MAXIMUM}, and there are no standard errors"


@value_class
@dataclass(frozen=True)
class Predictors:
    """Linear predictors of the components of a batch of mixtures."""

    coef: Array  # (runs, components, p): those that all components share come last and are the same for each
    dispersion: Array  # (runs, components): one where the response has none


class Regression:
    """A target given columns, whose coefficients differ between states.

    Blocks have the design z (rows, p) and the target; of responses that are not of location and scale also the offset
    and the numbers of trials. Statistics of a component are its weight of rows, the sum of which the dispersion is
    made, and, times the dispersion, score and information of the coefficients: for a Gaussian target
    :math:`\\sum q\\, (1, r^2, r z, z z')` with residuals r about the present coefficients, so that no digits are lost.

    Parameters
    ----------
    response : Response
    n_coefficients : int
    rule : VarianceRule
    n_shared : int, default=0
        Of the coefficients, how many, the last ones, are the same in all states.
    """

    def __init__(self, response: Response, n_coefficients: int, rule: VarianceRule, n_shared: int = 0) -> None:
        self.response, self.n_coefficients, self.rule, self.n_shared = response, n_coefficients, rule, n_shared
        self.n_columns = 2 if response.is_location_scale else 4
        self.exact = response.has_normal_noise

    @property
    def width(self) -> int:
        """Weight, spread, a score for each coefficient, and an information for each pair."""
        p = self.n_coefficients
        return 2 + p + p * (p + 1) // 2

    def freed(self) -> Regression:
        """Return the same without a largest ratio of dispersions."""
        rule = VarianceRule(np.inf, self.rule.floor, self.rule.common)
        return type(self)(self.response, self.n_coefficients, rule, self.n_shared)

    # Passes

    def log_density(self, theta: Predictors, rows: Block) -> Table:
        """Return the log density of each target under each component."""
        found = self._rows(rows).log_density(*_each(theta))
        return found.reshape(*theta.dispersion.shape, len(rows))

    def statistics(self, theta: Predictors | None, rows: Block, q: Table) -> Array:
        """Return sums about `theta`; about the single model with dispersions of one for a start."""
        if theta is None:
            theta = Predictors(np.zeros((*q.shape[:2], self.n_coefficients)), np.ones(q.shape[:2]))
        return self._rows(rows).sums(*_each(theta), q.reshape(-1, len(rows))).reshape(*q.shape[:2], self.width)

    def _rows(self, rows: Block) -> ResponseRows:
        """Return the rows as their passes need them, kept with the block."""
        z = rows.columns[0]
        known = rows.derived.get("responses")
        if known is None or known[0] is not z:
            rows.derived["responses"] = known = (z, response_rows(self.response, *rows.columns[: self.n_columns]))
        return known[1]

    # The M-step

    def solve(self, statistics: Array, theta: Predictors | None, share: Array) -> Predictors:
        """Take a share of a Newton step; dispersions are the best ones under the rule."""
        runs, k, _ = statistics.shape
        if theta is None:
            theta = Predictors(np.zeros((runs, k, self.n_coefficients)), np.ones((runs, k)))
        score, information = self._score_and_information(statistics)
        step = self._towards(score, information, theta.dispersion)
        change = share[:, None, None] * step
        dispersion = theta.dispersion
        if self.response.has_dispersion:
            spread = statistics[:, :, 1]
            if self.response.is_location_scale:  # squared residuals about the new coefficients
                spread = np.maximum(spread - _gain(change, score, information), 0.0)
            dispersion = self._dispersions(spread, statistics[:, :, 0], theta.dispersion)
        return Predictors(theta.coef + change, dispersion)

    def information(self, statistics: Array, theta: Predictors) -> Array:
        """Return information on the coefficients in `vector` if states were known, (runs, m, m)."""
        return _arrow(self._score_and_information(statistics)[1] / theta.dispersion[:, :, None, None], self.n_shared)

    def without_events(self, statistics: Array, theta: Predictors, unseen: Array | None = None) -> Array:
        """Return directions of the `vector` of one run in which rows have no information, orthonormal, (m, r).

        Predictors run to infinity there, but in directions of a component's coefficients that the design has no part
        in, which are left out where they are given: `unseen`, orthonormal, (p, s). Predictors of a response with a
        dispersion do not run to infinity, and of them there is no table.
        """
        if self.response.has_dispersion:
            return np.zeros((0, 0))
        information = self.information(statistics, theta)[0]
        if unseen is not None:
            information += 2 * FEW_EVENTS * np.kron(np.eye(theta.coef.shape[1]), unseen @ unseen.T)
        events, own = np.linalg.eigh(information)
        return np.asarray(own[:, events < FEWEST_EVENTS])

    def away(self, statistics: Array, theta: Predictors) -> NDArray[np.bool_]:
        """Return whether the predictor of each component of one run goes to infinity; see `without_events`."""
        led = [self.theta_of(own[None], theta).coef[0] for own in self.without_events(statistics, theta).T]
        return np.asarray(np.abs(led).max(axis=(0, 2), initial=0.0) > SAME_LINE)

    def has_events(self, statistics: Array, theta: Predictors, least: float = FEWEST_EVENTS) -> NDArray[np.bool_]:
        """Return whether the information is more than `least` in every direction, for each run; see `without_events`.

        It is where the matrix less that on its diagonal has a Cholesky factor, which costs less than eigenvalues.
        """
        if self.response.has_dispersion:
            return np.ones(len(statistics), dtype=bool)
        information = np.nan_to_num(self.information(statistics, theta))
        information -= least * np.eye(information.shape[1])
        return np.array([dpotrf(one, lower=True)[1] == 0 for one in information])

    def on_floor(self, dispersion: Array) -> NDArray[np.bool_]:
        """Return whether the smallest of some dispersions is as small as it can be, so that rows are fitted exactly."""
        floor = max(self.rule.floor * (1 + 1e-6), self.response.least_dispersion)
        return np.asarray(self.response.has_dispersion & (dispersion.min(axis=1) <= floor))

    def exactness(self, theta: Predictors) -> str:
        """Say that the likelihood of one run has no maximum, as no component has noise; empty where one has some."""
        if not self.on_floor(theta.dispersion.max(axis=1, keepdims=True))[0]:
            return ""
        return EXACT_LINE if np.ptp(theta.coef[0], axis=0).max() < SAME_LINE else EXACT_LINES

    def _score_and_information(self, statistics: Array) -> tuple[Array, Array]:
        p = self.n_coefficients
        return statistics[:, :, 2 : 2 + p], symmetric(statistics[:, :, 2 + p :], p)

    def _towards(self, score: Array, information: Array, dispersion: Array) -> Array:
        """Return a whole step, no longer than is safe."""
        if self.n_shared:
            step = _arrow_solved(
                information / dispersion[..., None, None], score / dispersion[..., None], self.n_shared
            )
        else:
            step = ridge_solved(information, score)
        if self.response.is_location_scale:
            return step
        longest = np.abs(step).max(axis=2, keepdims=True)
        if self.n_shared:
            longest = longest.max(axis=1, keepdims=True)
        return np.asarray(step / np.maximum(longest / LONGEST_STEP, 1.0))

    def _dispersions(self, spread: Array, mass: Array, before: Array) -> Array:
        """Return the best dispersions under the rule; a component without rows keeps what it has."""
        if self.rule.common:
            one = self.response.dispersion(spread.sum(axis=1) / mass.sum(axis=1))
            return np.repeat(np.maximum(one, self.rule.floor)[:, None], mass.shape[1], axis=1)
        held = mass > 1e-200
        mean = np.divide(spread, mass, out=before.copy(), where=held)
        own = np.where(held, self.response.dispersion(mean), before)
        return self.rule.best(own, np.where(held, mass, 0.0))

    def score(self, statistics: Array, theta: Predictors) -> Array:
        """Return derivatives by `vector`."""
        parts = [_flat(self._score_and_information(statistics)[0] / theta.dispersion[:, :, None], self.n_shared)]
        if self.n_dispersions != "none":
            mass, spread = statistics[:, :, 0], statistics[:, :, 1]
            mean = np.divide(spread, mass, out=theta.dispersion.copy(), where=mass > 0)
            by_log = mass * self.response.scale_score(mean, theta.dispersion) / 2
            parts.append(by_log.sum(axis=1, keepdims=True) if self.rule.common else by_log)
        return np.concatenate(parts, axis=1)

    # Parameters

    @property
    def n_dispersions(self) -> str:
        """Which dispersions are free: "none", "one" or "each"."""
        return "none" if not self.response.has_dispersion else "one" if self.rule.common else "each"

    def n_parameters(self, n_components: int) -> int:
        """Return coefficients, shared ones once, and dispersions."""
        own = self.n_coefficients - self.n_shared
        dispersions = {"none": 0, "one": 1, "each": n_components}[self.n_dispersions]
        return n_components * own + self.n_shared + dispersions

    def describe(self, theta: Predictors) -> dict[str, Array]:
        """Return coefficients and dispersions."""
        return {"coef": theta.coef, "dispersion": theta.dispersion}

    def recalled(self, estimates: Mapping[str, Array]) -> Predictors:
        """Return the inverse of `describe`."""
        coef, dispersion = (np.asarray(estimates[name], dtype=np.float64)[None] for name in ("coef", "dispersion"))
        return Predictors(coef, dispersion)

    def vector(self, theta: Predictors) -> Array:
        """Return own coefficients, shared ones, logarithms of free dispersions."""
        runs, own = len(theta.coef), self.n_coefficients - self.n_shared
        size = {"none": 0, "one": 1, "each": theta.dispersion.shape[1]}[self.n_dispersions]
        parts = theta.coef[:, :, :own].reshape(runs, -1), theta.coef[:, 0, own:], np.log(theta.dispersion[:, :size])
        return np.concatenate(parts, axis=1)

    def theta_of(self, vector: Array, like: Predictors) -> Predictors:
        """Return the inverse of `vector`, dispersions within the rule."""
        runs, k, p = like.coef.shape
        own = p - self.n_shared
        coef = np.empty_like(like.coef)
        coef[:, :, :own] = vector[:, : k * own].reshape(runs, k, own)
        coef[:, :, own:] = vector[:, None, k * own : k * own + self.n_shared]
        logs = vector[:, k * own + self.n_shared :]
        if self.n_dispersions == "none":
            return Predictors(coef, like.dispersion)
        return Predictors(coef, self.rule.within(np.exp(np.broadcast_to(logs, (runs, k)).clip(-700, 700))))


class GaussianRegression(Regression):
    """Lines with Gaussian noise: one kernel passes over the rows, another makes whole runs of EM."""

    def __init__(self, response: Response | None, n_coefficients: int, rule: VarianceRule, n_shared: int = 0) -> None:
        super().__init__(response or Gaussian(), n_coefficients, rule, n_shared)

    def fused_pass(
        self, theta: Predictors, log_weights: Array, rows: Block, beta: float
    ) -> tuple[Array, Array, Array, Array]:
        """Return free energies, entropies, masses and statistics of each run."""
        runs, k = log_weights.shape
        z, y = rows.columns[:2]
        statistics, free, weights = np.empty((runs, k, self.width)), np.empty(runs), np.exp(log_weights)
        for i in range(runs):
            at = weights[i], np.ascontiguousarray(theta.coef[i]), np.ascontiguousarray(theta.dispersion[i])
            free[i] = _kernels.regression_pass(z, y, rows.weights, *at, beta, statistics[i])
        mass, squares = statistics[:, :, 0], statistics[:, :, 1]
        entropy = np.zeros(runs)
        if not np.isinf(beta):
            held = mass > 0
            constant = 0.5 * (LOG_TWO_PI + np.log(theta.dispersion)) - np.where(held, log_weights, 0.0)
            energy = np.where(held, mass * constant + 0.5 * squares / theta.dispersion, 0.0)
            entropy = energy.sum(axis=1) - free
        return free, entropy, mass.copy(), statistics

    def fused_runs(self, mixture: Mixture, data: Chunks, theta: Any, *, tol: float, max_iter: int) -> Ends[Any]:
        """Run EM with extrapolations in one call per run where rows are one block; only masses are known then."""
        if self.n_shared or mixture.beta != 1.0 or data.n_blocks > 1 or data.n_units > IN_ONE_CALL:
            return descend(OnData(mixture, data), theta, tol=tol, max_iter=max_iter)
        block = next(iter(data.source.blocks()))
        z, y = block.columns[:2]
        coef, dispersion = theta.density.coef.copy(), theta.density.dispersion.copy()
        log_weights = mixture.law.log_weights(theta.law)
        assert log_weights is not None
        weights = np.exp(log_weights)
        runs = len(coef)
        objective, n_iter, converged = np.empty(runs), np.empty(runs, dtype=np.intp), np.empty(runs, dtype=bool)
        max_iter = min(max_iter, LONGEST_RUN)
        path, paths = np.empty((max_iter, 2)), []
        for i in range(runs):
            at = weights[i], coef[i], dispersion[i]
            limit = tol * data.total_weight
            objective[i], n_iter[i], converged[i] = _kernels.regression_em(
                z, y, block.weights, *self.rule.arguments, max_iter, limit, *at, path
            )
            paths.append(path[: n_iter[i], 0].tolist())
        mass = weights * data.total_weight
        law = mixture.law.solve(mass, theta.law, np.ones(runs))
        seen = Seen(objective, Sums(np.zeros((*mass.shape, 0)), mass))
        return Ends(Parameters(Predictors(coef, dispersion), law), seen, n_iter, converged, paths)

    def expected_log_density(self, statistics: Array, theta: Predictors) -> Array:
        """Return the expected log density at the coefficients that `solve` finds, with the dispersions of `theta`."""
        score, information = self._score_and_information(statistics)
        step = self._towards(score, information, np.ones(statistics.shape[:2]))
        squares = np.maximum(statistics[:, :, 1] - _gain(step, score, information), 0.0)
        v = theta.dispersion
        return np.asarray(-0.5 * np.sum(statistics[:, :, 0] * (LOG_TWO_PI + np.log(v)) + squares / v, axis=1))

    def rounding(self, statistics: Array, theta: Predictors) -> Array:
        """Return what rounding may add to an objective: squared residuals are divided by floored variances."""
        eps = float(np.finfo(np.float64).eps)
        return np.asarray(16 * eps * np.sum(statistics[:, :, 1] / theta.dispersion, axis=1))


def _each(theta: Predictors) -> tuple[Array, Array]:
    """Return coefficients and dispersions of all components of all runs as those of single models."""
    return theta.coef.reshape(-1, theta.coef.shape[2]), np.ascontiguousarray(theta.dispersion).reshape(-1)


def _gain(change: Array, score: Array, information: Array) -> Array:
    """Return how much a change of coefficients lowers the sum of squares, (runs, components)."""
    gain = 2 * np.einsum("skp,skp->sk", change, score)
    return np.asarray(gain - np.einsum("skp,skpq,skq->sk", change, information, change))


def _arrow(of_each: Array, n_shared: int) -> Array:
    """Return matrices of all coefficients from those of each component, (runs, m, m), the shared coefficients last."""
    runs, k, p, _ = of_each.shape
    own, last = p - n_shared, slice(k * (p - n_shared), None)
    out = np.zeros((runs, k * own + n_shared, k * own + n_shared))
    for j in range(k):
        at = slice(j * own, (j + 1) * own)
        out[:, at, at] = of_each[:, j, :own, :own]
        out[:, at, last] = of_each[:, j, :own, own:]
        out[:, last, at] = of_each[:, j, own:, :own]
    out[:, last, last] = of_each[:, :, own:, own:].sum(axis=1)
    return out


def _flat(of_each: Array, n_shared: int) -> Array:
    """Return vectors of all coefficients from those of each component, (runs, m), the shared ones last."""
    own = of_each.shape[2] - n_shared
    return np.concatenate([of_each[:, :, :own].reshape(len(of_each), -1), of_each[:, :, own:].sum(axis=1)], axis=1)


def _arrow_solved(a: Array, b: Array, n_shared: int) -> Array:
    """Return Newton steps by an arrow of blocks, with the shared coefficients at its point."""
    s, k, p = b.shape
    own = k * (p - n_shared)
    x = ridge_solved(_arrow(a, n_shared), _flat(b, n_shared))
    return np.concatenate([x[:, :own].reshape(s, k, -1), np.repeat(x[:, None, own:], k, axis=1)], axis=2)


def ridge_solved(a: Array, b: Array) -> Array:
    """Solve equations whose rows may be zero: a component without rows stays where it is."""
    at = np.arange(a.shape[-1])
    size = np.sqrt(np.maximum(a[..., at, at], 0.0))
    size = np.where(size > 1e-150, size, 1.0)
    scaled = a / size[..., :, None] / size[..., None, :]
    diagonal = scaled[..., at, at] + 1e-11
    scaled[..., at, at] = np.where(diagonal > 1e-6, diagonal, 1.0)
    return np.asarray(np.linalg.solve(scaled, (b / size)[..., None])[..., 0] / size)
