"""Gating: weights that depend on covariates by a multinomial logit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.data.chunks import Block
from majorant.engine.mixture import Array, Limits, Posterior, Table
from majorant.engine.triangles import lower, symmetric
from majorant.laws.independent import entropy_of, weighted
from majorant.registry import value_class

LONGEST_STEP = 3.0
"""Largest change of a coefficient in one step, in logits: covariates should be standardised."""


@value_class
@dataclass(frozen=True)
class Logits:
    """Coefficients of the logits of a batch of runs, (runs, components, covariates); the first component's are zero."""

    coef: Array


class Gated:
    r"""Weights of the states depend on covariates.

    .. math:: p(z_i = k) \propto \exp(g_i' \gamma_k), \qquad \gamma_1 = 0

    The law reads one column, the covariates, (rows, g) with a constant among them. Its M-step is one step of Newton's.
    Its statistics are the score and the information at the present coefficients; those of a start are zero, so that all
    weights are equal.

    Parameters
    ----------
    n_covariates : int
    """

    rows_are_units = True
    statistics_are_free = False
    numbers_states = False
    limits: Mapping[str, Limits] = {}

    def __init__(self, n_covariates: int) -> None:
        self.n_covariates = n_covariates

    def posterior(self, phi: Logits, log_density: Table, units: Block, beta: float) -> Posterior:
        """Return responsibilities of each row, and the score and information of the coefficients."""
        w = units.weights
        q, log_sum = np.empty(log_density.shape), np.empty((len(log_density), len(units)))
        sums = self._sums(phi.coef, units, q, log_density, log_sum, beta)
        each = np.ones(1) if w is None else w
        return Posterior(weighted(log_sum, each), q, sums, partial(entropy_of, q, w, beta), log_sum)

    def log_weights(self, phi: Logits) -> None:
        """Return None: each row has weights of its own."""

    def log_prior(self, phi: Logits, units: Block) -> Table:
        """Return log weights of each row."""
        logits = np.zeros((*phi.coef.shape[:2], len(units)))
        for j, column in enumerate(np.ascontiguousarray(units.columns[0].T)):
            logits += phi.coef[:, :, j, None] * column
        logits -= logits.max(axis=1, keepdims=True)
        return np.asarray(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))

    def first(self, q: Table, units: Block) -> tuple[Table, Array]:
        """Return weighted responsibilities; score and information at equal weights."""
        given = np.ascontiguousarray(q if units.weights is None else q * units.weights)
        return given, self._sums(np.zeros((*q.shape[:2], self.n_covariates)), units, given)

    def _sums(
        self,
        coef: Array,
        units: Block,
        q: Table,
        log_density: Table | None = None,
        log_sum: Array | None = None,
        beta: float = 1.0,
    ) -> Array:
        """Return one row per run: masses, then score and information of all logits but the first.

        Responsibilities `q` are filled in where log densities are given.
        """
        (runs, k, g), columns = coef.shape, np.ascontiguousarray(units.columns[0].T, dtype=np.float64)
        sums = np.empty((runs, k + (k - 1) * g + (k * (k - 1) // 2) * (g * (g + 1) // 2)))
        table = None if log_density is None else np.ascontiguousarray(log_density)
        w = np.ones(len(units)) if units.weights is None else np.ascontiguousarray(units.weights)
        weights = w.reshape(-1, len(units))  # of each run, where they are trimmed
        _kernels.gate_pass(columns, weights, beta, np.ascontiguousarray(coef), table, q, log_sum, sums)
        return sums

    def solve(self, statistics: Array, phi: Logits | None, share: Array) -> Logits:
        """Take one Newton step, with a small ridge where the data do not determine a direction."""
        g, runs = self.n_covariates, len(statistics)
        k = self._n_components(statistics.shape[1])
        coef = np.zeros((runs, k, g)) if phi is None else phi.coef
        if k == 1:
            return Logits(coef)
        m = (k - 1) * g
        score = statistics[:, k : k + m]
        ridge_free = self._matrix(statistics[:, k + m :], k)
        ridge = 1e-6 * np.trace(ridge_free, axis1=1, axis2=2) / m + 1e-12
        move = np.linalg.solve(ridge_free + ridge[:, None, None] * np.eye(m), score[:, :, None]).reshape(runs, k - 1, g)
        longest = np.abs(move).max(axis=(1, 2), keepdims=True)
        step = np.zeros_like(coef)
        step[:, 1:] = move / np.maximum(longest / LONGEST_STEP, 1.0)
        return Logits(coef + share[:, None, None] * step)

    def _n_components(self, size: int) -> int:
        """Return the number of states of the sums: ``size = k + m + m_lower`` with ``m = (k - 1) g``."""
        g = self.n_covariates
        k = 1
        while k + (k - 1) * g + (k * (k - 1) // 2) * (g * (g + 1) // 2) < size:
            k += 1
        return k

    def _matrix(self, triangles: Array, k: int) -> Array:
        """Return information of all coefficients, (runs, (k - 1) g, (k - 1) g), from its blocks."""
        g, runs = self.n_covariates, len(triangles)
        rows, columns = lower(k - 1)
        inner = triangles.reshape(runs, len(rows), -1)
        blocks = symmetric(inner, g)
        out = np.empty((runs, k - 1, g, k - 1, g))
        out[:, rows, :, columns, :] = np.moveaxis(blocks, 1, 0)
        out[:, columns, :, rows, :] = np.moveaxis(blocks, 1, 0)
        return out.reshape(runs, (k - 1) * g, (k - 1) * g)

    def expected_log_prior(self, statistics: Array, phi: Logits) -> Array:
        """Raise TypeError: it is not a function of the statistics.

        Raises
        ------
        TypeError
        """
        raise TypeError(
            "bounds and beta need weights in closed form; with gating there is only the tightest bound, at beta=1"
        )

    def score(self, statistics: Array, phi: Logits) -> Array:
        """Return the score, which is among the statistics."""
        k = phi.coef.shape[1]
        return np.asarray(statistics[:, k : k + (k - 1) * self.n_covariates])

    def information(self, statistics: Array, phi: Logits) -> Array:
        """Return the information on `vector` if states were known, (runs, m, m)."""
        k = phi.coef.shape[1]
        return self._matrix(statistics[:, k + (k - 1) * self.n_covariates :], k)

    def even(self, phi: Logits) -> Logits:
        """Return equal weights."""
        return Logits(np.zeros_like(phi.coef))

    def n_parameters(self, n_components: int) -> int:
        """Return coefficients of all states but the first."""
        return (n_components - 1) * self.n_covariates

    def shares(self, phi: Logits, statistics: Array) -> Array:
        """Return mean responsibilities."""
        mass = statistics[:, : phi.coef.shape[1]]
        return np.asarray(mass / mass.sum(axis=1, keepdims=True))

    def relabelled(self, phi: Logits, order: NDArray[np.intp]) -> Logits:
        """Return the coefficients in another order, against those of the state that is then the first."""
        coef = phi.coef[:, order]
        return Logits(coef - coef[:, :1])

    def describe(self, phi: Logits) -> dict[str, Array]:
        """Return the coefficients."""
        return {"gating_coef": phi.coef}

    def recalled(self, estimates: Mapping[str, Array]) -> Logits:
        """Return the coefficients against those of the first component."""
        coef = np.asarray(estimates["gating_coef"], dtype=np.float64)
        return Logits((coef - coef[:1])[None])

    def vector(self, phi: Logits) -> Array:
        """Return coefficients of all states but the first."""
        return np.asarray(phi.coef[:, 1:].reshape(len(phi.coef), -1))

    def theta_of(self, vector: Array, like: Logits) -> Logits:
        """Return the coefficients."""
        coef = np.zeros((len(vector), *like.coef.shape[1:]))
        coef[:, 1:] = vector.reshape(len(vector), -1, self.n_covariates)
        return Logits(coef)
