"""Rows as directions: each divided by its length."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


def unit_rows(
    X: Any,  # CSR or dense (n_rows, n_features): float32 or float64
    *,
    name: str = "X",  # what an error calls the rows
    first: int = 0,  # number of the first row, for an error
) -> Any:
    """Divide each row by its length, in double precision; the dtype stays."""
    is_sparse = sparse.issparse(X)
    with np.errstate(invalid="ignore"):  # rows of streams are checked later
        largest = (abs(X).max(axis=1).toarray() if is_sparse else np.abs(X).max(axis=1)).ravel().astype(np.float64)
        if (zero := np.flatnonzero(largest == 0)).size:
            raise ValueError(
                f"row {first + zero[0]} of {name} is all zeros, which has no direction: drop such rows, "
                'or use metric="euclidean"'
            )
        if is_sparse:
            rows = sparse.diags_array(1 / largest) @ X.astype(np.float64)
            lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
            return sparse.csr_matrix(sparse.diags_array(1 / lengths) @ rows, dtype=X.dtype)
        rows = X / largest[:, None]
        rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
        return rows.astype(X.dtype, copy=False)
