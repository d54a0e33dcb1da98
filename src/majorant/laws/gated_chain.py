"""Markov chains whose steps depend on covariates by a multinomial logit in each state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.data.chunks import Block
from majorant.engine.mixture import Array, Limits, Posterior, Table
from majorant.laws.chain import FLOOR, given_row, of_possible_rows, offsets_of, weights_of_sequences
from majorant.laws.independent import weighted
from majorant.registry import value_class

LEAST_STEPS = 1e-6
"""Expected number of steps from a state to another from which on they happen; else it may be zero."""
LONGEST_STEP = 3.0
"""Largest change of a coefficient in one step, in logits: covariates should be standardised."""


@value_class
@dataclass(frozen=True)
class StepLogits:
    """Parameters of the chains of a batch of runs."""

    start: Array  # (runs, components): probabilities of the first state of a sequence
    # (runs, components, components, covariates): coefficients of the logit of a step from a state (second axis) to the
    # next (third), against staying
    coef: Array


class GatedChain:
    r"""States of the rows of a sequence form a Markov chain whose steps depend on covariates.

    .. math:: p(z_t = j \mid z_{t-1} = i) \propto \exp(g_t' \beta_{ij}), \qquad \beta_{ii} = 0

    The covariates of a row are those of the step into it. The law reads two columns: covariates, (rows, g), a constant
    the first of them, and the sequence of each row, as `Chain` does. Its M-step is exact in the first states, and one
    step of Newton's in the coefficients of each state. Its statistics are expected first states and steps, then
    score and information of the coefficients.

    Parameters
    ----------
    n_covariates : int
    start : "free" or ndarray of shape (components,)
        Whether the law of first states is estimated, or given.
    allowed : ndarray of shape (components, components) of bool, optional
        Which steps may happen; by default all. A state may always stay.

    References
    ----------
    .. [1] F. X. Diebold, J.-H. Lee, G. C. Weinbach, "Regime switching with time-varying transition probabilities", in
       Nonstationary Time Series Analysis and Cointegration, 1994.
    """

    rows_are_units = False
    statistics_are_free = False
    limits: Mapping[str, Limits] = {"start_probabilities": (0.0, 1.0), "transitions": (0.0, 1.0)}

    def __init__(
        self, n_covariates: int, start: str | Array = "free", allowed: NDArray[np.bool_] | None = None
    ) -> None:
        self.n_covariates = n_covariates
        self.start = start if isinstance(start, str) else np.asarray(start, dtype=np.float64)
        self.allowed = allowed

    @property
    def numbers_states(self) -> bool:
        """Whether a given start or forbidden steps distinguish the states."""
        return not isinstance(self.start, str) or self.allowed is not None

    def _open(self, k: int) -> NDArray[np.bool_]:
        """Return which steps have coefficients, (k, k)."""
        return (np.ones((k, k), dtype=bool) if self.allowed is None else self.allowed) & ~np.eye(k, dtype=bool)

    # Passes

    def log_steps(self, phi: StepLogits, covariates: Array) -> Array:
        """Return the log probabilities of the steps into rows, (runs, rows, components, components)."""
        k = phi.start.shape[1]
        logits = np.einsum("rijg,ng->rnij", phi.coef, covariates)
        logits[:, :, ~(self._open(k) | np.eye(k, dtype=bool))] = -np.inf
        logits -= logits.max(axis=3, keepdims=True)
        return np.ascontiguousarray(logits - np.log(np.exp(logits).sum(axis=3, keepdims=True)))

    def posterior(self, phi: StepLogits, log_density: Table, units: Block, beta: float) -> Posterior:
        """Return the log-likelihood of each sequence, probabilities of its states, and the sums of the steps."""
        runs, k, n = log_density.shape
        sequences = _sequences(units)
        offsets, w = offsets_of(sequences), _weights(sequences, runs)
        told, impossible = of_possible_rows(log_density)
        top = told.max(axis=1)  # of rows far out, beside which those of others would be lost in rounding
        log_steps, table = self.log_steps(phi, units.columns[0]), np.arange(n, dtype=np.int32)
        q, pairs = np.zeros((runs, n, k)), np.zeros((runs, n, k, k))
        each, entropy = np.empty((2, runs, len(offsets) - 1))
        with np.errstate(divide="ignore"):
            log_start = np.log(phi.start)
        for run in range(runs):
            unary = np.array((told[run] - top[run]).T, order="C")
            unary[offsets[:-1]] += log_start[run]
            if np.isinf(beta):
                path = np.empty(n, dtype=np.int32)
                _kernels.chain_best(unary, log_steps[run], offsets, table, path, each[run])
                q[run], entropy[run] = np.eye(k)[path], 0.0
                pairs[run, 1:] = q[run, :-1, :, None] * q[run, 1:, None, :]
                pairs[run, offsets[:-1]] = 0.0
            else:
                scores = beta * unary, beta * log_steps[run], offsets, table, None
                _kernels.chain_sums(*scores, each[run], entropy[run], q[run], None, pairs[run])
                each[run] /= beta
                entropy[run] /= beta
        unknown = np.logical_or.reduceat(np.isnan(log_density).any(axis=1), offsets[:-1], axis=1)
        lost = np.repeat(unknown | ~np.isfinite(each), np.diff(offsets), axis=1)
        q[lost], pairs[lost] = 1 / k, 0.0  # no path can have made the sequence, or densities are NaN
        with np.errstate(over="ignore"):
            each += np.add.reduceat(top, offsets[:-1], axis=1)
        each[np.logical_or.reduceat(impossible, offsets[:-1], axis=1)] = -np.inf
        each[unknown] = entropy[unknown] = np.nan
        of_rows = np.repeat(w, np.diff(offsets), axis=1)
        q, pairs = q * of_rows[:, :, None], pairs * of_rows[:, :, None, None]
        sums = self._sums(q[:, offsets[:-1]].sum(axis=1), pairs, np.exp(log_steps), units.columns[0])
        value, spread = weighted(each, w[:, None]), np.asarray((w * entropy).sum(axis=1))
        return Posterior(value, np.moveaxis(q, 1, 2), sums, lambda: spread, each)

    def _sums(self, first: Array, pairs: Array, steps: Array, z: Array) -> Array:
        """Return one row per run: expected first states and steps, the score and the information."""
        runs, n, k, _ = pairs.shape
        g = z.shape[1]
        leaves = pairs.sum(axis=3)
        score = np.einsum("rnij,ng->rijg", pairs - leaves[..., None] * steps, z)
        information = np.empty((runs, k, k * g, k * g))
        products = (z[:, :, None] * z[:, None, :]).reshape(n, -1)
        for run in range(runs):
            for i in range(k):
                p = leaves[run, :, i, None] * steps[run, :, i]
                own = np.zeros((k, g, k, g))
                own[np.arange(k), :, np.arange(k), :] = np.einsum("nj,np->jp", p, products).reshape(k, g, g)
                by_root = (np.sqrt(leaves[run, :, i, None]) * steps[run, :, i])[:, :, None] * z[:, None, :]
                flat = by_root.reshape(n, -1)
                information[run, i] = own.reshape(k * g, k * g) - flat.T @ flat
        parts = first, pairs.sum(axis=1), score, information
        return np.concatenate([part.reshape(runs, -1) for part in parts], axis=1)

    def _forward(self, phi: StepLogits, log_density: Table, units: Block) -> tuple[Table, Table]:
        """Return log probabilities of states given the rows before, and given their own too, as tables."""
        log_steps = self.log_steps(phi, units.columns[0])
        begins = np.zeros(log_density.shape[2], dtype=bool)
        begins[offsets_of(_sequences(units))[:-1]] = True
        ahead, here = np.empty(log_density.shape), np.empty(log_density.shape)
        with np.errstate(divide="ignore"):
            log_start = np.log(phi.start)
            for t, is_first in enumerate(begins.tolist()):
                moved = None if is_first else here[:, :, t - 1, None] + log_steps[:, t]
                ahead[:, :, t] = log_start if moved is None else np.logaddexp.reduce(moved, axis=1)
                here[:, :, t] = given_row(ahead[:, :, t], log_density[:, :, t])
        return ahead, here

    def filtered(self, phi: StepLogits, log_density: Table, units: Block) -> Table:
        """Return the probability of each state given the rows up to its own, (runs, components, rows)."""
        return np.exp(self._forward(phi, log_density, units)[1])

    def predicted(self, phi: StepLogits, log_density: Table, units: Block) -> Table:
        """Return the log probability of each state given the rows before its own, (runs, components, rows)."""
        return self._forward(phi, log_density, units)[0]

    def log_weights(self, phi: StepLogits) -> None:
        """Return None: more than weights decides over states."""

    def log_prior(self, phi: StepLogits, units: Block) -> Table:
        """Return the log probability of each state before any row is seen."""
        return self.predicted(phi, np.zeros((*phi.start.shape, len(units))), units)

    def first(self, q: Table, units: Block) -> tuple[Table, Array]:
        """Return weighted responsibilities, and the sums of steps between neighbours that are independent."""
        runs, k, n = q.shape
        offsets, by_row = offsets_of(_sequences(units)), np.moveaxis(q, 1, 2)
        begins, w = offsets[:-1], np.repeat(_weights(_sequences(units), runs), np.diff(offsets), axis=1)
        pairs = np.zeros((runs, n, k, k))
        pairs[:, 1:] = by_row[:, :-1, :, None] * by_row[:, 1:, None, :] * w[:, 1:, None, None]
        pairs[:, begins] = 0.0
        given = by_row * w[:, :, None]
        even = np.broadcast_to(1 / k, pairs.shape)
        return np.moveaxis(given, 1, 2), self._sums(given[:, begins].sum(axis=1), pairs, even, units.columns[0])

    def drawn(
        self, phi: StepLogits, sequences: NDArray[np.intp], covariates: Array, random: np.random.Generator
    ) -> NDArray[np.intp]:
        """Draw a state for every row of sequences that lie one after the other, of the first run."""
        begins, uniforms = np.diff(sequences, prepend=-1) != 0, random.random(len(sequences))
        ends = np.cumsum(np.exp(self.log_steps(phi, covariates)[0]), axis=2)
        first, states = np.cumsum(phi.start[0]), np.empty(len(sequences), dtype=np.intp)
        for t, u in enumerate(uniforms.tolist()):
            own = first if begins[t] else ends[t, states[t - 1]]
            states[t] = min(int(np.searchsorted(own, u * own[-1], side="right")), len(first) - 1)
        return states

    # The M-step

    def solve(self, statistics: Array, phi: StepLogits | None, share: Array) -> StepLogits:
        """Return shares of first states, and one Newton step of the coefficients; for a start those of no covariate."""
        first, counts, score, information = self._parts(statistics)
        runs, k, _, g = score.shape
        if phi is None:
            first, counts = first + 1 / k, counts + 1.0
        start = np.maximum(first / first.sum(axis=1, keepdims=True), FLOOR)
        start = start / start.sum(axis=1, keepdims=True)
        if not isinstance(self.start, str):
            start = np.repeat(self.start[None], runs, axis=0)
        is_open = self._open(k)
        if phi is None:
            coef = np.zeros((runs, k, k, g))
            coef[..., 0] = np.log(counts / counts[:, np.arange(k), np.arange(k), None]) * is_open
            return StepLogits(start, coef)
        move = np.zeros_like(phi.coef)
        for i in np.flatnonzero(is_open.any(axis=1)).tolist():
            to = is_open[i]
            m = int(to.sum()) * g
            own = information[:, i][:, to][:, :, :, to].reshape(runs, m, m)
            ridge = 1e-6 * np.trace(own, axis1=1, axis2=2) / m + 1e-12
            slope = score[:, i, to].reshape(runs, m, 1)
            found = np.linalg.solve(own + ridge[:, None, None] * np.eye(m), slope).reshape(runs, -1, g)
            longest = np.abs(found).max(axis=(1, 2), keepdims=True)
            move[:, i, to] = found / np.maximum(longest / LONGEST_STEP, 1.0)
        return StepLogits(start, phi.coef + share[:, None, None, None] * move)

    def _parts(self, statistics: Array) -> tuple[Array, Array, Array, Array]:
        """Return expected first states, expected steps, the score, and the information by state of origin."""
        g, k = self.n_covariates, 1
        while k + k * k * (1 + g) + k * (k * g) ** 2 < statistics.shape[1]:
            k += 1
        ends = np.cumsum([k, k * k, k * k * g])
        first, counts, score, information = np.split(statistics, ends, axis=1)
        return first, counts.reshape(-1, k, k), score.reshape(-1, k, k, g), information.reshape(-1, k, k, g, k, g)

    def information(self, statistics: Array, phi: StepLogits) -> Array:
        """Return the information on the coefficients, the last numbers of `vector`, if states were known."""
        runs, is_open = len(statistics), self._open(phi.start.shape[1])
        information = self._parts(statistics)[3]
        m, at = int(is_open.sum()) * self.n_covariates, 0
        out = np.zeros((runs, m, m))
        for i, to in enumerate(is_open):
            size = int(to.sum()) * self.n_covariates
            own = information[:, i][:, to][:, :, :, to].reshape(runs, size, size)
            out[:, at : at + size, at : at + size] = own
            at += size
        return out

    def pairs_of_steps(self, statistics: Array) -> list[tuple[int, int]]:
        """Return which two logits are of steps from one state that both happen, in the order of `information`.

        That of staying is -1.
        """
        happens = self._parts(statistics)[1][0] > LEAST_STEPS
        k, at = len(happens), self._open(len(happens))
        place = np.where(at, np.cumsum(at).reshape(k, k) - 1, -1)
        return [pair for i in range(k) for pair in combinations(place[i, happens[i]].tolist(), 2)]

    def even(self, phi: StepLogits) -> StepLogits:
        """Return the chain with equal probabilities of all steps."""
        return StepLogits(phi.start, np.zeros_like(phi.coef))

    def reopened(self, phi: StepLogits, statistics: Array) -> tuple[StepLogits, NDArray[np.bool_]]:
        """Return the same, unchanged: a logit can leave every value, so that no step is closed too early."""
        return phi, np.zeros(len(phi.start), dtype=bool)

    def expected_log_prior(self, statistics: Array, phi: StepLogits) -> Array:
        """Raise TypeError: it is not a function of the statistics.

        Raises
        ------
        TypeError
        """
        raise TypeError(
            "bounds and beta need steps in closed form; with covariates there is only the tightest bound, at beta=1"
        )

    # Parameters

    def n_parameters(self, n_components: int) -> int:
        """Return free first states, and the coefficients of all steps that may happen but those that stay."""
        free = n_components - 1 if isinstance(self.start, str) else 0
        return free + int(self._open(n_components).sum()) * self.n_covariates

    def shares(self, phi: StepLogits, statistics: Array) -> Array:
        """Return the expected share of rows of each state."""
        first, counts, *_ = self._parts(statistics)
        mass = first + counts.sum(axis=1)
        return np.asarray(mass / mass.sum(axis=1, keepdims=True))

    def relabelled(self, phi: StepLogits, order: NDArray[np.intp]) -> StepLogits:
        """Return the same chain with its states in another order."""
        return StepLogits(phi.start[:, order], phi.coef[:, order][:, :, order])

    def describe(self, phi: StepLogits) -> dict[str, Array]:
        """Return first states, the steps where all covariates but the constant are zero, and the coefficients."""
        at = np.eye(1, self.n_covariates)
        steps = np.exp(self.log_steps(phi, at)[:, 0])
        return {"start_probabilities": phi.start, "transitions": steps, "gating_coef": phi.coef}

    def recalled(self, estimates: Mapping[str, Array]) -> StepLogits:
        """Return the inverse of `describe`."""
        start, coef = (np.asarray(estimates[n], dtype=np.float64) for n in ("start_probabilities", "gating_coef"))
        return StepLogits(start[None], coef[None])

    def vector(self, phi: StepLogits) -> Array:
        """Return logits of first states against the first one, where they are free, and the coefficients."""
        logs = np.log(np.maximum(phi.start, 1e-300))
        logits = logs[:, 1:] - logs[:, :1] if isinstance(self.start, str) else logs[:, :0]
        return np.concatenate([logits, phi.coef[:, self._open(logs.shape[1])].reshape(len(logs), -1)], axis=1)

    def theta_of(self, vector: Array, like: StepLogits) -> StepLogits:
        """Rebuild parameters from `vector`."""
        runs, k = len(vector), like.start.shape[1]
        size = k - 1 if isinstance(self.start, str) else 0
        start = np.broadcast_to(like.start, (runs, k))
        if size:
            logits = np.concatenate([np.zeros((runs, 1)), vector[:, :size]], axis=1)
            start = np.exp(logits - logits.max(axis=1, keepdims=True))
            start /= start.sum(axis=1, keepdims=True)
        coef = np.zeros((runs, *like.coef.shape[1:]))
        coef[:, self._open(k)] = vector[:, size:].reshape(runs, -1, self.n_covariates)
        return StepLogits(np.array(start), coef)


def _sequences(units: Block) -> Block:
    """Return units as `Chain` reads them, without the covariates."""
    return units.seen(units.columns[1:])


def _weights(units: Block, runs: int) -> Array:
    """Return the weight of each sequence in each run."""
    w = weights_of_sequences(units)
    return np.broadcast_to(1.0 if w is None else w, (runs, len(offsets_of(units)) - 1))
