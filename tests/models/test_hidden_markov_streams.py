"""Sequences that are read part by part give the answers of those in memory, and equal parts equal bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import majorant as mj
from majorant.models.hidden_markov import stream

SIZES = [60, 40, 90, 20, 70]
CHUNKS = [100, 110, 70]
KINDS: dict[str, dict[str, Any]] = {
    "gaussian": {},
    "gaps": {},
    "lags": {"emission": "regression", "lags": 1},
    "columns": {"emission": ["poisson", "categorical"], "start": "stationary"},
}


def rows_of(kind: str) -> Any:
    """Rows of two states in five sequences; of categories one that only the last sequence has."""
    random = np.random.default_rng(3)
    states = np.repeat(random.integers(0, 2, sum(SIZES) // 10), 10)
    X = random.normal(size=(len(states), 2)) + 4.0 * states[:, None]
    if kind == "columns":
        X = np.column_stack([random.poisson(1 + 9 * states), random.integers(0, 2, len(states)) + states])
        X[-1, 1] = 7
    if kind == "gaps":
        X[::9, 1] = np.nan
        X[50] = np.nan
    return X.astype(np.float64)


def of_function(X: Any, folder: Path) -> Any:
    parts = np.split(X, np.cumsum(CHUNKS)[:-1])
    return mj.open_rows(lambda: list(parts))


def of_file(X: Any, folder: Path) -> Any:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, ends = folder / "rows.parquet", np.cumsum(CHUNKS)
    table = pa.table({"x1": X[:, 0], "x2": X[:, 1]})
    with pq.ParquetWriter(path, table.schema) as writer:
        for end, n in zip(ends, CHUNKS, strict=True):
            writer.write_table(table.slice(end - n, n), row_group_size=n)
    return mj.open_rows(path)


def of_dask(X: Any, folder: Path) -> Any:
    return pytest.importorskip("dask.array").from_array(X, chunks=(tuple(CHUNKS), 2))


FORMS: list[Callable[[Any, Path], Any]] = [of_function, of_file, of_dask]


@pytest.mark.parametrize("kind", list(KINDS))
def test_parts_give_the_answers_of_the_whole_and_equal_parts_equal_bits(kind: str, tmp_path: Path) -> None:
    X = rows_of(kind)
    settings: dict[str, Any] = {"n_components": 2, "effort": "fast", "tol": 1e-13, "random_state": 0}
    settings |= KINDS[kind]
    parts, cut, w = np.split(X, np.cumsum(SIZES)[:-1]), {"lengths": SIZES}, np.array([1.0, 2.0, 1.0, 1.0, 3.0])
    whole = mj.HiddenMarkovModel(**settings).fit(parts, sequence_weight=w)
    models = []
    for form in FORMS:
        rows = form(X, tmp_path)
        model = mj.HiddenMarkovModel(**settings).fit(rows, sequence_weight=w, **cut)
        models.append(model)
        np.testing.assert_allclose(model.log_likelihood_, whole.log_likelihood_, rtol=1e-9)
        np.testing.assert_array_equal(model.predict(rows, **cut), whole.predict(parts))
        for name in ("predict_proba", "score_samples"):
            expected = getattr(whole, name)(parts)
            np.testing.assert_allclose(getattr(model, name)(rows, **cut), expected, atol=1e-5)
        for name in ("bic", "icl", "score"):
            expected = getattr(whole, name)(parts, sequence_weight=w)
            np.testing.assert_allclose(getattr(model, name)(rows, sequence_weight=w, **cut), expected, rtol=1e-7)
        np.testing.assert_allclose(model.durations(rows, **cut), whole.durations(parts), rtol=1e-4)
        errors, expected = model.standard_errors(rows, **cut), whole.standard_errors(parts)
        np.testing.assert_allclose(errors["transitions"], expected["transitions"], rtol=1e-3)
        if kind != "lags":
            np.testing.assert_allclose(model.forecast(rows, 2, **cut).mean, whole.forecast(parts, 2).mean, rtol=1e-5)
    for other in models[1:]:
        for name in other.estimate_names_:
            np.testing.assert_array_equal(getattr(other, f"{name}_"), getattr(models[0], f"{name}_"), err_msg=name)
        assert other.log_likelihood_ == models[0].log_likelihood_


def test_the_search_goes_over_whole_sequences_and_the_descent_over_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "SAMPLED", 150)
    X = rows_of("columns")
    rows, settings = of_function(X, Path()), {"n_components": 2, "random_state": 0, **KINDS["columns"]}
    whole = mj.HiddenMarkovModel(**settings).fit(X, lengths=SIZES)
    for cut in ({"lengths": SIZES}, {"groups": np.repeat(list("bdace"), SIZES)}):
        model = mj.HiddenMarkovModel(**settings).fit(rows, **cut)
        assert model.emissions_[1].levels[0].tolist() == [0, 1, 2, 7]
        np.testing.assert_allclose(model.log_likelihood_, whole.log_likelihood_, rtol=1e-7)
        assert model.n_rows_ == len(X) and "The search went over whole sequences" in model.search_.note
    names = model.forecast(rows, 1, **cut).names
    assert names is not None and names.tolist() == list("abcde")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "which rows of a stream are one sequence"),
        ({"lengths": [140, 140]}, "rows of sequence 0 lie in the chunks 0 and 1"),
        ({"groups": np.arange(280) % 2}, "rows of sequence 0 lie in the rows 0 and 2"),
        ({"groups": "animal"}, "names a column of a data frame in memory"),
        ({"lengths": SIZES, "time": np.arange(280)}, "time needs rows in memory"),
        ({"lengths": SIZES, "gating": np.ones((280, 1))}, "depend on covariates need rows in memory"),
        ({"lengths": SIZES, "component_labels": np.zeros(280)}, "component_labels needs rows in memory"),
    ],
)
def test_what_parts_cannot_be_is_refused(given: dict[str, Any], said: str, tmp_path: Path) -> None:
    rows = of_dask(rows_of("gaussian"), tmp_path)
    with pytest.raises((ValueError, TypeError), match=said):
        mj.HiddenMarkovModel(2).fit(rows, **given)


def test_cells_and_weights_that_parts_cannot_have_are_refused() -> None:
    X = rows_of("columns")
    X[110, 0] = -1
    for rows in (X, of_function(X, Path())):
        with pytest.raises(ValueError, match="row 110, column 0 of X is -1"):
            mj.HiddenMarkovModel(2, emission="poisson").fit(rows, lengths=SIZES)
        some = rows_of("gaps") if rows is X else of_function(rows_of("gaps"), Path())
        with pytest.raises(ValueError, match="row 0 of X lacks some cells"):
            mj.HiddenMarkovModel(2, emission="student").fit(some, lengths=SIZES)
    X[110, 0] = np.inf
    with pytest.raises(ValueError, match="row 110, column 0 of X is inf"):
        mj.HiddenMarkovModel(2).fit(of_function(X, Path()), lengths=SIZES)
    weighted = mj.open_rows(lambda: [(np.zeros((4, 1)), np.zeros(4), np.array([1.0, 1.0, 1.0, 2.0]))])
    with pytest.raises(ValueError, match="rows 2 and 3 of one sequence have different weights"):
        mj.HiddenMarkovModel(1).fit(weighted, lengths=[4])
    model = mj.HiddenMarkovModel(2, random_state=0).fit(rows_of("gaussian"), lengths=SIZES)
    with pytest.raises(TypeError, match="needs rows in memory, and X is read part by part"):
        model.pseudo_residuals(of_function(rows_of("gaussian"), Path()), lengths=SIZES)


def test_partitions_of_a_dask_frame_have_sequences_by_a_column() -> None:
    dd = pytest.importorskip("dask.dataframe")
    X = rows_of("gaussian")
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "animal": np.repeat([0.2, 0.7, 1.5, 1.9, 2.0], SIZES)})
    table.index = np.repeat(np.arange(5), SIZES)
    frame = dd.from_pandas(table, npartitions=3)
    model = mj.HiddenMarkovModel(2, random_state=0).fit(frame[["a", "b"]], groups=frame["animal"])
    whole = mj.HiddenMarkovModel(2, random_state=0).fit(table[["a", "b"]], groups=table["animal"])
    np.testing.assert_allclose(model.log_likelihood_, whole.log_likelihood_, rtol=1e-9)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    torn = frame["animal"].mask(frame["animal"] == 1.5, 0.2)
    with pytest.raises(ValueError, match=r"rows of sequence 0\.2 lie in the rows"):
        mj.HiddenMarkovModel(2).fit(frame[["a", "b"]], groups=torn)
    states = model.predict(frame[["a", "b"]], groups=frame["animal"])
    np.testing.assert_array_equal(states, whole.predict(table[["a", "b"]], groups=table["animal"]))


@pytest.mark.parametrize("lags", [0, 1])
@pytest.mark.parametrize("varies", [True, False])
@pytest.mark.filterwarnings("ignore:Columns have no effect of their own")
def test_a_column_that_is_the_same_in_a_sample_counts_where_it_varies_in_other_rows(
    monkeypatch: pytest.MonkeyPatch, varies: bool, lags: int
) -> None:
    monkeypatch.setattr(stream, "SAMPLED", 60)
    random, codes = np.random.default_rng(0), np.repeat(np.arange(5), 40)
    x, found = random.normal(size=200), list[bool]()
    for last in range(5):  # whichever the sample leaves out
        rare = np.where(codes == last, random.normal(size=200), 3.0) if varies else np.full(200, 3.0)
        X = np.column_stack([1 + 2 * x + 0.5 * rare + random.normal(size=200), x, rare])
        model = mj.HiddenMarkovModel(1, emission="regression", lags=lags, random_state=0)
        whole = mj.HiddenMarkovModel(1, emission="regression", lags=lags, random_state=0).fit(X, groups=codes)
        model.fit(mj.open_rows(lambda X=X: [X[:80], X[80:]]), groups=codes)
        np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-8)
        errors = model.standard_errors(X, groups=codes), whole.standard_errors(X, groups=codes)
        np.testing.assert_allclose(*(one["intercept"] for one in errors), rtol=1e-6)
        found.append(np.isnan(errors[0]["coef"][0, -1]))
    assert all(found) is not varies and any(found) is not varies
