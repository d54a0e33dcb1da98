"""Markov chains: states of consecutive rows, for hidden Markov models and Markov switching."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.data.chunks import Block
from majorant.engine.mixture import Array, Limits, Posterior, Table
from majorant.laws.grouped import boundaries
from majorant.laws.independent import weighted
from majorant.laws.stationary import law_slopes, stationary_law, stationary_steps
from majorant.laws.stretches import LONG, pass_over, stretches_of
from majorant.registry import value_class

FLOOR = 1e-10
"""Smallest probability of an allowed step: zero is absorbing in EM, and has no finite slope on the logit scale."""
CLOSED = 1e-4
"""Probability below which a step may have been set to zero too early."""
TOLD = 1e-6
"""Probability below which a step counts as impossible in standard errors."""


@value_class
@dataclass(frozen=True)
class Steps:
    """Parameters of the chains of a batch of runs."""

    start: Array  # (runs, components): probabilities of the first state of a sequence
    steps: Array  # (runs, components, components): probabilities of a step from a state (rows) to the next (columns)


class Chain:
    r"""States of the rows of a sequence form a Markov chain; sequences are independent.

    .. math::
       \ell = \sum_u w_u \log \sum_s p_{s_1} f(x_1; \theta_{s_1}) \prod_{t > 1} A_{s_{t-1} s_t} f(x_t; \theta_{s_t})

    The law reads one column, the sequence of each row; rows of a sequence lie together, in the order of time and in one
    block, and have one weight.

    Parameters
    ----------
    start : {"free", "stationary"} or ndarray of shape (components,)
        Whether the law of first states is estimated, the stationary law of the steps, or given.
    allowed : ndarray of shape (components, components) of bool, optional
        Which steps may happen; by default all.
    sticky : float, default=0.0
        Steps of staying that are counted beside those of the rows, in every state: a prior.

    Attributes
    ----------
    goes_on_in_sums : bool
        Whether extrapolation is in the statistics even if the density's is in coordinates: there a vanishing step
        probability goes to zero, not to minus infinity as a logit does.

    References
    ----------
    .. [1] L. R. Rabiner, "A tutorial on hidden Markov models", Proceedings of the IEEE 77, 1989.
    .. [2] W. Zucchini, I. MacDonald, R. Langrock, "Hidden Markov Models for Time Series", 2nd edition, 2016.
    """

    rows_are_units = False
    statistics_are_free = True
    goes_on_in_sums = True
    limits: Mapping[str, Limits] = {"start_probabilities": (0.0, 1.0), "transitions": (0.0, 1.0)}

    def __init__(
        self, start: str | Array = "free", allowed: NDArray[np.bool_] | None = None, sticky: float = 0.0
    ) -> None:
        self.start = start if isinstance(start, str) else np.asarray(start, dtype=np.float64)
        self.allowed = allowed
        self.sticky = sticky

    @property
    def numbers_states(self) -> bool:
        """Whether a given start or forbidden steps distinguish the states."""
        return not isinstance(self.start, str) or self.allowed is not None

    def lifted(self, phi: Steps) -> Steps:
        """Return the chain of what a density sees: the states of rows."""
        return phi

    # Passes

    def posterior(self, phi: Steps, log_density: Table, units: Block, beta: float) -> Posterior:
        """Return the log-likelihood of each sequence, marginal probabilities of its states, and expected steps."""
        runs, k, n = log_density.shape
        offsets, w = offsets_of(units), weights_of_sequences(units)
        by_row, each = np.empty((runs, n, k)), np.empty((runs, len(offsets) - 1))
        first, counts = np.zeros((runs, k)), np.zeros((runs, k, k))
        if beta == 1.0:
            given = np.ascontiguousarray(phi.start), np.ascontiguousarray(phi.steps), offsets
            _kernels.chain_pass(*given, _by_row(log_density), w, by_row, each, first, counts)
        else:
            each[:] = np.nan
        q = np.moveaxis(by_row, 1, 2)
        impossible = np.zeros(each.shape, dtype=bool)
        for run in np.flatnonzero(np.isnan(each).any(axis=1)).tolist():
            out = q[run], each[run], first[run], counts[run]
            impossible[run] = self._by_scores(phi, run, log_density[run], offsets, w, beta, out)
        w = np.ones(1) if w is None else w[0] if len(w) == 1 else w[:, None]
        of_possible = weighted(each, w)
        each = np.where(impossible, -np.inf, each)
        statistics = np.concatenate([first, counts.reshape(runs, -1)], axis=1)
        entropy = partial(self._entropy, of_possible, phi, log_density, q, statistics)
        return Posterior(weighted(each, w), q, statistics, entropy, each)

    def in_stretches(
        self, phi: Steps, units: Block, log_density: Callable[[slice], Table], visit: Callable[[slice, Table], None]
    ) -> tuple[Array, Array, Callable[[], Array]] | None:
        """Return what `posterior` does of long sequences but their tables; None where all are short."""
        offsets = offsets_of(units)
        if np.diff(offsets).max() <= LONG:
            return None
        stretches = stretches_of(offsets, weights_of_sequences(units))
        found = pass_over(phi.start, phi.steps, stretches, log_density, lambda at, q, _: visit(at, q))
        if found is None:
            return None
        value, first, counts = found
        statistics = np.concatenate([first, counts.reshape(len(first), -1)], axis=1)

        def entropy() -> Array:
            of_rows = np.zeros(len(value))

            def look(at: slice, q: Table, table: Table) -> None:
                with np.errstate(invalid="ignore"):
                    of_rows[:] += np.where(q > 0, q * table, 0.0).sum(axis=(1, 2))

            pass_over(phi.start, phi.steps, stretches, log_density, look)
            return np.asarray(value - of_rows - self.expected_log_prior(statistics, phi))

        return value, statistics, entropy

    def _by_scores(
        self,
        phi: Steps,
        run: int,
        log_density: Array,
        offsets: NDArray[np.int64],
        w: Array | None,
        beta: float,
        out: tuple[Array, Array, Array, Array],
    ) -> NDArray[np.bool_]:
        """Fill the sequences that are not known yet (NaN) of one run by sums, or a maximum, in logarithms.

        Rows that no state can have made are left out; returns which sequences have such rows.
        """
        q, each, first, counts = out
        k, has_impossible = len(q), np.zeros(len(each), dtype=bool)
        with np.errstate(divide="ignore"):
            log_start, log_steps = np.log(phi.start[run]), np.log(np.ascontiguousarray(phi.steps[run]))[None]
        for i in np.flatnonzero(np.isnan(each)):
            at = slice(offsets[i], offsets[i + 1])
            told, impossible = of_possible_rows(log_density[:, at])
            top = told.max(axis=0)  # of rows far out, beside which those of others would be lost in rounding
            unary = np.array((told - top).T, order="C")
            unary[0] += log_start
            own, steps, found = np.array([0, len(unary)]), np.zeros((1, k, k)), np.empty(1)
            if np.isnan(unary).any():
                q[:, at] = 1 / k
                continue
            if np.isinf(beta):
                path = np.empty(len(unary), dtype=np.int32)
                _kernels.chain_best(unary, log_steps, own, None, path, found)
                marginals = np.eye(k)[path]
                np.add.at(steps[0], (path[:-1], path[1:]), 1.0)
            else:
                marginals = np.empty(unary.shape)
                tempered = beta * unary, beta * log_steps, own, None, None
                _kernels.chain_sums(*tempered, found, None, marginals, steps)
                found /= beta
            if not np.isfinite(found[0]):
                marginals[:], steps[:] = 1 / k, 0.0  # no path can have made the sequence
            times = 1.0 if w is None else w[run if len(w) > 1 else 0, i]
            with np.errstate(over="ignore"):
                each[i], has_impossible[i] = found[0] + top.sum(), impossible.any()
            q[:, at] = times * marginals.T
            first += times * marginals[0]
            counts += times * steps[0]
        return has_impossible

    def _entropy(self, value: Array, phi: Steps, log_density: Table, q: Table, statistics: Array) -> Array:
        """Return the weighted entropy of the paths over beta: the log-likelihood less the expected log probability."""
        with np.errstate(invalid="ignore"):
            of_rows = np.where(q > 0, q * of_possible_rows(log_density)[0], 0.0).sum(axis=(1, 2))
            return np.asarray(value - of_rows - self.expected_log_prior(statistics, phi))

    def filtered(self, phi: Steps, log_density: Table, units: Block) -> Table:
        """Return the probability of each state given the rows up to its own, (runs, components, rows)."""
        runs, k, n = log_density.shape
        offsets = offsets_of(units)
        by_row, each = np.empty((runs, n, k)), np.empty((runs, len(offsets) - 1))
        given = np.ascontiguousarray(phi.start), np.ascontiguousarray(phi.steps), offsets
        _kernels.chain_pass(*given, _by_row(log_density), None, by_row, each, None, None)
        q = np.moveaxis(by_row, 1, 2)
        with np.errstate(divide="ignore"):
            log_start, log_steps = np.log(phi.start), np.log(phi.steps)
        for run, i in zip(*np.nonzero(np.isnan(each)), strict=True):
            here = log_start[run]
            for t in range(offsets[i], offsets[i + 1]):
                if t > offsets[i]:
                    here = np.logaddexp.reduce(here[:, None] + log_steps[run], axis=0)
                here = given_row(here, log_density[run, :, t])
                q[run, :, t] = np.exp(here)
        return q

    def predicted(self, phi: Steps, log_density: Table, units: Block) -> Table:
        """Return the log probability of each state given the rows before its own, (runs, components, rows)."""
        before = np.einsum("rit,rij->rjt", self.filtered(phi, log_density, units)[:, :, :-1], phi.steps)
        out = np.concatenate([phi.start[:, :, None], before], axis=2)
        out[:, :, offsets_of(units)[:-1]] = phi.start[:, :, None]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(out))

    def log_weights(self, phi: Steps) -> None:
        """Return None: more than weights decides over states."""

    def log_prior(self, phi: Steps, units: Block) -> Table:
        """Return the log probability of each state before any row is seen."""
        offsets = offsets_of(units)
        by_time = [phi.start]
        for _ in range(int(np.diff(offsets).max()) - 1):
            by_time.append(np.einsum("ri,rij->rj", by_time[-1], phi.steps))
        time = np.arange(len(units)) - np.repeat(offsets[:-1], np.diff(offsets))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.stack(by_time, axis=2)[:, :, time]))

    def first(self, q: Table, units: Block) -> tuple[Table, Array]:
        """Return weighted responsibilities, and the steps between neighbours that are independent."""
        given = q if units.weights is None else q * units.weights
        begins = offsets_of(units)[:-1]
        inner = np.ones(len(units), dtype=bool)
        inner[begins] = False
        at = np.flatnonzero(inner)
        counts = np.einsum("rin,rjn->rij", q[:, :, at - 1], given[:, :, at])
        return given, np.concatenate([given[:, :, begins].sum(axis=2), counts.reshape(len(q), -1)], axis=1)

    def drawn(self, phi: Steps, sequences: NDArray[np.intp], random: np.random.Generator) -> NDArray[np.intp]:
        """Draw a state for every row of sequences that lie one after the other, of the first run."""
        begins, uniforms = np.diff(sequences, prepend=-1) != 0, random.random(len(sequences))
        first, steps = np.cumsum(phi.start[0]), np.cumsum(phi.steps[0], axis=1)
        states, last = np.empty(len(sequences), dtype=np.intp), len(first) - 1
        for t, u in enumerate(uniforms.tolist()):
            ends = first if begins[t] else steps[states[t - 1]]
            states[t] = min(int(np.searchsorted(ends, u * ends[-1], side="right")), last)
        return states

    # The M-step

    def solve(self, statistics: Array, phi: Steps | None, share: Array) -> Steps:
        """Return shares of first states and of steps; for a start, with one step more of every allowed kind."""
        first, counts, allowed = self._parts(statistics)
        counts = counts + self.sticky * (np.eye(len(allowed)) * allowed)
        if phi is None:
            first, counts = first + 1 / first.shape[1], counts + allowed
        mass = counts.sum(axis=2, keepdims=True)
        other = allowed / allowed.sum(axis=1, keepdims=True) if phi is None else phi.steps
        steps = np.divide(counts, mass, out=np.array(np.broadcast_to(other, counts.shape)), where=mass > 1e-12)
        if isinstance(self.start, str) and self.start == "stationary":
            steps = _floored(
                stationary_steps(first, counts, _floored(steps if phi is None else phi.steps, allowed)), allowed
            )
            return Steps(stationary_law(steps)[0], steps)
        steps = _floored(steps, allowed)
        if isinstance(self.start, str):
            return Steps(_floored(first / first.sum(axis=1, keepdims=True), np.ones(first.shape[1], dtype=bool)), steps)
        return Steps(np.repeat(self.start[None], len(steps), axis=0), steps)

    def _parts(self, statistics: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Return expected first states, expected steps, and which steps are allowed."""
        k = _n_states(statistics.shape[1])
        allowed = np.ones((k, k), dtype=bool) if self.allowed is None else self.allowed
        return statistics[:, :k], statistics[:, k:].reshape(-1, k, k), allowed

    def reopened(self, phi: Steps, statistics: Array) -> tuple[Steps, NDArray[np.bool_]]:
        """Open steps that were closed although a little of them would raise the log-likelihood.

        EM multiplies: it leaves zero slowly or never, and takes such points for maxima.

        Returns
        -------
        phi : Steps
        changed : ndarray of shape (runs,) of bool
        """
        first, counts, allowed = self._parts(statistics)
        counts = counts + self.sticky * (np.eye(len(allowed)) * allowed)
        steps = phi.steps
        slopes = np.divide(counts, steps, out=np.zeros_like(counts), where=steps > 0)
        if isinstance(self.start, str) and self.start == "stationary":
            slopes = slopes + law_slopes(steps, first)
        mean = (steps * slopes).sum(axis=2, keepdims=True)
        shut = allowed & (steps < CLOSED) & (slopes > mean * (1 + 1e-3) + 1e-9)
        little = 1 / np.maximum(counts.sum(axis=2, keepdims=True), 10.0)
        opened = np.where(shut, little, steps)
        opened /= opened.sum(axis=2, keepdims=True)
        return Steps(phi.start, np.asarray(opened)), np.asarray(shut.any(axis=(1, 2)))

    def expected_log_prior(self, statistics: Array, phi: Steps) -> Array:
        """Return expected first states and steps times the logarithms of their probabilities."""
        first, counts, _ = self._parts(statistics)
        with np.errstate(divide="ignore", invalid="ignore"):
            of_first = np.where(first > 0, first * np.log(phi.start), 0.0).sum(axis=1)
            return np.asarray(of_first + np.where(counts > 0, counts * np.log(phi.steps), 0.0).sum(axis=(1, 2)))

    def penalty(self, phi: Steps) -> Array:
        """Return minus the log prior of the steps, without its constant, (runs,)."""
        stays = np.diagonal(phi.steps, axis1=1, axis2=2)
        return np.asarray(-self.sticky * np.log(np.where(stays > 0, stays, 1.0)).sum(axis=1))

    # Parameters

    def n_parameters(self, n_components: int) -> int:
        """Return free first states, and one fewer than allowed steps of each state."""
        allowed = n_components**2 if self.allowed is None else int(self.allowed.sum())
        return (
            allowed - n_components + (n_components - 1 if isinstance(self.start, str) and self.start == "free" else 0)
        )

    def shares(self, phi: Steps, statistics: Array) -> Array:
        """Return the expected share of rows of each state."""
        first, counts, _ = self._parts(statistics)
        mass = first + counts.sum(axis=1)
        return np.asarray(mass / mass.sum(axis=1, keepdims=True))

    def relabelled(self, phi: Steps, order: NDArray[np.intp]) -> Steps:
        """Return the same chain with its states in another order."""
        return Steps(phi.start[:, order], phi.steps[:, order][:, :, order])

    def describe(self, phi: Steps) -> dict[str, Array]:
        """Return the probabilities of first states and of steps."""
        return {"start_probabilities": phi.start, "transitions": phi.steps}

    def recalled(self, estimates: Mapping[str, Array]) -> Steps:
        """Return the inverse of `describe`."""
        start, steps = (
            np.asarray(estimates[n], dtype=np.float64)[None] for n in ("start_probabilities", "transitions")
        )
        return Steps(start, steps)

    def vector(self, phi: Steps) -> Array:
        """Return logits against the likeliest first state and the likeliest step of each state, of the first run.

        Probabilities that are practically zero are excluded: they are not counted as parameters.
        """
        logs = np.log(np.maximum(np.concatenate([phi.start[:, None], phi.steps], axis=1), 1e-300))
        rows, columns, best = self._free(phi)
        return np.asarray(logs[:, rows, columns] - logs[:, rows, best])

    def theta_of(self, vector: Array, like: Steps) -> Steps:
        """Rebuild parameters from `vector`."""
        rows, columns, best = self._free(like)
        table = np.concatenate([like.start[:, None], like.steps], axis=1)
        table = np.array(np.broadcast_to(table, (len(vector), *table.shape[1:])))
        table[:, rows, columns] = table[:, rows, best] * np.exp(np.clip(vector, -700, 700))
        table /= table.sum(axis=2, keepdims=True)
        start, steps = table[:, 0], table[:, 1:]
        return Steps(
            stationary_law(steps)[0] if isinstance(self.start, str) and self.start == "stationary" else start, steps
        )

    def _free(self, phi: Steps) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Return which entries of first states (row 0) and steps (rows from 1) are free, and their reference states."""
        table = np.concatenate([phi.start[:1], phi.steps[0]])
        best = table.argmax(axis=1)
        free = (table > TOLD) & (np.arange(table.shape[1]) != best[:, None])
        free[0] &= isinstance(self.start, str) and self.start == "free"
        rows, columns = np.nonzero(free)
        return rows, columns, best[rows]


def _by_row(table: Table) -> Array:
    """Return a table of (runs, components, rows) row by row, as the kernel reads it."""
    return np.ascontiguousarray(np.moveaxis(table, 1, 2))


def _floored(probabilities: Array, allowed: NDArray[np.bool_]) -> Array:
    """Lift allowed probabilities (last axis) to the floor."""
    out = np.maximum(np.where(allowed, probabilities, 0.0), FLOOR * allowed)
    return np.asarray(out / out.sum(axis=-1, keepdims=True))


def lasting(steps: Array) -> Array:
    """Return the mean number of rows of a visit to each state, infinite where no way out of it counts as possible."""
    away = np.where(np.eye(len(steps), dtype=bool), 0.0, steps)
    leaves = (away > TOLD).any(axis=1)
    return np.asarray(np.divide(1.0, away.sum(axis=1), out=np.full(len(steps), np.inf), where=leaves))


def _n_states(size: int) -> int:
    """Return the number of states k that sums belong to: ``size = k + k * k``."""
    return int((np.sqrt(1 + 4 * size) - 1) / 2 + 0.5)


def of_possible_rows(log_density: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return log densities, (..., components, rows), with 0 in rows that no state can have made, and which these are.

    Such a row says nothing of the states, which the other rows of its sequence may tell. Its sequence has likelihood 0.
    """
    impossible = np.asarray(np.isneginf(log_density).all(axis=-2))
    return np.where(impossible[..., None, :], 0.0, log_density), impossible


def given_row(ahead: Array, log_density: Array) -> Array:
    """Return log probabilities of states (last axis) given a row too; as before where no state can have made it."""
    joint = ahead + log_density
    with np.errstate(invalid="ignore"):
        total = np.logaddexp.reduce(joint, axis=-1, keepdims=True)
    possible = total > -np.inf
    return np.where(possible, joint - np.where(possible, total, 0.0), ahead)


def offsets_of(units: Block) -> NDArray[np.int64]:
    """Return first rows of the sequences (the first column) of a block, and its end."""
    return np.append(boundaries(units)[0], len(units)).astype(np.int64)


def weights_of_sequences(units: Block) -> Array | None:
    """Return the weight of each sequence, (1 or runs, sequences)."""
    if units.weights is None:
        return None
    w = units.weights[..., boundaries(units)[0]]
    return np.ascontiguousarray(w[None] if w.ndim == 1 else w[:, 0])
