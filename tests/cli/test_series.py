"""Hidden Markov models on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import majorant as mj


def test_states_are_those_of_the_most_probable_path(majorant: Callable[..., Any], tmp_path: Path) -> None:
    x = np.random.default_rng(3).normal(np.repeat([0.0, 1.6, 0.0, 1.6, 0.0], 40))
    table = tmp_path / "series.csv"
    frame = pl.DataFrame({"x": x})
    frame.write_csv(table)
    out = tmp_path / "run"
    assert majorant("fit", "hmm", str(table), "--k", "2", "--out", str(out), "--no-report").status == 0
    assert majorant("predict", str(out), str(table), "--out", str(tmp_path / "new.csv")).status == 0
    model = mj.load(out / "model.majorant")
    path, q = model.predict(frame), model.predict_proba(frame)
    assert (path != q.argmax(axis=1)).any()
    for file in (out / "assignments.csv", tmp_path / "new.csv"):
        found = pl.read_csv(file)
        np.testing.assert_array_equal(found["state"].to_numpy(), path + 1)
        np.testing.assert_allclose(found["probability"].to_numpy(), q[np.arange(len(x)), path], atol=1e-6)


def test_weights_of_rows_are_refused_in_words(majorant: Callable[..., Any], tmp_path: Path) -> None:
    table = tmp_path / "series.csv"
    pl.DataFrame({"x": np.arange(20.0), "w": np.ones(20)}).write_csv(table)
    answer = majorant("fit", "hmm", str(table), "--k", "2", "--weights", "w", "--out", str(tmp_path / "run"))
    assert answer.status != 0 and "hidden Markov model takes no --weights." in answer.words
