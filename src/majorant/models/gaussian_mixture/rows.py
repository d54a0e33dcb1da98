"""The rows of a Gaussian mixture in standard units, whose squares do not overflow, and the part that is searched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Chunks, block_rows
from majorant.data.measure import Measure, standard_units
from majorant.data.rows import rows_streamed
from majorant.data.storage import StoredRows
from majorant.data.units import blocks_of
from majorant.engine.draws import thinned
from majorant.laws import Independent
from majorant.models.mixture_rows import Array, Rows

MOST_POINTS = 10_000
"""Most distinct rows of a search; of more it takes a sample."""
GAP_ROWS = 1 << 16
"""Most rows of a block where entries are missing: each pattern costs factorisations of its own in every block."""


@dataclass(frozen=True, kw_only=True)
class StandardRows(Rows):
    """Distinct rows ``(row - origin) * scale``, or those of a sample of a stream."""

    data: Chunks  # all rows, in these units
    origin: Array  # (n_features,)
    scale: float
    variances: Array  # (n_features,): weighted variance of each column
    # entries that are missing, of how many
    n_missing: int
    n_entries: int
    entry_weight: float  # weight of the entries that are there
    is_stream: bool  # whether the rows are only a sample of `data`

    @property
    def points(self) -> NDArray[Any]:
        """The points that a density of complete rows reads."""
        points: NDArray[Any] = self.columns[0]
        return points

    @property
    def precision(self) -> float:
        """Rounding of the given numbers as a share of their column's spread; the largest over columns."""
        spread = np.sqrt(self.variances)
        size = np.fmax.reduce(np.abs(self.points + self.origin * self.scale), axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            worst = np.fmax.reduce(np.where(spread > 0, size / spread, 1.0), initial=1.0)
        return float(min(np.finfo(self.dtype).eps * worst, 1e-3))

    def searched(self, draws: np.random.Generator) -> StandardRows:
        """Return the rows that are searched: all, or a sample of many."""
        if len(self.weights) <= MOST_POINTS or self.groups is not None:
            return self
        met, times = thinned(self.weights, MOST_POINTS, draws)
        return replace(self, columns=tuple(c[met] for c in self.columns), weights=times.astype(float), row_weight=1.0)


def in_memory(rows: Rows, law: Any, n_jobs: int | None) -> StandardRows:
    """Return distinct standardised rows; rows without entries are dropped where states are independent."""
    x, positions = rows.columns[0], rows.positions
    if isinstance(law, Independent) and not (says := ~np.isnan(x).all(axis=1)).all():
        positions = np.where((positions >= 0) & says[positions], (np.cumsum(says) - 1)[positions], -1)
        columns = tuple(c[says] for c in rows.columns)
        x, rows = columns[0], replace(rows, columns=columns, weights=rows.weights[says], positions=positions)
    points, origin, scale = standard_units(x, np.arange(len(x)))
    there, weights = ~np.isnan(points), rows.weights
    columns = (points, *rows.columns[1:])
    n_given = np.bincount(positions[positions >= 0], minlength=len(points))
    given = None if (weights == 1.0).all() else weights
    size = None if there.all() else block_rows(points.nbytes // len(points), GAP_ROWS)
    return StandardRows(
        columns,
        weights,
        positions,
        rows.row_weight,
        float(weights.sum()) / rows.row_weight,
        rows.groups,
        rows.dtype,
        data=Chunks(blocks_of(columns, given, rows.groups, size), n_jobs=n_jobs),
        origin=origin,
        scale=scale,
        variances=Measure(points, weights, positions, origin, scale).variances(),
        n_missing=int(n_given @ (~there).sum(axis=1)),
        n_entries=int(n_given.sum()) * there.shape[1],
        entry_weight=float(weights @ there.sum(axis=1)),
        is_stream=False,
    )


def streamed(source: StoredRows, seed: int, n_jobs: int | None) -> StandardRows:
    """Return all rows of a stream, and the distinct ones of a sample in memory: one pass."""
    rows = rows_streamed(source, seed, n_jobs, allow_missing=True)
    measure, total = rows.measure, rows.data.total_weight
    data = rows.data.joined(block_rows(measure.points[:1].nbytes, GAP_ROWS)) if rows.n_missing else rows.data
    is_whole = (measure.weights == np.rint(measure.weights)).all()
    unit = 1.0 if is_whole else measure.total_weight / int((measure.positions >= 0).sum())
    return StandardRows(
        (measure.points,),
        measure.weights,
        measure.positions,
        unit,
        total / unit,
        dtype=source.dtype,
        data=data,
        origin=measure.origin,
        scale=measure.scale,
        variances=rows.variances,
        n_missing=rows.n_missing,
        n_entries=rows.n_rows * len(rows.variances),
        entry_weight=rows.entry_weight,
        is_stream=True,
    )
