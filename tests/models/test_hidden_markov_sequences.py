"""Which rows of a hidden Markov model are one sequence: names, times, columns of a data frame, lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import majorant as mj


def animals() -> tuple[Any, Any]:
    """Two animals of 40 hours each: a table in order, and the same in any order."""
    random = np.random.default_rng(0)
    x = random.normal(np.tile(np.repeat([0.0, 6.0], 10), 4))
    table = pd.DataFrame({"animal": np.repeat(["b", "a"], 40), "hour": np.tile(np.arange(40), 2), "x": x})
    return table, table.sample(frac=1.0, random_state=1).reset_index(drop=True)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_a_data_frame_name_sequences_and_times(library: str) -> None:
    table, mixed = animals()
    plain = mj.HiddenMarkovModel(2, random_state=0).fit(table[["x"]], groups=table["animal"])
    frame = pl.from_pandas(mixed) if library == "polars" else mixed
    cuts: dict[str, Any] = {"groups": "animal", "time": "hour"}
    model = mj.HiddenMarkovModel(2, random_state=0).fit(frame, **cuts)
    assert model.feature_names_in_.tolist() == ["x"] and model.log_likelihood_ == plain.log_likelihood_
    back = np.lexsort((mixed["hour"], mixed["animal"] == "a"))
    for name in ("predict", "predict_proba", "score_samples", "pseudo_residuals"):
        expected = getattr(plain, name)(table[["x"]], groups=table["animal"])
        np.testing.assert_array_equal(getattr(model, name)(frame, **cuts)[back], expected)
    for name in ("bic", "score", "standard_errors", "durations"):
        expected = getattr(plain, name)(table[["x"]], groups=table["animal"])
        np.testing.assert_equal(getattr(model, name)(frame, **cuts), expected)
    ahead = model.forecast(frame, 2, **cuts)
    assert ahead.names is not None and ahead.names.tolist() == ["a", "b"]
    np.testing.assert_array_equal(ahead.mean, plain.forecast(table[["x"]], 2, groups=table["animal"]).mean)
    labels = np.full(80, -1)
    labels[0], moved = 1, np.full(80, -1)
    moved[back[0]] = 1
    known = mj.HiddenMarkovModel(2, random_state=0).fit(table[["x"]], groups=table["animal"], component_labels=labels)
    other = mj.HiddenMarkovModel(2, random_state=0).fit(frame, component_labels=moved, **cuts)
    assert other.log_likelihood_ == known.log_likelihood_


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"time": np.zeros(80)}, "rows 0 and 1 of one sequence have the same time, 0.0"),
        ({"time": np.append(np.arange(79.0), np.nan)}, "time has none for row 79"),
        ({"time": [str(i) for i in range(80)]}, "the text '0', which does not sort as time does"),
        ({"time": ["25/13/2024"] * 80}, "the text '25/13/2024', which does not sort"),
        ({"time": ["5/5/2024", "1/2/2024"] * 40}, "the text '1/2/2024', which may be 1 February or 2 January"),
        ({"time": np.arange(79)}, r"time must be one time per row, shape \(80,\)"),
        ({"groups": "anmal"}, "no column 'anmal'. Did you mean 'animal'"),
    ],
)
def test_times_and_groups_that_cannot_be_used_are_refused(change: dict[str, Any], said: str) -> None:
    table, _ = animals()
    with pytest.raises(ValueError, match=said):
        mj.HiddenMarkovModel(2).fit(table, **{"groups": "animal", "time": "hour", **change})
    with pytest.raises(TypeError, match="names a column, but X is no data frame"):
        mj.HiddenMarkovModel(2).fit(table[["x"]].to_numpy(), groups="animal")


def test_what_is_of_whole_sequences_asks_which_rows_are_one() -> None:
    table, _ = animals()
    x, groups = table[["x"]], table["animal"]
    model = mj.HiddenMarkovModel(2, random_state=0).fit(x, groups=groups)
    for method in (model.forecast, model.bic, model.standard_errors, model.durations):
        with pytest.raises(ValueError, match="the fit had several sequences: say which rows are one"):
            method(x)
    assert model.forecast(x[:40], 1, lengths=[40]).names is None
    single = mj.HiddenMarkovModel(2, random_state=0).fit(x, lengths=[80])
    assert single.forecast(x).names is None and single.bic(x) == single.bic(x, lengths=[80])


def test_a_list_may_have_single_columns() -> None:
    x = animals()[0]["x"].to_numpy()
    tables = [x[:30].reshape(-1, 1), x[30:].reshape(-1, 1)]
    expected = mj.HiddenMarkovModel(2, random_state=0).fit(tables)
    model = mj.HiddenMarkovModel(2, random_state=0).fit([x[:30], x[30:]])
    assert model.log_likelihood_ == expected.log_likelihood_
    with pytest.raises(ValueError, match="which could be sequences or rows"):
        mj.HiddenMarkovModel(2).fit([x[:40], x[40:]])


def test_select_says_where_arguments_of_fit_go() -> None:
    table, _ = animals()
    with pytest.raises(ValueError, match=r"groups is an argument of fit: give it as fit_params=\{'groups': ...\}"):
        mj.select(mj.HiddenMarkovModel(), table[["x"]], n_components=[1, 2], groups=table["animal"])


def test_dates_as_text_are_times() -> None:
    g = np.random.default_rng(0)
    days = pd.date_range("2023-12-20", periods=80).strftime("%Y-%m-%d").to_numpy()
    x, order = g.normal(size=(80, 1)), g.permutation(80)
    plain = mj.HiddenMarkovModel(2, random_state=0).fit(x)
    by_time = mj.HiddenMarkovModel(2, random_state=0).fit(x[order], time=days[order])
    assert by_time.log_likelihood_ == plain.log_likelihood_


@pytest.mark.parametrize(
    "times",
    [
        np.arange(80.0),
        pd.date_range("2023-01-01", periods=80, freq="h"),
        pd.period_range("1980Q1", periods=80, freq="Q").to_numpy(),
        [f"{1980 + i // 4}Q{i % 4 + 1}" for i in range(80)],
        pd.date_range("2023-01-01", periods=80).strftime("%Y-%m-%d").to_numpy(),
        pd.date_range("2023-01-15", periods=80).strftime("%Y%m%d").to_numpy(),
        pd.date_range("2023-01-15", periods=80).strftime("%Y%m%d").to_numpy().astype(int),
        pd.period_range("2020-01", periods=80, freq="M").strftime("%Y%m").to_numpy().astype(float),
        pd.date_range("2023-01-01", periods=80, freq="h", tz="Europe/Berlin"),
    ],
)
def test_gaps_in_time_are_told(times: Any) -> None:
    x, kept = np.random.default_rng(0).normal(size=(80, 1)), np.delete(np.arange(80), [20, 50, 51])
    mj.HiddenMarkovModel(1).fit(x, time=times)
    told = (
        "2 steps of time are longer than the usual one, up to 3 times as long, after row 48. Every row is taken for one"
    )
    with pytest.warns(UserWarning, match=told):
        mj.HiddenMarkovModel(1).fit(x[kept], time=np.asarray(times)[kept])
    uneven = np.concatenate([np.arange(40), 3 * np.arange(14, 27)])
    with pytest.warns(UserWarning, match="Times are not evenly spaced"):
        mj.HiddenMarkovModel(1).fit(x[uneven], time=np.asarray(times)[uneven])


def test_forecasts_are_tables() -> None:
    table, _ = animals()
    model = mj.HiddenMarkovModel(2, random_state=0).fit(table, groups="animal", time="hour")
    ahead = model.forecast(table, 3, groups="animal", time="hour")
    assert repr(ahead) == "<forecast of x: 3 steps of 2 sequences>"
    frame, (low, high) = ahead.to_frame(0.8), ahead.interval(0.8)
    columns = ["sequence", "ahead", "time", "x_mean", "x_low", "x_high", "probability_1", "probability_2"]
    assert list(frame.columns) == columns and frame["sequence"].tolist() == ["a"] * 3 + ["b"] * 3
    for name, values in (("x_mean", ahead.mean), ("x_low", low), ("x_high", high)):
        np.testing.assert_array_equal(frame[name], values.ravel())
    np.testing.assert_array_equal(frame["probability_2"], ahead.states[:, :, 1].ravel())
    lines = mj.HiddenMarkovModel(2, emission="regression", lags=1, random_state=0).fit(table[["x"]])
    assert "x_mean" in lines.forecast(table[["x"]], 2).to_frame().columns


@pytest.mark.parametrize("formula", [None, "y ~ a + b"])
def test_rows_to_come_are_known_by_their_names(formula: str | None) -> None:
    random, n = np.random.default_rng(0), 60
    table = pd.DataFrame({"a": random.normal(size=2 * n), "b": random.normal(size=2 * n)})
    table.insert(0, "y", 3 * table["a"] - table["b"] + 0.1 * random.normal(size=2 * n))
    table["id"], table["t"] = np.repeat(["u", "v"], n), np.tile(np.arange(n), 2)
    cut: dict[str, Any] = {"groups": "id", "time": "t"}
    if formula is None:
        model = mj.HiddenMarkovModel(1, emission="regression").fit(table, **cut)
    else:
        model, cut = mj.HiddenMarkovModel.from_formula(formula, table, n_components=1, **cut), {}
    future = pd.DataFrame({"id": list("uuvv"), "t": [60, 61, 60, 61], "a": [1.0, 2, 3, 4], "b": [4.0, 2, 1, 0]})
    ahead = model.forecast(table, future=future, **cut).mean
    np.testing.assert_allclose(ahead.ravel(), [-1, 4, 8, 12], atol=0.3)
    mixed = future.iloc[[3, 0, 2, 1], ::-1]
    np.testing.assert_array_equal(model.forecast(table, future=mixed, **cut).mean, ahead)
    with pytest.warns(UserWarning, match="2 steps of time into the rows to come are longer .* up to 4 times as long"):
        model.forecast(table, future=future.assign(t=[60, 64, 60, 64]), **cut)
    for wrong, said in (
        (future.assign(t=[5, 6, 60, 61]), "must be later than the last row of their sequence; one has the time 5"),
        (future.assign(t=60), "rows 0 and 1 of one sequence have the same time, 60"),
        (future.drop(columns="b"), "no column 'b'"),
        (future.iloc[:3], "as many rows for each sequence"),
    ):
        with pytest.raises(ValueError, match=said):
            model.forecast(table, future=wrong, **cut)
