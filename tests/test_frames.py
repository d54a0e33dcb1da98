"""Data frames out: whole on a terminal and in notebooks, and of the library itself in files."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import majorant as mj
from majorant._frames import _whole_pandas, _whole_polars, data_frame

COLUMNS = {f"a long name {i}": [i + row / 1000 for row in range(100)] for i in range(12)} | {"text": ["x" * 60] * 100}
KINDS = {"pandas": _whole_pandas, "polars": _whole_polars}


@pytest.mark.parametrize("library", KINDS)
def test_every_column_and_row_is_shown(library: str) -> None:
    pytest.importorskip(library)
    frame = KINDS[library]()(COLUMNS)
    for shown in (repr(frame), str(frame), frame._repr_html_()):
        assert "..." not in shown and "…" not in shown
        assert "x" * 60 in shown
    assert frame._repr_html_().count("<tr") >= 101
    assert len(repr(frame).splitlines()) > 100


@pytest.mark.parametrize("library", KINDS)
def test_files_hold_data_frames_of_the_library(library: str) -> None:
    found = pickle.loads(pickle.dumps(KINDS[library]()(COLUMNS)))
    assert type(found) is pytest.importorskip(library).DataFrame
    assert found.to_dict() if library == "pandas" else found.to_dict(as_series=False) == COLUMNS


def test_rows_that_are_chosen_are_shown_whole_too(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.setenv("COLUMNS", "80")
    frame = data_frame(COLUMNS)
    some = frame[frame["a long name 0"] < 0.01].sort_values("a long name 1")
    assert all(name in repr(some) for name in COLUMNS) and "..." not in repr(some)
    assert max(map(len, repr(some.drop(columns="text")).splitlines())) <= 80


@pytest.mark.parametrize(
    "table_of",
    [
        lambda model, X: model.estimates(X),
        lambda model, X: mj.select(model, X, n_components=[1, 2]).to_frame(),
        lambda model, X: model.summary().tables["components"],
    ],
    ids=["estimates", "comparison", "summary"],
)
def test_results_are_shown_whole(table_of: Callable[[Any, Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    X = np.random.default_rng(0).normal(size=(40, 2)) + np.repeat([[0.0], [9.0]], 20, axis=0)
    table = table_of(mj.GaussianMixture(2, covariance_type="spherical", random_state=0).fit(X), X)
    for shown in (repr(table), table._repr_html_()):
        assert all(name in shown for name in table.columns) and "..." not in shown
