"""Which rows are one sequence: rows of several sequences in one table, or a table for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._validation import check_groups, check_sample_weight

Array = NDArray[np.float64]


def joined(X: Any, lengths: Any) -> tuple[Any, Any]:
    """One table, and the lengths of its sequences, where X is a list of tables."""
    if not isinstance(X, list | tuple) or not len(X) or np.ndim(X[0]) != 2:
        return X, lengths
    if lengths is not None:
        raise ValueError("lengths say how one table is cut; X is a list of tables, one a sequence: leave lengths out")
    sizes = [len(one) for one in X]
    if all(hasattr(one, "columns") for one in X):
        import pandas as pd

        return pd.concat(X, ignore_index=True), sizes
    return np.concatenate([np.asarray(one) for one in X]), sizes


def sequence_codes(n: int, lengths: Any, groups: Any) -> NDArray[np.intp]:
    """The number of the sequence of each of n rows; one sequence where nothing is said.

    Raises
    ------
    ValueError, TypeError
        If both or neither fit the rows.
    """
    if lengths is None and groups is None:
        return np.zeros(n, dtype=np.intp)
    if groups is not None:
        if lengths is not None:
            raise ValueError("lengths and groups both say which rows are one sequence: give one of them")
        return check_groups(groups, n)[0]
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any():
        raise ValueError(f"lengths must be positive whole numbers, one a sequence; got {lengths!r}")
    if sizes.sum() != n:
        raise ValueError(f"lengths add up to {sizes.sum()}; X has {n} rows")
    return np.repeat(np.arange(len(sizes)), sizes)


def weights_of_rows(sample_weight: Any, codes: NDArray[np.intp]) -> Array | None:
    """The weight of each row's sequence, given for sequences or for rows.

    Raises
    ------
    ValueError
        If rows of one sequence have different weights.
    """
    n_sequences = int(codes.max()) + 1
    if sample_weight is not None and np.ndim(sample_weight) == 1 and len(sample_weight) == n_sequences != len(codes):
        weights = check_sample_weight(sample_weight, n_sequences)
        assert weights is not None
        return weights[codes]
    weights = check_sample_weight(sample_weight, len(codes))
    if weights is None:
        return None
    first = np.unique(codes, return_index=True)[1]
    wrong = np.flatnonzero(weights != weights[first][codes])
    if len(wrong):
        a, b = first[codes[wrong[0]]], wrong[0]
        raise ValueError(
            f"rows {a} and {b} are of one sequence, but have weights {weights[a]:g} and {weights[b]:g}: sample_weight "
            "weights whole sequences, so give one number a sequence, or the same for all of its rows"
        )
    return weights


def by_sequence(values: NDArray[Any], codes: NDArray[np.intp], f: Callable[[NDArray[Any]], Any]) -> list[Any]:
    """What a function gives for the rows of each sequence, in the order of their names."""
    order = np.argsort(codes, kind="stable")
    cuts = np.flatnonzero(np.diff(codes[order])) + 1
    return [f(part) for part in np.split(values[order], cuts)]
