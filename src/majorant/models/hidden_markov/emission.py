"""The base of emissions: some columns of X, and how they come from a state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from majorant._validation import told_column
from majorant.engine.mixture import Array

SHAPES = {
    "weights_": "k",
    "start_probabilities_": "k",
    "transitions_": "kk",
    "gating_coef_": "kkh",
    "means_": "kw",
    "covariances_": "full:kww tied:kww diag:kw spherical:k",
    "rates_": "kr",
    "sizes_": "kr",
    "inflations_": "kw",
    "shapes_": "kr",
    "directions_": "kr",
    "concentrations_": "kr",
    "probabilities_": "k*",
    "intercept_": "k*",
    "coef_": "k*",
    "variances_": "k*",
}
"""Shapes of the estimates of a hidden Markov model, of all emissions."""


@dataclass(frozen=True)
class Emission:
    """Some columns of X, and how they come from a state."""

    # which columns of X
    first: int
    n_features: int
    covariance_type: str = "full"
    # units of columns that have some
    centre: Array | None = None
    scale: Array | None = None
    levels: tuple[Array, ...] = ()  # the values of each column, of categories

    name: ClassVar[str]
    """What the user calls the emission."""
    is_discrete: ClassVar[bool] = True
    """Whether rows are counts or codes."""
    expected: ClassVar[str] = ""
    """What a cell must be, in words."""

    @property
    def columns(self) -> slice:
        """The columns of X."""
        return slice(self.first, self.first + self.n_features)

    @property
    def n_told(self) -> int:
        """Number of columns, from the first, whose distribution a state tells."""
        return self.n_features

    def learned(self, X: Array, weights: Array) -> Self:
        """Return the same with the units or the levels of rows."""
        return self

    def completed(self, levels: Sequence[Array], gaps: Sequence[bool]) -> Self:
        """Return the same, learned on a sample, with what all rows have: values of columns or their ends, and gaps."""
        return self

    def read(self, X: Array, first: int = 0, names: Sequence[str] | None = None) -> tuple[Array, ...]:
        """Return the columns, checked, as the density reads them."""
        self.check(X, first, names)
        return self._coded(np.ascontiguousarray(X[:, self.columns]))

    def check(self, X: Array, first: int = 0, names: Sequence[str] | None = None) -> None:
        """Raise ValueError if a cell cannot be of this density; `first` is the number of the first row.

        `names` are those of the columns of X, where they have some.
        """
        x = X[:, self.columns]
        wrong = ~(self._is_possible(x) | np.isnan(x))
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            column += self.first
            raise ValueError(
                f"row {first + row}, {told_column(names, column)} of X is {X[row, column]:g}; "
                f"with emission={self.name!r} {self.expected} (NaN where a cell is missing): choose another emission, "
                "or change the rows"
            )

    def _is_possible(self, x: Array) -> NDArray[np.bool_]:
        return np.ones(x.shape, dtype=bool)

    def _coded(self, x: Array) -> tuple[Array, ...]:
        return (x,)

    def density(self, has_gaps: bool) -> Any:
        """Return the density of the columns."""
        raise NotImplementedError(f"{type(self).__name__} must define its density")

    def values(self, j: int) -> Array:
        """Return all values that a column can have; none if they are not few."""
        return np.empty(0)

    def marginals(self, estimates: Mapping[str, Array], j: int, X: Array | None = None) -> Any:
        """Return the distribution of one column in each state, (components, 1 or rows), as scipy has it.

        Raises
        ------
        TypeError
            If the column is of a regression, and no rows with its other columns are given.
        """
        raise NotImplementedError(f"{type(self).__name__} must define its marginals")
