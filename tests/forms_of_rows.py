"""The same rows in many forms, rows that are wrong, and rows that are odd: what every estimator is tried with."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from .estimators import NAMES, ROWS, N


def with_cell(value: Any, dtype: Any = np.float64) -> NDArray[Any]:
    rows = ROWS.astype(dtype)
    rows[4, 1] = value
    return rows


def read_only(rows: NDArray[Any]) -> NDArray[Any]:
    rows = rows.copy()
    rows.setflags(write=False)
    return rows


def memory_map(path: Path) -> np.memmap[Any, Any]:
    np.save(path / "rows.npy", ROWS)
    mapped: np.memmap[Any, Any] = np.load(path / "rows.npy", mmap_mode="r")
    return mapped


SAME_NUMBERS: dict[str, Callable[[Path], Any]] = {
    "C order": lambda _: ROWS.copy(),
    "Fortran order": lambda _: np.asfortranarray(ROWS),
    "strided": lambda _: np.repeat(np.repeat(ROWS, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards": lambda _: ROWS[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda _: read_only(ROWS),
    "memory map": memory_map,
    "big-endian": lambda _: ROWS.astype(">f8"),
    "int8": lambda _: ROWS.astype(np.int8),
    "uint8": lambda _: ROWS.astype(np.uint8),
    "int64": lambda _: ROWS.astype(np.int64),
    "big-endian int16": lambda _: ROWS.astype(">i2"),
    "float16": lambda _: ROWS.astype(np.float16),
    "longdouble": lambda _: ROWS.astype(np.longdouble),
    "objects": lambda _: ROWS.astype(object),
    "whole objects": lambda _: ROWS.astype(int).astype(object),
    "lists": lambda _: ROWS.tolist(),
    "masked array without a masked cell": lambda _: np.ma.masked_less(ROWS, -1),
    "matrix of rows": lambda _: list(ROWS),
    "pandas": lambda _: pd.DataFrame(ROWS, columns=NAMES),
    "pandas, mixed": lambda _: pd.DataFrame(ROWS, columns=NAMES).astype({"a": "int16", "b": "Int64", "c": "float64"}),
    "pandas, odd index": lambda _: pd.DataFrame(ROWS, columns=NAMES, index=range(N, 0, -1)),
    "polars": lambda _: pl.DataFrame(ROWS, schema=NAMES),
    "polars, mixed": lambda _: pl.DataFrame(ROWS, schema=NAMES).with_columns(pl.col("a").cast(pl.UInt8)),
}

NEAR_NUMBERS: dict[str, Callable[[], Any]] = {
    "float32": lambda: ROWS.astype(np.float32),
    "csr": lambda: sparse.csr_matrix(ROWS),
    "csc": lambda: sparse.csc_matrix(ROWS),
    "coo": lambda: sparse.coo_matrix(ROWS),
    "csr array": lambda: sparse.csr_array(ROWS),
    "csr of int": lambda: sparse.csr_matrix(ROWS.astype(np.int32)),
    "csr of float32": lambda: sparse.csr_matrix(ROWS.astype(np.float32)),
    "csr of 64-bit indices": lambda: with_large_indices(sparse.csr_matrix(ROWS)),
    "csc of 64-bit indices": lambda: with_large_indices(sparse.csc_matrix(ROWS)),
    "csr array of 64-bit indices": lambda: with_large_indices(sparse.csr_array(ROWS)),
    "csr, explicit zeros": lambda: sparse.csr_matrix((ROWS.ravel(), np.tile(range(3), N), range(0, 3 * N + 1, 3))),
}


def with_large_indices(X: Any) -> Any:
    """The same sparse matrix with indices of 64 bits."""
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def damaged_csr(column: int) -> sparse.csr_matrix:
    """One whose first entry lies outside it."""
    matrix = sparse.csr_matrix(ROWS.astype(np.float64))
    matrix.indices[0] = column
    return matrix


def wrapping_csr() -> Any:
    """One whose first entry lies so far outside that 32 bits would turn it into a right one."""
    matrix = with_large_indices(sparse.csr_matrix(ROWS.astype(np.float64)))
    matrix.indices[0] = 2**32
    return matrix


def polars_with_null() -> pl.DataFrame:
    frame = pl.DataFrame(ROWS, schema=NAMES)
    return frame.with_columns(pl.when(pl.col("b") < 95).then(pl.col("b")).alias("b"))


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "NaN": (lambda: with_cell(np.nan), "NaN"),
    "inf": (lambda: with_cell(np.inf), "infinity"),
    "-inf": (lambda: with_cell(-np.inf), "infinity"),
    "NaN in float32": (lambda: with_cell(np.nan, np.float32), "NaN"),
    "inf in float16": (lambda: with_cell(np.inf, np.float16), "infinity"),
    "NaN in csr": (lambda: sparse.csr_matrix(with_cell(np.nan)), "NaN"),
    "inf in csr": (lambda: sparse.csr_matrix(with_cell(np.inf)), "infinity"),
    "csr with a column too far": (lambda: damaged_csr(99), "damaged sparse matrix"),
    "csr with a negative column": (lambda: damaged_csr(-5), "damaged sparse matrix"),
    "csr of 64-bit indices with a column too far": (
        wrapping_csr,
        "damaged sparse matrix",
    ),
    "None": (lambda: with_cell(None, object), "NaN"),
    "pd.NA": (lambda: pd.DataFrame(ROWS, columns=NAMES).astype("Int64").mask(ROWS > 95), "NaN"),
    "pd.NA object": (lambda: with_cell(pd.NA, object), "NaN"),
    "pd.NA in a list": (lambda: with_cell(pd.NA, object).tolist(), "NaN"),
    "pd.NA in pandas objects": (lambda: pd.DataFrame(with_cell(pd.NA, object), columns=NAMES), "NaN"),
    "polars null": (polars_with_null, "NaN"),
    "no rows": (lambda: ROWS[:0], r"0 sample\(s\)"),
    "no columns": (lambda: ROWS[:, :0], r"0 feature\(s\)"),
    "one dimension": (lambda: ROWS[:, 0], "1D array"),
    "three dimensions": (lambda: ROWS[None], "dim 3"),
    "one number": (lambda: 3.0, "scalar array"),
    "nothing": (lambda: None, "scalar array|None"),
    "a path": (lambda: "rows.csv", "X is 'rows.csv', not a table: majorant.open_rows opens"),
    "an iterator": (lambda: iter(ROWS), "X is a .*iterator, which gives its rows only once: give majorant.open_rows"),
    "words": (lambda: np.full((N, 3), "red"), "red"),
    "one word": (lambda: with_cell("red", object), "red"),
    "a plan of polars": (lambda: pl.DataFrame(ROWS, schema=NAMES).lazy(), r"X is a LazyFrame.*give X.collect\(\)"),
    "structs": (
        lambda: pl.DataFrame(ROWS, schema=NAMES).with_columns(pl.struct("a", "c").alias("b")),
        "column 'b' of X holds several values a cell",
    ),
    "lists in cells": (
        lambda: pl.DataFrame(ROWS, schema=NAMES).with_columns(pl.concat_list("a", "c").alias("b")),
        "column 'b' of X holds several values a cell",
    ),
    "complex": (lambda: ROWS + 1j, "[Cc]omplex"),
    "ragged": (lambda: [[1.0, 2.0], [3.0]], "inhomogeneous"),
    "dictionary": (lambda: {"a": [1.0, 2.0]}, "dict"),
    "pandas categories": (lambda: pd.DataFrame(ROWS, columns=NAMES).assign(b=pd.Categorical(["red"] * N)), "red"),
    "polars categories": (
        lambda: pl.DataFrame(ROWS, schema=NAMES).with_columns(pl.Series("b", ["red"] * N, dtype=pl.Categorical)),
        "red",
    ),
    "mixed column names": (lambda: pd.DataFrame(ROWS, columns=["a", 1, "c"]), "names"),
    "pandas columns of one name": (
        lambda: pd.DataFrame(ROWS, columns=["a", "b", "a"]),
        "X has 2 columns named 'a': rename one of them, or leave it out",
    ),
    "arrow columns of one name": (
        lambda: pa.table(list(ROWS.T), names=["c", "b", "c"]),
        "X has 2 columns named 'c': rename one of them, or leave it out",
    ),
    "fewer rows than parts": (lambda: ROWS[:2], "n_samples=2"),
    "one row": (lambda: ROWS[:1], "n_samples=1"),
    "dates": (lambda: ROWS.astype("M8[D]"), r"dates or durations \(datetime64\[D\]\)"),
    "no date": (lambda: np.full((N, 3), "NaT", dtype="M8[s]"), "dates or durations"),
    "durations": (lambda: ROWS.astype("m8[s]"), "dates or durations"),
    "pandas dates": (
        lambda: pd.DataFrame(ROWS, columns=NAMES).assign(b=pd.date_range("2020", periods=N)),
        "column 'b' of X holds dates",
    ),
    "polars dates": (
        lambda: pl.DataFrame(ROWS, schema=NAMES).with_columns(pl.col("b").cast(pl.Int32).cast(pl.Date)),
        "column 'b' of X holds dates",
    ),
    "pandas dates in columns without text as names": (
        lambda: pd.DataFrame({j: pd.date_range("2020", periods=N) for j in range(3)}),
        "column 0 of X holds dates",
    ),
    "pandas durations in columns of one name": (
        lambda: pd.concat([pd.Series(ROWS[:, j]).astype("m8[s]").rename("a") for j in range(3)], axis=1),
        "column 'a' of X holds dates",
    ),
    "arrow dates": (
        lambda: pa.table([*ROWS[:, :2].T, pa.array([datetime(2020, 1, 1)] * N)], names=NAMES),
        "column 'c' of X holds dates",
    ),
    "arrow dates as codes": (
        lambda: pa.table([*ROWS[:, :2].T, pa.array([datetime(2020, 1, 1)] * N).dictionary_encode()], names=NAMES),
        "column 'c' of X holds dates",
    ),
    "pandas categories of dates": (
        lambda: pd.DataFrame(ROWS, columns=NAMES).assign(b=pd.Categorical(pd.date_range("2020", periods=N))),
        "column 'b' of X holds dates",
    ),
    "a date among objects": (lambda: with_cell(np.datetime64("2020-01-01"), object), "row 4, column 1 of X is .*2020"),
    "a duration among objects": (lambda: with_cell(np.timedelta64(3, "D"), object), "row 4, column 1 of X is .*3"),
    "NaT among objects": (lambda: with_cell(pd.NaT, object), "row 4, column 1 of X is NaT"),
    "lists of dates": (lambda: list(map(list, ROWS.astype("M8[D]"))), "dates or durations"),
    "a period in a list": (lambda: with_cell(pd.Period("2020"), object).tolist(), "row 4, column 1 of X is .*2020"),
    "an offset among objects": (
        lambda: with_cell(pd.offsets.Day(3), object),
        "row 4, column 1 of X is .*a date or duration",
    ),
    "a huge whole number": (lambda: with_cell(10**400, object), "row 4, column 1 of X is a whole number .* too large"),
    "masked": (lambda: np.ma.masked_less(ROWS.astype(float), 95), "masked cells"),
    "a list of masked rows": (lambda: list(np.ma.masked_less(ROWS.astype(float), 95)), "masked cells"),
}

TEXT = {"pd.NA object", "pd.NA in a list", "pd.NA in pandas objects", "words", "pandas categories", "polars categories"}
"""What a model that takes text reads: NA is a missing cell, words are levels."""

DEGENERATE: dict[str, tuple[Callable[[], NDArray[Any]], int]] = {
    "one row": (lambda: ROWS[:1], 1),
    "one column": (lambda: ROWS[:, :1], 3),
    "as many rows as parts": (lambda: ROWS[:3], 3),
    "fewer rows than columns": (lambda: np.random.default_rng(0).normal(size=(5, 40)), 2),
    "duplicates": (lambda: np.repeat(ROWS[:4], 6, axis=0), 3),
    "fewer distinct rows than parts": (lambda: np.repeat(ROWS[:2], 6, axis=0), 3),
    "constant column": (lambda: np.column_stack([ROWS, np.full(N, 0.1)]), 3),
    "all rows equal": (lambda: np.full((12, 3), 0.1), 3),
    "all zero": (lambda: np.zeros((12, 3)), 2),
    "booleans": (lambda: ROWS > 50, 3),
    "one far row": (lambda: with_cell(1e12), 2),
    "largest and smallest": (lambda: with_cell(1e-300), 3),
    "minus zero": (lambda: np.array([[0.0], [-0.0], [1.0], [1.0]]), 2),
    "one hot": (lambda: np.eye(6), 3),
}
