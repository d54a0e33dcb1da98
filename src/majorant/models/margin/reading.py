"""Reading of samples of regions, given as tables with bags, lists, arrays or images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant._cells import refuse_what_is_no_number, without_na
from majorant._validation import (
    check_csr,
    exact_labels,
    is_missing,
    refuse_mixed,
    validate_data,
)
from majorant.data.chunks import Chunks, block_rows
from majorant.data.storage import is_dask
from majorant.models.margin.samples import Samples

LARGEST = 1e150
LARGEST_SINGLE = 1e15
"""Largest entries whose squares can be summed in double and in single precision."""

ACCEPTED: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}


def read_samples(
    estimator: Any,  # its ``n_features_in_`` and ``feature_names_in_`` are set or compared
    # a table of rows; a list of tables, one for each sample; or an array (samples, regions, features), in which
    # trailing rows of NaN are no regions
    X: Any,
    bags: Any,  # (n_rows,): the sample of each row of a table; by default each row is one
    *,
    reset: bool,  # whether to set the attributes (in fit) or to compare them
) -> Samples:
    """Read samples in any of the forms that an estimator takes."""
    if isinstance(X, Chunks) or is_dask(X):
        got = "Chunks" if isinstance(X, Chunks) else f"a Dask {type(X).__name__}"
        raise TypeError(
            f"{type(estimator).__name__} takes samples in memory, as arrays or data frames; got {got}. Its solver "
            "moves the weights one sample at a time, which is no sum over rows: fit a sample, and predict the others "
            "in parts"
        )
    if hasattr(X, "check_format"):
        check_csr(X)
    is_array = isinstance(X, np.ndarray) and X.ndim == 3
    if is_array or _is_list_of_tables(X):
        if bags is not None:
            form = "an array of three dimensions" if is_array else "a list of arrays"
            raise ValueError(f"bags names the sample of each row of a table; with {form} leave it out")
        stacked, starts, counts = _padded(X) if is_array else _listed(X)
        return _checked(estimator, Samples(stacked, starts, counts, np.arange(len(starts))), reset)
    if bags is None:
        rows = validate_data(estimator, X, reset=reset, **ACCEPTED)
        n = rows.shape[0]
        return _safe(Samples(rows, np.arange(n), np.ones(n, dtype=np.int64), np.arange(n)))
    rows = validate_data(estimator, X, reset=reset, ensure_all_finite=False, **ACCEPTED)
    return _checked(estimator, _grouped(rows, bags), None)


def _is_list_of_tables(X: Any) -> bool:
    if not isinstance(X, Sequence) or isinstance(X, str | bytes) or not len(X):
        return False
    return any(len(getattr(x, "shape", ())) == 2 for x in X) or all(_depth(x) == 2 for x in X)


def _depth(x: Any) -> int:
    """Return the number of dimensions of nested lists, by their first entries."""
    depth = 0
    while isinstance(x, list | tuple):
        depth += 1
        if not x:
            break
        x = x[0]
    return depth + len(getattr(x, "shape", ()))


def _padded(X: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X must hold numbers; got an array of {X.dtype}")
    n, width, d = X.shape
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    X = np.ascontiguousarray(X)
    counts = np.full(n, width, dtype=np.int64)
    if d:
        is_padding = np.isnan(X[:, :, 0])
        for i, r in np.argwhere(is_padding).tolist():
            is_padding[i, r] = bool(np.isnan(X[i, r]).all())
        counts -= is_padding.sum(axis=1)
        behind = np.arange(width) >= counts[:, None]
        wrong = np.argwhere(is_padding != behind)
        if len(wrong):
            i, r = wrong[0].tolist()
            raise ValueError(
                f"sample {i} has a region of NaN, {int(np.flatnonzero(is_padding[i])[0])}, before others that are not: "
                "padding must come last"
            )
    return X.reshape(n * width, d), np.arange(n, dtype=np.int64) * width, counts


def _listed(X: Sequence[Any]) -> tuple[Any, NDArray[np.int64], NDArray[np.int64]]:
    tables: list[Any] = []
    for i, x in enumerate(X):
        refuse_what_is_no_number(x, f"sample {i} of X")
        table = x if sparse.issparse(x) else np.asarray(without_na(x))
        if not sparse.issparse(table) and table.dtype.kind not in "biuf":
            if table.dtype.kind == "c":
                raise ValueError(f"Complex data not supported: sample {i} of X is an array of {table.dtype}")
            table = table.astype(np.float64)
        if table.ndim == 1 and table.size == 0:
            raise ValueError(f"sample {i} has no regions: leave it out, or give it at least one")
        if table.ndim != 2:
            raise ValueError(f"sample {i} must be a table (regions, features); got {table.ndim} dimensions")
        if tables and table.shape[1] != tables[0].shape[1]:
            raise ValueError(f"sample {i} has {table.shape[1]} features, but sample 0 has {tables[0].shape[1]}")
        tables.append(table)
    counts = np.array([t.shape[0] for t in tables], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    if any(sparse.issparse(t) for t in tables):
        return sparse.vstack(tables, format="csr"), starts, counts
    return np.concatenate(tables), starts, counts


def _grouped(rows: Any, bags: Any) -> Samples:
    """Group rows by the names of their samples, in the order in which these first appear."""
    names = np.asarray(exact_labels(bags))
    if names.shape != (rows.shape[0],):
        raise ValueError(f"bags must name the sample of each row, shape ({rows.shape[0]},); got shape {names.shape}")
    missing = is_missing(names)
    if missing.any():
        raise ValueError(f"bags must name the sample of each row; row {int(missing.argmax())} has no name")
    refuse_mixed("bags", names)
    known, first, inverse = np.unique(names, return_index=True, return_inverse=True)
    rank = np.empty(len(known), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(known))
    of_row = rank[inverse]
    counts = np.bincount(of_row, minlength=len(known)).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    if (np.diff(of_row) < 0).any():
        order = np.argsort(of_row, kind="stable")
        rows = rows[order]
    return Samples(rows, starts, counts, known[np.argsort(first)], of_row)


def _checked(estimator: Any, samples: Samples, reset: bool | None) -> Samples:
    """Check that every sample has regions, and every region finite features."""
    if (samples.counts == 0).any():
        at = int(np.flatnonzero(samples.counts == 0)[0])
        raise ValueError(f"sample {samples.names[at]!s} has no regions: leave it out, or give it at least one")
    if not len(samples):
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required: X holds no samples")
    rows = samples.rows
    if reset is not None:
        rows = validate_data(estimator, rows, reset=reset, ensure_all_finite=False, **ACCEPTED)
    bad = _first_bad(rows, samples)
    if bad is not None:
        i, region, column, value = bad
        raise ValueError(
            f"Input X contains {'NaN' if np.isnan(value) else 'infinity'}: sample {samples.names[i]!s}, region {region}"
            f", feature {column}. Leave the region out, or fill in its features"
        )
    return _safe(replace(samples, rows=rows))


def _first_bad(rows: Any, samples: Samples) -> tuple[int, int, int, float] | None:
    """Find sample, region, feature and value of the first entry of a region that is not finite."""
    if sparse.issparse(rows):
        at = np.flatnonzero(~np.isfinite(rows.data))
        if not len(at):
            return None
        row = int(np.searchsorted(rows.indptr, at[0], side="right")) - 1
        column, value = int(rows.indices[at[0]]), float(rows.data[at[0]])
        i = int(np.searchsorted(samples.starts, row, side="right")) - 1
        return i, row - int(samples.starts[i]), column, value
    step = block_rows(rows.shape[1] * rows.itemsize)
    for first in range(0, rows.shape[0], step):
        part = rows[first : first + step]
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(part.sum()):  # most blocks need no table of flags
                continue
        for row, column in np.argwhere(~np.isfinite(part)).tolist():
            i = int(np.searchsorted(samples.starts, first + row, side="right")) - 1
            region = first + row - int(samples.starts[i])
            if region < samples.counts[i]:  # rows behind are padding
                return i, region, column, float(part[row, column])
    return None


def _safe(samples: Samples) -> Samples:
    """Convert rows to a precision in which sums of squares are finite, CSR rows to canonical form."""
    rows = samples.rows
    if sparse.issparse(rows):
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        entries = rows.data
    else:
        entries = rows
    largest = 0.0
    if entries.size:
        with np.errstate(invalid="ignore"):
            largest = max(float(np.nanmax(entries)), -float(np.nanmin(entries)))
    if largest > LARGEST:
        raise ValueError(f"X holds {largest:.0e}, too large to be squared and summed: rescale X")
    if rows.dtype == np.float32 and largest > LARGEST_SINGLE:
        rows = rows.astype(np.float64)
    return replace(samples, rows=rows)


def read_images(estimator: Any, X: Any, *, reset: bool) -> Samples:
    """Read images of equally many regions in any of the forms that an estimator takes.

    Parameters
    ----------
    estimator : estimator
        Its ``n_features_in_`` and ``feature_names_in_`` are set or compared.
    X : array-like
        Of shape (images, rows, columns, features), (images, regions, features) or (images, features).
    """
    if sparse.issparse(X):
        raise TypeError("Sparse data was passed for X, but dense data is required: use X.toarray()")
    if not hasattr(X, "shape") and isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) > 1:
        shapes = sorted({np.shape(x) for x in X})
        if len(shapes) > 1:
            raise ValueError(
                f"images must all be cut into the same grid of regions; got some of shape {shapes[0]} and some of "
                f"{shapes[-1]}"
            )
        X = np.asarray(X)
    shape: tuple[int, ...] = tuple(getattr(X, "shape", ()))[1:-1]
    if len(shape) > 2:
        raise ValueError(
            f"Found array with dim {len(shape) + 2}, while dim <= 4 is required: X must have the axes images, rows, "
            "columns, features"
        )
    if not shape:
        return read_samples(estimator, X, None, reset=reset)
    X = np.asarray(X)
    if 0 in shape:
        raise ValueError(f"images must have regions; got X of shape {X.shape}")
    samples = read_samples(estimator, X.reshape(len(X), int(np.prod(shape)), X.shape[-1]), None, reset=reset)
    few = np.flatnonzero(samples.counts < np.prod(shape))
    if len(few):
        raise ValueError(
            f"Input X contains NaN: image {few[0]}, region {samples.counts[few[0]]}. Every region of every image must "
            "have features"
        )
    return replace(samples, shape=shape)
