"""Rows of a stream with missing entries; rows without are tested through the models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from majorant.data.opening import open_rows
from majorant.data.rows import Rows, rows_in_memory, rows_streamed, unobserved_message
from majorant.data.storage import stored_rows


def streamed(x: NDArray[Any], folder: Path, weights: NDArray[np.float64] | None = None, **options: Any) -> Rows:
    np.save(folder / "x.npy", x)
    source = stored_rows(open_rows(folder / "x.npy"))
    assert source is not None
    source.weights = weights
    return rows_streamed(source, 0, 1, **options)


def gappy(n: int = 20_000) -> NDArray[np.float64]:
    random = np.random.default_rng(0)
    x = random.normal([1e4, 0.0, -3.0], [1.0, 2.0, 0.1], (n, 3))
    x[random.random(x.shape) < 0.3] = np.nan
    x[:, 1][:9000] = np.nan  # more than the first block
    return x


def test_a_stream_with_missing_entries_is_the_rows_in_memory(tmp_path: Path) -> None:
    x = gappy()
    w = np.random.default_rng(1).integers(0, 4, len(x)).astype(np.float64)
    stream, memory = streamed(x, tmp_path, w, allow_missing=True), rows_in_memory(x, w, 1)
    np.testing.assert_allclose(stream.variances, memory.variances, rtol=1e-9)
    found = np.concatenate([block.columns[0] for block in stream.data.source.blocks()])
    np.testing.assert_allclose(found + stream.measure.origin, x, rtol=1e-12)
    assert np.isfinite(stream.scatter) and np.isfinite(stream.measure.origin).all()


def test_missing_entries_of_a_stream_are_refused_unless_they_are_allowed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"row 0, column \d of X is nan: drop rows with missing"):
        streamed(gappy(), tmp_path)


def test_infinity_is_never_a_missing_entry(tmp_path: Path) -> None:
    x = gappy()
    x[12_345, 2] = np.inf
    with pytest.raises(ValueError, match="row 12345, column 2 of X is inf: write NaN where an entry is missing"):
        streamed(x, tmp_path, allow_missing=True)


def test_a_column_without_entries_is_named(tmp_path: Path) -> None:
    x = gappy()
    w = np.ones(len(x))
    w[~np.isnan(x[:, 1])] = 0.0
    with pytest.raises(ValueError, match="column 1 of X has no entry in any row with weight"):
        streamed(x, tmp_path, w, allow_missing=True)
    said = unobserved_message(np.array([True, False, True]), ["age", "sex", "income"])
    assert said.startswith("column 0 ('age') and column 2 ('income') of X have no entry")
