"""Samples of several regions each, as a stack of rows and where each sample has its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from majorant._validation import check_csr, exact_labels, is_missing, refuse_missing_labels, refuse_mixed
from majorant.data.chunks import Chunks, block_rows
from majorant.data.storage import is_dask

LARGEST = 1e150
LARGEST_SINGLE = 1e15
"""What can be squared and summed in double and in single precision."""

ACCEPTED: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}


@dataclass(frozen=True)
class Samples:
    """Samples as bags of rows.

    Attributes
    ----------
    rows : ndarray or CSR matrix of shape (n_regions, n_features)
        The regions of a sample follow each other.
    starts, counts : ndarray of shape (n_samples,)
    names : ndarray of shape (n_samples,)
        What `bags` calls the samples, or their numbers.
    of_row : ndarray of shape (n_regions,), or None
        The sample of each row as it was given, where rows were given with `bags`.
    """

    rows: Any
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]
    names: NDArray[Any]
    of_row: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def one_each(self, given: Any, what: str) -> NDArray[Any]:
        """One value a sample, from one a sample or, where rows were given with `bags`, one a row.

        Raises
        ------
        ValueError
            If there are as many as neither, or rows of one sample have different ones.
        """
        values: NDArray[Any] = column_or_1d(exact_labels(given), warn=True)
        if len(values) == len(self) and (self.of_row is None or len(values) != len(self.of_row)):
            return values
        if self.of_row is None or len(values) != len(self.of_row):
            rows = "" if self.of_row is None else f", or for each of the {len(self.of_row)} rows,"
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: {what} must have one entry for each of "
                f"the {len(self)} samples{rows} but has {len(values)}"
            )
        first = np.full(len(self), len(values), dtype=np.intp)
        np.minimum.at(first, self.of_row, np.arange(len(values)))
        differs = values != values[first[self.of_row]]
        if differs.any():
            at = int(np.flatnonzero(differs)[0])
            raise ValueError(
                f"{what} must be the same in all rows of a bag; bag {self.names[self.of_row[at]]!s} has "
                f"{values[first[self.of_row[at]]]!s} and, in row {at}, {values[at]!s}"
            )
        return np.asarray(values[first])

    def labels(self, y: Any, model: str, noun: str) -> NDArray[Any]:
        """Labels that a classifier can learn from, one a sample; `noun` is what `model` calls a sample.

        Raises
        ------
        ValueError, TypeError
            If there are none, or one is missing, of another kind than the others or no label.
        """
        if y is None:
            raise ValueError(f"{model} requires y to be passed, but the target y is None")
        if len(self) == 1:
            raise ValueError(f"n_samples=1: a classifier needs {noun}s of at least two classes")
        labels = self.one_each(y, "y")
        refuse_missing_labels(labels, noun)
        refuse_mixed("y", labels, noun)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        return labels


def read_samples(estimator: Any, X: Any, bags: Any, *, reset: bool) -> Samples:
    """Check samples in any of the forms that an estimator takes.

    Parameters
    ----------
    estimator
        Its ``n_features_in_`` and ``feature_names_in_`` are set, or compared.
    X : array-like
        A table of rows; a list of tables, one a sample; or an array (samples, regions, features), in which rows of NaN
        behind the others are no regions.
    bags : array-like of shape (n_rows,), optional
        The sample of each row of a table; None: one row a sample.
    reset : bool

    Raises
    ------
    ValueError, TypeError
    """
    if isinstance(X, Chunks) or is_dask(X):
        got = "Chunks" if isinstance(X, Chunks) else f"a Dask {type(X).__name__}"
        raise TypeError(
            f"{type(estimator).__name__} takes samples in memory, as arrays or data frames; got {got}. Its solver "
            "moves the weights one sample at a time, which is no sum over rows: fit a sample, and predict the others "
            "in parts"
        )
    if hasattr(X, "check_format"):
        check_csr(X)
    if isinstance(X, np.ndarray) and X.ndim == 3:
        _only_tables(bags, "an array of three dimensions")
        stacked, starts, counts = _padded(X)
        return _checked(estimator, Samples(stacked, starts, counts, np.arange(len(starts))), reset)
    if _is_list_of_tables(X):
        _only_tables(bags, "a list of arrays")
        stacked, starts, counts = _listed(X)
        return _checked(estimator, Samples(stacked, starts, counts, np.arange(len(starts))), reset)
    if bags is None:
        rows = validate_data(estimator, X, reset=reset, **ACCEPTED)
        n = rows.shape[0]
        return _safe(Samples(rows, np.arange(n), np.ones(n, dtype=np.int64), np.arange(n)))
    rows = validate_data(estimator, X, reset=reset, ensure_all_finite=False, **ACCEPTED)
    return _checked(estimator, _grouped(rows, bags), None)


def _only_tables(bags: Any, what: str) -> None:
    if bags is not None:
        raise ValueError(f"bags names the sample of each row of a table; with {what} leave it out")


def _is_list_of_tables(X: Any) -> bool:
    if not isinstance(X, Sequence) or isinstance(X, str | bytes) or not len(X):
        return False
    return any(len(getattr(x, "shape", ())) == 2 for x in X) or all(_depth(x) == 2 for x in X)


def _depth(x: Any) -> int:
    """Dimensions of nested lists, by their first entries."""
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
        table = x if sparse.issparse(x) else np.asarray(x)
        if not sparse.issparse(table) and table.dtype.kind not in "biuf":
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
    """Rows with the name of their sample each; samples in the order in which they first appear."""
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
    """Every sample has regions, and every region has finite features."""
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
    return _safe(Samples(rows, samples.starts, samples.counts, samples.names, samples.of_row))


def _first_bad(rows: Any, samples: Samples) -> tuple[int, int, int, float] | None:
    """Sample, region, feature and value of the first entry of a region that is not finite."""
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
            if np.isfinite(part.sum()):  # most blocks: no table of flags
                continue
        for row, column in np.argwhere(~np.isfinite(part)).tolist():
            i = int(np.searchsorted(samples.starts, first + row, side="right")) - 1
            region = first + row - int(samples.starts[i])
            if region < samples.counts[i]:  # what lies behind is padding
                return i, region, column, float(part[row, column])
    return None


def _safe(samples: Samples) -> Samples:
    """In a precision in which sums of squares are numbers; CSR rows in canonical form."""
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
    return Samples(rows, samples.starts, samples.counts, samples.names, samples.of_row)


def canonical_order(
    samples: Samples, codes: NDArray[np.int32], weights: NDArray[np.float64], given: NDArray[np.int32] | None
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.intp]]:
    """The samples as a measure: distinct ones with weight, in an order that is theirs alone.

    Parameters
    ----------
    samples : Samples
    codes : ndarray of shape (n_samples,)
        Classes.
    weights : ndarray of shape (n_samples,)
    given : ndarray of shape (n_samples,), optional
        Latent values that the fit begins with: samples are equal only if theirs are.

    Returns
    -------
    order : ndarray
        Numbers of the distinct samples.
    merged : ndarray
        Their weights, with those of the samples equal to them.
    positions : ndarray of shape (n_samples,)
        Where in `order` each sample is, -1 where it has no weight.
    """
    kept = np.flatnonzero(weights).tolist()
    begins = {i: (int(codes[i]), int(samples.counts[i]), -1 if given is None else int(given[i])) for i in kept}
    keys: dict[int, Any] = {i: (*begins[i], _bytes(samples, i, 1)) for i in kept}
    shared: dict[Any, int] = {}
    for key in keys.values():
        shared[key] = shared.get(key, 0) + 1
    # Samples seldom begin with the same region: only those that do are compared whole.
    keys = {i: (key, _bytes(samples, i, int(samples.counts[i])) if shared[key] > 1 else b"") for i, key in keys.items()}
    positions = np.full(len(samples), -1, dtype=np.intp)
    order: list[int] = []
    merged: list[float] = []
    last = None
    for i in sorted(kept, key=keys.__getitem__):
        if keys[i] != last:
            order.append(i)
            merged.append(0.0)
            last = keys[i]
        merged[-1] += float(weights[i])
        positions[i] = len(order) - 1
    return np.array(order, dtype=np.intp), np.array(merged), positions


def _bytes(samples: Samples, i: int, n_rows: int) -> bytes:
    """The first rows of a sample, the same bytes for a dense and a sparse one and in either precision."""
    at = int(samples.starts[i])
    rows = samples.rows[at : at + n_rows]
    if sparse.issparse(rows):
        rows = rows.copy()
        rows.eliminate_zeros()
        edges, columns, values = rows.indptr, rows.indices, rows.data
    else:
        row, columns = np.nonzero(rows)
        edges, values = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n_rows))]), rows[row, columns]
    return b"".join(part.tobytes() for part in (edges.astype(np.int64), columns.astype(np.int64), values.astype(float)))
