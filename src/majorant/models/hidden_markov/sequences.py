"""Sequences: rows of several sequences in one table, or a table for each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._validation import check_groups, check_sample_weight

Array = NDArray[np.float64]


def joined(X: Any, lengths: Any) -> tuple[Any, Any]:
    """Return one table, and the lengths of its sequences, where X is a list of tables."""
    if not isinstance(X, list | tuple) or not len(X) or np.ndim(X[0]) != 2:
        return X, lengths
    if lengths is not None:
        raise ValueError("lengths cut one table; X is a list of tables, one per sequence: leave lengths out")
    sizes = [len(one) for one in X]
    columns = [list(one.columns) if hasattr(one, "columns") else np.shape(one)[1:] for one in X]
    for i, found in enumerate(columns):
        if found != columns[0]:
            raise ValueError(
                f"the tables of a list need the same columns: table 0 has {columns[0]}, table {i} has {found}"
            )
    if all(hasattr(one, "iloc") for one in X):
        import pandas as pd

        return pd.concat(X, ignore_index=True), sizes
    if all(hasattr(one, "columns") for one in X):
        return type(X[0])({name: np.concatenate([np.asarray(one[name]) for one in X]) for name in columns[0]}), sizes
    return np.concatenate([np.asarray(one) for one in X]), sizes


def sequence_codes(n: int, lengths: Any, groups: Any) -> NDArray[np.intp]:
    """Return the sequence number of each of n rows; by default all are one sequence.

    Raises
    ------
    ValueError, TypeError
        If both or neither fit the rows.
    """
    if lengths is None and groups is None:
        return np.zeros(n, dtype=np.intp)
    if groups is not None:
        if lengths is not None:
            raise ValueError("lengths and groups both define the sequences: give one of them")
        return check_groups(groups, n)[0]
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any():
        raise ValueError(f"lengths must be positive whole numbers, one per sequence; got {lengths!r}")
    if sizes.sum() != n:
        raise ValueError(f"lengths add up to {sizes.sum()}; X has {n} rows")
    return np.repeat(np.arange(len(sizes)), sizes)


def weights_of_rows(sequence_weight: Any, codes: NDArray[np.intp]) -> Array | None:
    """Return the weight of each row's sequence.

    Raises
    ------
    ValueError
        If there is not one weight per sequence.
    """
    if sequence_weight is None:
        return None
    n_sequences = int(codes.max()) + 1
    if np.shape(sequence_weight) != (n_sequences,):
        raise ValueError(
            f"sequence_weight must be one number per sequence, shape ({n_sequences},), in the order of their names; "
            f"got shape {np.shape(sequence_weight)}"
        )
    weights = check_sample_weight(sequence_weight, n_sequences)
    return None if weights is None else weights[codes]
