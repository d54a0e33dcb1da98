"""The weighted empirical measure of rows, the only thing that a fit may depend on.

Rows in canonical order, equal rows merged, rows of weight zero dropped, centred and scaled: so that neither the order
of the rows, nor writing a row twice instead of weighting it, nor units, nor rows without weight can change an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant import _kernels
from majorant.data.patterns import patterns


@dataclass(frozen=True)
class Measure:
    """Distinct rows with positive weight."""

    # CSR or dense (n_points, n_features): Distinct rows in canonical order, ``(row - origin) * scale``. Where entries
    # are missing (NaN), rows with the same ones missing are consecutive, complete rows first.
    points: Any
    weights: NDArray[np.float64]  # (n_points,): summed weight of the rows that are equal to each point
    # (n_rows,): the point that each row is, -1 where the row has no weight, or no entry that is not missing
    positions: NDArray[np.intp]
    origin: NDArray[np.float64]  # (n_features,): a point amid the rows (zero for sparse rows, which stay sparse)
    # a power of two: 1 unless the numbers are so large or so small that their squares would overflow or vanish
    scale: float

    @property
    def n_points(self) -> int:
        return int(self.points.shape[0])

    @property
    def total_weight(self) -> float:
        return float(self.weights.sum())

    def variances(self) -> NDArray[np.float64]:
        """Return the weighted variance of each column over the entries that are there, in the measure's own units."""
        points, there = self.points, 1.0
        if sparse.issparse(points):
            mean = points.T @ (self.weights / self.total_weight)
        else:
            if (missing := np.isnan(points)).any():
                points = np.where(missing, 0, points)
                there = np.einsum("i,ij->j", self.weights, ~missing) / self.total_weight
            mean = np.einsum("i,ij->j", self.weights, points) / self.total_weight / there
        return np.asarray(np.maximum(self.squares() / self.total_weight / there - mean**2, 0.0))

    def squares(self) -> NDArray[np.float64]:
        """Return the weighted sum of squares of each column about the origin, over the entries that are there."""
        if sparse.issparse(self.points):
            squares = self.points.astype(np.float64)
            squares.data **= 2
            return np.asarray(squares.T @ self.weights)
        missing = np.isnan(self.points)
        points = np.where(missing, 0, self.points) if missing.any() else self.points
        return np.asarray(np.einsum("i,ij,ij->j", self.weights, points, points, dtype=np.float64))

    def restore(self, points: NDArray[Any]) -> NDArray[np.float64]:
        """Return points in the units of the rows."""
        return points.astype(np.float64) / self.scale + self.origin


def empirical_measure(X: Any, weights: NDArray[np.float64] | None = None, *, centred: bool = True) -> Measure:
    """Return the weighted empirical measure of rows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Finite numbers, float32 or float64, or, in an array, NaN where an entry is missing.
    weights : ndarray of shape (n_rows,), optional
        Nonnegative, not all zero.
    centred : bool
        Whether the origin lies amid the rows of an array; otherwise at zero, as for directions.
    """
    kept = _informative(X, weights)
    rows = X if kept is None else X[kept]
    if sparse.issparse(rows):
        rows = _canonical_csr(rows)
        order, is_new = _sort_sparse_rows(rows)
    else:
        rows = np.ascontiguousarray(rows)
        order = np.empty(len(rows), dtype=np.int64)
        is_new = np.empty(len(rows), dtype=np.uint8)
        _kernels.sort_rows(_sortable(rows), order, is_new)
    places = order if kept is None else kept[order]
    positions = np.full(X.shape[0], -1, dtype=np.intp)
    ranks = np.cumsum(is_new, dtype=np.intp)
    ranks -= 1
    positions[places] = ranks
    del ranks  # arrays with a number for each row exist one after the other
    merged = _merge(None if weights is None else weights[places], is_new)
    del places
    order = order[is_new.view(bool)]
    points, origin, scale = standard_units(rows, order, centred=centred)
    return Measure(points, merged, positions, origin, scale)


def without_empty_columns(X: Any) -> tuple[Any, NDArray[np.intp] | None]:
    """Return sparse rows without the columns that hold no entry, where those are most of them; and the others' places.

    Hashed words fill few of a million columns, and centres have an entry for each. Other rows are returned as they are.
    """
    if not sparse.issparse(X) or X.nnz >= X.shape[1]:
        return X, None
    occupied, column = np.unique(X.indices, return_inverse=True)
    if not 0 < 2 * len(occupied) < X.shape[1]:
        return X, None
    columns = column.ravel().astype(X.indices.dtype)
    return sparse.csr_matrix((X.data, columns, X.indptr), shape=(X.shape[0], len(occupied))), occupied.astype(np.intp)


def _informative(X: Any, weights: NDArray[np.float64] | None) -> NDArray[np.intp] | None:
    """Return the rows with positive weight and at least one observed entry; None where all have both."""
    says = np.ones(X.shape[0], dtype=bool) if weights is None else weights > 0
    if not sparse.issparse(X):
        says &= ~np.isnan(X).all(axis=1)
    return None if says.all() else np.flatnonzero(says)


def _sortable(rows: NDArray[Any]) -> NDArray[Any]:
    """Return rows that can be sorted in spite of NaN: the number of the pattern, then the observed entries."""
    groups = patterns(rows)
    if len(groups) == 1 and groups[0].is_complete:
        return rows
    out = np.empty((len(rows), 1 + rows.shape[1]), dtype=rows.dtype)
    for number, group in enumerate(groups):
        out[group.rows, 0] = number
    out[:, 1:] = np.where(np.isnan(rows), 0, rows)
    return out


def _merge(w: NDArray[np.float64] | None, is_new: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the weights of runs of equal rows; without weights, their lengths."""
    starts = np.flatnonzero(is_new)
    if w is None:
        lengths = np.empty(len(starts))
        np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
        lengths[-1:] = len(is_new) - starts[-1:]
        return lengths
    if len(starts) == len(w):
        return w.astype(np.float64)
    if w.min() != w.max():  # sorted inside each run: the sum must not depend on the order of the rows
        w = w[np.lexsort((w, np.cumsum(is_new)))]
    return np.add.reduceat(w, starts)


def standard_units(
    rows: Any, order: NDArray[np.int64], *, centred: bool = True
) -> tuple[Any, NDArray[np.float64], float]:
    """Return the rows named by `order` in units in which squares are safe, with the origin and the scale."""
    dtype = rows.dtype
    if sparse.issparse(rows):
        points = rows[order]
        scale = safe_scale(np.abs(points.data).max(initial=0.0), dtype)
        if scale != 1.0:
            points = (points.astype(np.float64) * scale).astype(dtype)
        return points, np.zeros(rows.shape[1]), scale
    low, high = (f.reduce(rows, axis=0).astype(np.float64) for f in (np.fmin, np.fmax))
    scale = safe_scale(float(np.fmax.reduce(high / 2 - low / 2, initial=0.0)), dtype)  # half sums cannot overflow
    farthest = float(np.fmax.reduce(np.maximum(np.abs(low), np.abs(high)), initial=0.0))
    if scale > 1.0:  # tiny differences of large numbers: the numbers themselves must stay in range
        scale = min(scale, 2.0 ** min(1000 - int(np.frexp(farthest)[1]), 1000))
    origin = amid(rows, order) if centred else np.zeros(rows.shape[1])
    points = np.empty((len(order), rows.shape[1]), dtype=dtype)
    _kernels.standard_rows(rows, order, scale, origin * scale, points)
    return points, origin, scale


def amid(rows: NDArray[Any], order: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return medians of some rows.

    One row far out would pull a mean away, and the digits in which the others differ would be lost.
    """
    some = np.sort(rows[order[:: max(len(order) // 1000, 1)]].astype(np.float64), axis=0)  # missing entries are last
    middle = (~np.isnan(some)).sum(axis=0) // 2
    origin = some[middle, np.arange(some.shape[1])]
    return np.asarray(np.where(np.isnan(origin), np.fmin.reduce(rows, axis=0), origin))


def safe_scale(largest: float, dtype: Any) -> float:
    """Return a power of two that brings `largest` near one, or 1.0 where its square is safe as it is."""
    if largest == 0 or not np.isfinite(largest):
        return 1.0
    exponent = int(np.frexp(largest)[1])
    safe = 30 if dtype == np.float32 else 200
    return 1.0 if abs(exponent) <= safe else float(2.0 ** -np.clip(exponent, -1000, 1000))


def safe_scales(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `safe_scale` of each column."""
    return np.array([safe_scale(largest, rows.dtype) for largest in np.abs(rows).max(axis=0, initial=0.0).tolist()])


def means_and_deviations(
    rows: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weighted mean and standard deviation of each column, however large its numbers are."""
    safe = safe_scales(rows)
    mean = np.average(rows * safe, axis=0, weights=weights)
    deviation = np.sqrt(np.average((rows * safe - mean) ** 2, axis=0, weights=weights))
    return mean / safe, deviation / safe


def square_unit(scale: float, scatter: float, reach: float) -> float:
    """Return the square of a standard unit in squares of X's units, if the sum of squares is a number there.

    Parameters
    ----------
    scale : float
        Rows times it are in standard units.
    scatter, reach : float
        The weighted sum of squares and the largest deviation of an entry, in standard units.
    """
    with np.errstate(over="ignore", under="ignore"):
        unit = float(np.float64(scale) ** -2)
        sizes = [unit, float(unit * np.float64(scatter))] if scatter > 0 else [unit]
    limits = np.finfo(np.float64)
    if min(sizes) < limits.tiny or max(sizes) > limits.max:
        size = "small" if min(sizes) < limits.tiny else "large"
        raise ValueError(
            f"the weighted sum of squares of X is too {size} for a float64 (entries deviate by up to "
            f"{reach / scale:.0e}): rescale X or sample_weight"
        )
    return unit


def _canonical_csr(rows: Any) -> Any:
    rows = sparse.csr_matrix(rows, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    rows.sort_indices()
    return rows


def _sort_sparse_rows(rows: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the lexicographic order of CSR rows by where their entries are, then by the entries."""
    # Bytes that sort as the numbers do, so that float32 rows keep the order of the float64 rows they came from.
    bits = rows.data.astype(np.float64).view(np.uint64)
    negative = bits >> np.uint64(63) == 1
    entries = np.where(negative, ~bits, bits | np.uint64(1 << 63)).astype(">u8")
    columns, edges = rows.indices.astype(">i8"), rows.indptr
    keys = [(columns[a:b].tobytes(), entries[a:b].tobytes()) for a, b in pairwise(edges)]
    order = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
    is_new = np.ones(len(keys), dtype=np.uint8)
    is_new[1:] = [keys[a] != keys[b] for a, b in pairwise(order)]
    return order, is_new
