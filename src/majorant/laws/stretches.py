"""Long sequences of a chain, a stretch at a time: forward over all stretches, then back, with the tables of one only.

The state before a stretch is told by the stretches before it, and enters as the law of its first state. What the rows
after it say of its last state enters as a factor of the density of its last row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.engine.mixture import Array, Table

LONG = 1 << 17
"""Rows from which on a sequence is long."""
STRETCH = 1 << 14
"""Rows of a stretch."""
KEPT = 1 << 23
"""Most log densities that are kept from the way forward for the way back: 64 MB."""


@dataclass
class Stretch:
    """Consecutive rows of a long sequence, or of several whole ones."""

    at: slice
    offsets: NDArray[np.int64]  # first rows of its sequences, from its own first row, and its end
    weights: Array  # (1 or runs, sequences)
    has_begun: bool = False  # whether the sequence began in the stretch before
    goes_on: bool = False  # whether it continues in the next one
    # (runs, components), once the rows before are known: probabilities of the first state given these, and of the last
    # one given these and its own
    start: Array | None = None
    last: Array | None = None


def stretches_of(offsets: NDArray[np.int64], weights: Array | None) -> list[Stretch]:
    """Return the stretches of sequences; those that are not long stay together."""
    sizes, w = np.diff(offsets), np.ones((1, len(offsets) - 1)) if weights is None else weights
    out: list[Stretch] = []
    long = np.flatnonzero(sizes > LONG)
    for i, before in zip([*long.tolist(), len(sizes)], [0, *(long + 1).tolist()], strict=True):
        if before < i:
            at = slice(int(offsets[before]), int(offsets[i]))
            out.append(Stretch(at, offsets[before : i + 1] - offsets[before], w[:, before:i]))
        if i < len(sizes):
            cuts = np.linspace(offsets[i], offsets[i + 1], -(-int(sizes[i]) // STRETCH) + 1).astype(np.int64)
            for a, b in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
                told = w[:, [i]], a > offsets[i], b < offsets[i + 1]
                out.append(Stretch(slice(a, b), np.array([0, b - a]), *told))
    return out


def pass_over(
    start: Array,  # (runs, components)
    steps: Array,  # (runs, components, components)
    stretches: list[Stretch],
    # log densities of the rows of a stretch; asked for again on the way back where all together are many
    log_density: Callable[[slice], Table],
    # given the rows of each stretch, their weighted responsibilities, and log densities
    visit: Callable[[slice, Table, Table], None],
) -> tuple[Array, Array, Array] | None:
    """Pass over sequences forward and back.

    Returns log-likelihoods (runs,), expected first states and expected steps, all weighted; None where digits would be
    lost, so that the scores are to be summed in logarithms.
    """
    runs, k = start.shape
    value, ahead = np.zeros(runs), start
    stretches = [one for one in stretches if one.weights.any()]
    kept: list[Table] = []
    may_keep = runs * k * sum(one.at.stop - one.at.start for one in stretches) <= KEPT
    for one in stretches:
        one.start = np.ascontiguousarray(ahead if one.has_begun else start)
        table = log_density(one.at)
        if may_keep:
            kept.append(table)
        q, each = _passed(one, steps, table, None)
        if not np.isfinite(each).all():
            return None
        value += (each * one.weights).sum(axis=1)
        one.last = q[:, -1].copy()
        ahead = np.einsum("ri,rij->rj", one.last, steps)
    first, counts = np.zeros((runs, k)), np.zeros((runs, k, k))
    after = np.zeros((runs, k))  # densities of the rows after a stretch, given the state of the first of them
    for one in reversed(stretches):
        table = kept.pop() if may_keep else log_density(one.at)
        last = table[:, :, -1].copy()
        own, met = np.zeros((runs, k)), np.zeros((runs, k, k))
        if one.goes_on:
            assert one.last is not None
            told = np.einsum("rij,rj->ri", steps, after)
            with np.errstate(divide="ignore"):
                table[:, :, -1] += np.log(told / told.max(axis=1, keepdims=True))
            counts += one.weights[:, :, None] * one.last[:, :, None] * steps * after[:, None, :]
        q, each = _passed(one, steps, table, (own, met))
        table[:, :, -1] = last
        if not np.isfinite(each).all():
            return None
        if one.has_begun:
            assert one.start is not None
            head = q[:, 0] / np.maximum(one.weights, 1e-300)
            after = np.divide(head, one.start, out=np.zeros_like(head), where=one.start > 0)
        else:
            first += own
        counts += met
        visit(one.at, q.transpose(0, 2, 1), table)
    return value, first, counts


def _passed(one: Stretch, steps: Array, table: Table, sums: tuple[Array, Array] | None) -> tuple[Array, Array]:
    """Return probabilities of states, (runs, rows, components), and log densities of sequences, by the kernel."""
    by_row = np.ascontiguousarray(table.transpose(0, 2, 1))
    q, each = np.empty(by_row.shape), np.empty((len(by_row), len(one.offsets) - 1))
    w, (first, counts) = (None, (None, None)) if sums is None else (np.ascontiguousarray(one.weights), sums)
    assert one.start is not None
    _kernels.chain_pass(one.start, np.ascontiguousarray(steps), one.offsets, by_row, w, q, each, first, counts)
    return q, each
