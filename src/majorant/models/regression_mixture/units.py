"""The units of a fit, each of one component: in memory in canonical order, or read block by block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Chunks, InMemory, block_rows
from majorant.densities import GaussianRegression, Regression, VarianceRule
from majorant.densities.regression import IN_ONE_CALL
from majorant.engine.draws import thinned
from majorant.engine.mixture import Mixture, OnData
from majorant.engine.trimmed import Trimmed
from majorant.laws import Gated, Grouped, Independent, Known
from majorant.models.regression_mixture.coordinates import Coordinates
from majorant.solvers.responses import Response, ResponseRows, response_rows

Array = NDArray[np.float64]


class InCoordinates:
    """Methods of units that depend on their coordinates only; see `Units`."""

    coordinates: Coordinates
    unit: float
    row_weight: float
    n_units: int
    n_rows: int
    gating: Array | None
    labels: NDArray[np.intp] | None
    positions: NDArray[np.intp] | None

    @property
    def n_coefficients(self) -> int:
        return self.coordinates.n_coefficients

    @property
    def n_shared(self) -> int:
        return self.coordinates.n_shared

    @property
    def is_grouped(self) -> bool:
        """Whether a unit has more than one row."""
        return self.n_units < self.n_rows

    def in_words(self, size: float) -> str:
        """Return the number of rows or groups in words, or the weight where weights are not integers."""
        number = f"{size:.1f}".removesuffix(".0")
        if self.is_grouped:
            return f"{number} groups"
        return f"{number} rows" if self.unit == 1.0 else f"a weight of {size * self.unit:.4g}"

    @property
    def constant(self) -> float:
        """Difference of the log-likelihood of targets in their own units from that in units of the fit."""
        return -self.row_weight * float(np.log(self.coordinates.sigma))

    def log_likelihood(self, value: float, share: float = 1.0) -> float:
        """Return the log-likelihood in the units of y and of the weights; `share` of the rows count."""
        return (value + share * self.constant) * self.unit

    def mixture(
        self, response: Response, rule: VarianceRule, n_components: int, *, beta: float = 1.0, fused: bool = True
    ) -> Mixture:
        """Return the mixture of such units; `fused` where a kernel may pass over lines with Gaussian noise."""
        law: Any = Independent() if self.gating is None else Gated(self.gating.shape[1])
        law = law if self.labels is None else Known(law)
        law = Grouped(law) if self.is_grouped else law
        kind = GaussianRegression if fused and response.has_normal_noise else Regression
        return Mixture(kind(response, self.n_coefficients, rule, self.n_shared), law, n_components, beta)


@dataclass(frozen=True)
class Units(InCoordinates):
    """Distinct units in canonical order, weighted, in the coordinates of a fit; rows of a unit lie together.

    Attributes
    ----------
    z, y : ndarray of shape (n_rows, p) and (n_rows,)
        The orthonormal design, columns whose coefficients are shared last, and the target: where it is of location and
        scale the single model's standardised residual.
    offset, trials : ndarray of shape (n_rows,), or None
        `offset` holds the single model's fit; None where the target is of location and scale.
    first, weights : ndarray of shape (n_units,)
        First row of each unit, and the number of equal units (rows, or groups) it represents; `unit` is the weight of
        one.
    gating, labels : ndarray of shape (n_units, g) and (n_units,), or None
        Labels are -1 where unknown.
    positions : ndarray of shape (n_given,), or None
        Where each given row is among the rows, -1 for one without weight.
    is_exact : bool
        Whether the single model fits every row.
    """

    z: Array
    y: Array
    offset: Array | None
    trials: Array | None
    first: NDArray[np.intp]
    gating: Array | None
    weights: Array
    labels: NDArray[np.intp] | None
    unit: float
    coordinates: Coordinates
    positions: NDArray[np.intp] | None = None
    n_jobs: int | None = None
    is_exact: bool = False

    @property
    def n_units(self) -> int:  # type: ignore[override]
        return len(self.first)

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        return len(self.y)

    @cached_property
    def sizes(self) -> NDArray[np.intp]:
        """Number of rows of each unit."""
        return np.diff(np.append(self.first, self.n_rows))

    @cached_property
    def total_weight(self) -> float:
        return float(self.weights.sum())

    @cached_property
    def row_weight(self) -> float:  # type: ignore[override]
        return float(np.sum(self.weights * self.sizes))

    @cached_property
    def row_weights(self) -> Array:
        return np.repeat(self.weights, self.sizes)

    @cached_property
    def kernel_weights(self) -> Array | None:
        """Weights of the rows; None where all are one."""
        return None if (self.weights == 1.0).all() else self.row_weights

    def per_unit(self, table: Array) -> Array:
        """Return the sums of a table (m, n_rows) over the rows of each unit."""
        return np.add.reduceat(table, self.first, axis=1) if self.is_grouped else table

    def per_row(self, table: NDArray[Any], axis: int = 0) -> NDArray[Any]:
        """Return a unit's entry for each of its rows."""
        return np.repeat(table, self.sizes, axis=axis) if self.is_grouped else table

    def responses(self, response: Response) -> ResponseRows:
        """Return the rows as targets of a family."""
        return response_rows(response, self.z, self.y, self.offset, self.trials)

    @property
    def columns(self) -> tuple[Any, ...]:
        """Columns of the density, then of the law."""
        out: list[Any] = [self.z, self.y]
        out += [] if self.offset is None else [self.offset, self.trials]
        out += [self.per_row(np.arange(self.n_units))] if self.is_grouped else []
        out += [] if self.labels is None else [self.per_row(self.labels)]
        out += [] if self.gating is None else [np.ascontiguousarray(self.per_row(self.gating))]
        return tuple(out)

    @cached_property
    def data(self) -> Chunks:
        """The rows in blocks that cut no unit; in one where a kernel takes all at once."""
        in_one = self.is_plain and self.n_rows <= IN_ONE_CALL
        size = self.n_rows if in_one else block_rows(8 * (self.z.shape[1] + 4))
        begins = np.searchsorted(self.first, np.arange(0, self.n_rows, size))
        edges = np.unique(self.first[begins[begins < self.n_units]])
        return Chunks(InMemory(*self.columns, weights=self.kernel_weights, edges=edges), n_jobs=self.n_jobs)

    @property
    def is_plain(self) -> bool:
        """Whether rows of location and scale are independent with weights."""
        return self.offset is None and self.gating is None and self.labels is None and not self.is_grouped

    def on(self, mixture: Mixture, trim: float = 0.0) -> OnData:
        """Return a mixture on these units."""
        if trim:
            return Trimmed(mixture, self.data, self.first, self.weights, trim)
        return OnData(mixture, self.data)

    def chosen(self, units: NDArray[np.intp], weights: Array) -> Units:
        """Return some of the units, with weights."""
        sizes = self.sizes[units]
        first = np.cumsum(sizes) - sizes
        rows = np.repeat(self.first[units] - first, sizes) + np.arange(int(sizes.sum()))
        return replace(
            self,
            z=self.z[rows],
            y=self.y[rows],
            offset=None if self.offset is None else self.offset[rows],
            trials=None if self.trials is None else self.trials[rows],
            first=first,
            gating=None if self.gating is None else self.gating[units],
            weights=weights,
            labels=None if self.labels is None else self.labels[units],
            positions=None,
        )

    def subsample(self, draws: np.random.Generator, size: int) -> Units:
        """Return a systematic sample of units by weight, with the number of times that each was drawn."""
        units, times = thinned(self.weights, size, draws)
        return self.chosen(units, np.asarray(times * (self.total_weight / size), dtype=np.float64))


@dataclass(frozen=True)
class UnitStream(InCoordinates):
    """Units as they are read, in the coordinates of a fit, and `sample`: `n_sampled` of them, the same ones merged."""

    data: Chunks
    sample: Units
    coordinates: Coordinates
    unit: float
    n_sampled: int
    n_units: int
    n_rows: int
    total_weight: float
    row_weight: float
    is_exact: bool

    gating = labels = positions = None

    @property
    def is_plain(self) -> bool:
        """Whether rows of location and scale are independent."""
        return self.sample.offset is None and not self.is_grouped

    @property
    def share(self) -> float:
        """Weight of the sample as a share of that of all."""
        return self.sample.total_weight / self.total_weight

    def on(self, mixture: Mixture, trim: float = 0.0) -> OnData:
        """Return a mixture on all units: every pass reads them."""
        return OnData(mixture, self.data)


AnyUnits = Units | UnitStream
