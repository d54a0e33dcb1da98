"""The rows of a fit in standard units, in memory or streamed, with the measure on which its starts are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant.data.chunks import Block, Chunks, Mapped, Source
from majorant.data.directions import unit_rows
from majorant.data.measure import Measure, amid, empirical_measure, safe_scale
from majorant.data.scratch import cached
from majorant.data.storage import StoredRows, mapped

SAMPLE_BYTES = 1 << 24
"""Starts on streamed rows are made on a sample of about this size."""


@dataclass(frozen=True)
class Rows:
    """The rows that a family is fitted to."""

    data: Chunks  # ``(row - origin) * scale``: the points of `measure`, or all rows of a stream
    measure: Measure  # the whole empirical measure, or that of a sample of a stream
    variances: NDArray[np.float64]  # (n_features,): weighted variance of each column, in the data's units
    scatter: float  # weighted sum of squares about the origin: rounding is a share of it
    is_stream: bool  # whether rows are streamed, so that `measure` is only of a sample of them
    n_missing: int = 0  # entries that are missing
    missing_weight: float = 0.0  # weight of those that are missing in rows of `data`

    @property
    def n_rows(self) -> int:
        """Number of rows given."""
        return self.data.n_units if self.is_stream else len(self.measure.positions)

    @property
    def entry_weight(self) -> float:
        """Weight of the observed entries."""
        return self.data.total_weight * len(self.variances) - self.missing_weight

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.measure.points.dtype
        return dtype


def rows_in_memory(X: Any, weights: NDArray[np.float64] | None, n_jobs: int | None, *, on_sphere: bool = False) -> Rows:
    """Return the distinct rows of an array, weighted; those on the sphere, of length one already, are not centred."""
    measure = empirical_measure(X, weights, centred=not on_sphere)
    uniform = bool((measure.weights == 1.0).all())
    data = Chunks(measure.points, weights=None if uniform else measure.weights, n_jobs=n_jobs)
    n_missing, lost = 0, 0.0
    if not sparse.issparse(X) and (missing := np.isnan(X)).any():
        n_missing = int(missing.sum())
        lost = float(np.sum(measure.weights * np.isnan(measure.points).sum(axis=1)))
    return Rows(
        data,
        measure,
        measure.variances(),
        float(measure.squares().sum()),
        is_stream=False,
        n_missing=n_missing,
        missing_weight=lost,
    )


def rows_streamed(
    source: StoredRows, seed: int, n_jobs: int | None, *, allow_missing: bool = False, on_sphere: bool = False
) -> Rows:
    """Return all rows of a stream, and a sample of them drawn uniformly: one pass.

    On the sphere each row is divided by its length, and none is centred.
    """
    d = source.n_features
    drawn = drawn_rows(source.n_units, d, seed)
    rows_of: Source = Mapped(source, _directions) if on_sphere else source
    head = next(rows_of.blocks()).columns[0]
    shift = np.nan_to_num(head[np.isnan(head).argmin(axis=0), np.arange(d)].astype(np.float64))

    def visit(block: Block) -> _Pass:
        x = block.columns[0].astype(np.float64)
        refuse_non_finite(x, block.first, allow_missing)
        at = slice(*np.searchsorted(drawn, [block.first, block.first + len(block)]))
        own = drawn[at] - block.first
        w = np.ones(len(x)) if block.weights is None else block.weights
        missing = np.isnan(x)
        there = w @ ~missing
        moved = np.where(missing, 0, x - shift)
        with np.errstate(over="ignore", under="ignore"):  # refused below
            squares = w @ moved**2
        low, high = np.fmin.reduce(x, axis=0), np.fmax.reduce(x, axis=0)
        return _Pass(low, high, there, w @ moved, squares, int(missing.sum()), [block.columns[0][own]], [w[own]])

    seen = Chunks(rows_of, n_jobs=n_jobs).map_sum(visit)
    if not seen.there.all():
        raise ValueError(unobserved_message(seen.there == 0, source.names))
    reach = float(np.max(np.maximum(seen.high - shift, shift - seen.low), initial=0.0))
    if reach > 1e150 or 0 < reach < 1e-150:
        kind = "large" if reach > 1 else "small"
        raise ValueError(f"entries of X deviate by up to {reach:.0e}, too {kind} to be squared: rescale X")
    total = source.total_weight
    mean = seen.sum / seen.there
    variances = np.maximum(seen.squares / seen.there - mean**2, 0.0)
    rows, weights = np.concatenate(seen.sample), np.concatenate(seen.weights) if source.has_weights else None
    origin = amid(rows, np.arange(len(rows)))
    origin = np.zeros(d) if on_sphere else np.where(np.isnan(origin), shift, origin)
    scale = safe_scale(float(np.max(np.maximum(seen.high - origin, origin - seen.low), initial=0.0)), source.dtype)

    dtype = source.dtype

    def standard(x: NDArray[Any]) -> NDArray[Any]:
        moved = np.subtract(x, origin, dtype=np.float64)
        if scale != 1.0:
            moved *= scale
        return np.ascontiguousarray(moved, dtype=dtype)

    sample = empirical_measure(rows, weights, centred=not on_sphere)
    # The sample in the units of the stream: seeds found on it must mean the same there.
    points = np.ascontiguousarray((sample.restore(sample.points) - origin) * scale, dtype=dtype)
    measure = Measure(points, sample.weights, sample.positions, origin, scale)
    scatter = float(np.sum(variances + (shift + mean - origin) ** 2)) * total * scale**2
    data = Chunks(cached(mapped(rows_of, standard), source.cache), n_jobs=n_jobs)
    return Rows(
        data,
        measure,
        variances * scale**2,
        scatter,
        is_stream=True,
        n_missing=seen.n_missing,
        missing_weight=total * d - float(seen.there.sum()),
    )


def _directions(block: Block) -> tuple[Any, ...]:
    return (unit_rows(block.columns[0], first=block.first), *block.columns[1:])


def drawn_rows(n_rows: int, n_features: int, seed: int) -> NDArray[np.intp]:
    """Return numbers of the rows of a stream on which starts are made, ascending."""
    size = min(n_rows, max(SAMPLE_BYTES // (8 * max(n_features, 1)), 1000))
    return np.sort(np.random.default_rng(seed).choice(n_rows, size, replace=False, shuffle=False))


@dataclass(frozen=True)
class _Pass:
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    there: NDArray[np.float64]
    sum: NDArray[np.float64]
    squares: NDArray[np.float64]
    n_missing: int
    sample: list[NDArray[Any]]
    weights: list[NDArray[np.float64]]

    def __add__(self, other: _Pass) -> _Pass:
        return _Pass(
            np.fmin(self.low, other.low),
            np.fmax(self.high, other.high),
            self.there + other.there,
            self.sum + other.sum,
            self.squares + other.squares,
            self.n_missing + other.n_missing,
            self.sample + other.sample,
            self.weights + other.weights,
        )


def unobserved_message(unobserved: NDArray[np.bool_], names: Sequence[str] | None) -> str:
    """Return the error message about columns without any entry."""
    named = [
        f"column {j}" if names is None else f"column {j} ({names[j]!r})" for j in np.flatnonzero(unobserved).tolist()
    ]
    subject = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
    verb, them = ("has", "it") if len(named) == 1 else ("have", "them")
    return f"{subject} of X {verb} no entry in any row with weight: drop {them}"


def refuse_non_finite(x: NDArray[Any], first: int, allow_missing: bool) -> None:
    """Refuse rows with an entry that is not finite; NaN, which is a missing one, may be allowed."""
    bad = np.isinf(x) if allow_missing else ~np.isfinite(x)
    if not bad.any():
        return
    row, column = np.argwhere(bad)[0]
    remedy = "write NaN where an entry is missing"
    if not allow_missing:
        remedy = "drop rows with missing or infinite values, or fill them in, before fitting"
    raise ValueError(f"row {first + row}, column {column} of X is {x[row, column]}: {remedy}")
