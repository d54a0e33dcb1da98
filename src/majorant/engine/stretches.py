"""Passes over long units, a stretch of rows at a time, so that no table of all their rows is made."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block

Array = NDArray[np.float64]


@runtime_checkable
class InStretches(Protocol):
    """A law that passes over long units a stretch of rows at a time."""

    def in_stretches(
        self, phi: Any, units: Block, log_density: Callable[[slice], Array], visit: Callable[[slice, Array], None]
    ) -> tuple[Array, Array, Callable[[], Array]] | None:
        """Return log-likelihood, statistics and entropy, and visit weighted responsibilities; None if tables serve."""
        ...


def pass_in_stretches(
    density: Any, law: InStretches, theta: Any, phi: Any, rows: Block, units: Block
) -> tuple[Array, Array, Array, Callable[[], Array]] | None:
    """Return log-likelihood, statistics of density and law, and the entropy; None where tables of all rows serve."""
    sums: list[Array] = []

    def part(at: slice) -> Block:
        x, name = rows.columns[0], f"rows {at.start} to {at.stop}"
        known = rows.derived.get(name)
        if known is None or known[0] is not x:  # kept beside the rows, with what is made of it
            weights = None if rows.weights is None else rows.weights[..., at]
            own = Block(rows.first + at.start, tuple(column[at] for column in rows.columns), weights)
            rows.derived[name] = known = (x, own)
        return known[1]

    def log_density(at: slice) -> Array:
        return np.asarray(density.log_density(theta, part(at)))

    def visit(at: slice, q: Array) -> None:
        sums.append(density.statistics(theta, part(at), q))

    found = law.in_stretches(phi, units, log_density, visit)
    if found is None:
        return None
    value, own, entropy = found
    return value, reduce(operator.add, sums), own, entropy
