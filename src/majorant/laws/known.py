"""Laws in which the states of some rows are known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.engine.mixture import Array, Posterior, Table
from majorant.laws.around import Around, rest


class Known(Around):
    """The state of some rows is known; any law holds for the others.

    The law reads one column first: the state of each row, -1 where it is unknown.

    Parameters
    ----------
    law : law, default=Independent()
    """

    @property
    def numbers_states(self) -> bool:
        """Known labels number the states."""
        return True

    @property
    def rows_are_units(self) -> bool:  # type: ignore[override]
        """The value of the inner law."""
        return bool(self.law.rows_are_units)

    def known(self, units: Block) -> NDArray[np.intp]:
        """Return the state of each row, -1 where it is unknown."""
        return np.asarray(units.columns[0])

    def posterior(self, phi: Any, log_density: Table, units: Block, beta: float) -> Posterior:
        """Return responsibilities of one for known states."""
        found: Posterior = self.law.posterior(phi, _masked(log_density, units), rest(units), beta)
        return found

    def log_prior(self, phi: Any, units: Block) -> Table:
        """Return the log prior; -inf for all other states of a row whose state is known."""
        prior = self.law.log_prior(phi, rest(units))
        return _masked(np.broadcast_to(prior, (*prior.shape[:2], len(units))), units)

    def first(self, q: Table, units: Block) -> tuple[Table, Array]:
        """Return the given responsibilities, set to one for known states."""
        labels = units.columns[0]
        known = labels >= 0
        q = q.copy()
        q[:, :, known] = np.arange(q.shape[1])[:, None] == labels[known]
        weighted, own = self.law.first(q, rest(units))
        return weighted, own


def _masked(table: Table, units: Block) -> Table:
    labels = units.columns[0]
    other = (labels >= 0) & (np.arange(table.shape[1])[:, None] != labels)
    return np.where(other, -np.inf, table)
