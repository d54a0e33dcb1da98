"""Rows that are regions of samples: columns that must be constant in a sample, and regions that show its class."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from majorant.cli.errors import CommandError
from majorant.cli.matrix import Columns, Matrix
from majorant.cli.tables import SourceTable


def check_bags(table: SourceTable, columns: Columns, matrix: Matrix) -> None:
    """Refuse a bag whose rows have different targets or weights."""
    if matrix.bags is None:
        return
    for what, name, values in (("target", columns.target, matrix.target), ("weight", columns.weights, matrix.weights)):
        if values is None:
            continue
        _, first, of_row = np.unique(matrix.bags, return_index=True, return_inverse=True)
        expected = values[first[of_row]]
        differs = np.flatnonzero(values != expected)
        if len(differs):
            at = int(differs[0])
            rows = f"row {matrix.rows[first[of_row[at]]]} and {values[at]!s} in row {matrix.rows[at]}"
            raise CommandError(
                f'bag {matrix.bags[at]!s} of {table.name} has the {what} {expected[at]!s} in {rows}: "{name}" must be '
                f'the same in all rows of a bag, those with one value of "{columns.bag}".',
                "Correct the table, or name another column with --bag.",
            )


def by_bag(estimator: Any, frame: pl.DataFrame, rows: NDArray[np.int64], bags: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return, for each bag, its class and the region that shows it: position in the bag and row of the table."""
    listed = pl.DataFrame({"bag": bags, "row": rows}).group_by("bag", maintain_order=True).agg("row")
    found = estimator.predict(frame, bags=bags)
    region = np.asarray(estimator.predict_latent(frame, found, bags=bags), dtype=np.int64)
    return {
        "bag": listed["bag"].to_numpy(),
        "prediction": found,
        "region": region + 1,
        "row": listed["row"].list.get(pl.Series(region)).to_numpy(),
    }
