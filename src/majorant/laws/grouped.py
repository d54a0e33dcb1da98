"""Groups: one state for all rows of a group, as in repeated measures, trajectories and panels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.engine.mixture import Array, Posterior, Table
from majorant.laws.around import Around


class Grouped(Around):
    r"""Rows of a group share their state.

    .. math:: \ell = \sum_g w_g \log \sum_k p(z_g = k) \prod_{i \in g} f(x_i; \theta_k)

    The law reads one column, the group of each row; rows of a group lie together and in one block, and have one weight.

    Parameters
    ----------
    law : law, default=Independent()
        The law of the groups' states.
    """

    def posterior(self, phi: Any, log_density: Table, units: Block, beta: float) -> Posterior:
        """Return responsibilities of each group, given to each of its rows."""
        first, group_of_row = boundaries(units)
        found = self.law.posterior(phi, np.add.reduceat(log_density, first, axis=2), _heads(units, first), beta)
        return replace(found, responsibilities=np.take(found.responsibilities, group_of_row, axis=2))

    def log_prior(self, phi: Any, units: Block) -> Table:
        """Return log prior of the group of each row."""
        first, group_of_row = boundaries(units)
        table = self.law.log_prior(phi, _heads(units, first))
        return table if table.shape[2] == 1 else np.take(table, group_of_row, axis=2)

    def first(self, q: Table, units: Block) -> tuple[Table, Array]:
        """Return the mean responsibilities of each group, given to each of its rows."""
        first, group_of_row = boundaries(units)
        sizes = np.diff(np.append(first, len(units)))
        mean = np.add.reduceat(q, first, axis=2) / sizes
        weighted_mean, own = self.law.first(mean, _heads(units, first))
        return np.take(weighted_mean, group_of_row, axis=2), own


def boundaries(units: Block) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first row of each group of a block, and each row's group number; cached with the block."""
    groups = units.columns[0]
    known = units.derived.get("boundaries")
    if known is None or known[0] is not groups:
        begins = np.append(True, groups[1:] != groups[:-1])
        units.derived["boundaries"] = known = groups, np.flatnonzero(begins), np.cumsum(begins) - 1
    return known[1], known[2]


def _heads(units: Block, first: NDArray[np.intp]) -> Block:
    """Return one row of each group, with the columns that the law of the groups reads."""
    columns = units.columns[1:] or units.columns[:1]
    weights = None if units.weights is None else units.weights[..., first]
    return replace(units, columns=tuple(c[first] for c in columns), weights=weights)
