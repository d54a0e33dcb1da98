"""Hidden Markov models on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

import majorant as mj
from majorant.cli.matrix import Columns
from majorant.cli.series import in_order
from majorant.cli.tables import SourceTable


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


def moves() -> pl.DataFrame:
    """Two states of three animals, 40 rows each, the last without a few cells."""
    random = np.random.default_rng(0)
    frames = []
    for name in "abc":
        mean = np.where(np.arange(40) // 10 % 2, 4.0, 0.0)
        x, y = random.normal(mean), random.normal(-mean)
        frames.append(pl.DataFrame({"animal": [name] * 40, "hour": np.arange(40), "x": x, "y": y}))
    table = pl.concat(frames)
    return table.with_columns(y=pl.when(pl.arange(0, 120).is_in([85, 97])).then(None).otherwise(pl.col("y")))


def fitted(majorant: Callable[..., Any], table: pl.DataFrame, out: str, *options: str) -> Any:
    table.write_csv(f"{out}.csv")
    sequences = ("--time", "hour", "--sequence", "animal")
    return majorant("fit", "hmm", f"{out}.csv", "--k", "2", *sequences, "--out", out, *options)


def test_rows_in_any_order_are_sorted_by_sequence_and_time(majorant: Callable[..., Any]) -> None:
    table = moves()
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=1)
    for name, rows in (("sorted", table), ("shuffled", shuffled)):
        answer = fitted(majorant, rows, name, "--no-report")
        assert answer.status == 0, answer.err
        assert "120 rows in 3 sequences used" in answer.out and "Warning" not in answer.out
    states = [pl.read_csv(f"{name}/assignments.csv")["state"] for name in ("sorted", "shuffled")]
    both = table.with_columns(one=states[0]).join(shuffled.with_columns(two=states[1]), on=["animal", "hour"])
    assert (both["one"] == both["two"]).all()
    model = mj.load("sorted/model.majorant")
    path = model.predict(table.select("x", "y"), groups=table["animal"])
    np.testing.assert_array_equal(states[0].to_numpy(), path + 1)
    assert majorant("predict", "sorted", "shuffled.csv", "--out", "new.csv").status == 0
    assert (pl.read_csv("new.csv")["state"] == states[1]).all()


def test_a_row_that_lacks_a_cell_only_advances_time_with_drop_missing(majorant: Callable[..., Any]) -> None:
    answer = fitted(majorant, moves(), "run", "--drop-missing")
    assert answer.status == 0 and "120 rows in 3 sequences used, 0 left out" in answer.out
    assert "2 rows without any cell advance time only" in answer.out
    table = moves()
    gone = table.with_columns(x=pl.when(pl.col("y").is_null()).then(None).otherwise(pl.col("x")))
    model = mj.HiddenMarkovModel(2, random_state=0).fit(gone.select("x", "y"), groups=gone["animal"])
    assert mj.load("run/model.majorant").log_likelihood_ == model.log_likelihood_
    assert majorant("report", "run").status == 0
    assert majorant("predict", "run", "run.csv", "--out", "new.csv", "--drop-missing").status == 0
    assert pl.read_csv("new.csv").equals(pl.read_csv("run/assignments.csv"))


def test_gaps_of_time_are_told(majorant: Callable[..., Any]) -> None:
    answer = fitted(majorant, moves().filter(~pl.arange(0, 120).is_in([5, 6, 7, 50])), "run", "--no-report")
    assert answer.status == 0
    words = " ".join(answer.out.split())
    assert '2 steps of "hour" are longer than the usual 1: the longest is 4 after row 5.' in words
    assert "add a row with empty cells" in words
    for command in ("predict", "forecast"):
        told = " ".join(majorant(command, "run", "run.csv", "--out", f"{command}.csv").out.split())
        assert 'Warning: 2 steps of "hour" are longer than the usual 1' in told
    answer = fitted(majorant, moves().with_columns(pl.col("hour") ** 2), "uneven", "--no-report")
    assert '"hour" is not evenly spaced: its steps are from 1 to 77.' in " ".join(answer.out.split())


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30", "2024-05-31", "2024-06-30"], ""),
        (["2024-01", "2024-02", "2024-03", "2024-05", "2024-06", "2024-07"], ""),
        ([f"2024-01-0{day} 00:00" for day in (1, 2, 3, 4, 6)], ""),
        ([f"{year}Q{quarter}" for year in range(1990, 1996) for quarter in range(1, 5) if (year, quarter) != (1992, 2)],
         "2 quarters after row 9"),
        ([f"2024-01-{day:02d} {hour:02d}:00" for day in range(1, 4) for hour in range(24) if (day, hour) != (2, 5)],
         "2 hours after row 29"),
        ([*range(20231222, 20231232), *range(20240101, 20240112), 20240113, 20240114], "2 days after row 21"),
        ([202401, 202402, 202404, *range(202405, 202413), *range(202501, 202510)], "2 months after row 2"),
    ],
)  # fmt: skip
def test_times_may_be_dates_months_and_quarters(times: list[Any], said: str) -> None:
    table = SourceTable(Path("t.csv"), pl.DataFrame({"t": times[::-1]}), "")
    series = in_order(table, Columns((), time="t"))
    assert series.table.frame["t"].to_list() == times
    np.testing.assert_array_equal(series.numbers, np.arange(len(times), 0, -1))
    if said:
        row = len(times) + 1 - int(said.split()[-1])
        assert said.rsplit(" ", 1)[0] in series.said[0] and f"after row {row}." in series.said[0]


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({"hour": pl.lit("noon")}, (), 'column "hour" of bad.csv holds "noon" in row 1, which is read as no time.'),
        (
            {
                "hour": pl.when(pl.col("hour") == 7)
                .then(pl.lit("2024-01-08 00:00Z"))
                .otherwise(pl.lit("2024-01-01 00:00"))
            },
            (),
            'holds "2024-01-08 00:00Z" in row 8 beside "2024-01-01 00:00": one has the time zone Z (UTC)',
        ),
        ({"hour": pl.lit(3)}, (), 'rows 1 and 2 of bad.csv have the same "hour", 3, in one sequence.'),
        (
            {"animal": pl.when(pl.col("x") > 4).then(None).otherwise(pl.lit("a"))},
            (),
            'column "animal" of bad.csv has no sequence',
        ),
        ({}, ("--features", "hour,x"), '"hour" cannot be a feature and have another role at once.'),
    ],
)
def test_times_and_sequences_that_cannot_be_used_are_refused(
    majorant: Callable[..., Any], change: dict[str, Any], options: tuple[str, ...], said: str
) -> None:
    answer = fitted(majorant, moves().with_columns(**change), "bad", *options)
    assert answer.status != 0 and said in answer.words


def test_models_of_rows_take_no_time(majorant: Callable[..., Any]) -> None:
    moves().write_csv("t.csv")
    answer = majorant("fit", "kmeans", "t.csv", "--time", "hour", "--out", "run")
    assert answer.status != 0 and "k-means takes no --time" in answer.words
    answer = majorant("fit", "hmm", "t.csv", "--time", "hour", "--sequence", "hour", "--out", "run")
    assert answer.status != 0 and '"hour" cannot be the time and the sequence' in answer.words


def test_a_forecast_has_the_rows_that_follow_each_sequence(majorant: Callable[..., Any]) -> None:
    table = moves()
    assert fitted(majorant, table, "run", "--no-report").status == 0
    answer = majorant("forecast", "run", "run.csv", "--steps", "3", "--level", "0.8", "--out", "ahead.csv")
    assert answer.status == 0 and "3 steps of 3 sequences" in answer.out
    found = pl.read_csv("ahead.csv")
    ahead = mj.load("run/model.majorant").forecast(table.select("x", "y"), 3, groups=table["animal"])
    assert found["sequence"].to_list() == [name for name in "abc" for _ in range(3)]
    assert found["ahead"].to_list() == [1, 2, 3] * 3
    np.testing.assert_allclose(found["y_mean"].to_numpy(), ahead.mean[:, :, 1].ravel())
    np.testing.assert_allclose(found["x_high"].to_numpy(), ahead.interval(0.8)[1][:, :, 0].ravel())
    np.testing.assert_allclose(found["probability_2"].to_numpy(), ahead.states[:, :, 1].ravel())


def test_a_forecast_of_standardised_columns_is_in_the_units_of_the_table(majorant: Callable[..., Any]) -> None:
    table = moves().select("hour", "x").head(40)
    table.write_csv("t.csv")
    for out, options in (("plain", ()), ("units", ("--standardise",))):
        fit = ("fit", "hmm", "t.csv", "--k", "2", "--time", "hour", "--out", out, "--no-report", *options)
        assert majorant(*fit).status == 0
        assert majorant("forecast", out, "t.csv", "--out", f"{out}.csv").status == 0
    plain, units = pl.read_csv("plain.csv"), pl.read_csv("units.csv")
    for name in ("x_mean", "x_low", "x_high"):
        np.testing.assert_allclose(units[name].to_numpy(), plain[name].to_numpy(), rtol=1e-5)


def test_models_of_rows_have_no_forecast(majorant: Callable[..., Any]) -> None:
    moves().select("x").write_csv("t.csv")
    assert majorant("fit", "gaussian-mixture", "t.csv", "--k", "2", "--out", "run", "--no-report").status == 0
    answer = majorant("forecast", "run", "t.csv", "--out", "f.csv")
    assert answer.status != 0 and "Gaussian mixture has no forecast: it is no model of series." in answer.words


def test_the_demo_is_a_series(majorant: Callable[..., Any]) -> None:
    answer = majorant("demo", "hmm", "--out", "demo")
    assert answer.status == 0 and "-341.879" in answer.out and "earthquakes" in answer.out
    assert Path("demo/run/report.html").is_file()


def quarters() -> pl.DataFrame:
    """Two regimes of a line on a number and the row before; one cell is missing."""
    random, states = np.random.default_rng(0), np.repeat([0, 1, 0, 1], 30)
    x, y = random.normal(size=120), np.zeros(120)
    for t in range(1, 120):
        y[t] = (1 + 2 * x[t] if states[t] == 0 else 6 - x[t]) + 0.3 * y[t - 1] + 0.3 * random.normal()
    frame = pl.DataFrame({"quarter": [f"{1990 + t // 4}Q{t % 4 + 1}" for t in range(120)], "x": x, "y": y})
    return frame.with_columns(x=pl.when(pl.arange(0, 120) == 50).then(None).otherwise(pl.col("x")))


def test_a_series_is_fitted_predicted_and_reported_by_formula(majorant: Callable[..., Any]) -> None:
    table = quarters()
    table.sample(fraction=1.0, shuffle=True, seed=1).write_csv("t.csv")
    text = "y ~ lag(y) + x + lag(x)"
    answer = majorant("fit", "hmm", "t.csv", "--formula", text, "--time", "quarter", "--k", "1:2", "--out", "run")
    assert answer.status == 0, answer.words
    model = mj.load("run/model.majorant")
    assert (model.n_components, model.lags, model.feature_names_in_.tolist()) == (2, 1, ["y", "x", "lag(x)"])
    expected = model.predict(table)
    assert majorant("predict", "run", "t.csv", "--out", "new.csv").status == 0
    for file in ("run/assignments.csv", "new.csv"):
        states = pl.read_csv("t.csv").with_columns(state=pl.read_csv(file)["state"]).sort("quarter")["state"]
        np.testing.assert_array_equal(states.to_numpy(), expected + 1)
    assert majorant("report", "run").status == 0
    assert "lag(x)" in Path("run/report.html").read_text(encoding="utf-8")


def test_transitions_depend_on_terms(majorant: Callable[..., Any]) -> None:
    random, state = np.random.default_rng(0), np.zeros(240, dtype=int)
    rain = random.normal(size=240)
    for t in range(1, 240):
        state[t] = (random.random() < 1 / (1 + np.exp(2 - 2 * rain[t]))) != state[t - 1]
    table = pl.DataFrame({"day": np.arange(240), "x": random.normal(4.0 * state), "rain": rain})
    table.sample(fraction=1.0, shuffle=True, seed=1).write_csv("t.csv")
    options = ("--time", "day", "--features", "x", "--gating", "rain", "--out", "run")
    answer = majorant("fit", "hmm", "t.csv", *options, "--k", "1:2")
    assert answer.status == 0, answer.words
    model = mj.load("run/model.majorant")
    assert (model.n_components, model.gating_names_in_) == (2, ["rain"])
    assert majorant("predict", "run", "t.csv", "--out", "new.csv").status == 0
    for file in ("run/assignments.csv", "new.csv"):
        states = pl.read_csv("t.csv").with_columns(state=pl.read_csv(file)["state"]).sort("day")["state"]
        np.testing.assert_array_equal(states.to_numpy(), model.predict(table) + 1)
    assert majorant("report", "run").status == 0
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert "where all covariates are at their mean" in page and "Residuals" in page
    answer = majorant("forecast", "run", "t.csv", "--out", "ahead.csv")
    assert answer.status != 0 and "needs rain of the rows to come" in answer.words and "--future TABLE" in answer.words
    pl.DataFrame({"rain": [3.0, -2.0], "day": [241, 240]}).write_csv("future.csv")
    assert majorant("forecast", "run", "t.csv", "--future", "future.csv", "--out", "ahead.csv").status == 0
    ahead = model.forecast(table, gating_ahead=[[-2.0], [3.0]], n_steps=2)
    np.testing.assert_allclose(pl.read_csv("ahead.csv")["x_mean"].to_numpy(), ahead.mean[0, :, 0])


def test_a_forecast_knows_the_terms_of_the_rows_to_come(majorant: Callable[..., Any]) -> None:
    random, s = np.random.default_rng(0), np.tile(np.repeat([0, 1], 25), 4)
    x, season = random.normal(size=200), np.tile(["dry", "wet"], 100)
    y = np.where(s, 1 + 2 * x, 4 - x) + (season == "wet") + 0.3 * random.normal(size=200)
    table = pl.DataFrame({"id": np.repeat(["a", "b"], 100), "t": np.tile(np.arange(100), 2), "x": x, "y": y})
    table = table.with_columns(season=pl.Series(season))
    table.write_csv("t.csv")
    options = ("--time", "t", "--sequence", "id", "--formula", "y ~ x + season + lag(x)", "--k", "2", "--out", "run")
    answer = majorant("fit", "hmm", "t.csv", *options, "--no-report")
    assert answer.status == 0 and "--future FUTURE.csv" in answer.out
    future = pl.DataFrame(
        {"id": ["b", "b", "a", "a"], "t": [101, 100, 100, 101], "x": [1.0, 2, 3, 4], "season": ["dry", "wet"] * 2}
    )
    future.write_csv("future.csv")
    assert majorant("forecast", "run", "t.csv", "--future", "future.csv", "--out", "ahead.csv").status == 0
    found = pl.read_csv("ahead.csv")
    assert found["sequence"].to_list() == ["a", "a", "b", "b"]
    model = mj.HiddenMarkovModel.from_formula(
        "y ~ x + season + lag(x)", table, groups="id", time="t", n_components=2, random_state=0
    )
    q, at = model.predict_proba(table, given="past")[199], np.array([[2.0, 1, x[199]], [1.0, 0, 2.0]])
    for row, terms in zip(found.filter(sequence="b").to_dicts(), at, strict=True):
        q = q @ model.transitions_
        np.testing.assert_allclose(row["y_mean"], q @ (model.intercept_ + model.coef_ @ terms), rtol=1e-4)
        centres, level = model.intercept_ + model.coef_ @ terms, np.sqrt(model.variances_)
        np.testing.assert_allclose(q @ norm.cdf(row["y_low"], centres, level), 0.05, atol=1e-4)
    by_table = model.forecast(table.to_pandas(), future=future.to_pandas())
    np.testing.assert_allclose(by_table.mean.ravel(), found["y_mean"].to_numpy(), rtol=1e-4)
    for wrong, words in (
        (future[:3], "must have as many rows for each sequence"),
        (future.drop("x"), "no column 'x'"),
        (future.with_columns(x=None), "lacks a value"),
        (
            future.with_columns(t=pl.col("t") - 1),
            "must be later than the last row of their sequence; one has the time 99",
        ),
    ):
        wrong.write_csv("wrong.csv")
        answer = majorant("forecast", "run", "t.csv", "--future", "wrong.csv", "--out", "no.csv")
        assert answer.status != 0 and words in answer.words, answer.words
    future.with_columns(t=pl.col("t") + 2).write_csv("later.csv")
    told = majorant("forecast", "run", "t.csv", "--future", "later.csv", "--out", "later_ahead.csv").out
    assert "2 steps of time into the rows to come are longer than the usual one, up to 3 times" in " ".join(
        told.split()
    )


def test_a_formula_of_series_that_cannot_be_is_refused_in_words(majorant: Callable[..., Any]) -> None:
    quarters().with_columns(id=pl.lit("a")).write_csv("t.csv")
    for options, words in (
        (("--formula", "y ~ lag(z)"), "no column 'z'"),
        (("--formula", "y ~ x | id"), "Write --sequence id instead."),
        (("--formula", "y ~ x", "--groups", "id"), "takes no --groups"),
    ):
        answer = majorant("fit", "hmm", "t.csv", *options, "--k", "2", "--out", "run")
        assert answer.status != 0 and words in answer.words, answer.words


def test_emissions_and_transitions_are_set_by_lists(majorant: Callable[..., Any]) -> None:
    random, s = np.random.default_rng(0), np.repeat([0, 1], 40)
    step, angle = random.gamma(1.0 + 3 * s, 20.0 + 80 * s), random.vonmises(3.0 - 3 * s, 1.0 + 3 * s)
    pl.DataFrame({"step": step, "angle": angle}).write_csv("t.csv")
    settings = ("--set", "emission=gamma,von_mises", "--set", "allowed=[[1,1],[0,1]]", "--set", "start=[1,0]")
    answer = majorant("fit", "hmm", "t.csv", "--k", "2", *settings, "--out", "run")
    assert answer.status == 0, answer.words
    model = mj.load("run/model.majorant")
    assert model.transitions_[1, 0] == 0 and model.step_means_[1, 0] > model.step_means_[0, 0]


def test_gaps_are_filled_in_every_command_where_the_fit_filled_them(majorant: Callable[..., Any]) -> None:
    table, lost = (
        moves().with_columns(hour=pl.format("2024-03-0{} {}:00", 1 + pl.col("hour") // 24, pl.col("hour") % 24)),
        [5, 6, 50],
    )
    table = table.with_columns(pl.col("hour").str.to_datetime("%Y-%m-%d %H:%M").dt.strftime("%Y-%m-%d %H:%M"))
    empty = table.with_columns(
        pl.when(pl.arange(0, 120).is_in(lost)).then(None).otherwise(pl.col("x", "y")).name.keep()
    )
    assert fitted(majorant, empty, "whole", "--no-report").status == 0
    answer = fitted(
        majorant,
        table.filter(~pl.arange(0, 120).is_in(lost)).sample(fraction=1.0, shuffle=True, seed=0),
        "run",
        "--fill-gaps",
    )
    assert answer.status == 0 and "Warning" not in answer.out
    assert "120 rows in 3 sequences used, 3 of them added for times that lack" in " ".join(answer.out.split())
    keys, state = ["animal", "hour"], pl.read_csv("whole/assignments.csv").drop("row").sort("animal", "hour")
    assert state.columns[:3] == ["animal", "hour", "state"]
    assert majorant("predict", "run", "run.csv", "--out", "new.csv").status == 0
    for file in ("run/assignments.csv", "new.csv"):
        found = pl.read_csv(file)
        assert found["row"].to_list() == list(range(1, 121))
        assert found.drop("row").sort("animal", "hour")[[*keys, "state"]].equals(state[[*keys, "state"]])
    assert majorant("report", "run").status == 0
    assert majorant("forecast", "run", "run.csv", "--steps", "2", "--out", "ahead.csv").status == 0
    ahead = pl.read_csv("ahead.csv")
    assert ahead["hour"].to_list() == ["2024-03-02 16:00", "2024-03-02 17:00"] * 3
    times = pl.read_csv("run/tables/forecast.csv")["Time"].to_list()
    assert times[:2] == ahead["hour"].to_list()[:2]


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({}, ("--fill-gaps",), ""),
        ({"hour": pl.col("hour") ** 2}, ("--fill-gaps",), 'the gaps of "hour" cannot be filled: steps of 1 and 39'),
        (
            {"hour": pl.format("{}/{}/2024", 1 + pl.col("hour") % 12, 1 + pl.col("hour") // 12)},
            (),
            'column "hour" of bad.csv holds "2/1/2024" in row 2, which may be 2 January or 1 February',
        ),
    ],
)
def test_times_that_cannot_be_filled_or_may_be_two_are_told(
    majorant: Callable[..., Any], change: dict[str, Any], options: tuple[str, ...], said: str
) -> None:
    answer = fitted(majorant, moves().with_columns(**change), "bad", "--no-report", *options)
    assert (answer.status != 0) == bool(said) and said in answer.words
    answer = majorant("fit", "hmm", "bad.csv", "--fill-gaps", "--out", "none")
    assert answer.status != 0 and "--fill-gaps needs times" in answer.words


def test_a_date_that_does_not_order_the_rows_is_told(majorant: Callable[..., Any], tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(np.repeat([0.0, 8.0], 15))
    days = [f"2024-01-{1 + i:02d}" for i in range(30)]
    pl.DataFrame({"day": days, "x": x}).write_csv("days.csv")
    fit = ["fit", "hmm", "days.csv", "--k", "2", "--no-report"]
    told = " ".join(majorant(*fit, "--out", "run").out.split())
    assert (
        '"day" is a date, but rows are taken in the order of the table, all as one series: name it with --time' in told
    )
    assert "is a date, but" not in majorant(*fit, "--time", "day", "--out", "run2").out
