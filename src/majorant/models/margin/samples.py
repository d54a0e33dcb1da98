"""Samples of regions with their labels and weights, and the measure of the distinct ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from majorant._frames import check_entry_names
from majorant._validation import check_sample_weight, exact_labels, refuse_missing_labels, refuse_mixed


@dataclass(frozen=True)
class Samples:
    """Samples as bags of rows."""

    rows: Any  # CSR or dense (n_regions, n_features): the regions of a sample follow each other
    # (n_samples,): first row and number of rows of each sample
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]
    names: NDArray[Any]  # (n_samples,): names of the samples in `bags`, or their numbers
    # (n_regions,): sample of each row in the order given, if rows were given with `bags`
    of_row: NDArray[np.intp] | None = None
    # axes of the units of a sample: (rows, columns) of an image, () if the sample is one unit
    shape: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def n_units(self) -> int:
        """Units of each sample."""
        return int(np.prod(self.shape, dtype=int))

    def one_each(self, given: Any, what: str) -> NDArray[Any]:
        """Read one value for each sample, from one for each sample or, for rows with `bags`, one for each row."""
        values: NDArray[Any] = column_or_1d(exact_labels(given), warn=True)
        if self.of_row is not None and len(values) == len(self):
            check_entry_names(given, self.names, what, "bag", "in the order in which these first appear")
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
        """Check labels for a classifier, one for each sample; `noun` is the word for a sample in messages."""
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

    def weights(self, sample_weight: Any) -> NDArray[np.float64]:
        """Check weights in the form of `y`; None means ones."""
        if sample_weight is not None and np.asarray(sample_weight).ndim == 1 and self.of_row is not None:
            sample_weight = self.one_each(sample_weight, "sample_weight")
        weights = check_sample_weight(sample_weight, len(self))
        return np.ones(len(self)) if weights is None else weights


@dataclass(frozen=True)
class Distinct:
    """Distinct samples of positive weight, in an order that does not depend on the order given."""

    order: NDArray[np.intp]  # (n_distinct,): numbers of the distinct samples
    weights: NDArray[np.float64]  # (n_distinct,): their weights, summed over equal samples
    shares: NDArray[np.float64]  # (n_distinct,): their weights divided by the sum
    positions: NDArray[np.intp]  # (n_samples,): position in `order` of each sample, -1 for samples of weight zero

    def unit_positions(self, n_units: int) -> NDArray[np.intp]:
        """Return the positions of the units of samples of equally many units, -1 for samples of weight zero."""
        at = self.positions[:, None]
        return np.where(at < 0, -1, at * n_units + np.arange(n_units)).ravel()


def distinct_samples(
    samples: Samples,
    codes: NDArray[np.int32],  # (n_samples,): numbers of the classes
    weights: NDArray[np.float64],  # (n_samples,)
    # (n_samples, n_units): latent values of the start; samples are equal only if these are
    given: NDArray[np.int32] | None,
) -> Distinct:
    """Merge equal samples of one class."""
    unit = float(weights.max())  # equal weights are then exactly equal to none, however large they are
    first = np.zeros(len(samples)) if given is None else np.unique(given, axis=0, return_inverse=True)[1].ravel()
    kept = np.flatnonzero(weights).tolist()
    begins = {i: (int(codes[i]), int(samples.counts[i]), int(first[i])) for i in kept}
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
        merged[-1] += float(weights[i] / unit)
        positions[i] = len(order) - 1
    summed = np.array(merged)
    return Distinct(np.array(order, dtype=np.intp), unit * summed, summed / summed.sum(), positions)


def _bytes(samples: Samples, i: int, n_rows: int) -> bytes:
    """Return the bytes of the first rows of a sample, equal for dense and sparse rows and for either precision."""
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
