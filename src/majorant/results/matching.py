"""Comparison of two labelings of the same rows: adjusted Rand index, and a matched confusion table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._told import Told


@dataclass(frozen=True, repr=False)
class MatchedLabels(Told):
    """Agreement of two labelings, whatever the names of their parts.

    Attributes
    ----------
    first, second : tuple
        Labels, in the order of the table's rows and columns: matched parts have the same position; unmatched ones are
        last.
    table : ndarray of int, of shape (len(first), len(second))
        Number of rows with each pair of labels.
    adjusted_rand : float
        Hubert and Arabie's index: 1 for the same partition, 0 on average for unrelated ones.
    share : float
        Share of rows whose two labels are matched.
    """

    first: tuple[Any, ...]
    second: tuple[Any, ...]
    table: NDArray[np.int64]
    adjusted_rand: float
    share: float

    @property
    def sentence(self) -> str:
        """How far the two labelings agree."""
        rows = f"{100 * self.share:.4g} % of {int(self.table.sum())} rows have matched labels"
        return f"Adjusted Rand index {self.adjusted_rand:.4g}: {rows}."


def match_labels(first: Sequence[Any] | NDArray[Any], second: Sequence[Any] | NDArray[Any]) -> MatchedLabels:
    """Match the parts of two labelings so that as many rows as possible have matched labels.

    Parameters
    ----------
    first, second : array-like of shape (n_samples,)
        One label per row, numbers or text; the two labelings may use different names.

    Returns
    -------
    MatchedLabels

    Raises
    ------
    ValueError
        If the labelings have no rows, or not the same number of them.

    References
    ----------
    .. [1] L. Hubert, P. Arabie, "Comparing partitions", Journal of Classification 2, 1985.

    Examples
    --------
    >>> found = match_labels(["a", "a", "b", "b"], [2, 2, 1, 2])
    >>> found.first, found.second, found.share
    (('a', 'b'), (2, 1), 0.75)
    """
    one, other = np.asarray(first), np.asarray(second)
    if one.ndim != 1 or one.shape != other.shape or not len(one):
        raise ValueError(
            f"two labelings of the same rows have one label per row each; got shapes {one.shape} and {other.shape}"
        )
    names, at = np.unique(one, return_inverse=True)
    others, of_other = np.unique(other, return_inverse=True)
    table = np.zeros((len(names), len(others)), dtype=np.int64)
    np.add.at(table, (at, of_other), 1)
    from scipy.optimize import linear_sum_assignment  # takes time to load
    from sklearn.metrics import adjusted_rand_score

    rows, columns = linear_sum_assignment(table, maximize=True)
    rows = np.concatenate([rows, np.setdiff1d(np.arange(len(names)), rows)])
    columns = np.concatenate([columns, np.setdiff1d(np.arange(len(others)), columns)])
    matched = table[np.ix_(rows, columns)]
    return MatchedLabels(
        tuple(names[rows].tolist()),
        tuple(others[columns].tolist()),
        matched,
        float(adjusted_rand_score(at, of_other)),
        float(matched.trace() / len(one)),
    )
