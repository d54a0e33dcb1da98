"""The targets: labels, rows of probabilities, or tables of indicators, some of them missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from majorant._validation import exact_labels, is_missing, refuse_mixed

Array = NDArray[np.float64]

ROUNDING = 1e-6
"""Tolerance of the sum of a row of probabilities."""


@dataclass(frozen=True)
class Targets:
    """y as entries: a row with probabilities of three labels is three entries, one without label is none."""

    kind: Literal["labels", "probabilities", "indicators"]
    classes: NDArray[Any]  # (n_labels,)
    # (n_entries,): the row of each entry, and its label, or its line of `patterns`, by number
    rows: NDArray[np.intp]
    codes: NDArray[np.intp]
    shares: Array | None = None  # (n_entries,): what each entry counts for in its row; one each where it is None
    patterns: NDArray[Any] | None = None  # (n_patterns, n_labels): distinct rows of indicators

    def weights_under(self, weights: Array | None) -> Array:
        """Return the weight of each entry, given those of the rows."""
        w = np.ones(len(self.rows)) if weights is None else weights[self.rows]
        return w if self.shares is None else w * self.shares


def read_targets(
    # labels of shape (n_rows,), missing where NaN or None; probabilities of shape (n_rows, n_labels), floats whose rows
    # sum to one, or a row of NaN; or indicators of that shape, zeros and ones
    y: Any,
    n_rows: int,
    weights: Array | None,  # (n_rows,): labels without weight are no classes
    *,
    indicators: bool = False,  # whether a table is known to hold indicators, though all of its rows may sum to one
) -> Targets:
    """Return the targets of `n` rows."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: give the label of each row")
    table = y.toarray() if sparse.issparse(y) else np.asarray(exact_labels(y))
    if table.shape[:1] != (n_rows,) or table.ndim > 2:
        raise ValueError(
            f"y must have one label, or one row, for each of the {n_rows} rows of X; got shape {table.shape}"
        )
    counts = np.ones(n_rows, dtype=bool) if weights is None else weights > 0
    if table.ndim == 2 and table.shape[1] > 1:
        return _of_table(table, counts, indicators)
    return _of_labels(column_or_1d(table, warn=True), counts)


def share_right(
    found: NDArray[Any],  # (n_rows,) or (n_rows, n_labels): predictions
    # `y`, `weights`: see `read_targets`
    y: Any,
    weights: Array | None,
    kind: str,  # {"labels", "probabilities", "indicators"}: what y was in the fit
    classes: NDArray[Any],  # (n_labels,): of the fit
) -> float:
    """Return the accuracy on the rows with a label."""
    many, n = kind == "indicators", len(classes)
    targets = read_targets(y, len(found), weights, indicators=many)
    if many != (targets.kind == "indicators") or (targets.kind != "labels" and len(targets.classes) != n):
        expected = f"a table of {n} indicators" if many else f"labels or a table of probabilities of {n} labels"
        raise ValueError(f"the fit was given {kind}, so y must be {expected}; got {targets.kind}")
    known = targets.patterns
    if known is None:
        known = targets.classes if targets.kind == "labels" else classes
    of_entry = targets.weights_under(weights)
    from sklearn.metrics import accuracy_score  # takes time to load

    return float(accuracy_score(known[targets.codes], found[targets.rows], sample_weight=of_entry))


def _of_labels(y: NDArray[Any], counts: NDArray[np.bool_]) -> Targets:
    present = ~is_missing(y)
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise ValueError("Input y contains infinity or a value too large for dtype('float64').")
    _need_labels(present & counts)
    refuse_mixed("y", y)
    check_classification_targets(_plain(y[present]))
    known = _plain(y[present & counts])
    classes, codes = np.unique(known, return_inverse=True)
    return Targets("labels", classes, np.flatnonzero(present & counts), codes.astype(np.intp))


def _of_table(table: NDArray[Any], counts: NDArray[np.bool_], indicators: bool) -> Targets:
    if table.dtype.kind not in "biuf":
        try:
            table = table.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "a table of y must hold probabilities or indicators; got other things than numbers"
            ) from error
    classes = np.arange(table.shape[1])
    lost = np.isnan(table) if table.dtype.kind == "f" else np.zeros(table.shape, dtype=bool)
    present = ~lost.any(axis=1)
    if (lost.any(axis=1) & ~lost.all(axis=1)).any():
        at = int(np.flatnonzero(lost.any(axis=1) & ~lost.all(axis=1))[0])
        raise ValueError(f"row {at} of y is NaN in part: a row without label is NaN in every column")
    _need_labels(present & counts)
    values = table[present].astype(np.float64)
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError("a table of y must hold probabilities or indicators; got numbers below 0 or not finite")
    kept = np.flatnonzero(present & counts)
    sums = values.sum(axis=1)
    if table.dtype.kind == "f" and not indicators and (np.abs(sums - 1) <= ROUNDING).all():
        of_kept = table[kept].astype(np.float64)
        of_kept /= of_kept.sum(axis=1, keepdims=True)
        entry, codes = np.nonzero(of_kept)
        return Targets("probabilities", classes, kept[entry], codes, of_kept[entry, codes])
    if not np.isin(values, (0, 1)).all():
        at = int(np.argmax(np.abs(sums - 1) > ROUNDING)) if table.dtype.kind == "f" else 0
        raise ValueError(
            "a table of y must hold probabilities, floats whose rows sum to one, or indicators, zeros and ones; row "
            f"{np.flatnonzero(present)[at]} sums to {sums[at]:.9g}: divide each row by its sum"
        )
    patterns, codes = np.unique(table[kept].astype(np.float64), axis=0, return_inverse=True)
    return Targets("indicators", classes, kept, codes.ravel().astype(np.intp), patterns=patterns)


def _plain(y: NDArray[Any]) -> NDArray[Any]:
    """Return the labels that came as objects because some are missing, in the type that they have."""
    if y.dtype.kind == "O" and len(y):
        kinds = {type(v) for v in y}
        if kinds <= {str, np.str_} or all(issubclass(k, bool | np.bool_ | int | np.integer) for k in kinds):
            return np.array(y.tolist())
    return y


def _need_labels(present: NDArray[np.bool_]) -> None:
    if not present.any():
        raise ValueError(
            "no row with weight has a label: at least one is needed (clusters of rows without labels are found by "
            "DiscriminativeClustering)"
        )
