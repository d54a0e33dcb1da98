"""The base of laws that restrict which states rows may have, and delegate the rest to an inner law."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from majorant.data.chunks import Block, Chunks
from majorant.engine.mixture import Array, Limits, Scored, Table
from majorant.laws.independent import Independent


class Around:
    """A law that delegates parameters and M-step to an inner law.

    Parameters
    ----------
    law : law, default=Independent()
    """

    rows_are_units = False

    def __init__(self, law: Any = None) -> None:
        self.law = Independent() if law is None else law
        if isinstance(self.law, Scored):
            self.score = self.law.score
        if hasattr(self.law, "penalty"):
            self.penalty = self.law.penalty

    @property
    def statistics_are_free(self) -> bool:
        """The value of the inner law."""
        return bool(self.law.statistics_are_free)

    @property
    def goes_on_in_sums(self) -> bool:
        """The value of the inner law."""
        return bool(getattr(self.law, "goes_on_in_sums", False))

    @property
    def numbers_states(self) -> bool:
        """The value of the inner law."""
        return bool(self.law.numbers_states)

    @property
    def limits(self) -> Mapping[str, Limits]:
        """The value of the inner law."""
        found: Mapping[str, Limits] = self.law.limits
        return found

    def known(self, units: Block) -> NDArray[np.intp]:
        """Return the state of each row, -1 where it is unknown."""
        return self.law.known(rest(units)) if isinstance(self.law, Around) else np.full(len(units), -1)

    def numbered(self, q: Table, data: Chunks, units_of: Callable[[Block], Block]) -> Table:
        """Return responsibilities in the order of components that shares most rows with the known states."""

        def visit(block: Block) -> Array:
            labels = self.known(units_of(block))
            at = np.flatnonzero(labels >= 0)
            weights = np.ones(len(at)) if block.weights is None else block.weights[at]
            own = np.equal.outer(np.arange(q.shape[1]), labels[at]) * weights
            return np.asarray(np.einsum("kn,rjn->rkj", own, q[:, :, block.at][:, :, at]))

        each = zip(q, data.map_sum(visit), strict=True)
        return np.stack([table[linear_sum_assignment(shared, maximize=True)[1]] for table, shared in each])

    def log_weights(self, phi: Any) -> None:
        """Return None: more than the weights decides over states."""

    def solve(self, statistics: Array, phi: Any, share: Array) -> Any:
        """Delegate to the inner law."""
        return self.law.solve(statistics, phi, share)

    def expected_log_prior(self, statistics: Array, phi: Any) -> Array:
        """Delegate to the inner law."""
        found: Array = self.law.expected_log_prior(statistics, phi)
        return found

    def n_parameters(self, n_components: int) -> int:
        """Delegate to the inner law."""
        return int(self.law.n_parameters(n_components))

    def shares(self, phi: Any, statistics: Array) -> Array:
        """Delegate to the inner law."""
        found: Array = self.law.shares(phi, statistics)
        return found

    def relabelled(self, phi: Any, order: NDArray[np.intp]) -> Any:
        """Delegate to the inner law."""
        return self.law.relabelled(phi, order)

    def describe(self, phi: Any) -> dict[str, Array]:
        """Delegate to the inner law."""
        found: dict[str, Array] = self.law.describe(phi)
        return found

    def recalled(self, estimates: Mapping[str, Array]) -> Any:
        """Delegate to the inner law."""
        return self.law.recalled(estimates)

    def vector(self, phi: Any) -> Array:
        """Delegate to the inner law."""
        found: Array = self.law.vector(phi)
        return found

    def theta_of(self, vector: Array, like: Any) -> Any:
        """Delegate to the inner law."""
        return self.law.theta_of(vector, like)


def rest(units: Block) -> Block:
    """Return the units with the columns that the inner law reads."""
    return units.seen(units.columns[1:] or units.columns[:1])
